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
        pointer: Where the imported document lists it.
        source: The operation object, and where it stands; empty when ``fault`` is set.
        shared: Parameters of the path, which those of the operation come after.
        servers: The servers of the operation or its path, or None.
        fault: Why nothing can be made of it.
    """

    method: str
    path: str
    pointer: str
    source: Located
    shared: tuple[Located, ...] = ()
    servers: Any = None
    fault: str = ""

    @property
    def body(self) -> Mapping[str, Any]:
        """The operation object."""
        found: Mapping[str, Any] = self.source.value
        return found

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
        if path.startswith("x-"):
            continue
        pointer = below("/paths", path)
        try:
            found = space.followed(item, document="", pointer=pointer)
        except Unmappable as error:
            yield _unusable("*", path, pointer, error.message)
            continue
        yield from _of_path(path, item, found, space)


def _unusable(method: str, path: str, pointer: str, fault: str) -> Operation:
    source = Located(value={}, document="", pointer=pointer)
    return Operation(method=method, path=path, pointer=pointer, source=source, fault=fault)


def _of_path(
    path: str, item: Mapping[str, Any], found: Located, space: ReferenceSpace
) -> Iterator[Operation]:
    # 3.1 lets a path item stand beside its own reference; what stands here wins.
    merged = {**found.value, **{key: part for key, part in item.items() if key != "$ref"}}
    shared = merged.get("parameters")
    at = below(found.pointer, "parameters")
    parameters = tuple(
        Located(value=part, document=found.document, pointer=below(at, index))
        for index, part in enumerate(shared if isinstance(shared, list) else ())
    )
    for key in METHODS:
        if key not in merged:
            continue
        method, pointer = key.upper(), below("/paths", path, key)
        if key in _UNSUPPORTED:
            fault = f"{method} operations are not mapped: they are not for tools"
            yield _unusable(method, path, pointer, fault)
            continue
        try:
            # OpenAPI has no reference here, but descriptions split over many files use them.
            source = space.followed(
                merged[key], document=found.document, pointer=below(found.pointer, key)
            )
        except Unmappable as error:
            yield _unusable(method, path, pointer, error.message)
            continue
        yield Operation(
            method=method,
            path=path,
            pointer=pointer,
            source=source,
            shared=parameters,
            servers=source.value.get("servers") or merged.get("servers"),
        )
