"""What the digest of a library is made of: one line a tool, kept from one snapshot to the next."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentkit.library.derived import Snapshot
from agentkit.tools.canonical import canonical_json
from agentkit.tools.tool import Tool

DigestLines = Mapping[bytes, bytes]
"""The line of each tool by its place, in the order of the places."""


@dataclass(frozen=True, slots=True)
class DigestLinesOfLibrary:
    """The lines as a derived value, see ``Library.derived``; ``Library.digest`` asks for it.

    A change of a few tools costs a copy of a dict and their lines; what did not change is neither
    written nor sorted again.

    Example:
        >>> from agentkit import Library, ToolDefinition
        >>> from agentkit.tools.canonical import digest
        >>> library = Library([ToolDefinition(name="b"), ToolDefinition(name="a")])
        >>> lines_digest(library.derived(DIGEST_LINES)) == digest(
        ...     {one.name: one.digest for one in library.definitions}
        ... )
        True
    """

    def build(self, library: Snapshot) -> DigestLines:
        """The lines of all tools."""
        return _in_order(_lines(library.tools.values()))

    def update(
        self,
        value: DigestLines,
        library: Snapshot,
        added: Sequence[Tool],
        removed: Collection[str],
    ) -> DigestLines:
        """The lines after a change."""
        lines = {**value, **_lines(added)}
        has_grown = len(lines) > len(value)  # else each new line stands in the place of an old one
        for name in removed:
            lines.pop(_place(name), None)
        return _in_order(lines) if has_grown else lines


DIGEST_LINES = DigestLinesOfLibrary()
"""The kind to ask for: ``library.derived(DIGEST_LINES)``."""


def lines_digest(lines: DigestLines) -> str:
    """SHA-256 over the JSON object that the lines are the members of, as RFC 8785 writes it."""
    return hashlib.sha256(b"{" + b",".join(lines.values()) + b"}").hexdigest()


def _lines(tools: Iterable[Tool]) -> dict[bytes, bytes]:
    return {_place(tool.name): _line(tool) for tool in tools}


def _line(tool: Tool) -> bytes:
    return canonical_json(tool.name) + b":" + canonical_json(tool.definition.digest)


def _place(name: str) -> bytes:
    """RFC 8785 orders names by their UTF-16 units, which is not the order of code points.

    Half of a surrogate pair passes here and is refused with its line.
    """
    return name.encode("utf-16-be", "surrogatepass")


def _in_order(lines: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    return dict(sorted(lines.items()))
