"""An API description: read from a file, a text or decoded data, and its references followed."""

from __future__ import annotations

import json
import math
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias, cast
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from agentkit.errors import DefinitionError, MissingExtraError, ReadingLimitError, UsageError
from agentkit.messages import JsonObject
from agentkit.reading import LIMIT_VARIABLE, MAX_DEPTH, read_json, value_limit
from agentkit.tools.schema import resolve_local

Document: TypeAlias = "Mapping[str, Any] | str | bytes | Path"
"""What an API description can be given as, see ``read_document``."""

MAX_NODES = 5_000_000
"""Values in one document, aliases counted as often as they are used. The largest public API
descriptions hold some 700,000."""

MAX_BYTES = 64 * 1024 * 1024
"""Longest text of a document; GitHub's description has 12 MB."""

_LEAST_VALUES = 50_000  # a value of YAML takes ten times as long as one of JSON
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_SUPPORTED = re.compile(r"3\.[012](\.\d+)?([-+].*)?")
_SWAGGER = (
    "this is Swagger {version}, not OpenAPI 3; convert it first (the Swagger Editor does it under "
    "Edit > Convert to OpenAPI 3, or: npx swagger2openapi FILE -o openapi.json) and import the "
    "result"
)
_STRING, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"
_RESOLVERS = (  # those of YAML 1.2, in which `on` and dates are texts
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9]*)|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+",
        list("-+.0123456789"),
    ),
    (_MERGE, r"<<", ["<"]),
)


class OpenedDocument(NamedTuple):
    """A document and where it came from."""

    root: Mapping[str, Any]
    reference: str


def read_document(document: Document, *, reference: str = "") -> OpenedDocument:
    """Read an OpenAPI 3 description.

    Args:
        document: A ``Path``, a text that is the path of a file, the text itself (JSON or YAML), or
            a decoded object. A URL is not fetched: fetch it, and give what came.
        reference: File or URL that it came from, for what has no path of its own.

    Raises:
        DefinitionError: It is no OpenAPI 3.0, 3.1 or 3.2 document.
        MissingExtraError: It is YAML, and PyYAML is not installed.
        UsageError: The file can not be read, or a URL was given.
    """
    name = reference
    if isinstance(document, Path) or (isinstance(document, str) and _is_path(document)):
        path = Path(document)
        document, name = _file(path), str(path)
    try:
        root = decode(document) if isinstance(document, str | bytes) else plain_json(document)
        _check(root)
    except DefinitionError as error:
        raise DefinitionError(f"{name}: {error}" if name else str(error)) from error
    return OpenedDocument(cast("Mapping[str, Any]", root), reference or name)


def is_openapi(data: object) -> bool:
    """Whether decoded data are an API description, of whatever version."""
    return isinstance(data, Mapping) and (
        isinstance(data.get("openapi"), str | int | float) or "swagger" in data
    )


def decode(text: str | bytes) -> Any:
    """JSON or YAML text as plain JSON data.

    Raises:
        DefinitionError: It is neither, or it is too long.
        MissingExtraError: It is no JSON, and PyYAML is not installed.
    """
    if len(text) > MAX_BYTES:
        raise DefinitionError(
            f"the document has {len(text):,} bytes, more than the {MAX_BYTES:,} that are read"
        )
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DefinitionError(f"the document is not UTF-8: {error}") from error
    text = text.removeprefix("\ufeff")
    if text.lstrip()[:1] not in {"{", "["}:
        return plain_json(_load_yaml(text))
    try:
        data = read_json(text, decode=_DECODER.decode)
    except ReadingLimitError as error:
        raise DefinitionError(f"the document is not read: {error}") from error
    except ValueError as error:
        try:
            return plain_json(_load_yaml(text))  # YAML may start like JSON
        except (DefinitionError, ImportError):
            raise DefinitionError(f"the document is not JSON: {error}") from error
    return plain_json(data) if _HALF_PAIR.search(text) else data


def plain_json(value: object) -> Any:
    """The value as JSON data: keys are text, numbers finite, texts can be written in UTF-8.

    Raises:
        DefinitionError: The value holds itself, is nested deeper than 200 levels, or has more than
            five million parts, as aliases of YAML can make of a few lines.
    """
    left = MAX_NODES

    def plain(value: object, depth: int) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise DefinitionError(
                f"the document has more than {MAX_NODES:,} values once its aliases are written "
                "out; that is no API description, so it is not read"
            )
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
            return {_key(key): plain(item, depth + 1) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item, depth + 1) for item in value]
        return _plain_text(str(value))

    return plain(value, 0)


def _key(key: object) -> str:
    return _plain_text(str(key).lower() if isinstance(key, bool) else str(key))


def _plain_text(text: str) -> str:
    """The text with half surrogate pairs, which UTF-8 can not hold, replaced by ``?``."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


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
        _check_yaml(text)
        return yaml.load(text, Loader=_loader())  # noqa: S506 - a subclass of the safe loader
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        told = " ".join(str(error).split())[:300]
        raise DefinitionError(f"the text is neither JSON nor YAML: {told}") from error


def _check_yaml(text: str) -> None:
    """Count values, levels and what aliases stand for, before anything is built of them."""
    import yaml

    most = value_limit(len(text), least=_LEAST_VALUES)
    count, sizes = 0, dict[str | None, int | None]()  # by anchor; None as long as it is open
    levels: list[tuple[str | None, list[int]]] = [(None, [])]
    for event in yaml.parse(text, Loader=_loader()):
        count += isinstance(event, yaml.NodeEvent)
        if count > most:
            raise DefinitionError(
                f"{len(text):,} characters of YAML hold more than {most:,} values; a file that "
                f"you trust is read with {LIMIT_VARIABLE}=10 in the environment"
            )
        if isinstance(event, yaml.CollectionStartEvent):
            levels.append((event.anchor, []))
            sizes[event.anchor] = None
            if len(levels) > MAX_DEPTH + 1:
                raise DefinitionError(
                    f"the YAML text is nested too deeply, deeper than {MAX_DEPTH} levels"
                )
            continue
        anchor, size = getattr(event, "anchor", None), 1
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, parts = levels.pop()
            size += sum(parts)
        elif isinstance(event, yaml.AliasEvent):
            known = sizes.get(anchor, 1)
            if known is None:
                raise DefinitionError(
                    "an alias of the YAML text holds itself; write recursion as $ref"
                )
            size = known
        elif not isinstance(event, yaml.ScalarEvent):
            continue
        if size > MAX_NODES:
            raise DefinitionError(
                f"the YAML text stands for more than {MAX_NODES:,} values once its aliases are "
                "written out; write what is shared under components and use $ref"
            )
        sizes[anchor] = size
        levels[-1][1].append(size)


@cache
def _loader() -> Any:
    import yaml

    # C's scanner is ten times as fast and is there in nearly every wheel.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        yaml_implicit_resolvers: Mapping[str, Any] = {}

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002 - PyYAML's
            self.flatten_mapping(node)
            for key, _ in node.value:
                if key.id == "scalar":
                    key.tag = _STRING  # 1.10 is another key than 1.1
            return super().construct_mapping(node, deep)

    for tag, pattern, first in _RESOLVERS:
        Loader.add_implicit_resolver(tag, re.compile(rf"^(?:{pattern})$"), first)
    return Loader


def _is_path(text: str) -> bool:
    if _URL.fullmatch(text.strip()):
        raise UsageError(
            f"{text.strip()[:200]} is a URL, and nothing is fetched here; fetch it (for example "
            "httpx.get(url).text) and give the text, with reference=url"
        )
    return "\n" not in text and not text.lstrip().startswith(("{", "[")) and ": " not in text


def _file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DefinitionError(f"{path} is longer than the {MAX_BYTES:,} bytes that are read")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{str(path)[:200]}: can not be read ({reason})") from error


def _check(root: object) -> None:
    if not isinstance(root, Mapping):
        _refuse(f"it is a {type(root).__name__}")
    if "swagger" in root:
        raise DefinitionError(_SWAGGER.format(version=root["swagger"]))
    version = root.get("openapi")
    if version is None:
        _refuse(f"it has no key 'openapi'; its keys are {sorted(root)[:10]}")
    if not _SUPPORTED.fullmatch(str(version)):
        raise DefinitionError(f"OpenAPI {version!r} is not supported; 3.0, 3.1 and 3.2 are")
    if not isinstance(root.get("paths", {}), Mapping):
        _refuse(f"its 'paths' is a {type(root['paths']).__name__}")


def _refuse(why: str) -> NoReturn:
    raise DefinitionError(f"this is no OpenAPI document: {why}")


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
    steps = (str(key).replace("~", "~0").replace("/", "~1") for key in keys)
    return "/".join([pointer, *steps])


@dataclass(frozen=True, kw_only=True, slots=True)
class RemoteReferences:
    """Leave to follow references into other documents.

    Attributes:
        bases: What a document's URL has to start with; each ends in ``/`` or is the URL itself.
        fetch: Gives the document behind such a URL, as text or decoded. It is called once for each.

    Example:
        >>> files = {"https://example.com/schemas/pet.json": {"type": "string"}}
        >>> remote = RemoteReferences(bases=("https://example.com/schemas/",), fetch=files.get)
        >>> remote.allows("https://example.com/schemas/pet.json")
        True
        >>> remote.allows("https://example.com/schemas/../secret.json")
        False
    """

    bases: tuple[str, ...]
    fetch: Callable[[str], str | bytes | Mapping[str, Any]]

    def __post_init__(self) -> None:
        for base in self.bases:
            if not urlsplit(base).scheme:
                raise UsageError(
                    f"the base {base!r} is no URL; write bases=('https://example.com/schemas/',)"
                )

    def allows(self, url: str) -> bool:
        """Whether a document may be fetched; steps such as ``..`` are taken first."""
        path = unquote(urlsplit(url).path)
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
    document: str = ""
    pointer: str = ""

    def at(self, *keys: str | int) -> Located:
        """A part of this part; its value is None where there is none."""
        value = self.value
        for key in keys:
            if isinstance(value, list) and isinstance(key, int):
                value = value[key]
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
        return Located(value=value, document=self.document, pointer=below(self.pointer, *keys))


class ReferenceSpace:
    """The documents that references lead into.

    Args:
        root: The document that is imported.
        base: Its own file or URL, which relative references start from.
        remote: What else may be fetched; None refuses all.
    """

    def __init__(self, root: JsonObject, *, base: str, remote: RemoteReferences | None) -> None:
        self.root = Located(value=root)
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
        if known is not None:
            return known
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
        found = Located(value=value, document=document, pointer=unquote(fragment))
        self._found[within, reference] = found
        return found

    def followed(self, part: Located) -> Located:
        """A parameter, body, response or path item, after its ``$ref`` if it is one.

        Raises:
            Unmappable: A reference leads nowhere or in a circle, or the end is no object.
        """
        found, seen = part, set[tuple[str, str]]()
        while (found.document, found.pointer) not in seen:
            seen.add((found.document, found.pointer))
            if not isinstance(found.value, dict):
                kind = type(found.value).__name__
                raise Unmappable(f"an object belongs here, not a {kind}", pointer=found.pointer)
            reference = found.value.get("$ref")
            if not isinstance(reference, str):
                return found
            found = self.find(reference, within=found.document, pointer=found.pointer)
        raise Unmappable("the references lead in a circle", pointer=part.pointer)

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
    source: Located = Located(value={})
    shared: Located = Located(value=None)
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
        return tuple(
            tag for tag in (given if isinstance(given, list) else ()) if isinstance(tag, str)
        )


def operations_of(root: Mapping[str, Any], space: ReferenceSpace) -> Iterator[Operation]:
    """Every operation under ``paths``."""
    for path, item in (root.get("paths") or {}).items():
        if path.startswith("x-"):
            continue
        pointer = below("/paths", path)
        try:
            found = space.followed(Located(value=item, pointer=pointer))
        except Unmappable as error:
            yield Operation(method="*", path=path, pointer=pointer, fault=error.message)
            continue
        # 3.1 lets a path item stand beside its own reference; what stands here wins.
        beside = {key: part for key, part in item.items() if key != "$ref"}
        merged = Located(
            value={**found.value, **beside}, document=found.document, pointer=found.pointer
        )
        for key in METHODS:
            if key in merged.value:
                yield _operation(key, path, merged, space)


def _operation(key: str, path: str, item: Located, space: ReferenceSpace) -> Operation:
    method, pointer = key.upper(), below("/paths", path, key)
    if key in _UNSUPPORTED:
        fault = f"{method} operations are not mapped: they are not for tools"
        return Operation(method=method, path=path, pointer=pointer, fault=fault)
    try:
        # OpenAPI has no reference here, but descriptions split over many files use them.
        source = space.followed(item.at(key))
    except Unmappable as error:
        return Operation(method=method, path=path, pointer=pointer, fault=error.message)
    return Operation(
        method=method,
        path=path,
        pointer=pointer,
        source=source,
        shared=item.at("parameters"),
        servers=source.value.get("servers") or item.value.get("servers"),
    )
