"""``LibraryDelta``: what leads from one version of a library to the next, as JSON data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.canonical import digest
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryDelta:
    """What changed between two libraries.

    Attributes:
        version: Of the next one.
        upserts: Definitions that are new or other than before.
        removals: Names that are gone.
        order: All names in the order in which they are offered, where that does not follow from
            the rest; empty where it does.
    """

    version: int
    upserts: tuple[ToolDefinition, ...] = ()
    removals: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the tools are those of before."""
        return not (self.upserts or self.removals or self.order)

    def to_json(self) -> dict[str, Any]:
        """As JSON data."""
        return {
            "version": self.version,
            "upserts": [one.to_json() for one in self.upserts],
            "removals": list(self.removals),
            "order": list(self.order),
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> LibraryDelta:
        """The inverse of ``to_json``.

        Raises:
            DefinitionError: A definition is none.
        """
        return cls(
            version=int(record["version"]),
            upserts=tuple(ToolDefinition.from_json(one) for one in record["upserts"]),
            removals=tuple(record["removals"]),
            order=tuple(record["order"]),
        )


def library_delta(before: Library, after: Library) -> LibraryDelta:
    """What leads from ``before`` to ``after``.

    Cost: a look at each tool; nothing is hashed that was not hashed already.
    """
    if after is before:
        return LibraryDelta(version=after.version)
    upserts = tuple(one for one in after.definitions if not _holds(before, one))
    removals = tuple(name for name in before.tools if name not in after)
    kept = [name for name in before.tools if name in after]
    names = [*kept, *(one.name for one in upserts if one.name not in before)]
    order = () if names == list(after.tools) else tuple(after.tools)
    return LibraryDelta(version=after.version, upserts=upserts, removals=removals, order=order)


def _holds(library: Library, definition: ToolDefinition) -> bool:
    known = library.get(definition.name)
    return known is not None and (
        known.definition is definition or known.definition.digest == definition.digest
    )


def with_delta(library: Library, delta: LibraryDelta, *, tools: Iterable[Tool] = ()) -> Library:
    """The library that ``delta`` leads to.

    Args:
        library: The one that the delta goes out from.
        delta: What changed.
        tools: Code of tools that may be among the changes; what the library has bound already
            stays bound, also where the definition changed.
    """
    if delta.is_empty:
        same = delta.version == library.version
        return library if same else library.at_version(delta.version)
    changed = library.without(delta.removals).with_tools(delta.upserts)
    if delta.order:
        changed = Library([changed[name] for name in delta.order], cache=library.cache).continuing(
            changed
        )
    return _bound(changed, library, delta, tools).at_version(delta.version)


def _bound(
    changed: Library, before: Library, delta: LibraryDelta, tools: Iterable[Tool]
) -> Library:
    """With code for what changed: composites are linked anew, primitives keep theirs."""
    code = {tool.name: tool for tool in tools if tool.name in changed}
    for one in delta.upserts:
        known = before.get(one.name)
        if known is not None and known.function is not None and not one.is_composite:
            code.setdefault(one.name, known)
    return changed.bind(code)


def library_fingerprint(library: Library) -> str:
    """A digest of version, definitions and the order in which they are offered."""
    return digest([library.version, library.digest, list(library.tools)])
