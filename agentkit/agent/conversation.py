"""A conversation is the chain of its episodes; nothing else is stored for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agentkit.episodes import Episode
from agentkit.messages import Message


def conversation(episodes: Iterable[Episode]) -> tuple[Message, ...]:
    """The messages of a conversation from its episodes, oldest first.

    An episode that resumes another repeats the turn that was waiting, now with its results; the
    waiting copy is dropped, so that each call appears once. Of several that resume the same one the
    last counts. A run that was cancelled or failed in mid-turn contributes its complete turns only.
    """
    kept: list[Episode] = []
    for episode in episodes:
        if episode.resumes is not None:
            kept = [
                _without_last_turn(earlier, episode.resumes)
                for earlier in kept
                if earlier.resumes != episode.resumes
            ]
        kept.append(episode)
    return tuple(message for episode in kept for message in _complete(episode).messages())


def _complete(episode: Episode) -> Episode:
    """The episode without a last turn whose calls were interrupted before all had results."""
    if not episode.turns:
        return episode
    last = episode.turns[-1]
    complete = len(last.results) == len(last.message.tool_calls)
    return episode if complete else replace(episode, turns=episode.turns[:-1])


def _without_last_turn(episode: Episode, resumed_id: str) -> Episode:
    if episode.episode_id != resumed_id:
        return episode
    return replace(episode, turns=episode.turns[:-1])
