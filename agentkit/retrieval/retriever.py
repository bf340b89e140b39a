"""The seam to retrieval: which tools the model gets to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from agentkit.episodes import GoalTrace, RetrievalTrace, StageReport
from agentkit.library.library import Library
from agentkit.messages import Usage
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """A value that a step has to work with.

    Attributes:
        name: What the goal or an earlier result calls it; empty when it has no name.
        type: Its type in the planner's words (``list of dates``); empty when unknown.
        value: The value, where it is known.
        bound: Whether it is.
    """

    name: str = ""
    type: str = ""
    value: Any = field(default=None, hash=False)
    bound: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class SubGoal:
    """A sub-goal to find a tool for: one step of the user's request.

    Attributes:
        intent: The step in words; the whole query when it was not split.
        argument_names: Names of arguments that the step's tool probably takes. A planner model
            that guesses them helps retrieval more than one that guesses types.
        inputs: What the step has to work with; empty when unknown, which changes nothing.
        output: The type of what the step has to give, in the planner's words; empty when unknown.
    """

    intent: str
    argument_names: tuple[str, ...] = ()
    inputs: tuple[Slot, ...] = ()
    output: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One ranked tool.

    Attributes:
        definition: The tool.
        score: Higher is better; comparable within one retrieval only.
        reason: What matched, in words, for people.
        fields: What each kind of evidence added to the score, by its name.
    """

    definition: ToolDefinition
    score: float
    reason: str = ""
    fields: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, definition: ToolDefinition, kinds: Mapping[str, float], reason: str = "") -> Hit:
        """A tool that is ranked for the first time, see ``raised``."""
        fields = {kind: score for kind, score in kinds.items() if kind}
        score = sum(kinds.values())
        return cls(definition=definition, score=score, reason=reason, fields=fields)

    def raised(self, kinds: Mapping[str, float], reason: str) -> Hit:
        """The same tool with more evidence for it.

        Args:
            kinds: What each kind of evidence adds to the score; the kind "" has no name.
            reason: Why, in words; "" for nothing to say.
        """
        fields = dict(self.fields)
        for kind, score in kinds.items():
            if kind:
                fields[kind] = fields.get(kind, 0.0) + score
        return Hit(  # several times as fast as `replace`, and done for every hit of every query
            definition=self.definition,
            score=self.score + sum(kinds.values()),
            reason=f"{self.reason}; {reason}" if self.reason and reason else self.reason or reason,
            fields=fields,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Retrieval:
    """The result of a retrieval.

    Attributes:
        query: The text that was searched for.
        hits: The shortlist, best first.
        offered: Those few whose full schema the model gets, best first.
        cards: The one-line cards of the others, as text.
        tokens: Estimated prompt tokens of ``cards`` and the full schemas together.
        stages: One report per stage, in order.
        usage: What the stages spent on models, for those that ask one.
        goals: The steps that tools were looked for.
        notes: Fallbacks that were taken, in words.
        by_goal: When a planner split the query, for each step the tools ranked for it, best first.
        unmatched: Words of the query that no tool knows, as search terms.
    """

    query: str
    hits: tuple[Hit, ...]
    offered: tuple[ToolDefinition, ...]
    cards: str
    tokens: int
    stages: tuple[StageReport, ...] = ()
    usage: Usage = field(default_factory=Usage)
    goals: tuple[SubGoal, ...] = ()
    notes: tuple[str, ...] = ()
    by_goal: tuple[GoalTrace, ...] = ()
    unmatched: tuple[str, ...] = ()

    def trace(self) -> RetrievalTrace:
        """The record of this retrieval that an episode keeps."""
        return RetrievalTrace(
            query=self.query,
            shortlist=tuple(hit.definition.name for hit in self.hits),
            offered=tuple(definition.name for definition in self.offered),
            stages=self.stages,
            notes=self.notes,
            goals=self.by_goal,
            unmatched=self.unmatched,
        )


@runtime_checkable
class StepRetriever(Protocol):
    """A retriever that can use what a run has in hand by now; others are asked without."""

    async def retrieve_next(
        self, query: str, library: Library, in_hand: Sequence[Slot]
    ) -> Retrieval:
        """Like ``Retriever.retrieve``, with values available as arguments."""
        ...


@runtime_checkable
class Retriever(Protocol):
    """Chooses tools for a request."""

    async def retrieve(self, query: str, library: Library) -> Retrieval:
        """Rank the library's tools for ``query`` and choose those to offer in full.

        Never raises for a query that matches nothing: the result is then empty.
        """
        ...
