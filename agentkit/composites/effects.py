"""What a composite does to the world, from what its children do."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.tools.definition import Effects


def join_effects(effects: Iterable[Effects]) -> Effects:
    """The effects of running tools together.

    An effect holds when it holds for one of them, and is absent when it is absent from all;
    otherwise it stays undeclared. ``idempotent`` is the other way round: it holds when it holds
    for all. Nothing at all changes nothing.

    Example:
        >>> reads, deletes = Effects.of(["reads"]), Effects.of(["destructive"])
        >>> join_effects([reads, deletes]).to_json()
        {'reads': True, 'writes': True, 'destructive': True}
    """
    each = tuple(effects)
    return Effects(
        reads=_any(effect.reads for effect in each),
        writes=_any(effect.writes for effect in each),
        destructive=_any(effect.destructive for effect in each),
        idempotent=_all(effect.idempotent for effect in each),
        open_world=_any(effect.open_world for effect in each),
    )


def _any(declared: Iterable[bool | None]) -> bool | None:
    values = set(declared)
    if True in values:
        return True
    return None if None in values else False


def _all(declared: Iterable[bool | None]) -> bool | None:
    values = set(declared)
    if False in values:
        return False
    return None if None in values else True
