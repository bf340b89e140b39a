"""Java and JavaScript answers against allowed values."""

from __future__ import annotations

import pytest

from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall, match_allowed_values
from agentkit.tools.sources import definition_from_json
from agentkit_bench import JAVA, JAVASCRIPT


def passes(value, allowed, language, schema):
    """Whether one argument with this value passes; the schema is written as upstream writes it."""
    tool = definition_from_json(
        {
            "name": "f",
            "description": "F.",
            "parameters": {"type": "dict", "properties": {"x": schema}},
        }
    )
    gold = AllowedCall(name="f", allowed={"x": allowed})
    call = ToolCall(call_id="1", name="f", arguments={"x": value})
    return match_allowed_values([call], [gold], [tool], language=language).passed


LONG, DOUBLE, ANY = {"type": "long"}, {"type": "double"}, {"type": "any"}
LONGS = {"type": "ArrayList", "items": {"type": "long"}}
MAP, FLOAT, BOOLEAN = {"type": "HashMap"}, {"type": "float"}, {"type": "Boolean"}


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema"),
    [
        ("42L", [42], JAVA, LONG),
        ("0.5", [0.5], JAVA, DOUBLE),
        ("new ArrayList<>(Arrays.asList(1L, 2L))", [[1, 2]], JAVA, LONGS),
        ('new HashMap<>() {{ put("limit", 50); }}', [{"limit": [50]}], JAVA, MAP),
        ("aVariable", ["aVariable"], JAVA, MAP),
        ("NEW Path( a )", ["new Path(a)"], JAVA, ANY),
        ("true", [True], JAVASCRIPT, BOOLEAN),
        ("3", [3.0], JAVASCRIPT, FLOAT),
        ("'Moss, Norway'", ["moss norway"], JAVASCRIPT, {"type": "String"}),
    ],
)
def test_source_text_is_read_by_the_declared_type(value, allowed, language, schema):
    """Then the rules are those of plain values: variables to the letter, strings leniently."""
    assert passes(value, allowed, language, schema)


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema"),
    [
        ("42", [42], JAVA, LONG),
        ("0.5f", [0.5], JAVA, DOUBLE),
        ("avariable", ["aVariable"], JAVA, MAP),
        ("True", [True], JAVASCRIPT, BOOLEAN),
        ("42L", [42], None, LONG),
    ],
)
def test_text_of_another_type_fails(value, allowed, language, schema):
    """A long wants its letter; where values are plain JSON, text is no number."""
    assert not passes(value, allowed, language, schema)


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema"),
    [
        (42, [42], JAVA, LONG),
        (3, [3.0], JAVA, DOUBLE),
        ([1, 2], [[1, 2]], JAVA, LONGS),
        ({"limit": 50}, [{"limit": [50]}], JAVA, MAP),
        (50, ["50"], JAVA, ANY),
        (True, ["true"], JAVA, ANY),
        (None, ["null"], JAVA, ANY),
        (True, [True], JAVASCRIPT, BOOLEAN),
    ],
)
def test_a_json_value_stands_for_its_literal(value, allowed, language, schema):
    """A model that calls by JSON need not write source text."""
    assert passes(value, allowed, language, schema)


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema"),
    [
        (42.0, [42], JAVA, LONG),
        (True, [1], JAVA, LONG),
        pytest.param(10**400, [0.5], JAVA, DOUBLE, id="beyond any float"),
        pytest.param(10**5000, ["5"], JAVA, ANY, id="thousands of digits"),
        (1, [True], JAVASCRIPT, BOOLEAN),
        (["1"], [[1]], JAVA, LONGS),
    ],
)
def test_a_json_value_of_another_kind_fails(value, allowed, language, schema):
    """Kinds are those of the declared type."""
    assert not passes(value, allowed, language, schema)


def test_types_of_json_schema_stand_for_the_nearest():
    """A tool whose schema was never written in the language's types is judged all the same."""
    assert passes("true", [True], JAVA, {"type": "boolean"})
    assert passes("[1, 2]", [[1, 2]], JAVASCRIPT, {"type": "array", "items": {"type": "integer"}})
    assert passes("0.5", [0.5], JAVA, {"type": "number"})
    assert passes("x", ["X"], JAVA, {"type": "string"})
