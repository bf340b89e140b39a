"""The candidates passed from stage to stage, and their scores."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from agentkit.library.library import Library
from agentkit.messages import Usage
from agentkit.retrieval.index import Channel, IndexConfig, ToolIndex
from agentkit.retrieval.retriever import Hit, SubGoal
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentkit.retrieval.index import Mask

__all__ = ["Candidates", "Stage", "SubGoal"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """The tools still in the running; immutable, each method returns another one.

    A stage may rank tools (``add``), drop some (``where``, ``only``), or drop all that no stage
    has ranked (``best``). It cannot bring a tool back.

    Attributes:
        library: The snapshot that the run is pinned to.
        index: The index of that snapshot; masks are by its rows.
        mask: bool[index.size], the rows still in the running; None for all tools. Not to be
            written to.
        hits: Those tools that a stage has ranked, best first.
        usage: What stages spent on models so far.
        notes: Fallbacks that were taken so far, in words.
    """

    library: Library
    index: ToolIndex
    mask: Mask | None = None
    hits: tuple[Hit, ...] = ()
    usage: Usage = dataclasses.field(default_factory=Usage)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, library: Library, channels: Sequence[Channel[Any]] = ()) -> Candidates:
        """All tools of a library, none of them ranked.

        Args:
            library: The snapshot.
            channels: What the stages to come read, see their ``channels``.
        """
        index = library.derived(IndexConfig(channels=tuple(dict.fromkeys(channels))))
        return cls(library=library, index=index)

    @property
    def pool(self) -> tuple[ToolDefinition, ...]:
        """Every tool still in the running: ranked ones first, best first, then library order.

        Cost: a look at each tool of the library; ``len`` and the methods do without.
        """
        ranked = {hit.definition.name: hit.definition for hit in self.hits}
        rest = (one for one in self.library.definitions if one.name not in ranked)
        return (*ranked.values(), *(one for one in rest if self.has(one.name)))

    def __len__(self) -> int:
        import numpy as np

        return len(self.index) if self.mask is None else int(np.count_nonzero(self.mask))

    def has(self, name: str) -> bool:
        """Whether the tool of that name is still in the running."""
        row = self.index.row(name)
        return row is not None and (self.mask is None or bool(self.mask[row]))

    def where(self, keep: Callable[[ToolDefinition], bool]) -> Candidates:
        """Only the tools for which ``keep`` holds; scores stay.

        Cost: a call of ``keep`` for each tool in the running.
        """
        import numpy as np

        mask = np.zeros(self.index.size, bool)
        for row in np.flatnonzero(self.index.alive if self.mask is None else self.mask).tolist():
            mask[row] = keep(self.library[self.index.names[row]].definition)
        return self.only(mask)

    def only(self, mask: Mask) -> Candidates:
        """Only the tools whose rows are in ``mask``; scores stay."""
        mask = mask & (self.index.alive if self.mask is None else self.mask)
        hits = tuple(hit for hit in self.hits if self._holds(mask, hit.definition.name))
        return replace(self, mask=mask, hits=hits)

    def add(
        self,
        scores: Mapping[str, float],
        *,
        reason: str | Mapping[str, str] = "",
        field: str = "",
    ) -> Candidates:
        """Add to the scores of tools; one without a score so far starts at 0.

        Args:
            scores: What to add, by tool name, negative to push down. Names that are not in the
                running are ignored, as a model that ranks may invent some.
            reason: Why, for people: one text for all, or one by tool name.
            field: The kind of evidence, under which ``Hit.fields`` keeps what was added.

        Returns:
            The reranked candidates. Ties keep the order that they had; newly ranked tools
            come after the others, in the order of ``scores``.
        """
        kinds = {name: {field: score} for name, score in scores.items()}
        return self.add_kinds(kinds, reason=reason)

    def add_kinds(
        self,
        scores: Mapping[str, Mapping[str, float]],
        *,
        reason: str | Mapping[str, str] = "",
    ) -> Candidates:
        """Add several kinds of evidence at once; otherwise as ``add``.

        Args:
            scores: By tool name, what each kind of evidence adds.
            reason: Why, for people: one text for all, or one by tool name.
        """
        ranked = {hit.definition.name: hit for hit in self.hits}
        for name, kinds in scores.items():
            why = reason if isinstance(reason, str) else reason.get(name, "")
            if name in ranked:
                ranked[name] = ranked[name].raised(kinds, why)
            elif self.has(name):
                ranked[name] = Hit.of(self.library[name].definition, kinds, why)
        hits = sorted(ranked.values(), key=lambda hit: -hit.score)
        return replace(self, hits=tuple(hits))

    def best(self, count: int | None = None) -> Candidates:
        """Only the ``count`` best of the ranked tools, or all of those; unranked tools drop out."""
        import numpy as np

        hits = self.hits[:count]
        mask = np.zeros(self.index.size, bool)
        rows = (self.index.row(hit.definition.name) for hit in hits)
        mask[[row for row in rows if row is not None]] = True
        return replace(self, hits=hits, mask=mask)

    def spent(self, usage: Usage) -> Candidates:
        """The same candidates, with ``usage`` added to what stages spent on models."""
        return replace(self, usage=self.usage + usage)

    def note(self, text: str) -> Candidates:
        """The same candidates, with a fallback recorded for the trace."""
        return replace(self, notes=(*self.notes, text))

    def _holds(self, mask: Mask, name: str) -> bool:
        row = self.index.row(name)
        return row is not None and bool(mask[row])


class Stage(Protocol):
    """One step of a cascade: any async callable of this form.

    An async function will do; so will an object with ``async def __call__``. A report calls the
    stage by its ``name`` attribute if it has one, else by the function's or the class's name. A
    stage that reads channels of the index names them in an attribute ``channels``, a tuple.
    """

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Rank or narrow the candidates.

        Args:
            query: What the user asked, unchanged.
            goal: The step for which tools are searched.
            candidates: What earlier stages left.

        Returns:
            What is left now, with the stage's own cost added by ``Candidates.spent``.
        """
        ...
