"""Texts that a candidate must not copy from: what the episodes behind it hold."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain

from agentkit.episodes import Episode
from agentkit.evolution.serving.feedback import feedback_on, user_texts
from agentkit.library.store import EpisodeStore

_MOST = 64  # episodes of one proposal that are read


def source_episodes(store: object, evidence: Iterable[str]) -> tuple[Episode, ...]:
    """The episodes of these ids, as far as they are kept.

    Args:
        store: A store that may keep episodes too.
        evidence: Ids of episodes.
    """
    if not isinstance(store, EpisodeStore):
        return ()
    episodes = (store.get(episode_id) for episode_id in [*dict.fromkeys(evidence)][:_MOST])
    return tuple(episode for episode in episodes if episode is not None)


def source_texts(store: object, evidence: Iterable[str]) -> tuple[str, ...]:
    """What users said and tools returned in the episodes of these ids, as far as they are kept.

    What users said of them later (``keep_feedback``) is among it.

    Args:
        store: A store that may keep episodes too.
        evidence: Ids of episodes.
    """
    if not isinstance(store, EpisodeStore):
        return ()
    kept = source_episodes(store, evidence)
    said = (late.verdict for one in kept for late in feedback_on(store, one.episode_id))
    texts = chain(*map(_texts, kept), *map(user_texts, said))
    return tuple(dict.fromkeys(text for text in texts if text))


def _texts(episode: Episode) -> Iterator[str]:
    yield episode.request
    for turn in episode.turns:
        for result in turn.results:
            value = result.value
            yield value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
