"""``Lexical``: tools that share words with what is looked for."""

from __future__ import annotations

from agentkit.errors import UsageError
from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.lexical import FieldWeights, LexicalChannel
from agentkit.retrieval.survivors import Survivors


class Lexical:
    """Ranks by the words that query and definition share (``LexicalChannel``), and cuts.

    The intent and the guessed argument names of the sub-goal are searched. Scores are divided by
    the highest, so that the best match adds 1. Tools without a shared word drop out unless an
    earlier stage ranked them.

    Args:
        keep: How many tools go on to the next stage.
        weights: How much each field of a definition counts.
        channel: The index data to read, for settings beyond ``weights``.
    """

    name = "lexical"

    def __init__(
        self,
        *,
        keep: int = 32,
        weights: FieldWeights | None = None,
        channel: LexicalChannel | None = None,
    ) -> None:
        if keep < 1:
            raise UsageError(f"keep={keep} must be at least 1")
        self._keep = keep
        self._words = channel or LexicalChannel(weights=weights or FieldWeights())
        self.channels = (self._words,)

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Keep the ``keep`` best matches among the survivors."""
        index = survivors.index
        terms = self._words.query(" ".join((goal.intent, *goal.argument_names)))
        scores = self._words.scores(index, terms)
        if survivors.factors is not None:
            scores = scores * survivors.factors
        chosen = dict(index.top(scores, self._keep, survivors.mask))
        highest = max(chosen.values(), default=1.0)
        for hit in survivors.hits:  # however low they match, those ranked before get their share
            row = index.row(hit.definition.name)
            if row is not None and scores[row] > 0:
                chosen[row] = float(scores[row])
        shared = self._words.matched(index, terms, chosen)
        return survivors.add(
            {index.name(row): score / highest for row, score in chosen.items()},
            reason={index.name(row): "shares " + ", ".join(shared[row]) for row in chosen},
            field="lexical",
        ).best(self._keep)
