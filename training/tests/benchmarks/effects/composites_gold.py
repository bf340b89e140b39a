"""Gold trajectories written anew with the composites that a library took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentkit.episodes import Episode, Turn
from agentkit.evolution import MiningConfig, mine, trajectories_of
from agentkit.evolution.mining import MinedComposite, apply
from agentkit.evolution.patterns import SearchLimits
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall
from agentkit_training.coevolution.distilling import is_success
from agentkit_training.coevolution.keeper import LibraryKeeper


def mined(episodes: Iterable[Episode], keeper: LibraryKeeper) -> list[MinedComposite]:
    """The programs of the composites that the library took from these episodes."""
    settings, library = keeper.settings, keeper.library
    good = [episode for episode in episodes if is_success(episode, settings.rho)]
    primitives = {one.name: one for one in library.definitions if not one.is_composite}
    rules = MiningConfig(search=SearchLimits(min_support=settings.support))
    found = mine(trajectories_of(good, failed_too=True).trajectories, primitives, rules)
    return [one for one in found.composites if one.name in library]


def shortened(
    gold: Mapping[str, Episode],
    composites: Sequence[MinedComposite],
    library: Library,
    *,
    every: int = 1,
) -> dict[str, Episode]:
    """Gold trajectories, every so many with composites where these fit."""
    primitives = {one.name: one for one in library.definitions if not one.is_composite}
    flows = {one.trajectory_id: one for one in trajectories_of(gold.values()).trajectories}
    found = dict(gold)
    for task, episode in list(gold.items())[::every]:
        shorter = apply(flows[episode.episode_id], composites, primitives)
        calls = [(step.tool, shorter.arguments(at)) for at, step in enumerate(shorter.steps)]
        turns = [
            Turn(
                message=AssistantMessage(
                    tool_calls=(ToolCall(call_id=str(n), name=a, arguments=b),)
                )
            )
            for n, (a, b) in enumerate(calls)
        ]
        found[task] = replace(episode, turns=(*turns, episode.turns[-1]))
    return found
