"""A conversation is the chain of its episodes; nothing else is stored for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agentkit.episodes import Episode
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, Message
from agentkit.tools.definition import ToolDefinition


def conversation(episodes: Iterable[Episode]) -> tuple[Message, ...]:
    """The messages of a conversation from its episodes, oldest first.

    An episode that resumes another repeats the turn that was waiting, now with its results; the
    waiting copy is dropped, so that each call appears once. A run that was cancelled or failed in
    mid-turn contributes its complete turns only.
    """
    kept: list[Episode] = []
    for episode in episodes:
        if episode.resumes is not None:
            kept = [_without_last_turn(e, episode.resumes) for e in kept]
        kept.append(episode)
    return tuple(message for episode in kept for message in _complete(episode).messages())


def offered_first(
    history: Sequence[Message], library: Library, found: Sequence[ToolDefinition]
) -> tuple[ToolDefinition, ...]:
    """Tools already called in a conversation, in order of first use, then the newly found ones.

    A tool that was chosen stays offered, so that follow-up questions can use it and the start of
    the prompt stays the same for prompt caches.
    """
    used = (c.name for m in history if isinstance(m, AssistantMessage) for c in m.tool_calls)
    names = dict.fromkeys([*(name for name in used if name in library), *(d.name for d in found)])
    return tuple(library[name].definition for name in names)


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
