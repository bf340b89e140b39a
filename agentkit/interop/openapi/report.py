"""What came of each operation of an API description, as records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

OperationStatus = Literal["mapped", "deprecated", "unselected", "unusable"]
"""``unselected``: left out by the caller's own choice of operations and tags."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenApiNote:
    """One thing that a reader of the description would want to know.

    Attributes:
        pointer: Where, as a JSON pointer into the document.
        code: What kind of thing; equal things have equal codes, so that they can be counted.
        message: The same in a sentence.
    """

    pointer: str
    code: str
    message: str

    def to_json(self) -> dict[str, str]:
        """The note as a JSON object."""
        return {"pointer": self.pointer, "code": self.code, "message": self.message}


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationReport:
    """What came of one operation.

    Attributes:
        method: In capitals.
        path: The path as written, with its placeholders.
        pointer: Where it stands, as a JSON pointer into the document.
        status: Whether there is a tool for it, and why not.
        operation_id: Its ``operationId``, if it has one.
        tool_name: The tool's name; None when there is no tool.
        reason: Why there is no tool, in a sentence; empty for a mapped operation.
        notes: What was changed, left out or could not be told.
    """

    method: str
    path: str
    pointer: str
    status: OperationStatus
    operation_id: str | None = None
    tool_name: str | None = None
    reason: str = ""
    notes: tuple[OpenApiNote, ...] = ()

    @property
    def label(self) -> str:
        """Method and path, as people write an operation."""
        return f"{self.method} {self.path}"

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object; empty parts are left out."""
        record: dict[str, Any] = {
            "method": self.method,
            "path": self.path,
            "pointer": self.pointer,
            "status": self.status,
            "operation_id": self.operation_id,
            "tool_name": self.tool_name,
            "reason": self.reason,
            "notes": [note.to_json() for note in self.notes],
        }
        return {key: value for key, value in record.items() if value not in (None, "", [])}


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenApiReport:
    """What was mapped and what was not: each operation of the document is in it once.

    Attributes:
        title: The API's title.
        version: The API's version.
        openapi: The version of OpenAPI that the document is written in.
        reference: File or URL that it came from; empty when it was given as data.
        server: The base URL that calls go to, unless an operation names its own; empty if unknown.
        operations: Every operation, in document order.
        notes: What concerns the whole document: webhooks, schemas that had to be repaired.
        security: The names of the security schemes, and what each wants.
    """

    title: str
    version: str
    openapi: str
    reference: str = ""
    server: str = ""
    operations: tuple[OperationReport, ...] = ()
    notes: tuple[OpenApiNote, ...] = ()
    security: Mapping[str, str] = field(default_factory=dict)

    def of_status(self, status: OperationStatus) -> tuple[OperationReport, ...]:
        """The operations of one status, in document order."""
        return tuple(entry for entry in self.operations if entry.status == status)

    @property
    def mapped(self) -> tuple[OperationReport, ...]:
        """The operations that there is a tool for."""
        return self.of_status("mapped")

    @property
    def unusable(self) -> tuple[OperationReport, ...]:
        """The operations that could not be mapped, each with its reason."""
        return self.of_status("unusable")

    @property
    def summary(self) -> str:
        """One line of counts.

        Example:
            >>> OpenApiReport(title="Pets", version="1", openapi="3.1.0").summary
            'Pets 1 (OpenAPI 3.1.0): 0 of 0 operations mapped'
        """
        counts = Counter(entry.status for entry in self.operations)
        mapped = counts.pop("mapped", 0)
        rest = "".join(f", {count:,} {status}" for status, count in counts.items())
        head = f"{self.title} {self.version}".strip() or "without a title"
        total = len(self.operations)
        return f"{head} (OpenAPI {self.openapi}): {mapped:,} of {total:,} operations mapped{rest}"

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            "title": self.title,
            "version": self.version,
            "openapi": self.openapi,
            "reference": self.reference,
            "server": self.server,
            "security": dict(self.security),
            "operations": [entry.to_json() for entry in self.operations],
            "notes": [note.to_json() for note in self.notes],
        }
