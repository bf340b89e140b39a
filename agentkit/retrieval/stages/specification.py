"""``Specification``: can what the goal brings along keep a tool's preconditions (L3)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentkit.composites.contracts import surely_broken
from agentkit.messages import Usage
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.survivors import Survivors
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.types.fit import TypedSlot


@dataclass(frozen=True, kw_only=True, slots=True)
class Judgement:
    """What a judge says about candidates.

    Attributes:
        rejected: Why, by the name of each tool that can not serve; all others stay. Names that
            were not asked about are ignored.
        usage: What it cost.
        notes: Fallbacks that were taken, in words.
    """

    rejected: Mapping[str, str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    notes: tuple[str, ...] = ()


class SpecificationJudge(Protocol):
    """Reads conditions in words: any async callable of this form, such as one that asks a model."""

    async def __call__(self, goal: SubGoal, candidates: Sequence[ToolDefinition]) -> Judgement:
        """Which of the candidates can not serve the goal, given their specifications."""
        ...


class Specification:
    """Drops tools whose conditions the goal surely breaks; unknown is never a reason.

    A precondition is evaluated with the values that the goal has bound to parameters of the same
    name (``TypedSlot.bound``, a type of one value); one that reads anything else is unknown. So a
    tool drops out only when each call with these values would be refused. Conditions in words are
    for the judge, if there is one: without it they neither drop nor rank.

    Only tools that an earlier stage has ranked are looked at. Where all of them would drop out,
    they stay, and a note says so: the goal is then more likely wrong than every tool.

    Args:
        judge: Asked once a step about ranked tools that have conditions and were not dropped.

    Example:
        >>> import asyncio
        >>> from agentkit import Library, tool
        >>> from agentkit.retrieval import CascadeRetriever, Lexical
        >>> from agentkit.tools.types import slot_of_value
        >>> @tool(pre=["months <= 60"])
        ... def car_loan(amount: float, months: int) -> float:
        ...     '''The monthly rate of a loan for a car.'''
        ...     return amount / months
        >>> @tool(pre=["months >= 120"])
        ... def house_loan(amount: float, months: int) -> float:
        ...     '''The monthly rate of a loan for a house.'''
        ...     return amount / months
        >>> library = Library([car_loan, house_loan])
        >>> goal = SubGoal(intent="rate of a loan", inputs=(slot_of_value(240, name="months"),))
        >>> async def found():
        ...     lexical = Lexical()
        ...     ranked = await lexical("", goal, Survivors.of(library, lexical.channels))
        ...     return await Specification()("", goal, ranked)
        >>> [definition.name for definition in asyncio.run(found()).pool]
        ['house_loan']
    """

    name = "specification"

    def __init__(self, *, judge: SpecificationJudge | None = None) -> None:
        self._judge = judge

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Drop tools that can not serve."""
        ranked = [hit.definition for hit in survivors.hits if _has_conditions(hit.definition)]
        if not ranked:
            return survivors
        broken = {tool.name: text for tool in ranked if (text := _broken(tool, goal.inputs))}
        reasons = {name: f"the step breaks `{text}`" for name, text in broken.items()}
        if self._judge is not None and (asked := [t for t in ranked if t.name not in broken]):
            judgement = await self._judge(goal, asked)
            names = {tool.name for tool in asked}
            reasons |= {n: why for n, why in judgement.rejected.items() if n in names}
            survivors = survivors.spent(judgement.usage)
            for note in judgement.notes:
                survivors = survivors.note(f"{self.name}: {note}")
        return _without(survivors, reasons, self.name)


def _has_conditions(definition: ToolDefinition) -> bool:
    specification = definition.specification
    return bool(specification.pre or specification.post or specification.text)


def _broken(definition: ToolDefinition, slots: Sequence[TypedSlot]) -> str | None:
    if not definition.specification.pre:
        return None
    values = _arguments(definition, slots)
    return surely_broken(definition, values) if values else None


def _arguments(definition: ToolDefinition, slots: Sequence[TypedSlot]) -> dict[str, Any]:
    """The values that are bound to parameters of the tool, in the form that its schema asks for."""
    by_name = {_folded(slot.name): slot for slot in slots if slot.bound and slot.name}
    found: dict[str, Any] = {}
    for name, schema in definition.signature.properties.items():
        slot = by_name.get(_folded(name))
        constant = slot.type.constant() if slot is not None else None
        if constant is not None:
            found[name] = coerce(constant[0], schema, fill="none")
    return found


def _folded(name: str) -> str:
    """A name without case and separators: ``dueDate`` and ``due_date`` are one."""
    return name.replace("_", "").replace("-", "").casefold()


def _without(survivors: Survivors, reasons: Mapping[str, str], stage: str) -> Survivors:
    """The survivors without those that have a reason to go; all of them when none would be left."""
    gone = [hit.definition.name for hit in survivors.hits if hit.definition.name in reasons]
    if not gone:
        return survivors
    said = "; ".join(f"{name}: {reasons[name]}" for name in gone[:_MOST_SAID])
    if len(gone) == len(survivors.hits):
        return survivors.note(f"{stage}: no ranked tool would be left, so all stay ({said})")
    mask = survivors.index.alive.copy()
    mask[[row for name in gone if (row := survivors.index.row(name)) is not None]] = False
    more = f" and {len(gone) - _MOST_SAID} more" if len(gone) > _MOST_SAID else ""
    return survivors.only(mask).note(f"{stage}: dropped {said}{more}")


_MOST_SAID = 5
