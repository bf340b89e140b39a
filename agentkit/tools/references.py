"""``$ref`` inside one schema document. Nothing here ever reads a file or the network."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.messages import JsonObject

_DATA_KEYWORDS = frozenset({"const", "default", "enum", "example", "examples"})
_NAMED_PARTS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties"})


def resolve_local(root: JsonObject, reference: str) -> Any:
    """What a local reference such as ``#/$defs/Address`` points at.

    Args:
        root: The document.
        reference: The value of ``$ref``.

    Returns:
        The part of ``root``, usually a schema, or None when the reference is not a JSON pointer
        into this document (RFC 6901) or points nowhere.
    """
    if not reference.startswith("#") or (len(reference) > 1 and reference[1] != "/"):
        return None
    part: Any = root
    for step in _unquoted(reference[1:]).split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, Mapping) and key in part:
            part = part[key]
        elif isinstance(part, list) and key.isascii() and key.isdigit() and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    return part


def _unquoted(fragment: str) -> str:
    if "%" not in fragment:
        return fragment
    from urllib.parse import unquote

    return unquote(fragment)


def references(schema: Any) -> Iterator[str]:
    """Every ``$ref`` in a schema, in document order; data such as defaults are not searched."""
    waiting: list[tuple[Any, bool]] = [(schema, True)]
    while waiting:
        part, is_schema = waiting.pop()
        if isinstance(part, list):
            waiting.extend((item, True) for item in reversed(part))
        if not isinstance(part, Mapping):
            continue
        if is_schema and isinstance(part.get("$ref"), str):
            yield part["$ref"]
        for key, item in reversed(list(part.items())):
            if is_schema and key in _DATA_KEYWORDS:
                continue
            waiting.append((item, not (is_schema and _names_parts(key))))


def _names_parts(keyword: str) -> bool:
    """Whether the keys below ``keyword`` are names that the author chose."""
    return keyword == "properties" or keyword in _NAMED_PARTS


def inline_root(schema: JsonObject) -> dict[str, Any]:
    """A schema whose root is not a bare ``$ref``, as generators write for recursive models.

    Example:
        >>> inline_root({"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object"}}})
        {'$defs': {'Node': {'type': 'object'}}, 'type': 'object'}
    """
    root = dict(schema)
    seen: set[str] = set()
    while isinstance(reference := root.get("$ref"), str) and "properties" not in root:
        target = resolve_local(schema, reference)
        if reference in seen or not isinstance(target, Mapping):
            break
        seen.add(reference)
        del root["$ref"]
        root = {**root, **{key: item for key, item in target.items() if key not in root}}
    return root
