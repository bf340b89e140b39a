"""References into other documents: refused, unless the caller allows where they lead."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from agentkit.errors import UsageError
from agentkit.interop.openapi.documents import decode, plain_json
from agentkit.messages import JsonObject
from agentkit.tools.schema import resolve_local


class Unmappable(Exception):  # noqa: N818 - inside only: it becomes an entry of the report
    """A part of the document can not be mapped; the importer turns this into a value.

    Attributes:
        pointer: Where, as a JSON pointer.
        message: Why, and what to do, in a sentence.
    """

    def __init__(self, message: str, *, pointer: str) -> None:
        self.message = message
        self.pointer = pointer
        super().__init__(message)


def below(pointer: str, *keys: object) -> str:
    """A JSON pointer (RFC 6901) to something below ``pointer``.

    Example:
        >>> below("/paths", "/pets/{id}", "get")
        '/paths/~1pets~1{id}/get'
    """
    for key in keys:
        step = str(key)
        if "~" in step or "/" in step:
            step = step.replace("~", "~0").replace("/", "~1")
        pointer = f"{pointer}/{step}"
    return pointer


Fetch: TypeAlias = "Callable[[str], str | bytes | Mapping[str, Any]]"
"""Gives the document behind a URL: its text, or decoded."""

_HOPS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteReferences:
    """Leave to follow references into other documents.

    Attributes:
        bases: What a document's URL has to start with; each ends in ``/`` or is the URL itself.
        fetch: Gives the document behind such a URL. It is called once for each document.

    Example:
        >>> files = {"https://example.com/schemas/pet.json": {"type": "string"}}
        >>> remote = RemoteReferences(bases=("https://example.com/schemas/",), fetch=files.get)
        >>> remote.allows("https://example.com/schemas/pet.json")
        True
        >>> remote.allows("https://example.com/schemas/../secret.json")
        False
    """

    bases: tuple[str, ...]
    fetch: Fetch

    def __post_init__(self) -> None:
        for base in self.bases:
            if not urlsplit(base).scheme:
                raise UsageError(
                    f"the base {base!r} is no URL; write bases=('https://example.com/schemas/',)"
                )

    def allows(self, url: str) -> bool:
        """Whether a document may be fetched; steps such as ``..`` are taken first."""
        parts = urlsplit(url)
        path = unquote(parts.path)
        if "\\" in path or (path and posixpath.normpath(path) != path.rstrip("/")):
            return False
        return any(
            url == base or (base.endswith("/") and url.startswith(base)) for base in self.bases
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Located:
    """A part of a document.

    Attributes:
        value: The part.
        document: URL of the document; empty for the one that is imported.
        pointer: Where it stands in that document.
    """

    value: Any
    document: str
    pointer: str


class ReferenceSpace:
    """The documents that references lead into.

    Args:
        root: The document that is imported.
        base: Its own file or URL, which relative references start from.
        remote: What else may be fetched; None refuses all.
    """

    def __init__(self, root: JsonObject, *, base: str, remote: RemoteReferences | None) -> None:
        self._documents: dict[str, Any] = {"": root}
        self._base = base
        self._found: dict[tuple[str, str], Located] = {}
        self._remote = remote

    def find(self, reference: str, *, within: str, pointer: str) -> Located:
        """What a reference points at.

        Args:
            reference: The value of ``$ref``.
            within: The document that it stands in.
            pointer: Where it stands, for the message.

        Raises:
            Unmappable: It points nowhere, or into a document that may not be fetched.
        """
        known = self._found.get((within, reference))
        if known is None:
            known = self._found[within, reference] = self._looked_up(reference, within, pointer)
        return known

    def _looked_up(self, reference: str, within: str, pointer: str) -> Located:
        place, fragment = urldefrag(reference)
        document = within
        if place:
            url = urljoin(within or self._base, place)
            document = "" if url == self._base else url
        root = self._document(document, reference, pointer)
        if fragment and not fragment.startswith("/"):
            raise Unmappable(
                f"the reference {reference!r:.200} names an anchor; only JSON pointers such as "
                "'#/components/schemas/Pet' are followed",
                pointer=pointer,
            )
        value = root if not fragment else resolve_local(root, f"#{fragment}")
        if value is None:
            raise Unmappable(f"the reference {reference!r:.200} points nowhere", pointer=pointer)
        return Located(value=value, document=document, pointer=unquote(fragment))

    def followed(self, value: Any, *, document: str, pointer: str) -> Located:
        """A parameter, body, response or path item, after its ``$ref`` if it is one.

        Raises:
            Unmappable: A reference leads nowhere or in a circle, or the end is no object.
        """
        found = Located(value=value, document=document, pointer=pointer)
        for _ in range(_HOPS):
            if not isinstance(found.value, dict):
                kind = type(found.value).__name__
                raise Unmappable(f"an object belongs here, not a {kind}", pointer=found.pointer)
            reference = found.value.get("$ref")
            if not isinstance(reference, str):
                return found
            found = self.find(reference, within=found.document, pointer=found.pointer)
        raise Unmappable("the references lead in a circle", pointer=pointer)

    def _document(self, document: str, reference: str, pointer: str) -> Any:
        if document in self._documents:
            return self._documents[document]
        if self._remote is None or not self._remote.allows(document):
            raise Unmappable(
                f"the reference {reference!r:.200} leads into another document, which is not "
                "fetched; bundle the description into one file, or allow "
                "it to be fetched",
                pointer=pointer,
            )
        try:
            given = self._remote.fetch(document)
            found = decode(given) if isinstance(given, str | bytes) else plain_json(given)
        except Exception as error:  # the caller's own code: whatever it raises becomes a reason
            told = str(error)[:200] or type(error).__name__
            raise Unmappable(f"{document} could not be read: {told}", pointer=pointer) from error
        self._documents[document] = found
        return found


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
