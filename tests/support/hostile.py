"""Inputs as an attacker would write them: built of the parts that have frozen or filled programs."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from support.hostile_schemas import hostile_schemas

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

_ATOMS = st.sampled_from(
    [
        "a",
        "b",
        r"\w",
        r"\d",
        r"\s",
        ".",
        "[a-z]",
        "[^b]",
        r"\b",
        "^",
        "$",
        "a|a",
        "",
        r"\1",
        "(?=a)",
    ]
)
_REPEATS = st.sampled_from(["", "*", "+", "?", "{2}", "{1,}", "{0,30}", "{1000}", "*?", "{99999}"])


def _joined(parts: list[str], between: str, repeat: str) -> str:
    return f"({between.join(parts)}){repeat}"


PATTERNS = st.one_of(
    st.sampled_from(
        [
            "^(a|a)*$",
            "^(a+)+$",
            r"^(\w+\s?)*$",
            "(a|aa)+$",
            "(a*)*b",
            "^((a{1,50}){1,50}){1,50}$",
            "[",
            "(?P<n>a)(?P=n)*",
            r"(\w*)*\1$",
            "a{,5}",
            "^(?:a?){40}a{40}$",
            r"\p{L}+",
            "(" * 500 + ")" * 500,
        ]
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
