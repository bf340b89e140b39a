"""``Shuffled``: the control in which each tool is taught from what another tool did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentkit.episodes import Episode
from agentkit.episodes.naming import in_library_names
from agentkit.evolution import Observations, Proposer
from agentkit.evolution.proposer import Suggestion


class Shuffled:
    """Shows a proposer what each tool did under the name of the next one.

    What is then learned is as much, and as well-formed, and about the wrong tools: if it helps as
    much, the content does not matter. With one tool alone there is nothing to exchange, and nothing
    is suggested.

    Args:
        proposer: Who suggests.
    """

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer

    @property
    def name(self) -> str:
        """That of the proposer, which is who answers for it."""
        return self._proposer.name

    async def propose(self, observations: Observations) -> Sequence[Suggestion]:
        """What the proposer suggests about the wrong tools."""
        names = _next_names(observations)
        if not names:
            return ()
        episodes = tuple(_exchanged(one, names) for one in observations.episodes)
        return await self._proposer.propose(replace(observations, episodes=episodes))


def _next_names(observations: Observations) -> Mapping[str, str]:
    """For each tool of the library that was called, or is offered beside it, the next by name."""
    primitives = sorted(
        tool.name for tool in observations.library if not tool.definition.is_composite
    )
    if len(primitives) < 2:
        return {}
    return dict(zip(primitives, [*primitives[1:], primitives[0]], strict=True))


def _exchanged(episode: Episode, names: Mapping[str, str]) -> Episode:
    """The episode as if each tool had been another: calls, results, verdict and diagnosis."""
    return in_library_names(replace(in_library_names(episode), library_names=names))
