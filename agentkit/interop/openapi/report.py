"""What came of each operation of an API description, as records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
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


class Notes(list[OpenApiNote]):
    """Collects notes for the report."""

    def add(self, code: str, message: str, pointer: str) -> None:
        """Keep one."""
        self.append(OpenApiNote(pointer=pointer, code=code, message=message))


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


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenApiReport:
    """What was mapped and what was not: each operation of the document is in it once.

    Attributes:
        title: The API's title.
        version: The API's version.
        openapi: The version of OpenAPI that the document is written in.
        reference: File or URL that it came from; empty when it was given as data.
        server: The base URL that calls go to, unless an operation names its own; empty if unknown.
        security: The names of the security schemes, and what each wants.
        operations: Every operation, in document order.
        notes: What concerns the whole document: webhooks, schemas that had to be repaired.
    """

    title: str
    version: str
    openapi: str
    reference: str = ""
    server: str = ""
    security: Mapping[str, str] = field(default_factory=dict)
    operations: tuple[OperationReport, ...] = ()
    notes: tuple[OpenApiNote, ...] = ()

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
        """The report as a JSON object; empty parts of operations are left out."""
        record = asdict(self)
        record["operations"] = [
            {key: value for key, value in entry.items() if value not in (None, "", ())}
            for entry in record["operations"]
        ]
        return record
