"""``HiddenTool``: a definition, what it leaves out in each world, and how people ask for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit_training.tasks.hidden_constraints.constraints import (
    Constraint,
    ConstraintKind,
)

World: TypeAlias = Literal["first", "swapped"]
"""Which demands hold. Tools, texts and questions are the same in both; gold answers are not."""

WORLDS: tuple[World, ...] = ("first", "swapped")


@dataclass(frozen=True, kw_only=True, slots=True)
class Filling:
    """Something that a question says in plain words.

    Attributes:
        words: The words.
        gold: The arguments that they stand for, in each world.
    """

    words: str
    gold: Mapping[World, JsonObject]


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A place in the questions about a tool.

    Attributes:
        name: Its name in the templates.
        fillings: What may stand there.
        is_entity: Whether the fillings are many and free, such as names, so that each belongs to
            one split alone. Others, such as four ways to pay, occur in every split.
    """

    name: str
    fillings: tuple[Filling, ...]
    is_entity: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class HiddenTool:
    """A tool that demands more than its definition says.

    Attributes:
        definition: What a model is told; the same in both worlds.
        demands: What the executor demands, in each world.
        templates: Questions, with slots in braces.
        slots: What the slots may hold.
        lookups: The tool whose result the question's call needs, in each world; empty for most.
    """

    definition: ToolDefinition
    demands: Mapping[World, Constraint]
    templates: tuple[str, ...]
    slots: tuple[Slot, ...]
    lookups: Mapping[World, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.definition.name

    @property
    def kind(self) -> ConstraintKind:
        """What kind of demand it is."""
        return self.demands["first"].kind


def plain(parameter: str, values: Iterable[str | int]) -> Slot:
    """Entities that are said as they are given."""
    return Slot(
        name=parameter,
        fillings=tuple(
            Filling(words=str(value), gold={world: {parameter: value} for world in WORLDS})
            for value in values
        ),
        is_entity=True,
    )


def spoken(
    parameter: str,
    values: Mapping[str, tuple[str | int, str | int]],
    *,
    is_entity: bool = False,
) -> Slot:
    """Values that are said otherwise than they are given.

    Args:
        parameter: The parameter, and the slot's name.
        values: By the words of the question: the value in the first world, and in the swapped one.
        is_entity: See ``Slot``.
    """
    return Slot(
        name=parameter,
        fillings=tuple(
            Filling(
                words=words,
                gold={world: {parameter: value} for world, value in zip(WORLDS, pair, strict=True)},
            )
            for words, pair in values.items()
        ),
        is_entity=is_entity,
    )
