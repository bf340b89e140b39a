"""What was done: the revisions of one tool, and all changes in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.library.capabilities import AppliedChange
from agentkit.library.library import Library
from agentkit.library.store import LibraryChange, ToolRevision
from agentkit.tools.definition import ToolDefinition
from agentkit_redis.keys import raw
from agentkit_redis.reading import LibraryReader, batches
from agentkit_redis.records import Stored, VersionRecord

_DIGITS = 16
_PAGE = 100
"""Versions whose changes are read at a time."""


class History:
    """Looks back."""

    def __init__(self, reader: LibraryReader) -> None:
        self._reader = reader

    def versions(self) -> Sequence[int]:
        """See ``ToolStore.versions``."""
        return tuple(range(1, self._reader.head().version + 1))

    def history(self, tool_name: str) -> Sequence[ToolRevision]:
        """See ``ToolStore.history``."""
        self._reader.head()  # whether it is a library that we can read
        records = list(self._reader.versions(self._versions_of(tool_name)))
        steps = [_step(record, tool_name) for record in records]
        wanted = list(dict.fromkeys(step for step in steps if step is not None))
        read = dict(zip(wanted, self._reader.definitions(wanted, Library()), strict=True))
        return tuple(
            _revision(record, None if step is None else read[step])
            for record, step in zip(records, steps, strict=True)
        )

    def changes(self, *, after: int = 0) -> Iterator[AppliedChange]:
        """See ``ChangeLog.changes``."""
        newest = self._reader.head().version
        return self._changes(range(max(after, 0) + 1, newest + 1))

    def _changes(self, numbers: range) -> Iterator[AppliedChange]:
        for some in batches(numbers, _PAGE):
            records = list(self._reader.versions(some))
            wanted = list(dict.fromkeys(one for record in records for one in record.upserts))
            read = dict(zip(wanted, self._reader.definitions(wanted, Library()), strict=True))
            for record in records:
                change = LibraryChange(
                    proposal_id=record.proposal_id,
                    upserts=tuple(read[one] for one in record.upserts),
                    removals=record.removals,
                    author=record.author,
                    reason=record.reason,
                    evidence=record.evidence,
                    created_at=record.created_at,
                )
                yield AppliedChange(version=record.version, change=change)

    def _versions_of(self, tool_name: str) -> list[int]:
        """Versions that changed a tool, ascending."""
        start = raw(tool_name) + b"\0"
        found = self._reader.connection.ask(
            "ZRANGEBYLEX",
            self._reader.keys.revisions,
            b"[" + start + b"0" * _DIGITS,
            b"[" + start + b"9" * _DIGITS,
        )
        fits = len(start) + _DIGITS  # longer ones are of a name that has ours and a NUL before it
        return [int(member[-_DIGITS:]) for member in found if len(member) == fits]


def _step(record: VersionRecord, tool_name: str) -> Stored | None:
    """What a version made of a tool; None when it removed it."""
    return next((one for one in record.upserts if one.name == tool_name), None)


def _revision(record: VersionRecord, definition: ToolDefinition | None) -> ToolRevision:
    return ToolRevision(
        version=record.version,
        definition=definition,
        proposal_id=record.proposal_id,
        author=record.author,
        reason=record.reason,
        evidence=record.evidence,
        created_at=record.created_at,
    )
