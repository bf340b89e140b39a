"""What an episode can be found by: its session, the tools it called, how it ended."""

from __future__ import annotations

from datetime import UTC, datetime

from agentkit.episodes import Episode
from agentkit.library.changes import begun_at
from agentkit.library.store import EpisodeFilter
from agentkit_redis.keys import raw

_SESSION, _TOOL, _STOP = b"s", b"t", b"r"


def terms_of(episode: Episode) -> list[bytes]:
    """Every term of an episode."""
    tools = dict.fromkeys(call.name for call in episode.calls)
    sessions = [] if episode.session_id is None else [_SESSION + raw(episode.session_id)]
    return [*sessions, _STOP + raw(episode.stop_reason), *(_TOOL + raw(name) for name in tools)]


def terms_wanted(matching: EpisodeFilter) -> list[bytes]:
    """The terms that a filter asks for; an index serves each."""
    wanted = (
        (_SESSION, matching.session_id),
        (_TOOL, matching.tool_name),
        (_STOP, matching.stop_reason),
    )
    return [letter + raw(text) for letter, text in wanted if text is not None]


def matches(episode: Episode, matching: EpisodeFilter) -> bool:
    """Whether an episode is what a filter asks for."""
    has_terms = set(terms_wanted(matching)) <= set(terms_of(episode))
    return has_terms and matching.labels.items() <= episode.metadata.items()


def netstrings(terms: list[bytes]) -> bytes:
    """Terms as one text that a script takes apart again, whatever they hold."""
    return b"".join(b"%d:%s" % (len(term), term) for term in terms)


def began_at(episode: Episode) -> float:
    """Seconds since 1970 when an episode began, as every store reckons it."""
    return begun_at(episode, kept=datetime.now(UTC)).timestamp()
