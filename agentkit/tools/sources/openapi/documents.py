"""An API description from wherever the caller has it: a file, a text, or decoded data."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias, cast

from agentkit.errors import DefinitionError, ReadingLimitError, UsageError
from agentkit.reading import read_json
from agentkit.tools.sources.openapi.json_data import plain_json
from agentkit.tools.sources.openapi.yaml_text import load_yaml

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
