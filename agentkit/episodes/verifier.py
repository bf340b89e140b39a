"""``Verifier``: the seam to whatever judges an episode."""

from __future__ import annotations

from typing import Protocol

from agentkit.episodes.episode import Episode
from agentkit.episodes.verdict import Verdict


class Verifier(Protocol):
    """Judges one episode. ``agentkit.evaluation.verifiers`` holds ready ones.

    It is asynchronous, since some ask a model or run code.
    """

    async def verify(self, episode: Episode) -> Verdict:
        """The judgement. What can not be judged is a verdict with a ``fault``, not an exception."""
        ...
