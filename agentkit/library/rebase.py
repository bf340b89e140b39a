"""Moving a change onto a newer revision: a three-way merge over the fields of a definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from agentkit.tools.definition import ToolDefinition

_BY_KEY = frozenset({"description.parameters"})
"""Mappings whose entries are changed one by one. Others, such as a schema, are one value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Conflict:
    """A field that both sides changed, each in its own way.

    Attributes:
        field: Dotted path, such as ``description.summary``.
    """

    field: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Rebased:
    """What a change comes to on a newer revision.

    Attributes:
        definition: The newer revision with the change in it; where there are conflicts, these
            fields are as the newer revision has them.
        conflicts: Fields that can not be merged.
    """

    definition: ToolDefinition
    conflicts: tuple[Conflict, ...] = ()


def rebase(base: ToolDefinition, candidate: ToolDefinition, newest: ToolDefinition) -> Rebased:
    """The change from ``base`` to ``candidate``, made to ``newest`` instead.

    A field that one side left alone comes from the other. Lists, such as usage rules and examples,
    are merged by their entries: what one side took out is out, what one side put in is in. When
    both took out the same entry and put in different ones, that is a conflict, because each
    probably is another wording of the same.

    Args:
        base: The revision that both sides began with.
        candidate: One side: the proposal.
        newest: The other side: what the library holds by now.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.tools.definition import Description
        >>> base = ToolDefinition(name="ping", description=Description(summary="Ping."))
        >>> said = replace(base, description=Description(summary="Ping a host."))
        >>> tagged = replace(base, description=Description(summary="Ping.", tags=("net",)))
        >>> merged = rebase(base, said, tagged).definition.description
        >>> merged.summary, merged.tags
        ('Ping a host.', ('net',))
        >>> rebase(base, said, replace(base, description=Description(summary="Pong."))).conflicts
        (Conflict(field='description.summary'),)
    """
    conflicts: list[Conflict] = []
    merged: ToolDefinition = _record("", base, candidate, newest, conflicts)
    return Rebased(definition=replace(merged, origin=newest.origin), conflicts=tuple(conflicts))


def _record(path: str, base: Any, ours: Any, theirs: Any, conflicts: list[Conflict]) -> Any:
    changes = {}
    for field in fields(base):
        if field.name == "origin":
            continue
        inner = f"{path}.{field.name}" if path else field.name
        before, mine, yours = (getattr(side, field.name) for side in (base, ours, theirs))
        changes[field.name] = _merged(inner, before, mine, yours, conflicts)
    return replace(theirs, **changes)


def _merged(path: str, base: Any, ours: Any, theirs: Any, conflicts: list[Conflict]) -> Any:
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    if is_dataclass(base) and type(base) is type(ours) is type(theirs):
        return _record(path, base, ours, theirs, conflicts)
    if path in _BY_KEY:
        return _mapping(path, base, ours, theirs, conflicts)
    if isinstance(base, tuple):
        merged = _list(base, ours, theirs)
        if merged is not None:
            return merged
    conflicts.append(Conflict(field=path))
    return theirs


_ABSENT = object()


def _mapping(
    path: str,
    base: Mapping[str, Any],
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    conflicts: list[Conflict],
) -> dict[str, Any]:
    merged = {}
    for key in dict.fromkeys((*theirs, *ours)):
        before, mine, yours = (side.get(key, _ABSENT) for side in (base, ours, theirs))
        value = _merged(f"{path}.{key}", before, mine, yours, conflicts)
        if value is not _ABSENT:
            merged[key] = value
    return merged


def _list(
    base: Sequence[Any], ours: Sequence[Any], theirs: Sequence[Any]
) -> tuple[Any, ...] | None:
    """Entries of both sides; None when both replaced the same entry by different ones."""
    our_new, their_new = _less(ours, base), _less(theirs, base)
    both_dropped = _less(_less(base, ours), theirs)
    if both_dropped and _less(our_new, their_new) and _less(their_new, our_new):
        return None
    dropped = _less(base, ours)
    return (*_less(theirs, dropped), *_less(our_new, their_new))


def _less(entries: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(entry for entry in entries if entry not in others)
