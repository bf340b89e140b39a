"""The operations of a document, in its order, whatever state they are in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.tools.sources.openapi.faults import Unmappable, below
from agentkit.tools.sources.openapi.remote import Located, ReferenceSpace

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
"""The keys of a path item that are operations; ``query`` is new in 3.2."""

_UNSUPPORTED = frozenset({"options", "query", "trace"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One operation as written.

    Attributes:
        method: In capitals.
        path: The path with its placeholders.
        body: The operation object; empty when ``fault`` is set.
        document: URL of the document that it stands in; empty for the one that is imported.
        pointer: Where it stands there.
        shared: Parameters of the path, which those of the operation come after.
        servers: The servers of the operation or its path, or None.
        fault: Why nothing can be made of it.
    """

    method: str
    path: str
    body: Mapping[str, Any]
    document: str
    pointer: str
    shared: tuple[Located, ...] = ()
    servers: Any = None
    fault: str = ""

    @property
    def operation_id(self) -> str | None:
        """Its ``operationId``, when that is text."""
        given = self.body.get("operationId")
        return given if isinstance(given, str) else None

    @property
    def tags(self) -> tuple[str, ...]:
        """Its labels."""
        given = self.body.get("tags")
        return (
            tuple(tag for tag in given if isinstance(tag, str)) if isinstance(given, list) else ()
        )


def operations_of(root: Mapping[str, Any], space: ReferenceSpace) -> Iterator[Operation]:
    """Every operation under ``paths``."""
    paths = root.get("paths") or {}
    for path, item in paths.items():
        pointer = below("/paths", path)
        if path.startswith("x-"):
            continue
        try:
            found = space.followed(item, document="", pointer=pointer)
        except Unmappable as error:
            yield Operation(
                method="*", path=path, body={}, document="", pointer=pointer, fault=error.message
            )
            continue
        yield from _of_path(path, item, found)


def _of_path(path: str, item: Mapping[str, Any], found: Located) -> Iterator[Operation]:
    # 3.1 lets a path item stand beside its own reference; what stands here wins.
    merged = {**found.value, **{key: part for key, part in item.items() if key != "$ref"}}
    shared = merged.get("parameters")
    at = below(found.pointer, "parameters")
    parameters = tuple(
        Located(value=part, document=found.document, pointer=below(at, index))
        for index, part in enumerate(shared if isinstance(shared, list) else ())
    )
    for method in METHODS:
        if method not in merged:
            continue
        body = merged[method]
        usable = isinstance(body, Mapping)
        fault = "" if usable else f"the operation is a {type(body).__name__}, not an object"
        if method in _UNSUPPORTED:
            fault = f"{method.upper()} operations are not mapped: they are not for tools"
        yield Operation(
            method=method.upper(),
            path=path,
            body=body if usable else {},
            document=found.document,
            pointer=below(found.pointer, method),
            shared=parameters,
            servers=(body.get("servers") if usable else None) or merged.get("servers"),
            fault=fault,
        )
