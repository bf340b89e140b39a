"""The stages that ship: callables that rank or narrow the survivors.

Each is an item in the list that ``CascadeRetriever(stages=[...])`` takes; order is meaning. The
scores that stages add are of the same size on purpose: a ranking adds between 0 and 1, a mention
by name adds 2 or more, so that it wins over any one ranking.
"""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.retrieval.memo import PerLibrary
from agentkit.retrieval.mentions import NameIndex
from agentkit.retrieval.rankers import FieldWeights, LexicalIndex, best
from agentkit.retrieval.survivors import SubGoal, Survivors

_SAME_CAPITALS = 3.0
_OTHER_CAPITALS = 2.0


class ExactName:
    """Lifts tools that the query calls by name above all others; drops none.

    ``NameIndex`` says when a word is a name. The query is searched, not the sub-goal, because a
    planner may have reworded that.
    """

    name = "exact_name"

    def __init__(self) -> None:
        self._names = PerLibrary(lambda library: NameIndex(library.tools))

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Add 3 to a tool whose name the query writes as it is, 2 in other capitals."""
        mentioned = self._names(survivors.library).mentioned(query)
        scores = {
            name: _SAME_CAPITALS if same else _OTHER_CAPITALS for name, same in mentioned.items()
        }
        return survivors.add(scores, reason="called by name")


class Lexical:
    """Ranks by the words that query and definition share (``LexicalIndex``), and cuts.

    The intent and the guessed argument names of the sub-goal are searched. Scores are divided by
    the highest, so that the best match adds 1. Tools without a shared word drop out unless an
    earlier stage ranked them.

    Args:
        keep: How many tools go on to the next stage.
        weights: How much each field of a definition counts.
    """

    name = "lexical"

    def __init__(self, *, keep: int = 32, weights: FieldWeights | None = None) -> None:
        self._keep = keep
        self._indexes = PerLibrary(
            lambda library: LexicalIndex(library.definitions, weights=weights)
        )

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Keep the ``keep`` best matches among the survivors."""
        text = " ".join((goal.intent, *goal.argument_names))
        index = self._indexes(survivors.library)
        scores = _among(survivors, index, index.score(text))
        chosen = _chosen(survivors, index, scores, self._keep)
        highest = max(scores.values(), default=1.0)
        words = index.matched(text, chosen.values())
        return survivors.add(
            {name: scores[place] / highest for name, place in chosen.items()},
            reason={name: "shares " + ", ".join(words[place]) for name, place in chosen.items()},
        ).best(self._keep)


def _among(
    survivors: Survivors, index: LexicalIndex, scores: Mapping[int, float]
) -> Mapping[int, float]:
    if survivors.is_whole_library:
        return scores
    alive = {definition.name for definition in survivors.pool}
    return {
        place: score for place, score in scores.items() if index.definitions[place].name in alive
    }


def _chosen(
    survivors: Survivors, index: LexicalIndex, scores: Mapping[int, float], keep: int
) -> dict[str, int]:
    """Places by name of the best matches, and of all that an earlier stage ranked."""
    names = {place: index.definitions[place].name for place in best(scores, keep)}
    ranked = {hit.definition.name for hit in survivors.hits}
    if ranked:
        names |= {
            place: name for place in scores if (name := index.definitions[place].name) in ranked
        }
    return {name: place for place, name in names.items()}
