"""Each broken rule is said in one plain sentence, with the schema that states it."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from agentkit.tools import ToolDefinition
from agentkit.tools.validation import ArgumentValidator, validate_arguments

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
        ({"days": 0}, "`days` must be at least 1, got the number 0", "days", "minimum"),
        ({"days": 15}, "`days` must be at most 14, got the number 15", "days", "maximum"),
        ({"days": None}, "`days` must be an integer, got null", "days", "type"),
        ({"city": "x"}, "`city` must have at least 2 characters, got 1", "city", "minLength"),
        ({"city": ["Rome"]}, '`city` must be a string, got the list ["Rome"]', "city", "type"),
        (
            {"unit": "Kelvin"},
            "`unit` must be one of 'celsius', 'fahrenheit', got the string 'Kelvin'",
            "unit",
            "enum",
        ),
        ({"mode": "slow"}, "`mode` must be the string 'fast', got the string 'slow'", "mode", "const"),
        (
            {"when": "tomorrow"},
            "`when` must be a date such as 2026-05-31, got the string 'tomorrow'",
            "when",
            "format",
        ),
        (
            {"code": "ab"},
            "`code` must match the pattern ^[A-Z]{3}$, got the string 'ab'",
            "code",
            "pattern",
        ),
        ({"limit": "x"}, "`limit` must be an integer or null, got the string 'x'", "limit", "anyOf"),
        ({"items": []}, "`items` must have at least 1 item, got 0", "items", "minItems"),
        (
            {"items": [{"sku": "a"}, {"sku": "a"}]},
            "`items` must not hold an item twice",
            "items",
            "uniqueItems",
        ),
        ({"items": [{}]}, "missing required argument `items[0].sku`", "items[0].sku", "required"),
        (
            {"items": [{"sku": "a", "count": 1.5}]},
            "`items[0].count` must be an integer, got the number 1.5",
            "items[0].count",
            "type",
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
        ({"shape": 3}, "`shape` must be an object, got the number 3", "shape", "oneOf"),
        ({"share": 0}, "`share` must be more than 0, got the number 0", "share", "exclusiveMinimum"),
        ({"share": 1}, "`share` must be less than 1, got the number 1", "share", "exclusiveMaximum"),
        ({"even": 3}, "`even` must be a multiple of 2, got the number 3", "even", "multipleOf"),
        ({"not_empty": ""}, "`not_empty` must not be like this, got the string ''", "not_empty", "not"),
        (
            {"either": 4},
            "`either` must fit exactly one of the alternatives, not several, got the number 4",
            "either",
            "oneOf",
        ),
        ({"extra": {}}, "`extra` must have at least 1 field, got 0", "extra", "minProperties"),
        (
            {"extra": {"long": 1}},
            "`extra` must have at most 2 characters, got 4",
            "extra",
            "maxLength",
        ),
        ({"never": 1}, "the arguments hold the number 1, which is not allowed", "", ""),
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


def test_unknown_argument_without_a_likeness(validator: ArgumentValidator) -> None:
    """An argument that looks like none is to be left out; the others are listed."""
    problem = validator.check({"city": "Rome", "zzzzzz": 1})[0]
    assert problem.rule.startswith(
        "`zzzzzz` is not an argument of get_weather; leave it out, or use `days`, `unit`"
    )
    nothing = ToolDefinition.from_schema(
        "now", "", {"type": "object", "properties": {}, "additionalProperties": False}
    )
    (problem,) = validate_arguments(nothing, {"zone": "x"})
    assert problem.rule == "`zone` is not an argument of now; it takes none"


def test_problems_come_most_useful_first(validator: ArgumentValidator) -> None:
    """A misspelt name comes before what it leaves missing, and that before other problems."""
    rules = [p.rule for p in validator.check({"days": "3", "citty": "Rome"})]
    assert rules == [
        "`citty` is not an argument of get_weather; did you mean `city`?",
        "missing required argument `city`",
        "`days` must be an integer, got the string '3'",
    ]


def test_excerpt_is_the_schema_that_was_broken(validator: ArgumentValidator) -> None:
    """The excerpt states the rule, with the words on the parameter."""
    (problem,) = validator.check({})
    assert problem.schema_excerpt == PROPERTIES["city"]
    (problem,) = validator.check({"city": "x"})
    assert problem.schema_excerpt == PROPERTIES["city"]


def test_nearest_enum_members(validator: ArgumentValidator) -> None:
    """A value outside an enum comes with the members that look like it."""
    (problem,) = validator.check({"city": "Rome", "unit": "Celcius"})
    assert problem.nearest == ("celsius",)


def test_rare_keywords_are_said_in_other_words() -> None:
    """Rules that tools seldom have still come back as a sentence about the right argument."""
    definition = ToolDefinition.from_schema(
        "pay",
        "",
        {
            "type": "object",
            "properties": {
                "tags": {"type": "array", "contains": {"const": "x"}},
                "meta": {
                    "type": "object",
                    "patternProperties": {"^x-": {}},
                    "additionalProperties": False,
                },
                "amount": {"anyOf": [{"minimum": 5}, {"multipleOf": 7}]},
            },
            "dependentRequired": {"amount": ["currency"]},
        },
    )
    (tags,) = validate_arguments(definition, {"tags": ["a"]})
    assert tags.rule.startswith("`tags` must fit the schema: ")
    (meta,) = validate_arguments(definition, {"meta": {"x-a": 1, "y": 2}})
    assert meta.rule == "`meta.y` is not a field of `meta`; it takes none"
    rules = {problem.rule for problem in validate_arguments(definition, {"amount": 3})}
    assert "`amount` must be at least 5, got the number 3" in rules
    assert any(rule.startswith("the arguments must fit the schema: ") for rule in rules)


def test_valid_arguments(validator: ArgumentValidator) -> None:
    """Valid arguments give no problem, whatever optional ones are given."""
    assert validator.check({"city": "Rome"}) == ()
    assert validator.check(
        {
            "city": "Rome",
            "when": "2026-05-31",
            "items": [{"sku": "a"}],
            "shape": {"kind": "square", "side": 2},
            "even": 4,
            "limit": None,
        }
    ) == ()  # fmt: skip


@pytest.mark.parametrize("arguments", [None, [], "city", 3])
def test_arguments_must_be_an_object(validator: ArgumentValidator, arguments) -> None:
    """Anything but an object is refused as a whole."""
    (problem,) = validator.check(arguments)
    assert problem.rule.startswith("the arguments must be an object, got ")
    assert problem.path_text == ""


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0.5, "", "a", "circle", "2026-01-01"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["sku", "kind", "radius", "count"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*PROPERTIES, "unknown"]), JSON, max_size=4))
def test_no_problem_exactly_when_jsonschema_has_none(
    validator: ArgumentValidator, arguments
) -> None:
    """Our answer is empty exactly when the plain validator accepts, but for our formats."""
    problems = validator.check(arguments)
    plain = Draft202012Validator(validator.definition.parameters_schema)
    if all(problem.keyword != "format" for problem in problems):
        assert (not problems) == plain.is_valid(arguments)
    for problem in problems:
        assert problem.rule
        assert len(problem.rule) < 1000
