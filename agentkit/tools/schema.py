"""JSON Schema documents: keywords, references, bounds on what walking them costs, and words.

Everything that goes through a schema part by part stands on these few functions. Nothing here ever
reads a file or the network.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, Literal, TypeAlias, get_args

from agentkit.errors import DefinitionError
from agentkit.messages import JsonObject
from agentkit.tools.patterns import pattern_weight

MAX_PARTS = 100_000
"""Most lists and objects of one schema."""

MAX_DEPTH = 200
"""Most lists and objects of one schema inside each other."""

MAX_SCHEMAS_FOR_A_VALUE = 10_000
"""Most schemas that references and combinations hold against one and the same value."""

MAX_PATTERN_WEIGHT = 20_000
"""Most states of the automata of one schema's patterns (``agentkit.tools.patterns``)."""

SCHEMA_KEYWORDS = frozenset(
    [
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
"""Keywords that hold one schema."""

SCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords that hold a list of schemas."""

SCHEMA_MAP_KEYWORDS = frozenset(
    {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)
"""Keywords that hold schemas by names that the author chose."""

DATA_KEYWORDS = frozenset({"const", "default", "enum", "example", "examples"})
"""Keywords that hold data, in which nothing is a schema."""


def copied(value: Any) -> Any:
    """A deep copy of JSON data; changes to the original no longer reach it."""
    kind = value.__class__
    if kind is str or kind is bool or kind is int:  # most parts; asking Mapping takes its time
        return value
    if kind is dict or isinstance(value, Mapping):
        return {name: copied(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [copied(part) for part in value]
    return value


# --- references -----------------------------------------------------------------------------------


def resolve_local(root: JsonObject, reference: str, nowhere: Any = None) -> Any:
    """The target of a local reference such as ``#/$defs/Address``.

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
    fragment = reference[1:]
    if "%" in fragment:
        from urllib.parse import unquote

        fragment = unquote(fragment)
    for step in fragment.split("/")[1:]:
        yield step.replace("~1", "/").replace("~0", "~")


def schemas_in(document: Any) -> Iterator[JsonObject]:
    """Every object of a schema document that may be a schema, in document order.

    Data such as defaults are not searched; the content of an unknown keyword is.
    """
    waiting: list[tuple[Any, bool]] = [(document, True)]
    while waiting:
        part, is_schema = waiting.pop()
        if isinstance(part, list):
            waiting.extend((item, True) for item in reversed(part))
        if not isinstance(part, Mapping):
            continue
        if is_schema:
            yield part
        for key, item in reversed(list(part.items())):
            if not (is_schema and key in DATA_KEYWORDS):
                waiting.append((item, not (is_schema and key in SCHEMA_MAP_KEYWORDS)))


def references(schema: Any) -> Iterator[str]:
    """Every ``$ref`` of a schema document, in document order."""
    for part in schemas_in(schema):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"]


def with_parts(schema: JsonObject, change: Callable[[Any], Any]) -> dict[str, Any]:
    """A copy of one schema in which the schemas right inside it are changed; data stay as they are.

    Args:
        schema: The schema.
        change: Returns the new part for an old one, whatever stands where a schema belongs.
    """
    made: dict[str, Any] = {}
    for key, rule in schema.items():
        if key in SCHEMA_MAP_KEYWORDS and isinstance(rule, Mapping):
            made[key] = {name: change(part) for name, part in rule.items()}
        elif key not in SCHEMA_KEYWORDS and key not in SCHEMA_LIST_KEYWORDS:
            made[key] = rule
        elif isinstance(rule, list | tuple):  # also where drafts before 2020-12 had one
            made[key] = [change(part) for part in rule]
        else:
            made[key] = change(rule)
    return made


def with_references(schema: Any, change: Callable[[str], str]) -> Any:
    """A schema whose references are replaced.

    Args:
        schema: The schema.
        change: Returns the new reference for an old one.
    """
    if not isinstance(schema, Mapping):
        return schema
    changed = with_parts(schema, lambda part: with_references(part, change))
    if isinstance(reference := schema.get("$ref"), str):
        changed["$ref"] = change(reference)
    return changed


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


_MAX_SAME = 200
"""Most schemas that are looked at for one value."""


def for_same_value(part: Any, root: JsonObject, *combinators: str) -> Iterator[JsonObject]:
    """A schema, and those that its references and combinations hold against the same value.

    Args:
        part: The schema, one part of a document.
        root: The document.
        combinators: The keywords to follow, such as ``allOf``.
    """
    waiting, followed, left = [part], set[str](), _MAX_SAME
    while waiting and left:
        left -= 1
        one = waiting.pop(0)
        if not isinstance(one, Mapping):
            continue
        yield one
        reference = one.get("$ref")
        if isinstance(reference, str) and reference not in followed:
            followed.add(reference)
            waiting.append(resolve_local(root, reference))
        for keyword in combinators:
            branches = one.get(keyword)
            waiting.extend(branches if isinstance(branches, list | tuple) else ())


# --- JSON types -----------------------------------------------------------------------------------

JsonType = Literal["string", "number", "integer", "boolean", "null", "array", "object"]
"""A JSON type; every ``integer`` is also a ``number``."""

JSON_TYPES: tuple[JsonType, ...] = get_args(JsonType)

ANY_TYPE: frozenset[JsonType] = frozenset(JSON_TYPES) - {"integer"}
"""The types of what nobody declared."""

_NUMERIC = frozenset({"integer", "number"})
_DEEPEST = 6
_MOST_READ = 400


def json_type(value: Any) -> JsonType:
    """The JSON type of a value; 1.0 is an integer."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) or value.is_integer() else "number"
    return "array" if isinstance(value, list | tuple) else "object"


def allowed_types(schema: Any, *, root: JsonObject | None = None) -> frozenset[JsonType]:
    """The JSON types of the values that a schema allows, without ``integer`` beside ``number``.

    A hint, which never fails: a part that cannot be read, an endless reference, or parts that
    contradict each other declare nothing.

    Args:
        schema: A JSON Schema 2020-12.
        root: The document that ``$ref`` points into; the schema itself by default.

    Example:
        >>> sorted(allowed_types({"anyOf": [{"type": "integer"}, {"enum": ["all", None]}]}))
        ['integer', 'null', 'string']
        >>> allowed_types({"description": "Whatever you like."}) == ANY_TYPE
        True
    """
    document = schema if root is None else root
    left = iter(range(_MOST_READ))

    def read(part: Any, depth: int, followed: frozenset[str]) -> frozenset[JsonType]:
        if not isinstance(part, Mapping) or depth > _DEEPEST or next(left, None) is None:
            return ANY_TYPE
        found = _types_stated(part)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(branches := part.get(keyword), list) and branches:
                each = [read(branch, depth + 1, followed) for branch in branches]
                found = _in_both(found, frozenset[JsonType]().union(*each))
        for branch in branches if isinstance(branches := part.get("allOf"), list) else ():
            found = _in_both(found, read(branch, depth + 1, followed))
        reference = part.get("$ref")
        if isinstance(reference, str) and reference not in followed:
            target = resolve_local(document, reference)
            found = _in_both(found, read(target, depth + 1, followed | {reference}))
        return found - {"integer"} if "number" in found else found

    return read(schema, 0, frozenset())


def _types_stated(part: JsonObject) -> frozenset[JsonType]:
    """The types that ``type``, ``enum`` and ``const`` of one part leave."""
    names = part.get("type", ())
    names = names if isinstance(names, list | tuple) else [names]
    types = frozenset(one for one in JSON_TYPES if one in names)
    if not types or len(types) < len(names):  # none, or one that JSON Schema does not know
        types = ANY_TYPE
    if "type" not in part:
        meant = (kind for key, kind in _OF_TYPE.items() if isinstance(part.get(key), Mapping))
        types = frozenset(islice(meant, 1)) or types
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if isinstance(values, list) and values:
        types = _in_both(types, frozenset(map(json_type, values)))
    return types


_OF_TYPE: Mapping[str, JsonType] = {"properties": "object", "items": "array"}
"""Keywords by which a schema without a type means one."""


def _in_both(left: frozenset[JsonType], right: frozenset[JsonType]) -> frozenset[JsonType]:
    """The types that both allow; those of either where they contradict each other."""
    if ANY_TYPE in (left, right):
        return right if left == ANY_TYPE else left
    both = left & right
    if not (both & _NUMERIC) and left & _NUMERIC and right & _NUMERIC:
        both |= {"integer"}
    return both or left | right


# --- bounds ---------------------------------------------------------------------------------------


def check_bounds(schema: Any, *, max_depth: int | None = None) -> None:
    """Refuse a schema that is too expensive to walk, before anything else walks it.

    References are counted once, however often they are followed: a schema of a kilobyte can hold
    one value against a schema in 2**26 ways.

    Args:
        schema: Decoded JSON.
        max_depth: Most lists and objects inside each other; None where what is deeper is cut.

    Raises:
        DefinitionError: It has too many parts, is nested too deeply, its patterns are too large,
            its references multiply each other, or a key is not a text. The message says which.
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
    if any(_schemas_for_value(part, schema, known) > MAX_SCHEMAS_FOR_A_VALUE for part in combining):
        most = f"{MAX_SCHEMAS_FOR_A_VALUE:,}"
        raise _unbounded(f"its references hold one value against more than {most} schemas")


_SCALARS = frozenset({str, int, float, bool, type(None)})


def _bounded_parts(schema: Any, max_depth: int | None) -> Iterator[JsonObject]:
    """Every object in a schema, as long as there are not too many and none is too deep."""
    waiting: list[tuple[Any, int]]
    waiting, parts = [(schema, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        parts += 1
        if parts > MAX_PARTS:
            raise _unbounded(f"it has more than {MAX_PARTS:,} parts")
        if max_depth is not None and depth > max_depth:
            raise _unbounded(f"it is nested too deeply, more than {max_depth} parts")
        if isinstance(part, Mapping):
            if not all(isinstance(key, str) for key in part):
                raise DefinitionError(f"the schema has a key that is not text: {[*part]!r:.80}")
            yield part
            part = part.values()
        elif not isinstance(part, list):
            continue
        waiting.extend([(item, depth + 1) for item in part if item.__class__ not in _SCALARS])


def _unbounded(why: str) -> DefinitionError:
    return DefinitionError(f"the schema is too expensive to read: {why}")


def _schemas_for_value(part: Any, root: Any, known: dict[int, int]) -> int:
    """The number of schemas one value is checked against, following references and combinations."""
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
        found = 1 + sum(_schemas_for_value(one, root, known) for one in below if one is not None)
        known[id(part)] = min(found, MAX_SCHEMAS_FOR_A_VALUE + 1)
    return known[id(part)]


# --- structure (L1) apart from words (L2) ---------------------------------------------------------


def detach_descriptions(schema: JsonObject) -> tuple[dict[str, Any], dict[str, str]]:
    """Split a parameters schema into its structure and its words.

    Descriptions are taken from properties at any depth of objects and arrays; those inside
    ``$defs`` or ``anyOf`` stay where they are, because one text there may serve several places.

    Returns:
        The schema without those descriptions, and the texts by dotted path
        (``city``, ``address.city``, ``items[].sku``).

    Example:
        >>> schema = {"properties": {"x": {"type": "integer", "description": "How many."}}}
        >>> detach_descriptions(schema)
        ({'properties': {'x': {'type': 'integer'}}}, {'x': 'How many.'})
    """
    texts: dict[str, str] = {}

    def detach(part: dict[str, Any], path: str) -> None:
        if path and isinstance(part.get("description"), str) and (text := part.pop("description")):
            texts[path] = text

    return _with_each_parameter(schema, "", detach), texts


def attach_descriptions(schema: JsonObject, texts: Mapping[str, str]) -> dict[str, Any]:
    """Put the words back: the inverse of ``detach_descriptions``.

    Texts whose path is not in the schema are ignored.
    """

    def attach(part: dict[str, Any], path: str) -> None:
        if path in texts:
            part["description"] = texts[path]

    return _with_each_parameter(schema, "", attach) if texts else dict(schema)


def _with_each_parameter(
    schema: JsonObject, path: str, change: Callable[[dict[str, Any], str], None]
) -> dict[str, Any]:
    """A copy of a schema in which the parts with a dotted path are changed in place."""
    part = dict(schema)
    change(part, path)
    if isinstance(schema.get("properties"), Mapping):
        part["properties"] = {
            name: _with_each_parameter(below, f"{path}.{name}" if path else name, change)
            if isinstance(below, Mapping)
            else below
            for name, below in schema["properties"].items()
        }
    if path and isinstance(schema.get("items"), Mapping):
        part["items"] = _with_each_parameter(schema["items"], f"{path}[]", change)
    return part


# --- the parts that a dotted path names -----------------------------------------------------------

Step: TypeAlias = str | None
"""The name of a property, or None for every item of a list."""

Steps: TypeAlias = tuple[Step, ...]

_STEP = re.compile(r"\[\]|[^.\[\]]+")
_MAX_VIEWS = 5_000


def path_steps(schema: JsonObject, parameter: str) -> Steps:
    """A dotted path as steps down; a parameter whose own name holds dots is one step.

    Example:
        >>> path_steps({}, "items[].sku")
        ('items', None, 'sku')
    """
    own = schema.get("properties")
    if isinstance(own, Mapping) and parameter in own:
        return (parameter,)
    return tuple(None if step == "[]" else step for step in _STEP.findall(parameter))


def parts_at(schema: JsonObject, parameter: str) -> list[Any]:
    """The parts of a schema that a dotted path names, through references and alternatives.

    There are several when alternatives of ``anyOf`` each describe the parameter, and none when the
    schema does not name it. Names below the top that hold a dot or a bracket are not found.

    Example:
        >>> line = {"type": "object", "properties": {"sku": {"type": "string"}}}
        >>> order = {"properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Line"}}}}
        >>> parts_at({**order, "$defs": {"Line": line}}, "items[].sku")
        [{'type': 'string'}]
    """
    found: list[Any] = [schema]
    for step in path_steps(schema, parameter):
        same = (for_same_value(part, schema, "allOf", "anyOf", "oneOf") for part in found)
        views = [*islice(chain.from_iterable(same), _MAX_VIEWS)]
        if step is None:
            found = [one["items"] for one in views if "items" in one and "prefixItems" not in one]
        else:
            named = (one.get("properties") for one in views)
            found = [one[step] for one in named if isinstance(one, Mapping) and step in one]
    return found if parameter else []


def values_at(
    arguments: Any, steps: Steps, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The values that arguments give at a place, each with its own path; none when left out.

    Example:
        >>> list(values_at({"items": [{"sku": "A"}, {}]}, ("items", None, "sku")))
        [(('items', 0, 'sku'), 'A')]
    """
    if not steps:
        yield path, arguments
    elif steps[0] is None:
        for at, item in enumerate(arguments if isinstance(arguments, list | tuple) else ()):
            yield from values_at(item, steps[1:], (*path, at))
    elif isinstance(arguments, Mapping) and steps[0] in arguments:
        yield from values_at(arguments[steps[0]], steps[1:], (*path, steps[0]))
