"""Schemas and values as somebody would write them who wants to stop whoever reads them.

Property tests of anything that walks a schema from outside draw from these strategies.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

_NAMES = ("a", "b", "x", "d0", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "~/", "$ref")
_PATTERNS = (
    "^(a|a)*$",
    "(a|aa)+$",
    r"^(\w+\s?)*$",
    "(a+)+$",
    "(?=a)b",
    r"(a)\1",
    "(?:[ab]?){3000}",
    ".{1,4000}x",
    r"\p{L}{90}",
    "[",
    "((a{90}){90}){90}",
    "^.*$",
)
_NUMBERS = (0, 1, -1, 3, 10**6, 10**18, 10**400, 1e308, 5e-324, 0.1)
_TYPES = ("object", "array", "string", "integer", "number", "null", "boolean")
_LEVELS = (1, 3, 12, 30)
_ONE = (
    *("not", "if", "then", "else", "items", "contains", "propertyNames"),
    *("additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
)


def hostile_schemas() -> SearchStrategy[dict[str, Any]]:
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


def _parts() -> SearchStrategy[Any]:
    targets = [f"#/$defs/d{at}" for at in range(4)] + [
        "#",
        "#/$defs/c0",
        "#/no",
        "#/type",
        "#/$defs",
    ]
    reference = st.sampled_from(targets)
    bare = reference.map(lambda one: {"$ref": one})

    def deeper(part: SearchStrategy[Any]) -> SearchStrategy[Any]:
        several = st.lists(part, min_size=1, max_size=3)
        named = st.dictionaries(st.sampled_from(_NAMES), part, max_size=3)
        by_pattern = st.dictionaries(st.sampled_from(_PATTERNS), part, max_size=2)
        one = dict.fromkeys(_ONE, part)
        more = dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), several)
        below = {"properties": named, "dependentSchemas": named, "patternProperties": by_pattern}
        return st.fixed_dictionaries({}, optional={"$ref": reference, **one, **more, **below})

    return st.recursive(st.one_of(_plain(), bare, st.booleans()), deeper, max_leaves=12)


def _plain() -> SearchStrategy[Any]:
    """Schemas without schemas below them."""
    number = st.sampled_from(_NUMBERS)
    count = st.sampled_from([one for one in _NUMBERS if isinstance(one, int) and one >= 0])
    scalar = st.one_of(st.none(), st.booleans(), number, st.sampled_from(["a", "v1", "é" * 50]))
    many = st.just([f"v{at}" for at in range(2_000)])
    kind = st.sampled_from(_TYPES)
    names = st.lists(st.sampled_from(_NAMES), max_size=3, unique=True)
    keywords: dict[str, SearchStrategy[Any]] = {
        "type": st.one_of(kind, st.lists(kind, min_size=1, max_size=3, unique=True)),
        "pattern": st.sampled_from(_PATTERNS),
        "enum": st.one_of(st.lists(scalar, min_size=1, max_size=4), many),
        "format": st.sampled_from(["date", "email", "regex", "uri"]),
        "multipleOf": st.sampled_from([one for one in _NUMBERS if one > 0]),
        "uniqueItems": st.booleans(),
        "required": names,
        **dict.fromkeys(("const", "default"), scalar),
        **dict.fromkeys(("minimum", "maximum"), number),
        **dict.fromkeys(("minLength", "maxItems", "minItems"), count),
    }
    return st.fixed_dictionaries({}, optional=keywords)


def hostile_values() -> SearchStrategy[dict[str, Any]]:
    """Arguments that are long, wide or deep where a schema may look twice."""
    deep: Any = 1
    for at in range(40):
        deep = [deep] if at % 2 else {"a": deep, "b": 1}
    one = st.one_of(
        st.none(),
        st.booleans(),
        st.sampled_from(_NUMBERS),
        st.sampled_from(["a" * 40 + "!", "a" * 3_000 + "!", "v1999", "é" * 500, "\ud800"]),
        st.sampled_from([deep, [deep, deep], [*range(500), 1.0], [[]] * 300]),
        st.just({f"x{at}": at for at in range(300)}),
    )
    return st.dictionaries(st.sampled_from(_NAMES), one, max_size=4)
