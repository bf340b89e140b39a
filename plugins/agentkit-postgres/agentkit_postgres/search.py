"""Searching the current tools in the database."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentkit.errors import UsageError
from agentkit_postgres.connection import Connections
from agentkit_postgres.encoding import searchable

_SEARCH = """
SELECT tool_name, coalesce(summary, ''), version, ts_rank(words, wanted)
FROM tools, any_word(%s) AS wanted
WHERE words @@ wanted
ORDER BY ts_rank(words, wanted) DESC, tool_name LIMIT %s
"""

_MOST = 2**63 - 1
"""The greatest limit that PostgreSQL takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundTool:
    """A tool that a search found.

    Attributes:
        name: Its name.
        summary: Its summary.
        version: The library version that it is of.
        score: How well it fits; to be compared within one search.
    """

    name: str
    summary: str
    version: int
    score: float


def search_tools(
    connections: Connections, name_of: Callable[[str], str], words: str, *, limit: int
) -> Sequence[FoundTool]:
    """See ``PostgresStore.search_tools``."""
    if limit < 0:
        raise UsageError(f"the limit of a search is 0 or more; got {limit}")
    rows = connections.execute(_SEARCH, (searchable([words]), min(limit, _MOST)))
    return tuple(
        FoundTool(name=name_of(stored), summary=summary, version=version, score=score)
        for stored, summary, version, score in rows
    )
