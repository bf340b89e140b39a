"""``ExactName``: tools that the query calls by name."""

from __future__ import annotations

from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.mentions import mentioned
from agentkit.retrieval.survivors import Survivors

_SAME_CAPITALS = 4.0
_OTHER_CAPITALS = 3.0


class ExactName:
    """Lifts tools that the query calls by name above all others; drops none.

    ``NameIndex`` says when a word is a name. The query is searched, not the sub-goal, because a
    planner may have reworded that.
    """

    name = "exact_name"

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Add 4 to a tool whose name the query writes as it is, 3 in other capitals."""
        found = mentioned(query, survivors.index)
        scores = {name: _SAME_CAPITALS if same else _OTHER_CAPITALS for name, same in found.items()}
        return survivors.add(scores, reason="called by name", field="name")
