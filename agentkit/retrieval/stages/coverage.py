"""``Coverage``: of the tools ranked so far, those whose own words the request has all."""

from __future__ import annotations

from agentkit.errors import UsageError
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.coverage import CoverageChannel
from agentkit.retrieval.index.lexical import LexicalChannel
from agentkit.retrieval.survivors import Survivors


class Coverage:
    """Adds to a ranking how much of a tool's name and first sentence the request covers.

    For requests that need several tools at once: such a request has all the words of each tool,
    among many others (``CoverageChannel``). It stands behind a ranking, and ranks no tool anew.

    It is not in the default. Behind the default ranking, on development splits, it raises recall@5
    on NESTful, whose requests need several calls each, by 3 points, with 0.15 for both by 4.6; on
    BFCL and Seal-Tools it changes less than chance does, with 0.15 it costs BFCL half a point. It
    takes an eighth of the time of a whole search.

    Args:
        name: What is added for a name that is covered as a whole; the best match of a ranking adds
            1.
        sentence: The same for the first sentence.
        words: Whose counts say how rare a term is; give the channel of the ranking when that is
            not the default one, so that there is one index of words.

    Raises:
        UsageError: A negative number.
    """

    def __init__(
        self, *, name: float = 0.05, sentence: float = 0.1, words: LexicalChannel | None = None
    ) -> None:
        if name < 0 or sentence < 0:
            raise UsageError(f"name={name} and sentence={sentence} must not be negative")
        self._name = name
        self._sentence = sentence
        self._words = words or LexicalChannel()
        self._coverage = CoverageChannel()
        self.channels = (self._words, self._coverage)

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Raise the ranked tools."""
        index = survivors.index
        found = [hit.definition.name for hit in survivors.hits]
        rows = {name: row for name in found if (row := index.row(name)) is not None}
        terms = self._words.query(goal.intent)
        names, sentences = self._coverage.shares(index, self._words, terms, [*rows.values()])
        added = (self._name * names + self._sentence * sentences).tolist()
        return survivors.add(dict(zip(rows, added, strict=True)), field="coverage")
