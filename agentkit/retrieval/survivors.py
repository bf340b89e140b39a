"""What passes from stage to stage: the sub-goal, and the tools still in the running."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from agentkit.library.library import Library
from agentkit.messages import Usage
from agentkit.retrieval.retriever import Hit
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class SubGoal:
    """What a tool is looked for: one step of what the user asked.

    Attributes:
        intent: The step in words; the whole query when nobody split it.
        argument_names: Names of arguments that the step's tool probably takes. A planner model
            that guesses them helps retrieval more than one that guesses types.
    """

    intent: str
    argument_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Survivors:
    """The tools still in the running; immutable, each method returns another one.

    A stage may rank tools (``add``), drop some (``where``), or drop all that no stage has ranked
    (``best``). It can not bring a tool back.

    Attributes:
        library: The snapshot that the run is pinned to.
        pool: Every tool still in the running: in library order, or best first after ``best``. At
            the start this is the very object ``library.definitions``, which costs nothing.
        hits: Those of the pool that a stage has ranked, best first.
        usage: What stages spent on models so far.
    """

    library: Library
    pool: tuple[ToolDefinition, ...]
    hits: tuple[Hit, ...] = ()
    usage: Usage = field(default_factory=Usage)

    @classmethod
    def of(cls, library: Library) -> Survivors:
        """All tools of a library, none of them ranked."""
        return cls(library=library, pool=library.definitions)

    @property
    def is_whole_library(self) -> bool:
        """Whether no tool has been dropped yet."""
        return self.pool is self.library.definitions

    def __len__(self) -> int:
        return len(self.pool)

    def where(self, keep: Callable[[ToolDefinition], bool]) -> Survivors:
        """Only the tools for which ``keep`` holds; scores stay."""
        pool = tuple(definition for definition in self.pool if keep(definition))
        names = {definition.name for definition in pool}
        hits = tuple(hit for hit in self.hits if hit.definition.name in names)
        return replace(self, pool=pool, hits=hits)

    def add(
        self, scores: Mapping[str, float], *, reason: str | Mapping[str, str] = ""
    ) -> Survivors:
        """Add to the scores of tools; one without a score so far starts at 0.

        Args:
            scores: What to add, by tool name, negative to push down. Names that are not in the
                running are ignored, as a model that ranks may invent some.
            reason: Why, for people: one text for all, or one by tool name.

        Returns:
            The survivors, ranked anew. Ties keep the order that they had; newly ranked tools
            come after the others, in the order of ``scores``.
        """
        ranked = {hit.definition.name: hit for hit in self.hits}
        known = self._known(scores)
        for name, definition in known.items():
            why = reason if isinstance(reason, str) else reason.get(name, "")
            hit = ranked.get(name, Hit(definition=definition, score=0.0))
            reasons = "; ".join(filter(None, (hit.reason, why)))
            ranked[name] = replace(hit, score=hit.score + scores[name], reason=reasons)
        hits = sorted(ranked.values(), key=lambda hit: -hit.score)
        return replace(self, hits=tuple(hits))

    def best(self, count: int | None = None) -> Survivors:
        """Only the ``count`` best of the ranked tools, or all of those; unranked tools drop out."""
        hits = self.hits[:count]
        return replace(self, hits=hits, pool=tuple(hit.definition for hit in hits))

    def spent(self, usage: Usage) -> Survivors:
        """The same survivors, with ``usage`` added to what stages spent on models."""
        return replace(self, usage=self.usage + usage)

    def _known(self, scores: Mapping[str, float]) -> dict[str, ToolDefinition]:
        """Definitions of the names in ``scores`` that are in the running, in that order."""
        if self.is_whole_library:
            tools = self.library.tools
            return {name: tools[name].definition for name in scores if name in tools}
        pool = {definition.name: definition for definition in self.pool}
        return {name: pool[name] for name in scores if name in pool}


class Stage(Protocol):
    """One step of a cascade: any async callable of this form.

    An async function will do; so will an object with ``async def __call__``. A report calls the
    stage by its ``name`` attribute if it has one, else by the function's or the class's name.
    """

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Rank or narrow the survivors.

        Args:
            query: What the user asked, unchanged.
            goal: The step that tools are looked for now.
            survivors: What earlier stages left.

        Returns:
            What is left now, with the stage's own cost added by ``Survivors.spent``.
        """
        ...
