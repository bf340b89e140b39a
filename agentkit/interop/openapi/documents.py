"""An API description: read from a file, a text or decoded data, and its references followed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from operator import is_
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from agentkit.errors import DefinitionError, MissingExtraError, ReadingLimitError, UsageError
from agentkit.messages import JsonObject
from agentkit.reading import (
    MAX_DEPTH,
    know_json,
    open_plain,
    read_json,
    read_stored,
    read_yaml,
)
from agentkit.tools.schema import resolve_local

Document: TypeAlias = "Mapping[str, Any] | str | bytes | Path"
"""Accepted forms of an API description, see ``read_document``."""

MAX_NODES = 5_000_000
"""Values in one document. The largest public API descriptions hold some 700,000."""

MAX_BYTES = 64 * 1024 * 1024
"""Longest text of a document; GitHub's description has 12 MB."""

MAX_OPERATIONS = 20_000
"""Operations in one document, chosen or not; Microsoft Graph has some 16,000."""

MAX_PATH = 2_000
"""Longest path of an operation."""

_LEAST_VALUES = 25_000  # a value of YAML takes ten times as long as one of JSON
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_SUPPORTED = re.compile(r"3\.[012](\.\d+)?([-+].*)?")


class OpenedDocument(NamedTuple):
    """A document, where it came from, and about how many characters of JSON or YAML it takes."""

    root: Mapping[str, Any]
    reference: str
    size: int


def read_document(document: Document, *, reference: str = "") -> OpenedDocument:
    """Read an OpenAPI 3 description.

    Args:
        document: A ``Path``, a text that is the path of a file, the text itself (JSON or YAML), or
            a decoded object. URLs are not fetched: fetch it, and give what came.
        reference: File or URL that it came from, for what has no path of its own.

    Raises:
        DefinitionError: It is no OpenAPI 3.0, 3.1 or 3.2 document.
        MissingExtraError: It is YAML, and PyYAML is not installed.
        UsageError: The file cannot be read, or a URL was given.
    """
    name = reference
    if isinstance(document, Path) or (isinstance(document, str) and _is_path(document)):
        path = Path(document)
        document, name = _file(path), str(path)
    try:
        data = _parsed(document) if isinstance(document, str | bytes) else document
        root, size = _plain_and_size(data)
        _check(root)
    except DefinitionError as error:
        raise DefinitionError(f"{name}: {error}" if name else str(error)) from error
    return OpenedDocument(root, reference or name, size)


def is_openapi(data: object) -> bool:
    """Whether decoded data are an API description, of whatever version."""
    return isinstance(data, Mapping) and (
        isinstance(data.get("openapi"), str | int | float) or "swagger" in data
    )


def _parsed(text: str | bytes) -> Any:
    """The data of a JSON or YAML text.

    Raises:
        DefinitionError: It is neither, or it is too long.
        MissingExtraError: It is no JSON, and PyYAML is not installed.
    """
    if len(text) > MAX_BYTES:
        raise DefinitionError(f"the document is longer than the {MAX_BYTES:,} bytes that are read")
    try:
        text = text.decode() if isinstance(text, bytes) else text
        text = text.removeprefix("\ufeff")
        return read_json(text) if text.lstrip()[:1] in {"{", "["} else _load_yaml(text)
    except UnicodeDecodeError as error:
        raise DefinitionError(f"the document is not UTF-8: {error}") from error
    except ReadingLimitError as error:
        raise DefinitionError(f"the document is not read: {error}") from error
    except ValueError as error:
        raise DefinitionError(f"the document is not JSON: {error}") from error


def plain_json(value: object) -> Any:
    """The value as JSON data: keys are text, numbers finite, texts can be written in UTF-8.

    Parts that are so already are reused, not copied.

    Raises:
        DefinitionError: The value holds itself, is nested deeper than 200 levels, or has more than
            five million parts.
    """
    return _plain_and_size(value)[0]


def _plain_and_size(value: object) -> tuple[Any, int]:
    """The value as JSON data, and about how many characters it takes."""
    left, size = MAX_NODES, 0

    def plain(value: object, depth: int) -> Any:
        nonlocal left, size
        left, size = left - 1, size + 4
        if left < 0:
            raise DefinitionError(f"the document has more than {MAX_NODES:,} values")
        if depth > MAX_DEPTH:
            raise DefinitionError(
                f"the document is nested deeper than {MAX_DEPTH} levels, or holds itself; "
                "write recursion as $ref"
            )
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Mapping):
            made = {_key(key): plain(item, depth + 1) for key, item in value.items()}
            size += sum(map(len, made)) + 4 * len(made)
            is_same = all(map(is_, made, value)) and all(map(is_, made.values(), value.values()))
            return value if type(value) is dict and is_same else made
        if isinstance(value, list | tuple):
            parts = [plain(item, depth + 1) for item in value]
            return value if type(value) is list and all(map(is_, parts, value)) else parts
        text = _plain_text(str(value))
        size += len(text)
        return text

    return plain(value, 0), size


def _key(key: object) -> str:
    return _plain_text(str(key).lower() if isinstance(key, bool) else str(key))


def _plain_text(text: str) -> str:
    """The text with half surrogate pairs, which UTF-8 cannot hold, replaced by ``?``."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _load_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            "An API description written as YAML",
            package="pyyaml",
            install='pip install "agentkit-evolve[openapi]"',
        ) from error
    try:
        return read_yaml(text, _loader(), least=_LEAST_VALUES)
    except ReadingLimitError:
        raise
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise DefinitionError(f"the text is neither JSON nor YAML: {reason}") from error


@cache
def _loader() -> Any:
    import yaml

    # C's scanner is ten times as fast and is there in nearly every wheel.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    loader: Any = type("Loader", (base,), {})
    know_json(loader)
    return loader


def _is_path(text: str) -> bool:
    if _URL.fullmatch(text.strip()):
        raise UsageError(
            f"{text.strip()[:200]} is a URL, and nothing is fetched here; fetch it (for example "
            "httpx.get(url).text) and give the text, with reference=url"
        )
    return "\n" not in text and not text.lstrip().startswith(("{", "[")) and ": " not in text


def _file(path: Path) -> bytes:
    try:
        with open_plain(path) as file:
            return read_stored(file, most=MAX_BYTES)
    except (OSError, ValueError) as error:  # also of names that are none
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{str(path)[:200]}: cannot be read ({reason})") from error


def _check(root: object) -> None:
    if not isinstance(root, Mapping):
        _refuse(f"it is a {type(root).__name__}")
    if "swagger" in root:
        raise DefinitionError(
            f"this is Swagger {root['swagger']!s:.20}, not OpenAPI 3; convert it first (npx "
            "swagger2openapi FILE -o openapi.json) and import the result"
        )
    version = root.get("openapi")
    if version is None:
        _refuse(f"it has no key 'openapi'; its keys are {str(sorted(root)[:10])[:200]}")
    if not _SUPPORTED.fullmatch(str(version)):
        raise DefinitionError(f"OpenAPI {version!r:.40} is not supported; 3.0, 3.1 and 3.2 are")
    if not isinstance(root.get("paths", {}), Mapping):
        _refuse(f"its 'paths' is a {type(root['paths']).__name__}")


def _refuse(why: str) -> NoReturn:
    raise DefinitionError(f"this is no OpenAPI document: {why}")


# --- parts of a document --------------------------------------------------------------------------


class Unmappable(Exception):  # noqa: N818 - inside only: it becomes an entry of the report
    """A part of the document cannot be mapped; the message says why, and what to do."""


def below(pointer: str, *keys: object) -> str:
    """A JSON pointer (RFC 6901) to something below ``pointer``.

    Example:
        >>> below("/paths", "/pets/{id}", "get")
        '/paths/~1pets~1{id}/get'
    """
    steps = (str(key).replace("~", "~0").replace("/", "~1") for key in keys)
    return "/".join([pointer, *steps])


@dataclass(frozen=True, slots=True)
class Node:
    """A part of a document, and its JSON pointer; the value is None where there is nothing."""

    value: Any
    pointer: str = ""

    @property
    def mapping(self) -> JsonObject:
        """The value if it is an object; else an empty one."""
        return self.value if isinstance(self.value, dict) else {}

    def at(self, *keys: str | int) -> Node:
        """A part of this part."""
        value = self.value
        for key in keys:
            if isinstance(value, list) and isinstance(key, int):
                value = value[key]
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
        return Node(value, below(self.pointer, *keys))


class ReferenceSpace:
    """The targets of one document's references.

    Args:
        root: The document.
    """

    def __init__(self, root: JsonObject) -> None:
        self.root = Node(root)
        self._found: dict[str, Node] = {}

    def find(self, reference: str) -> Node:
        """Resolve a reference.

        Args:
            reference: The value of ``$ref``.

        Raises:
            Unmappable: It points nowhere, or into another document.
        """
        known = self._found.get(reference)
        if known is not None:
            return known
        if not reference.startswith("#"):
            raise Unmappable(
                f"the reference {reference!r:.200} leads into another document, which is not "
                "fetched; bundle the description into one file"
            )
        value = resolve_local(self.root.value, reference)
        if value is None:
            raise Unmappable(f"the reference {reference!r:.200} points nowhere")
        found = self._found[reference] = Node(value, reference[1:])
        return found

    def followed(self, part: Node) -> Node:
        """A parameter, body, response or path item, after its ``$ref`` if it is one.

        Raises:
            Unmappable: A reference leads nowhere or in a circle, or the end is not an object.
        """
        found, seen = part, set[str]()
        while found.pointer not in seen:
            seen.add(found.pointer)
            if not isinstance(found.value, dict):
                kind = type(found.value).__name__
                raise Unmappable(f"an object belongs here, not a {kind}")
            reference = found.value.get("$ref")
            if not isinstance(reference, str):
                return found
            found = self.find(reference)
        raise Unmappable("the references lead in a circle")


_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_NOT_FOR_TOOLS = frozenset({"options", "trace"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """One operation as written.

    Attributes:
        method: In capitals.
        path: The path with its placeholders.
        source: The operation object; empty when ``fault`` is set.
        shared: Parameters of the path, which those of the operation come after.
        servers: The servers of the operation or its path, or None.
        fault: Why nothing can be made of it.
    """

    method: str
    path: str
    source: Node
    shared: Node = Node(None)
    servers: Any = None
    fault: str = ""

    @property
    def operation_id(self) -> str | None:
        """Its ``operationId``, when that is text."""
        value = self.source.mapping.get("operationId")
        return value if isinstance(value, str) else None

    @property
    def tags(self) -> tuple[str, ...]:
        """Its labels."""
        value = self.source.mapping.get("tags")
        return (
            tuple(tag for tag in value if isinstance(tag, str)) if isinstance(value, list) else ()
        )


def operations_of(space: ReferenceSpace) -> Iterator[Operation]:
    """Every operation under ``paths``.

    Raises:
        DefinitionError: There are too many.
    """
    count = 0
    for path, item in (space.root.value.get("paths") or {}).items():
        if path.startswith("x-"):
            continue
        for operation in _operations_at(Node(item, below("/paths", path)), path, space):
            count += 1
            if count > MAX_OPERATIONS:
                raise DefinitionError(f"it has more than {MAX_OPERATIONS:,} operations")
            yield operation


def _operations_at(item: Node, path: str, space: ReferenceSpace) -> Iterator[Operation]:
    try:
        # 3.1 allows a path item beside its own reference; local fields win.
        merged = Node({**space.followed(item).value, **item.value}, item.pointer)
    except Unmappable as error:
        yield Operation(method="*", path=path, source=Node(None, item.pointer), fault=str(error))
        return
    for key in _METHODS:
        if key not in merged.value:
            continue
        source, fault = merged.at(key), ""
        if not isinstance(source.value, dict) or "$ref" in source.value:
            fault = "an operation is an object, and no reference"
        elif key in _NOT_FOR_TOOLS:
            fault = f"{key.upper()} operations are not mapped: they are not for tools"
        elif len(path) > MAX_PATH:
            fault = f"its path is longer than {MAX_PATH:,} characters"
        yield Operation(
            method=key.upper(),
            path=path[:MAX_PATH],
            source=Node(None, source.pointer) if fault else source,
            shared=merged.at("parameters"),
            servers=source.mapping.get("servers") or merged.value.get("servers"),
            fault=fault,
        )
