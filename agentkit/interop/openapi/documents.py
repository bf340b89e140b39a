"""An API description from wherever the caller has it: a file, a text, or decoded data."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, cast

from agentkit.errors import DefinitionError, MissingExtraError, ReadingLimitError, UsageError
from agentkit.reading import LIMIT_VARIABLE, MAX_DEPTH, read_json, value_limit

if TYPE_CHECKING:
    import yaml


MAX_NODES = 5_000_000
"""Values in one document, aliases counted as often as they are used. The largest public API
descriptions hold some 700,000."""


def plain_json(value: object) -> Any:
    """The value as JSON data: keys are text, numbers finite, texts can be written in UTF-8.

    Raises:
        DefinitionError: The value holds itself, is nested deeper than 200 levels, or has more than
            five million parts, as aliases of YAML can make of a few lines.
    """
    return _Copy().value(value, 0)


class _Copy:
    """One pass; counts on the way."""

    def __init__(self) -> None:
        self._left = MAX_NODES

    def value(self, value: object, depth: int) -> Any:
        self._left -= 1
        if self._left < 0:
            raise DefinitionError(
                f"the document has more than {MAX_NODES:,} values once its aliases are written "
                "out; that is no API description, so it is not read"
            )
        if depth > MAX_DEPTH:
            raise DefinitionError(
                f"the document is nested deeper than {MAX_DEPTH} levels, or holds itself; "
                "write recursion as $ref"
            )
        if isinstance(value, str):
            return plain_text(value)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, Mapping):
            return {
                plain_text(key if isinstance(key, str) else _key(key)): self.value(item, depth + 1)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item, depth + 1) for item in value]
        return plain_text(str(value))


def _key(key: object) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def plain_text(text: str) -> str:
    """The text with half surrogate pairs, which UTF-8 can not hold, replaced by ``?``."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


_LEAST_VALUES = 50_000  # a value of YAML takes ten times as long as one of JSON
_STRING = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"
_RESOLVERS = (
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


def load_yaml(text: str) -> Any:
    """The one document in a YAML text.

    Raises:
        MissingExtraError: PyYAML is not installed.
        DefinitionError: The text is no YAML, or its aliases stand for too much or for themselves.
    """
    try:
        import yaml
    except ImportError as error:
        raise MissingExtraError(
            "An API description written as YAML",
            package="pyyaml",
            install='pip install "agentkit-evolve[openapi]"',
        ) from error
    try:
        _check_events(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise _neither(error) from error
    loader = _loader()(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_yaml(node)
        return loader.construct_document(node)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise _neither(error) from error
    finally:
        loader.dispose()


def _neither(error: Exception) -> DefinitionError:
    told = " ".join(str(error).split())[:300]
    return DefinitionError(f"the text is neither JSON nor YAML: {told}")


def _check_events(text: str) -> None:
    """Count values and levels before nodes of them are built, each of half a kilobyte."""
    import yaml

    most = value_limit(len(text), least=_LEAST_VALUES)
    count = levels = 0
    for event in yaml.parse(text, Loader=_loader()):
        count += isinstance(event, yaml.NodeEvent)
        levels += isinstance(event, yaml.CollectionStartEvent)
        levels -= isinstance(event, yaml.CollectionEndEvent)
        if levels > MAX_DEPTH:
            raise DefinitionError(
                f"the YAML text is nested too deeply, deeper than {MAX_DEPTH} levels"
            )
        if count > most:
            raise DefinitionError(
                f"{len(text):,} characters of YAML hold more than {most:,} values; a file that "
                f"you trust is read with {LIMIT_VARIABLE}=10 in the environment"
            )


@cache
def _loader() -> Any:
    import yaml

    # C's scanner is ten times as fast and is there in nearly every wheel.
    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    made: Any = type("_Loader", (base,), {"yaml_implicit_resolvers": {}})
    for tag, pattern, first in _RESOLVERS:
        made.add_implicit_resolver(tag, re.compile(rf"^(?:{pattern})$"), first)
    return made


def _check_yaml(root: yaml.Node) -> None:
    """Count what the aliases stand for before anything is built, and make keys text."""
    sizes: dict[int, int] = {}
    if _size(root, sizes, set()) > MAX_NODES:
        raise DefinitionError(
            f"the YAML text stands for more than {MAX_NODES:,} values once its aliases are "
            "written out; write what is shared under components and use $ref"
        )


def _size(node: Any, sizes: dict[int, int], open_nodes: set[int]) -> int:
    known = sizes.get(id(node))
    if known is not None:
        return known
    if id(node) in open_nodes:
        raise DefinitionError("an alias of the YAML text holds itself; write recursion as $ref")
    open_nodes.add(id(node))
    parts: list[Any] = []
    if node.id == "mapping":
        for key, item in node.value:
            if key.id == "scalar" and key.tag != _MERGE:
                key.tag = _STRING
            parts += [key, item]
    elif node.id == "sequence":
        parts = node.value
    size = 1 + sum(_size(part, sizes, open_nodes) for part in parts)
    open_nodes.discard(id(node))
    sizes[id(node)] = size
    return size


Document: TypeAlias = "Mapping[str, Any] | str | bytes | Path"
"""What an API description can be given as, see ``read_document``."""

MAX_BYTES = 64 * 1024 * 1024
"""Longest text of a document; GitHub's description has 12 MB."""

_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_SUPPORTED = re.compile(r"3\.[012](\.\d+)?([-+].*)?")
_SWAGGER = (
    "this is Swagger {version}, not OpenAPI 3; convert it first (the Swagger Editor does it under "
    "Edit > Convert to OpenAPI 3, or: npx swagger2openapi FILE -o openapi.json) and import the "
    "result"
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
    if isinstance(document, Path) or (isinstance(document, str) and _is_path(document)):
        path = Path(document)
        return OpenedDocument(_checked(_file(path), str(path)), reference or str(path))
    return OpenedDocument(_checked(document, reference), reference)


def _checked(given: str | bytes | Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A description in plain JSON data; errors name where it came from."""
    try:
        root = decode(given) if isinstance(given, str | bytes) else plain_json(given)
        _check(root)
    except DefinitionError as error:
        raise DefinitionError(f"{name}: {error}" if name else str(error)) from error
    return cast("Mapping[str, Any]", root)


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
        return plain_json(load_yaml(text))
    try:
        data = read_json(text, decode=_DECODER.decode)
    except ReadingLimitError as error:
        raise DefinitionError(f"the document is not read: {error}") from error
    except ValueError as error:
        return _flow(text, error)
    is_plain = not _HALF_PAIR.search(text)
    return data if is_plain else plain_json(data)


def _flow(text: str, error: ValueError) -> Any:
    """YAML that starts like JSON; what is neither is most likely JSON with a mistake."""
    try:
        return plain_json(load_yaml(text))
    except (DefinitionError, ImportError):
        raise DefinitionError(f"the document is not JSON: {error}") from error


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
