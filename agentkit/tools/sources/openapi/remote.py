"""References into other documents: refused, unless the caller allows where they lead."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit.tools.references import resolve_local
from agentkit.tools.sources.openapi.documents import decode
from agentkit.tools.sources.openapi.faults import Unmappable
from agentkit.tools.sources.openapi.json_data import plain_json

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
