"""The quick check is never wrong when it is sure; jsonschema is the judge."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from agentkit.tools.canonical import same_json
from agentkit.tools.fit import fits
from agentkit.tools.formats import FORMATS

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 4)
    | st.sampled_from([1.0, 2.5, "", "a", "ab", "3"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TYPES = ["array", "boolean", "integer", "null", "number", "object", "string"]


def _with_parts(inner):
    names = st.sampled_from(["a", "b"])
    return st.fixed_dictionaries(
        {},
        optional={
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "properties": st.dictionaries(names, inner, max_size=2),
            "additionalProperties": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "$ref": st.sampled_from(["#/$defs/A", "#/$defs/B"]),
            "if": inner,
            "then": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=1),
        },
    )


SCHEMAS = st.recursive(
    st.booleans()
    | st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(TYPES)
            | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, max_size=3),
            "const": VALUES,
            "minimum": st.integers(-1, 3),
            "exclusiveMaximum": st.integers(0, 4),
            "minLength": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "minProperties": st.integers(0, 2),
            "required": st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
            "pattern": st.sampled_from(["^a", "b$", "^[0-9]+$"]),
            "format": st.sampled_from(["date", "email", "made-up"]),
            "multipleOf": st.just(2),
            "optional": st.booleans(),
            "default": VALUES,
        },
    ),
    _with_parts,
    max_leaves=6,
)


@pytest.fixture(scope="module")
def formats() -> FormatChecker:
    """A checker of our own formats."""
    checker = FormatChecker(formats=())
    for name, holds in FORMATS.items():
        checker.checks(name)(lambda value, holds=holds: not isinstance(value, str) or holds(value))
    return checker


@settings(max_examples=150)
@given(value=VALUES, schema=SCHEMAS, a=SCHEMAS, b=st.sampled_from([True, {"type": "integer"}]))
def test_sure_answers_equal_jsonschema(formats: FormatChecker, value, schema, a, b) -> None:
    """Whenever the quick check says yes or no, the full validator says the same."""
    document = {"$defs": {"A": {"properties": {"a": a}}, "B": b}}
    document |= schema if isinstance(schema, dict) else {"allOf": [schema]}
    quick = fits(value, document)
    if quick is not None:
        assert quick == Draft202012Validator(document, format_checker=formats).is_valid(value)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        (
            {"city": "Rome", "days": 3},
            {"type": "object", "properties": {"days": {"type": "integer"}}},
        ),
        ([1, 2.0], {"type": "array", "items": {"type": "integer"}, "maxItems": 2}),
        ("2026-05-31", {"type": "string", "format": "date"}),
        (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ],
)
def test_usual_calls_are_recognised(value, schema) -> None:
    """Valid values of everyday schemas get a sure yes."""
    assert fits(value, schema) is True


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "https://example.org/remote.json"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
        {"type": "objekt"},
        {"type": 3},
        {"minimum": "3"},
        {"enum": 3},
        {"if": {}},
        {"items": [{}]},
        {"anyOf": {}},
        {"properties": []},
        "string",
        3,
    ],
)
def test_what_is_broken_or_beyond_is_left_open(schema) -> None:
    """A broken schema, or one with rules left to the full validator, gets no sure yes."""
    assert fits(3, schema) is None
    assert fits("x", {"pattern": "("}) is None


def test_references_that_multiply_end_soon() -> None:
    """A schema whose references double at each step is given up, not followed to the end."""
    twice = [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}]
    assert fits(1, {"$defs": {"A": {"allOf": twice}}, "$ref": "#/$defs/A"}) is None


def test_booleans_are_not_numbers() -> None:
    """JSON's ``true`` is not ``1``, while ``1`` and ``1.0`` are the same number."""
    assert same_json([1, {"a": 2.0}], [1.0, {"a": 2}])
    assert not same_json(True, 1)
    assert not same_json([False], [0])
