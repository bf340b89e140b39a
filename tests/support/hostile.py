"""Inputs as an attacker would write them: built of the parts that have frozen or filled programs."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["a", "b", "city", "n", "$ref", "items", "__proto__", "x" * 300, "", "é\u202e"]
)
TEXTS = st.one_of(
    st.sampled_from(
        ["a" * 30 + "!", "a" * 5_000 + "!", "1" * 400, "2024-13-45", " " * 9_000, "aaaa\n"]
    ),
    st.builds(lambda part, times: part * times + "!", st.text(max_size=3), st.integers(0, 3_000)),
    st.text(max_size=40),
)
NUMBERS = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([10**400, -(10**400), 1e308, 5e-324, 2**63, 0.1, 0, True]),
)
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS)


def _deep(kind: type, depth: int) -> Any:
    value: Any = "leaf"
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


VALUES = st.one_of(
    SCALARS,
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(NAMES, inner, max_size=4)
        ),
        max_leaves=12,
    ),
    st.builds(lambda value, times: [value] * times, SCALARS, st.integers(0, 3_000)),
    st.builds(_deep, st.sampled_from([list, dict]), st.integers(1, 3_000)),
)


class Foreign:
    """A value from outside, which may be too deep or too long to be printed as it is.

    Args:
        value: JSON data, as decoded.
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        try:
            return f"Foreign({json.dumps(self.value)[:2_000]})"
        except RecursionError:
            return f"Foreign(<{type(self.value).__name__}, too deep to be written>)"

    @property
    def size(self) -> int:
        """The length as JSON; what is too deep to be written counts as small."""
        try:
            return len(json.dumps(self.value))
        except RecursionError:
            return 0


ARGUMENTS = st.one_of(st.dictionaries(NAMES, VALUES, max_size=5), VALUES).map(Foreign)

# --- schemas --------------------------------------------------------------------------------------

_KEYS = ("a", "b", "x", "d0", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "~/", "$ref")
_PATTERNS = (
    *("^(a|a)*$", "(a|aa)+$", r"^(\w+\s?)*$", "(a+)+$", "(?=a)b", r"(a)\1", "(?:[ab]?){3000}"),
    *(".{1,4000}x", r"\p{L}{90}", "[", "((a{90}){90}){90}", "^.*$"),
)
_BOUNDS = (0, 1, -1, 3, 10**6, 10**18, 10**400, 1e308, 5e-324, 0.1)
_TYPES = ("object", "array", "string", "integer", "number", "null", "boolean")
_LEVELS = (1, 3, 12, 30)
_ONE = (
    *("not", "if", "then", "else", "items", "contains", "propertyNames"),
    *("additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
)


def hostile_schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Schemas of an object: references that multiply, patterns that explode, bounds beyond sense.

    Each has a few shared parts that refer to each other at random, in circles as well, and a chain
    of parts each of which refers to the next more than once.
    """
    part = _parts()

    def document(found: tuple[list[Any], Any, int, str]) -> dict[str, Any]:
        shared, top, levels, keyword = found
        chain = {f"c{at}": _link(keyword, f"#/$defs/c{at + 1}") for at in range(levels)}
        defined = {f"d{at}": one for at, one in enumerate(shared)}
        return {
            "type": "object",
            "properties": {"x": top, "a": {"$ref": "#/$defs/c0"}, "b": {"$ref": "#/$defs/d0"}},
            "$defs": {**defined, **chain, f"c{levels}": {"type": "integer"}},
        }

    keywords = st.sampled_from(["allOf", "anyOf", "oneOf", "not", "properties", "items", "if"])
    return st.tuples(
        st.lists(part, min_size=4, max_size=4), part, st.sampled_from(_LEVELS), keywords
    ).map(document)


def _link(keyword: str, target: str) -> dict[str, Any]:
    """A schema that refers to the next one at least twice."""
    there = {"$ref": target}
    match keyword:
        case "properties":
            return {"type": "object", "properties": {"a": there, "b": there, "x": there}}
        case "items":
            return {"type": "array", "items": {"allOf": [there, there]}}
        case "not":
            return {"not": {"anyOf": [there, {"not": there}]}}
        case "if":
            return {"if": there, "then": there, "else": there}
    return {keyword: [there, there]}


def _parts() -> st.SearchStrategy[Any]:
    targets = [
        *(f"#/$defs/d{at}" for at in range(4)),
        "#",
        "#/$defs/c0",
        "#/no",
        "#/type",
        "#/$defs",
    ]
    reference = st.sampled_from(targets)
    bare = reference.map(lambda one: {"$ref": one})

    def deeper(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        several = st.lists(part, min_size=1, max_size=3)
        named = st.dictionaries(st.sampled_from(_KEYS), part, max_size=3)
        by_pattern = st.dictionaries(st.sampled_from(_PATTERNS), part, max_size=2)
        one = dict.fromkeys(_ONE, part)
        more = dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several)
        below = {"properties": named, "dependentSchemas": named, "patternProperties": by_pattern}
        return st.fixed_dictionaries({}, optional={"$ref": reference, **one, **more, **below})

    return st.recursive(st.one_of(_plain(), bare, st.booleans()), deeper, max_leaves=12)


def _plain() -> st.SearchStrategy[Any]:
    """Schemas without schemas below them."""
    number = st.sampled_from(_BOUNDS)
    count = st.sampled_from([one for one in _BOUNDS if isinstance(one, int) and one >= 0])
    scalar = st.one_of(st.none(), st.booleans(), number, st.sampled_from(["a", "v1", "é" * 50]))
    many = st.just([f"v{at}" for at in range(2_000)])
    kind = st.sampled_from(_TYPES)
    names = st.lists(st.sampled_from(_KEYS), max_size=3, unique=True)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.one_of(kind, st.lists(kind, min_size=1, max_size=3, unique=True)),
        "pattern": st.sampled_from(_PATTERNS),
        "enum": st.one_of(st.lists(scalar, min_size=1, max_size=4), many),
        "format": st.sampled_from(["date", "email", "regex", "uri"]),
        "multipleOf": st.sampled_from([one for one in _BOUNDS if one > 0]),
        "uniqueItems": st.booleans(),
        "required": names,
        **dict.fromkeys(("const", "default"), scalar),
        **dict.fromkeys(("minimum", "maximum"), number),
        **dict.fromkeys(("minLength", "maxItems", "minItems"), count),
    }
    return st.fixed_dictionaries({}, optional=keywords)


# --- patterns -------------------------------------------------------------------------------------

_ATOMS = st.sampled_from(
    [
        *("a", "b", r"\w", r"\d", r"\s", ".", "[a-z]", "[^b]"),
        *(r"\b", "^", "$", "a|a", "", r"\1", "(?=a)"),
    ]
)
_REPEATS = st.sampled_from(["", "*", "+", "?", "{2}", "{1,}", "{0,30}", "{1000}", "*?", "{99999}"])


def _joined(parts: list[str], between: str, repeat: str) -> str:
    return f"({between.join(parts)}){repeat}"


PATTERNS = st.one_of(
    st.sampled_from(
        [*_PATTERNS, "(?P<n>a)(?P=n)*", "a{,5}", "^(?:a?){40}a{40}$", "(" * 500 + ")" * 500]
    ),
    st.recursive(
        st.builds(str.__add__, _ATOMS, _REPEATS),
        lambda inner: st.builds(
            _joined, st.lists(inner, min_size=1, max_size=3), st.sampled_from(["", "|"]), _REPEATS
        ),
        max_leaves=6,
    ).map(lambda pattern: f"^{pattern}$"),
)


def doubling(depth: int, keyword: str) -> dict[str, Any]:
    """Each definition needs the next one twice: a short text that is ``2 ** depth`` long."""
    nodes: dict[str, Any] = {f"d{depth}": {"type": "string"}}
    for index in range(depth):
        both = {"$ref": f"#/$defs/d{index + 1}"}
        if keyword == "properties":
            nodes[f"d{index}"] = {"type": "object", "properties": {"l": both, "r": both}}
        else:
            nodes[f"d{index}"] = {keyword: [both, both]}
    return {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/d0"}, "b": {"$ref": "#/$defs/d0"}},
        "$defs": nodes,
    }


def _nested(depth: int, keyword: str) -> dict[str, Any]:
    part: Any = {"type": "string"}
    for _ in range(depth):
        part = (
            {"type": "object", "properties": {"a": part}}
            if keyword == "properties"
            else {keyword: [part]}
        )
    return {"type": "object", "properties": {"a": part}}


SCHEMAS = st.one_of(
    hostile_schemas(),
    st.builds(
        lambda name, pattern: {"type": "object", "properties": {name: {"pattern": pattern}}},
        NAMES,
        PATTERNS,
    ),
    st.builds(
        doubling,
        st.integers(1, 40),
        st.sampled_from(["allOf", "anyOf", "oneOf", "properties", "prefixItems"]),
    ),
    st.builds(_nested, st.integers(1, 600), st.sampled_from(["properties", "allOf", "anyOf"])),
).map(Foreign)
"""Schemas of arguments, as a server may list them."""


@st.composite
def calls(draw: st.DrawFn) -> tuple[Foreign, Foreign]:
    """A schema, and arguments that reach its parts."""
    schema: Foreign = draw(SCHEMAS)
    names = list(schema.value.get("properties", {}))
    aimed = st.fixed_dictionaries({}, optional=dict.fromkeys(names, VALUES)).map(Foreign)
    return schema, draw(st.one_of(aimed, aimed, ARGUMENTS))


RULES = st.one_of(
    st.fixed_dictionaries(
        {"kind": st.just("one_of"), "parameter": NAMES, "values": st.lists(SCALARS, max_size=80)}
    ),
    st.fixed_dictionaries(
        {"kind": st.just("between"), "parameter": NAMES},
        optional=dict.fromkeys(
            ("minimum", "maximum", "exclusive_minimum", "exclusive_maximum", "multiple_of"), NUMBERS
        ),
    ),
    st.fixed_dictionaries(
        {"kind": st.just("form"), "parameter": NAMES},
        optional={"pattern": PATTERNS, "format": TEXTS, "words": TEXTS, "example": TEXTS},
    ),
    st.fixed_dictionaries(
        {"kind": st.just("requires"), "parameter": NAMES, "others": st.lists(NAMES, max_size=50)}
    ),
    st.fixed_dictionaries(
        {
            "kind": st.just("condition"),
            "expression": st.one_of(
                TEXTS,
                st.sampled_from(
                    [
                        "a ** a ** a ** 9",
                        "'x' * 10 ** 9 == a",
                        "(" * 300 + "a" + ")" * 300,
                        "len(str(10 ** 9999)) > n",
                        "all(a in b for a in range(10 ** 12))",
                        " and ".join(["a == b"] * 2_000),
                        "-" * 2_000 + "1 < n",
                    ]
                ),
            ),
            "words": TEXTS,
        }
    ),
    st.fixed_dictionaries({"kind": st.just("call_before"), "tool": NAMES, "parameter": NAMES}),
    st.dictionaries(NAMES, VALUES, max_size=4),
).map(Foreign)
"""Rules as a file may hold them."""

ENTRIES = st.fixed_dictionaries(
    {"name": st.one_of(NAMES, TEXTS)},
    optional={
        "description": st.one_of(TEXTS, VALUES),
        "title": TEXTS,
        "inputSchema": st.one_of(SCHEMAS.map(lambda schema: schema.value), VALUES),
        "outputSchema": st.one_of(SCHEMAS.map(lambda schema: schema.value), VALUES),
        "annotations": VALUES,
        "_meta": VALUES,
    },
)
LISTINGS = st.lists(ENTRIES, max_size=4).map(Foreign)
"""What an MCP server may answer to ``tools/list``."""

_OPERATIONS = st.fixed_dictionaries(
    {"operationId": st.one_of(NAMES, TEXTS)},
    optional={
        "summary": TEXTS,
        "parameters": st.lists(
            st.fixed_dictionaries(
                {
                    "name": NAMES,
                    "in": st.sampled_from(["query", "path", "header", "cookie", "moon"]),
                    "schema": SCHEMAS.map(lambda schema: schema.value),
                }
            ),
            max_size=3,
        ),
        "requestBody": st.builds(
            lambda schema: {"content": {"application/json": {"schema": schema.value}}}, SCHEMAS
        ),
        "responses": VALUES,
    },
)
DOCUMENTS = st.builds(
    lambda version, operations, schemas, servers: {
        "openapi": version,
        "info": {"title": "t", "version": "1"},
        "servers": servers,
        "paths": {f"/p{index}/{{a}}": {"get": one} for index, one in enumerate(operations)},
        "components": {"schemas": schemas},
    },
    st.sampled_from(["3.0.3", "3.1.0", "3.2.0", "2.0", "9" * 400]),
    st.lists(_OPERATIONS, max_size=3),
    st.dictionaries(NAMES, SCHEMAS.map(lambda schema: schema.value), max_size=3),
    st.one_of(st.just([{"url": "https://api.example.com"}]), VALUES),
).map(Foreign)
"""OpenAPI descriptions."""


@st.composite
def edited(draw: st.DrawFn, text: str) -> str:
    """A JSON document in which a few values were replaced, keys repeated, or the end cut off."""
    record = json.loads(text)
    for _ in range(draw(st.integers(1, 4))):
        part: Any = record
        while isinstance(part, dict | list) and part:
            keys = list(part) if isinstance(part, dict) else list(range(len(part)))
            key = draw(st.sampled_from(keys))
            if not isinstance(part[key], dict | list) or not part[key] or draw(st.booleans()):
                part[key] = draw(VALUES)
                break
            part = part[key]
    try:
        changed = json.dumps(record)
    except RecursionError:
        changed = text
    return (
        changed[: draw(st.integers(0, len(changed)))] if draw(st.integers(0, 9)) == 0 else changed
    )
