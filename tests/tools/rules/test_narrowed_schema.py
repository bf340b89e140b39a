"""What a rule becomes in the schema that a model is shown, which is never wider than the contract."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from agentkit.composites import RuleChecker
from agentkit.tools import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    Signature,
    Specification,
    ToolDefinition,
    narrowed_schema,
)
from agentkit.tools.patterns import FORMATS

# --- the narrowed schema --------------------------------------------------------------------------

PERIODS = OneOf(parameter="periods", values=(36, 48, 60))


def narrowed(part, *rules):
    """The schema of the parameter ``x`` after narrowing."""
    return narrowed_schema({"type": "object", "properties": {"x": part}}, rules)["properties"]["x"]


@pytest.mark.parametrize(
    ("part", "rule", "expected"),
    [
        (True, OneOf(parameter="x", values=(1, 2)), {"enum": [1, 2]}),
        ({"enum": [3, 2, 1]}, OneOf(parameter="x", values=(1, 2, 9)), {"enum": [1, 2]}),
        ({"minimum": 2}, OneOf(parameter="x", values=(1, 2)), {"minimum": 2, "enum": [2]}),
        ({"type": "integer"}, OneOf(parameter="x", values=("a",)), {"type": "integer"}),
        (
            {"minimum": 5, "maximum": 9},
            Between(parameter="x", minimum=3, maximum=7),
            {"minimum": 5, "maximum": 7},
        ),
        ({"multipleOf": 2}, Between(parameter="x", multiple_of=2), {"multipleOf": 2}),
        (
            {"multipleOf": 2},
            Between(parameter="x", multiple_of=3),
            {"multipleOf": 2, "allOf": [{"multipleOf": 3}]},
        ),
        ({}, Form(parameter="x", pattern="[A-Z]{2}", words="w"), {"pattern": "^[A-Z]{2}$"}),
        (
            {"pattern": "^D"},
            Form(parameter="x", pattern="DE|AT", words="w"),
            {"pattern": "^D", "allOf": [{"pattern": "^(?:DE|AT)$"}]},
        ),
        ({}, Form(parameter="x", format="date"), {"format": "date"}),
        ({}, Between(parameter="x", minimum=float("nan"), multiple_of=0), {}),
    ],
)
def test_keywords_of_a_parameter(part, rule, expected) -> None:
    """The tighter keyword stays; what cannot be merged holds as well, under ``allOf``."""
    assert narrowed(part, rule) == expected


def test_nested_places(loan_with) -> None:
    """A dotted path leads into objects and lists, and descriptions stay where they were."""
    schema = loan_with(
        Form(parameter="address.country", pattern="[A-Z]{2}", words="two capital letters"),
        OneOf(parameter="items[].sku", values=("A", "B")),
    ).parameters_schema["properties"]
    assert schema["address"]["properties"]["country"] == {
        "type": "string",
        "description": "Where.",
        "pattern": "^[A-Z]{2}$",
    }
    assert schema["items"]["items"]["properties"]["sku"] == {"type": "string", "enum": ["A", "B"]}


def test_a_shared_part_stays_as_it_is() -> None:
    """Two parameters may refer to one part; a rule about one says nothing of the other."""
    shared = {"$defs": {"Term": {"type": "integer", "minimum": 1}}}
    properties = {
        "periods": {"$ref": "#/$defs/Term", "description": "How long."},
        "other": {"$ref": "#/$defs/Term"},
    }
    schema = narrowed_schema({"properties": properties, **shared}, [PERIODS])
    assert schema["properties"] == {
        "periods": {
            "$ref": "#/$defs/Term",
            "description": "How long.",
            "enum": [36, 48, 60],
        },
        "other": {"$ref": "#/$defs/Term"},
    }
    assert schema["$defs"] == shared["$defs"]


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (
            {"allOf": [{"properties": {"x": {}}}], "additionalProperties": {"type": "integer"}},
            {
                "allOf": [{"properties": {"x": {}}}, {"properties": {"x": {"enum": ["a"]}}}],
                "additionalProperties": {"type": "integer"},
            },
        ),
        (
            {"properties": {"x": {"enum": ["a", "b"]}}, "additionalProperties": False},
            {"properties": {"x": {"enum": ["a"]}}, "additionalProperties": False},
        ),
        (
            {"properties": {"x": {}}, "unevaluatedProperties": False},
            {"properties": {"x": {"enum": ["a"]}}, "unevaluatedProperties": False},
        ),
    ],
)
def test_what_is_said_of_other_names_stays_said(box, expected) -> None:
    """Naming a property beside ``additionalProperties`` would let it through; so it is not."""
    rule = OneOf(parameter="box.x", values=("a",))
    schema = narrowed_schema({"properties": {"box": box}}, [rule])
    assert schema["properties"]["box"] == expected


def test_required_together(loan_with) -> None:
    """A dependency joins those that the contract has."""
    contract = {"properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["c"]}}
    rule = Requires(parameter="a", others=("b", "c"))
    assert narrowed_schema(contract, [rule])["dependentRequired"] == {"a": ["c", "b"]}


@pytest.mark.parametrize(
    ("contract", "rule"),
    [
        ({}, CallBefore(tool="log_in")),
        ({}, Condition(expression="a < b", words="w")),
        ({"properties": {}}, PERIODS),
        ({"properties": {"n": {}}}, Form(parameter="n", pattern="(?=a)a")),
        ({"properties": {"periods": {}, "m": {"$ref": "#/properties/periods"}}}, PERIODS),
        ({"properties": {"periods": {"$dynamicRef": "#/$defs/x"}}}, PERIODS),
        ({"allOf": [{"properties": {"periods": {}}}], "unevaluatedProperties": False}, PERIODS),
        ({"properties": {"periods": False}}, PERIODS),
        ({"properties": {"periods": {"type": "string"}}}, PERIODS),
        ({"properties": {"a": {}}, "dependentRequired": 3}, Requires(parameter="a", others=("b",))),
    ],
)
def test_what_a_schema_can_not_state(contract, rule) -> None:
    """A rule that would touch more than its parameter stays out of the schema."""
    assert narrowed_schema(contract, [rule]) is contract


# --- never wider than the contract ----------------------------------------------------------------


VALUES = [-1, 0, 1, 2, 3, 6, 7, 2.5, "", "A", "AB", "ab", "ABC", "2024-02-30", None, True, False]
NUMBERS = st.sampled_from([-1, 0, 1, 2, 3, 6, 7, 2.5])
SCALARS = st.sampled_from(VALUES)
PATTERNS = st.sampled_from(["[A-Z]{2}", "[A-Z]+", "^A.*$", "A|ab", "", "\\d{4}-\\d\\d-\\d\\d"])

LEAF = {"type": ["integer", "string"], "minimum": 2, "pattern": "^[A-Z]"}
LEAVES = st.sampled_from(
    [
        True,
        LEAF,
        {"enum": [1, 2, "AB"], "not": {"const": 2}},
        {"$ref": "#/$defs/Leaf"},
        {"$ref": "#/$defs/Leaf", "description": "A leaf.", "maximum": 6},
        {"anyOf": [{"$ref": "#/$defs/Leaf"}, {"type": "null"}]},
        {"oneOf": [LEAF, {"enum": [1, "A"]}]},
        {"allOf": [LEAF, {"$ref": "#/$defs/Leaf"}]},
    ]
)


def box(form, leaf, *, closed):
    """A schema of an object with a property ``x``, stated here or elsewhere."""
    inside = {"type": "object", "properties": {"x": leaf}}
    shut = {"additionalProperties": False} if closed else {}
    return [
        {**inside, **shut},
        {"$ref": "#/$defs/Object"},
        {"anyOf": [{**inside, **shut}, {"type": "null"}]},
        {"oneOf": [{**inside, **shut}, {"properties": {"x": LEAF, "y": {}}}]},
        {"allOf": [inside], "properties": {"y": {}}, **shut},
        {"allOf": [inside], "unevaluatedProperties": False},
        {"$ref": "#/$defs/Object", "additionalProperties": {"type": "integer"}},
        {"patternProperties": {"^x$": {"type": "integer"}}, "allOf": [inside]},
    ][form]


BOXES = st.builds(box, st.integers(0, 7), LEAVES, closed=st.booleans())


@st.composite
def contracts(draw):
    """A parameters schema with values, objects and lists of both."""
    boxes = {"type": "array", "items": draw(BOXES)}
    several = [boxes, {"anyOf": [boxes, {"type": "null"}]}, {**boxes, "prefixItems": [True]}]
    root = {
        "type": "object",
        "properties": {
            "n": draw(LEAVES),
            "o": draw(BOXES),
            "l": {"type": "array", "items": draw(LEAVES)},
            "p": draw(st.sampled_from(several)),
            "again": draw(st.sampled_from([{}, {}, {}, {"$ref": "#/properties/n"}, {"$ref": "#"}])),
        },
        "$defs": {"Leaf": LEAF, "Object": {"type": "object", "properties": {"x": LEAF, "z": {}}}},
    }
    more = [{}, {"additionalProperties": False}, {"dependentRequired": {"n": ["l"]}}]
    return {**root, **draw(st.sampled_from(more))}


PARAMETERS = st.sampled_from(["n", "o", "o.x", "l[]", "l", "p[].x", "again", "gone"])
RULES = st.one_of(
    st.builds(
        OneOf, parameter=PARAMETERS, values=st.lists(SCALARS, min_size=1, max_size=4).map(tuple)
    ),
    st.builds(
        Between,
        parameter=PARAMETERS,
        minimum=st.none() | NUMBERS,
        maximum=st.none() | NUMBERS,
        exclusive_minimum=st.none() | NUMBERS,
        exclusive_maximum=st.none() | NUMBERS,
        multiple_of=st.sampled_from([None, 2, 3, -1, 0]),
    ),
    st.builds(
        Form,
        parameter=PARAMETERS,
        pattern=PATTERNS,
        format=st.sampled_from(["", "date", "email"]),
        words=st.just("so"),
    ),
    st.builds(
        Requires,
        parameter=st.sampled_from(["n", "o", "gone"]),
        others=st.lists(st.sampled_from(["l", "p", "gone"]), max_size=2).map(tuple),
    ),
)
PLACES = {
    "n": [lambda value: {"n": value}, lambda value: {"n": value, "l": []}],
    "o": [lambda value: {"o": value}, lambda value: {"o": value, "p": None, "l": []}],
    "o.x": [lambda value: {"o": {"x": value}}, lambda value: {"o": {"x": value, "y": 1}}],
    "l": [lambda value: {"l": value}],
    "l[]": [lambda value: {"l": [value]}, lambda value: {"l": [1, value]}],
    "p[].x": [lambda value: {"p": [{"x": value}]}, lambda value: {"p": [1, {"x": value}]}],
    "again": [lambda value: {"again": value}, lambda value: {"again": {"n": value}}],
    "gone": [lambda value: {"gone": value}],
}


def calls_about(rules):
    """Arguments that give every value wherever a rule speaks of one, and none at all."""
    makers = [make for rule in rules for make in PLACES[rule.parameter]]
    return [{}, {"extra": 1}, *(make(value) for make in makers for value in VALUES)]


CHECKER = FormatChecker(formats=())
for name, has_form in FORMATS.items():
    CHECKER.checks(name)(
        lambda value, has_form=has_form: not isinstance(value, str) or has_form(value)
    )


def reader_of(schema):
    """What the reference implementation says of arguments."""
    return Draft202012Validator(schema, format_checker=CHECKER).is_valid


LISTS = st.builds(
    OneOf,
    parameter=st.sampled_from(["n", "o.x", "l[]"]),
    values=st.lists(SCALARS, min_size=1, max_size=2).map(tuple),
)


@given(contracts(), st.lists(RULES, max_size=3), st.lists(LISTS, min_size=2, max_size=3))
def test_rules_that_collide_never_widen_the_contract(contract, rules, lists) -> None:
    """Whatever rules say, also lists without a common value, no schema accepts more for them."""
    narrowed = narrowed_schema(contract, [*rules, *lists])
    Draft202012Validator.check_schema(narrowed)
    accepts, accepts_narrowed = reader_of(contract), reader_of(narrowed)
    for arguments in calls_about([*rules, *lists]):
        assert accepts(arguments) or not accepts_narrowed(arguments)


@given(contracts(), st.lists(RULES, min_size=1, max_size=3))
def test_narrowed_schema_and_refusal_agree(contract, rules) -> None:
    """A schema accepts exactly what contract and those rules let pass that it can state.

    So rules take values away, and never add one. The contract stays as it is.
    """
    whole = copy.deepcopy(contract)
    stated = ()
    for rule in rules:  # two lists without a common value: the second cannot be stated any more
        before = narrowed_schema(contract, stated)
        if narrowed_schema(before, [rule]) is not before or rule in stated:
            stated = (*stated, rule)
    definition = ToolDefinition(
        name="f",
        signature=Signature(parameters=contract),
        specification=Specification(rules=stated),
    )
    assert contract == whole
    Draft202012Validator.check_schema(definition.parameters_schema)
    checker = RuleChecker(definition)
    accepts, accepts_narrowed = reader_of(contract), reader_of(definition.parameters_schema)
    for arguments in calls_about(rules):
        passes = accepts(arguments) and checker.refusal(arguments) is None
        assert accepts_narrowed(arguments) == passes
