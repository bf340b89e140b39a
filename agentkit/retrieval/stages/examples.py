"""``Examples``: tools whose worked calls answered requests like this one (L4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.retrieval.goals import SubGoal
from agentkit.retrieval.index.examples import ExampleChannel
from agentkit.retrieval.survivors import Survivors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LEAST = 0.05
"""Less alike than this is chance: one or two shared words of a sentence."""


class Examples:
    """Lifts tools whose worked examples are like the request; drops none.

    Both the step and the whole request are compared, the better one counts: examples that come
    from episodes hold whole requests, those that people write hold single steps. Without examples
    the survivors pass untouched.

    The weight was chosen on development splits: half of the requests became examples of their gold
    tools, the other half was asked, by words alone. Requests for one known tool (BFCL) go from .951
    to .975 recall@5, for several tools from .500 to .831 (NESTful) and from .887 to .895
    (Seal-Tools, where few tools come twice); of 35 requests for several tools on BFCL half a one
    gets lost. Beyond 1.5 little is gained, and a tool called by name, which gains 3 or more, would
    not always stay in front.

    Args:
        weight: What an example with the very words of the request adds.
        keep: How many tools it ranks at most.
        channel: The index data to read.
    """

    name = "examples"

    def __init__(
        self, *, weight: float = 1.5, keep: int = 32, channel: ExampleChannel | None = None
    ) -> None:
        self._weight = weight
        self._keep = keep
        self._examples = channel or ExampleChannel()
        self.channels = (self._examples,)

    async def __call__(self, query: str, goal: SubGoal, survivors: Survivors) -> Survivors:
        """Add to the scores of tools by how alike their most alike example is."""
        if self._examples.is_empty(survivors.index):
            return survivors
        scores = self._likeness(query, goal, survivors)
        found = survivors.index.top(scores, self._keep, survivors.mask)
        return survivors.add(
            {
                survivors.index.name(row): self._weight * score
                for row, score in found
                if score >= _LEAST
            },
            reason="worked for a request like this",
            field="examples",
        )

    def _likeness(self, query: str, goal: SubGoal, survivors: Survivors) -> NDArray[np.float32]:
        import numpy as np

        step = self._examples.scores(survivors.index, goal.intent)
        if goal.intent == query:
            return step
        return np.maximum(step, self._examples.scores(survivors.index, query))
