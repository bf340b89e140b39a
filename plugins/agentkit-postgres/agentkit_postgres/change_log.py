"""Reading the changes of a store in order, some versions at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from agentkit.library.capabilities import AppliedChange
from agentkit.library.store import LibraryChange
from agentkit.library.tables import read_evidence
from agentkit_postgres.connection import Connections
from agentkit_postgres.texts import restored
from agentkit_postgres.tool_tables import ToolTables

_PAGE = 64
"""Versions read at a time: nothing is held in the server while the caller looks at them."""

_NEWEST = "SELECT coalesce(max(version), 0) FROM versions"

_CHANGES = """
SELECT v.version, v.proposal_id, v.author, v.reason, v.evidence, v.created_at,
       r.tool_name, r.digest, r.origin, d.body
FROM versions AS v
LEFT JOIN revisions AS r ON r.version = v.version
LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE v.version > %s AND v.version <= %s
ORDER BY v.version, r.since, r.place
"""
"""What is new in a version has the greatest ``since`` of its revisions, and stands last."""


def read_changes(
    connections: Connections, tools: ToolTables, *, after: int
) -> Iterator[AppliedChange]:
    """See ``ChangeLog.changes``."""
    ((newest,),) = connections.execute(_NEWEST)
    for first in range(max(after, 0), newest, _PAGE):
        rows = connections.execute(_CHANGES, (first, min(first + _PAGE, newest)))
        for version, some in groupby(rows, key=itemgetter(0)):
            yield AppliedChange(
                version=version, change=_change(list(some), tools, connections.address.shown)
            )


def _change(rows: Sequence[Any], tools: ToolTables, place: str) -> LibraryChange:
    version, proposal_id, author, reason, evidence, created_at, *_ = rows[0]
    kept = [row[6:] for row in rows if row[6] is not None]
    return LibraryChange(
        proposal_id=restored(proposal_id),
        upserts=tuple(tools.definition(*one) for _, *one in kept if one[0] is not None),
        removals=tuple(tools.name(stored) for stored, digest, *_ in kept if digest is None),
        author=restored(author),
        reason=restored(reason),
        evidence=read_evidence(evidence, version=version, place=place),
        created_at=created_at,
    )
