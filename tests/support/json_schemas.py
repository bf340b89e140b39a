"""Random JSON values, and schemas that may hold for them, may contradict themselves, or both."""

from __future__ import annotations

from hypothesis import strategies as st

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 40)
    | st.sampled_from([1.0, 2.5, -0.0, "", "a", " A", "ab", "B", "3", "3.0", "1e2"])
    | st.sampled_from(["true", "null", "[1]", '{"a": "1"}', "[]"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=8,
)
TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]
NAMES = st.sampled_from(["a", "b"])


def _branches(inner: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(inner, min_size=1, max_size=3)


SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES)
            | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
            "enum": st.lists(SCALARS, min_size=1, max_size=3),
            "const": VALUES,
            "default": VALUES,
            "minimum": st.integers(-1, 3),
            "exclusiveMaximum": st.integers(0, 4),
            "minLength": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "minProperties": st.integers(0, 2),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "pattern": st.sampled_from(["^a", "b$", "^[0-9]+$"]),
            "format": st.sampled_from(["date", "email", "made-up"]),
            "multipleOf": st.just(2),
            "optional": st.booleans(),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "required": st.just(["a"]),
            "additionalProperties": inner | st.booleans(),
            "contains": inner,
            "anyOf": _branches(inner),
            "oneOf": _branches(inner),
            "allOf": _branches(inner),
            "not": inner,
            "if": inner,
            "then": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=1),
            "default": VALUES,
            "$ref": st.sampled_from(["#/$defs/A", "#/$defs/B"]),
        },
    ),
    max_leaves=6,
)
"""Schemas; ``#/$defs/A`` and ``#/$defs/B`` are for the test to define."""
