"""The tables that hold definitions and their versions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agentkit.errors import StaleChainError, StaleVersionError, StoreError, ToolNotFoundError
from agentkit.library.changes import check_change, now
from agentkit.library.derived import DerivedCache
from agentkit.library.library import Library, nearest_names
from agentkit.library.store import LibraryChange, ToolRevision
from agentkit.library.tables import Differences, NewestLibrary, VerifiedDefinitions, read_evidence
from agentkit.tools.definition import ToolDefinition
from agentkit_postgres.connection import Connections
from agentkit_postgres.encoding import EncodedTool, encode_event, encode_tool
from agentkit_postgres.migrations import newer
from agentkit_postgres.steps import STEPS
from agentkit_postgres.texts import is_cut, key, restored, storable

_NEWEST_VERSION = "SELECT coalesce(max(version), 0) FROM versions"

_LOAD = """
SELECT r.tool_name, r.digest, r.origin, r.since, d.body
FROM revisions AS r LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE r.version > %s AND r.version <= %s AND (r.replaced_in IS NULL OR r.replaced_in > %s)
ORDER BY r.since, r.place
"""
"""What differs between two versions: each tool as the later one has it, no digest if removed."""

_HISTORY = """
SELECT v.version, v.proposal_id, v.author, v.reason, v.evidence, v.created_at,
       r.digest, r.origin, d.body
FROM revisions AS r
JOIN versions AS v ON v.version = r.version
LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE r.tool_name = %s
ORDER BY r.version
"""

_WHOLE_NAME = """
SELECT r.digest, r.origin, d.body
FROM revisions AS r JOIN definitions AS d ON d.digest = r.digest
WHERE r.tool_name = %s LIMIT 1
"""

_COMMIT = """
SELECT outcome, number, missing FROM commit_change(
    %s::integer, %s::bigint, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text,
    %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[], %b::text[],
    %b::text[], %b::text[], %s::bigint[], %b::text[], %b::text[], %s::text)
"""

_NEVER = -1
"""A version that no library is at, in the place of one that PostgreSQL can not compare."""


class ToolTables:
    """The five methods of ``ToolStore``, but ``close``."""

    def __init__(self, connections: Connections, cache: DerivedCache) -> None:
        self._connections = connections
        self._newest = NewestLibrary(cache=cache)
        address = connections.address
        self._verified = VerifiedDefinitions(f"the schema {address.schema!r} of {address.shown}")

    def load(self, version: int | None = None) -> Library:
        """See ``PostgresStore.load``."""
        newest = self._newest_version()
        return self._newest.load(version, newest=newest, read=self._differences)

    def _differences(self, base: Library, version: int) -> Differences:
        gone: list[str] = []
        tools: list[ToolDefinition] = []
        for stored, digest, origin, since, body in self._connections.execute(
            _LOAD, (base.version, version, version)
        ):
            if digest is not None:
                tools.append(self.definition(digest, origin, body))
            if base.version and (digest is None or since > base.version):
                gone.append(tools[-1].name if digest is not None else self.name(stored))
        self._verified.keep()
        return Differences(gone=gone, tools=tools)

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """See ``PostgresStore.commit``."""
        check_change(change)
        tools = [encode_tool(tool) for tool in change.upserts]
        parameters = _parameters(change, tools, expected_version)
        ((outcome, number, missing),) = self._connections.execute(_COMMIT, parameters)
        match outcome:
            case "made" | "known" | "held":
                self._verified.vouch((tool.digest, tool.body) for tool in tools)
                return int(number)
            case "stale":
                raise StaleVersionError(expected=expected_version, actual=number)
            case "stale chain":
                raise StaleChainError(expected=change.events[0].sequence - 1, actual=number)
            case "missing":
                known, name = self.load(), restored(missing)
                nearest = nearest_names(name, known.tools)
                raise ToolNotFoundError(name, nearest=nearest, version=known.version)
            case "newer":
                raise newer(self._connections)
            case _:
                raise StoreError(f"{self._connections.address.shown} answered {outcome!r}")

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        rows = self._connections.execute("SELECT version FROM versions ORDER BY version")
        return tuple(version for (version,) in rows)

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        rows = self._connections.execute(_HISTORY, (key(tool_name),))
        return tuple(
            ToolRevision(
                version=version,
                definition=None if kept[0] is None else self.definition(*kept),
                proposal_id=restored(proposal_id),
                author=restored(author),
                reason=restored(reason),
                evidence=read_evidence(
                    evidence, version=version, place=self._connections.address.shown
                ),
                created_at=created_at,
            )
            for version, proposal_id, author, reason, evidence, created_at, *kept in rows
        )

    def definition(self, digest: str, origin: str, body: str) -> ToolDefinition:
        """A definition from its row."""
        return self._verified.read(digest, origin, body)

    def name(self, stored: str) -> str:
        """The whole name of a tool, from what an index holds of it."""
        if not is_cut(stored):
            return restored(stored)
        (kept,) = self._connections.execute(_WHOLE_NAME, (stored,))
        return self.definition(*kept).name

    def _newest_version(self) -> int:
        ((version,),) = self._connections.execute(_NEWEST_VERSION)
        return int(version)


def _parameters(
    change: LibraryChange, tools: Sequence[EncodedTool], expected_version: int
) -> list[Any]:
    """What ``commit_change`` takes, worked out before anything is locked."""
    events = change.events
    return [
        len(STEPS),
        expected_version if 0 <= expected_version < 2**63 else _NEVER,
        key(change.proposal_id),
        *map(storable, (change.proposal_id, change.author, change.reason)),
        json.dumps(change.evidence),
        change.created_at or now(),
        [tool.name for tool in tools],
        [tool.digest for tool in tools],
        [tool.body for tool in tools],
        [tool.origin for tool in tools],
        [tool.document for tool in tools],
        [tool.words for tool in tools],
        [tool.summary for tool in tools],
        [tool.texts for tool in tools],
        [key(name) for name in change.removals],
        [event.sequence for event in events],
        [event.hash for event in events],
        [encode_event(event) for event in events],
        events[0].previous if events else "",
    ]
