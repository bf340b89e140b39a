"""Reading the changes of a SQLite file in order, some versions at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from agentkit.errors import StoreFormatError
from agentkit.library.abilities import AppliedChange
from agentkit.library.row_faults import read_evidence
from agentkit.library.sqlite.connection import SQLiteConnection
from agentkit.library.store import LibraryChange
from agentkit.tools.definition import ToolDefinition

_PAGE = 32
"""Versions read at a time: the lock is free while the caller looks at them."""

_NEWEST = "SELECT coalesce(max(version), 0) FROM versions"

_CHANGES = """
SELECT v.version, v.proposal_id, v.author, v.reason, v.evidence, v.created_at,
       r.tool_name, r.digest, r.origin, d.body
FROM versions AS v
LEFT JOIN revisions AS r ON r.version = v.version
LEFT JOIN definitions AS d ON d.digest = r.digest
WHERE v.version > ? AND v.version <= ?
ORDER BY v.version, r.since, r.place
"""
"""What is new in a version has the greatest ``since`` of its revisions, and stands last."""


def read_changes(
    connection: SQLiteConnection,
    decode: Callable[[str, str, str], ToolDefinition],
    *,
    after: int,
) -> Iterator[AppliedChange]:
    """See ``ChangeLog.changes``.

    Args:
        connection: The file.
        decode: A definition from its digest, its origin and its body.
        after: The last version that is known already.
    """
    ((newest,),) = connection.execute(_NEWEST)
    for first in range(max(after, 0), newest, _PAGE):
        rows = connection.execute(_CHANGES, (first, min(first + _PAGE, newest)))
        for version, some in groupby(rows, key=itemgetter(0)):
            try:
                change = _change(list(some), decode, connection.path)
            except (ValueError, TypeError) as error:
                raise StoreFormatError(
                    f"{connection.path} holds a version that can not be read ({version}): {error}"
                ) from error
            yield AppliedChange(version=version, change=change)


def _change(
    rows: Sequence[Any], decode: Callable[[str, str, str], ToolDefinition], place: object
) -> LibraryChange:
    version, proposal_id, author, reason, evidence, created_at, *_ = rows[0]
    tools = [row[6:] for row in rows if row[6] is not None]
    return LibraryChange(
        proposal_id=proposal_id,
        upserts=tuple(decode(*kept) for _, *kept in tools if kept[0] is not None),
        removals=tuple(name for name, digest, *_ in tools if digest is None),
        author=author,
        reason=reason,
        evidence=read_evidence(evidence, version=version, place=place),
        created_at=created_at,
    )
