"""Arguments against schemas: each broken rule in one plain sentence, clear slips corrected."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from support.json_schemas import SCHEMAS, VALUES

from agentkit.errors import DefinitionError
from agentkit.tools import (
    ArgumentProblem,
    ArgumentValidator,
    ToolDefinition,
    UncheckableError,
    canonical_arguments,
    canonical_json,
    coerce,
    fits,
)
from agentkit.tools.patterns import FORMATS

# --- sentences ------------------------------------------------------------------------------------

ITEM = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["sku"],
    "additionalProperties": False,
}
CIRCLE = {
    "type": "object",
    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
    "required": ["kind", "radius"],
    "additionalProperties": False,
}
SQUARE = {
    "type": "object",
    "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
    "required": ["kind", "side"],
    "additionalProperties": False,
}
PROPERTIES = {
    "city": {"type": "string", "minLength": 2, "description": "Where."},
    "days": {"type": "integer", "minimum": 1, "maximum": 14},
    "unit": {"enum": ["celsius", "fahrenheit"]},
    "mode": {"const": "fast"},
    "when": {"type": "string", "format": "date"},
    "code": {"type": "string", "pattern": "^[A-Z]{3}$", "maxLength": 3},
    "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "items": {"type": "array", "items": ITEM, "minItems": 1, "maxItems": 2, "uniqueItems": True},
    "shape": {"oneOf": [CIRCLE, SQUARE]},
    "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "even": {"type": "integer", "multipleOf": 2},
    "not_empty": {"not": {"const": ""}},
    "either": {"oneOf": [{"type": "integer"}, {"minimum": 3}]},
    "extra": {"type": "object", "minProperties": 1, "propertyNames": {"maxLength": 2}},
    "pair": {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}},
    "never": False,
}


@pytest.fixture(scope="module")
def validator() -> ArgumentValidator:
    """A tool with a parameter of every kind."""
    schema = {
        "type": "object",
        "properties": PROPERTIES,
        "required": ["city"],
        "additionalProperties": False,
    }
    return ArgumentValidator(ToolDefinition.from_schema("get_weather", "", schema))


@pytest.mark.parametrize(
    ("arguments", "rule", "path", "keyword"),
    [
        ({"days": "3"}, "`days` must be an integer, got the string '3'", "days", "type"),
        ({"city": "x"}, "`city` must have at least 2 characters, got 1", "city", "minLength"),
        (
            {"unit": "Kelvin"},
            "`unit` must be one of 'celsius', 'fahrenheit', got the string 'Kelvin'",
            "unit",
            "enum",
        ),
        (
            {"code": "ab"},
            "`code` must match the pattern ^[A-Z]{3}$, got the string 'ab'",
            "code",
            "pattern",
        ),
        ({"limit": "x"}, "`limit` must be an integer or null, got the string 'x'", "limit", "anyOf"),
        (
            {"items": [{"sku": "a"}, {"sku": "a"}]},
            "`items` must not hold an item twice",
            "items",
            "uniqueItems",
        ),
        (
            {"shape": {"kind": "circle", "radius": "1"}},
            "`shape.radius` must be a number, got the string '1'",
            "shape.radius",
            "type",
        ),
        (
            {"shape": {"kind": "hexagon"}},
            "`shape.kind` must be one of 'circle', 'square', got the string 'hexagon'",
            "shape.kind",
            "enum",
        ),
        ({"not_empty": ""}, "`not_empty` must not be like this, got the string ''", "not_empty", "not"),
        (
            {"either": 4},
            "`either` must fit exactly one of the alternatives, not several, got the number 4",
            "either",
            "oneOf",
        ),
        ({"extra": {}}, "`extra` must have at least 1 field, got 0", "extra", "minProperties"),
        ({"pair": [1, 2]}, "`pair[1]` must be a string, got the number 2", "pair[1]", "type"),
        ({"never": 1}, "`never` must be left out, got the number 1", "never", ""),
    ],
)  # fmt: skip
def test_sentences(validator: ArgumentValidator, arguments, rule, path, keyword) -> None:
    """The sentence names the argument, what it must be and what was got."""
    (problem,) = validator.check({"city": "Rome"} | arguments)
    assert problem.rule == rule
    assert (problem.path_text, problem.keyword) == (path, keyword)


@pytest.mark.parametrize(
    ("arguments", "rule", "nearest"),
    [
        (
            {"city": "Rome", "dayz": 3},
            "`dayz` is not an argument of get_weather; did you mean `days`?",
            ("days",),
        ),
        (
            {"town": "Rome"},
            "`town` is not an argument of get_weather; did you mean `city`?",
            ("city",),
        ),
        (
            {"city": "Rome", "items": [{"sku": "a", "COUNT": 1}]},
            "`items[0].COUNT` is not a field of `items[0]`; did you mean `count`?",
            ("count",),
        ),
    ],
)
def test_unknown_argument_names_what_was_meant(
    validator: ArgumentValidator, arguments, rule, nearest
) -> None:
    """A misspelt argument, or the only one in the place of the only missing one, is explained."""
    problem = validator.check(arguments)[0]
    assert (problem.rule, problem.nearest) == (rule, nearest)
    assert problem.keyword == "additionalProperties"


def test_problems_come_most_useful_first(validator: ArgumentValidator) -> None:
    """A misspelt name comes before what it leaves missing, and that before other problems."""
    rules = [p.rule for p in validator.check({"days": "3", "citty": "Rome"})]
    assert rules == [
        "`citty` is not an argument of get_weather; did you mean `city`?",
        "missing required argument `city`",
        "`days` must be an integer, got the string '3'",
    ]


def test_a_clear_slip_is_corrected_only_when_the_call_is_right_then(
    validator: ArgumentValidator,
) -> None:
    """Text for a number runs as a number; beside another fault the call is refused for that."""
    assert validator.runnable({"city": "Rome", "days": "3"}) == {"city": "Rome", "days": 3}
    refused = validator.runnable({"city": "Rome", "days": "3", "when": "tomorrow"})
    assert isinstance(refused, ArgumentProblem)


@pytest.mark.parametrize("arguments", [None, [], "city", 3])
def test_arguments_must_be_an_object(validator: ArgumentValidator, arguments) -> None:
    """Anything but an object is refused as a whole."""
    (problem,) = validator.check(arguments)
    assert problem.rule.startswith("the arguments must be an object, got ")
    assert problem.path_text == ""


# --- broken schemas, remote references, deep values -----------------------------------------------


def validator_of(**properties) -> ArgumentValidator:
    """A validator of a tool with these properties."""
    return ArgumentValidator(
        ToolDefinition.from_schema("probe", "", {"type": "object", "properties": properties})
    )


@pytest.mark.parametrize(
    ("schema", "fragment"),
    [
        ({"type": "objekt"}, "at properties/x/type"),
        ({"pattern": "("}, "pattern"),
        ({"$ref": "#/$defs/missing"}, "'#/$defs/missing' points nowhere"),
    ],
)
def test_broken_schema_is_found_when_prepared(schema, fragment) -> None:
    """A schema that cannot be used is refused before any call, naming tool and place."""
    with pytest.raises(DefinitionError) as caught:
        validator_of(x=schema).prepare()
    assert caught.value.tool_name == "probe"
    assert fragment in str(caught.value)
    with pytest.raises(DefinitionError):
        validator_of(x=schema).check({"x": 1})


def test_remote_reference_never_touches_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote reference is a problem in words; no connection is opened for it."""

    def refuse(*args, **kwargs):
        pytest.fail("a connection was opened")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    validator = validator_of(x={"$ref": "https://example.org/schema.json"}, y={"type": "integer"})
    validator.prepare()
    assert validator.check({"y": 1}) == ()
    (problem,) = validator.check({"x": 1})
    assert "'https://example.org/schema.json', which is not part of it and is never fetched" in (
        problem.rule
    )


def test_huge_values_are_shortened() -> None:
    """Huge texts, numbers and lists are refused in a short sentence."""
    validator = validator_of(
        text={"type": "integer"}, number={"maximum": 10}, items={"items": {"type": "integer"}}
    )
    (problem,) = validator.check({"text": "x" * 1_000_000})
    assert len(problem.rule) < 150
    (problem,) = validator.check({"number": 10**5000})
    assert problem.rule == "`number` must be at most 10, got the number with very many digits"
    assert len(validator.check({"items": ["x"] * 1000})) == 20


# --- the quick check ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def formats() -> FormatChecker:
    """A checker of our own formats."""
    checker = FormatChecker(formats=())
    for name, holds in FORMATS.items():
        checker.checks(name)(lambda value, holds=holds: not isinstance(value, str) or holds(value))
    return checker


@given(value=VALUES, schema=SCHEMAS, a=SCHEMAS, b=st.sampled_from([True, {"type": "integer"}]))
def test_sure_answers_equal_jsonschema(formats: FormatChecker, value, schema, a, b) -> None:
    """Whenever the quick check says yes or no, the full validator says the same."""
    document = {"$defs": {"A": {"properties": {"a": a}}, "B": b}}
    document |= schema if isinstance(schema, dict) else {"allOf": [schema]}
    quick = fits(value, document)
    if quick is not None:
        assert quick == Draft202012Validator(document, format_checker=formats).is_valid(value)


# --- coercion -------------------------------------------------------------------------------------

INTEGER, NUMBER, BOOLEAN = {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
UNITS = {"enum": ["celsius", "kelvin"]}


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("3", INTEGER, 3),
        ("3.0", INTEGER, 3),
        ("2.5", NUMBER, 2.5),
        ("1e3", INTEGER, 1000),
        ("true", BOOLEAN, True),
        ("None", {"type": ["integer", "null"]}, None),
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('{"a": "1"}', {"type": "object", "properties": {"a": INTEGER}}, {"a": 1}),
        ("Kelvin", UNITS, "kelvin"),
        ("KELVIN", {"const": "kelvin"}, "kelvin"),
        ("new  york", {"enum": ["New York"]}, "New York"),
        (36, {"enum": ["36", "48"]}, "36"),
        (["1", 2], {"items": INTEGER}, [1, 2]),
        (["1", "1"], {"prefixItems": [INTEGER], "items": {"type": "string"}}, [1, "1"]),
        ("3", {"anyOf": [INTEGER, {"type": "null"}]}, 3),
        ("3", {"allOf": [INTEGER]}, 3),
        ("3", {"$ref": "#/$defs/N", "$defs": {"N": INTEGER}}, 3),
    ],
)
def test_clear_values_are_coerced(value, schema, expected) -> None:
    """Text of numbers, booleans and JSON, and enum members in other case, become what is meant."""
    found = coerce(value, schema)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ("three", INTEGER),
        ("3.5", INTEGER),
        ("1_000", INTEGER),
        ("٣", INTEGER),
        ("9" * 5000, INTEGER),
        ("1e999", NUMBER),
        (3.5, INTEGER),
        ("yes", BOOLEAN),
        (3, {"type": "string"}),
        ("[1, 2", {"type": "array"}),
        ('{"a": 1, "a": 2}', {"type": "object"}),
        ("[" * 100_000, {"type": "array"}),
        ("A", {"enum": ["a ", "a"]}),
        ("3", {"anyOf": [INTEGER, {"type": "string"}]}),
        ("3", "nonsense"),
        ("3", {"$ref": "#/$defs/missing"}),
        (["a"], {"enum": ["a", ["b"]]}),
        ({"unknown": "3"}, {"properties": {"n": INTEGER}}),
    ],
)
def test_doubtful_values_stay(value, schema) -> None:
    """A value that is fine, or that could mean several things, is returned itself."""
    assert coerce(value, schema) is value


def test_defaults_of_optional_properties_are_filled() -> None:
    """The canonical form has the defaults of absent optional properties, those of references too."""
    schema = {
        "properties": {
            "unit": {"type": "string", "default": "km"},
            "limit": {"type": "integer", "default": "10"},
            "after": {"type": "string", "default": None},
            "city": {"type": "string", "default": "Rome"},
            "where": {"$ref": "#/$defs/Where"},
        },
        "required": ["city"],
        "$defs": {"Where": {"default": {"radius": 5}}},
    }
    filled = {"after": None, "limit": 10, "unit": "km", "where": {"radius": 5}}
    assert canonical_arguments({}, schema) == filled
    assert coerce({}, schema) == {}


def test_recursive_schema() -> None:
    """A schema that refers to itself is followed as deep as the value goes, and no deeper."""
    schema = {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "properties": {
                    "value": INTEGER,
                    "next": {"$ref": "#/$defs/Node", "default": {}},
                }
            }
        },
    }
    found = canonical_arguments({"value": "1", "next": {"value": "2"}}, schema)
    assert found == {"value": 1, "next": {"value": 2}}
    assert coerce(found, schema) is found


@given(VALUES, SCHEMAS, SCHEMAS)
def test_coercion_is_idempotent(value, schema, definition) -> None:
    """Coercing twice gives what coercing once gives, even under contradictory schemas."""
    document = {**schema, "$defs": {"A": definition, "B": INTEGER}}
    once = coerce(value, document)
    assert coerce(once, document) is once


@given(VALUES, SCHEMAS)
def test_valid_values_stay_as_they_are(value, schema) -> None:
    """Nothing is done to a value that fits."""
    if fits(value, schema):
        assert coerce(value, schema) is value


# --- canonical arguments --------------------------------------------------------------------------

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "default": 1},
        "scale": {"type": "number"},
        "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
        "after": {"type": "string", "default": None},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}}},
    },
    "required": ["city"],
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"city": "Rome", "days": 2}, {"days": "2", "city": "Rome"}),
        ({"city": "Rome"}, {"city": "Rome", "days": 1, "unit": "Celsius", "after": None}),
        ({"city": "Rome", "scale": "3.0"}, {"city": "Rome", "scale": 3}),
        ({"where": {"lat": 1, "z": 2}}, {"where": {"z": 2.0, "lat": "1"}}),
    ],
)
def test_same_meaning_same_form(one, other) -> None:
    """Key order, number spelling, case of enums and written-out defaults make no difference."""
    left, right = canonical_arguments(one, SCHEMA), canonical_arguments(other, SCHEMA)
    assert left == right
    assert list(left) == list(right) == sorted(left)
    assert repr(left) == repr(right)
    assert canonical_json(left) == canonical_json(right)


def test_arguments_that_are_nested_too_deeply_have_no_canonical_form() -> None:
    """Hundreds of levels end with a reason, in the value as well as in a default."""
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(UncheckableError, match="nested too deeply"):
        canonical_arguments({"city": deep}, SCHEMA)
    with pytest.raises(UncheckableError, match="nested too deeply"):
        canonical_arguments({}, {"properties": {"x": {"default": deep}}})
