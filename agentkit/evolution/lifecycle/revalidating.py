"""Looking at the composites again whose children changed untried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.composites.problems import CompositeLimits
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.lifecycle.ancestors import Tried, try_composite
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author


@dataclass(frozen=True, kw_only=True, slots=True)
class Revalidation:
    """What looking again showed.

    Attributes:
        holds: Composites that do what their worked calls say; they are no longer marked.
        broken: By name: how a composite broke. It stays marked, and somebody must act.
        unknown: By name: why nobody knows; it stays marked.
    """

    holds: tuple[str, ...] = ()
    broken: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """What was found as a JSON object."""
        return {
            "holds": list(self.holds),
            "broken": dict(self.broken),
            "unknown": dict(self.unknown),
        }


async def look_again(
    on: Position, names: Iterable[str], *, policy: InsertPolicy, limits: CompositeLimits
) -> tuple[Revalidation, dict[str, Tried]]:
    """Try marked composites; one that was removed meanwhile holds nothing up any more."""
    tried: dict[str, Tried] = {}
    for name in names:
        tool = on.library.get(name)
        tried[name] = (
            Tried()
            if tool is None
            else await try_composite(tool.definition, on.library, policy=policy, limits=limits)
        )
    result = Revalidation(
        holds=tuple(name for name, one in tried.items() if not one.broken and not one.unknown),
        broken={name: one.broken for name, one in tried.items() if one.broken},
        unknown={name: one.unknown for name, one in tried.items() if one.unknown},
    )
    return result, tried


def revalidation_step(on: Position, tried: Mapping[str, Tried], author: Author) -> Step | None:
    """What is written of it; None when nothing is known that was not known before."""
    drafts = tuple(
        EventDraft(
            kind="revalidated",
            author=author,
            reason=one.broken or "its worked calls hold",
            tool_name=name,
            library_version=on.library.version,
            facts={"holds": not one.broken},
        )
        for name, one in tried.items()
        if name in on.ledger.marked and not one.unknown and on.ledger.marked[name] != one.broken
    )
    return Step(drafts=drafts) if drafts else None
