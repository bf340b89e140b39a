"""``$ref`` inside one schema document, and what a document may ask of whoever walks it.

Nothing here ever reads a file or the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.messages import JsonObject
from agentkit.tools.patterns import pattern_weight

MAX_PARTS = 100_000
"""Most lists and objects of one schema."""

MAX_DEPTH = 200
"""Most lists and objects of one schema inside each other."""

MAX_SCHEMAS_FOR_A_VALUE = 10_000
"""Most schemas that references and combinations hold one and the same value against."""

MAX_PATTERN_WEIGHT = 20_000
"""Most states of the automata of one schema's patterns (``agentkit.tools.patterns``)."""

_DATA_KEYWORDS = frozenset({"const", "default", "enum", "example", "examples"})
_NAMED_PARTS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties"})


def resolve_local(root: JsonObject, reference: str, nowhere: Any = None) -> Any:
    """What a local reference such as ``#/$defs/Address`` points at.

    Args:
        root: The document.
        reference: The value of ``$ref``.
        nowhere: What to return for a reference that points nowhere.

    Returns:
        The part of ``root``, usually a schema, or ``nowhere`` when the reference is not a JSON
        pointer into this document (RFC 6901) or points nowhere.
    """
    if not reference.startswith("#") or (len(reference) > 1 and reference[1] != "/"):
        return nowhere
    part: Any = root
    for key in pointer_keys(reference):
        if isinstance(part, Mapping) and key in part:
            part = part[key]
        elif isinstance(part, list) and key.isascii() and key.isdigit() and int(key) < len(part):
            part = part[int(key)]
        else:
            return nowhere
    return part


def pointer_keys(reference: str) -> Iterator[str]:
    """The keys and indexes of a local reference, from the root down."""
    for step in _unquoted(reference[1:]).split("/")[1:]:
        yield step.replace("~1", "/").replace("~0", "~")


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


def check_bounds(schema: Any, *, max_depth: int | None = None) -> None:
    """Refuse a schema that asks too much of whoever walks it, before anything else does.

    References are counted once, however often they are followed: a schema of a kilobyte can hold
    one value against a schema in 2**26 ways.

    Args:
        schema: Decoded JSON.
        max_depth: Most lists and objects inside each other; None where what is deeper is cut.

    Raises:
        DefinitionError: It has too many parts, is nested too deeply, its patterns are too large,
            its references multiply each other, or a key is no text. The message says which.
    """
    combining: list[JsonObject] = []
    patterns: set[str] = set()
    for part in _bounded_parts(schema, max_depth):
        if "$ref" in part or "allOf" in part or "anyOf" in part:
            combining.append(part)
        if isinstance(pattern := part.get("pattern"), str):
            patterns.add(pattern)
        if isinstance(named := part.get("patternProperties"), Mapping):
            patterns.update(named)
    if sum(map(pattern_weight, patterns)) > MAX_PATTERN_WEIGHT and len(patterns) > 1:
        raise _unbounded(f"its {len(patterns)} patterns are too large to be matched")
    known: dict[int, int] = {}
    if any(_applied(part, schema, known) > MAX_SCHEMAS_FOR_A_VALUE for part in combining):
        most = f"{MAX_SCHEMAS_FOR_A_VALUE:,}"
        raise _unbounded(f"its references hold one value against more than {most} schemas")


def _bounded_parts(schema: Any, max_depth: int | None) -> Iterator[JsonObject]:
    """Every object in a schema, as long as there are not too many and none is too deep."""
    waiting, parts = [(schema, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        parts += 1
        if parts > MAX_PARTS:
            raise _unbounded(f"it has more than {MAX_PARTS:,} parts")
        if max_depth is not None and depth > max_depth:
            raise _unbounded(f"it is nested too deeply, more than {max_depth} parts")
        if isinstance(part, Mapping):
            if not all(map(_is_text, part)):
                raise DefinitionError(f"the schema has a key that is no text: {[*part]!r:.80}")
            yield part
            part = part.values()
        elif not isinstance(part, list):
            continue
        waiting.extend((item, depth + 1) for item in part if isinstance(item, list | Mapping))


def _is_text(key: object) -> bool:
    return isinstance(key, str)


def _unbounded(why: str) -> DefinitionError:
    return DefinitionError(f"the schema is too expensive to read: {why}")


def _applied(part: Any, root: Any, known: dict[int, int]) -> int:
    """How many schemas one value is held against, references and combinations followed."""
    if not isinstance(part, Mapping) or not isinstance(root, Mapping):
        return 1
    if id(part) not in known:
        known[id(part)] = 1  # where references go in a circle
        below = [part.get(keyword) for keyword in ("not", "if", "then", "else")]
        for keyword in ("allOf", "anyOf", "oneOf"):
            listed = part.get(keyword)
            below.extend(listed if isinstance(listed, list) else ())
        if isinstance(named := part.get("dependentSchemas"), Mapping):
            below.extend(named.values())
        if isinstance(reference := part.get("$ref"), str):
            below.append(resolve_local(root, reference))
        found = 1 + sum(_applied(one, root, known) for one in below if one is not None)
        known[id(part)] = min(found, MAX_SCHEMAS_FOR_A_VALUE + 1)
    return known[id(part)]
