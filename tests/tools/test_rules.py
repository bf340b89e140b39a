"""Each kind of learned rule: its sentence, what it refuses, and the schema that it narrows."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from agentkit.composites import RuleChecker, rule_problems
from agentkit.errors import DefinitionError
from agentkit.evolution.proposers.constraints import stated_ranges
from agentkit.evolution.proposers.observed import rule_of
from agentkit.models.grammar import grammar_schema
from agentkit.tools import (
    Between,
    CallBefore,
    Condition,
    EarlierCall,
    Form,
    OneOf,
    Requires,
    Signature,
    Specification,
    ToolDefinition,
    narrowed_schema,
    rule_from_json,
    rule_sentence,
    rule_to_json,
    validate_arguments,
)
from agentkit.tools.patterns import FORMATS

# --- sentences ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (OneOf(parameter="periods", values=(36, 48, 60)), "periods must be one of 36, 48, 60."),
        (
            OneOf(parameter="x", values=("a", 1.5, True, None)),
            'x must be one of "a", 1.5, true, null.',
        ),
        (Between(parameter="n", maximum=9, unit="days"), "n must be at most 9, in days."),
        (
            Between(parameter="n", minimum=12, maximum=60, multiple_of=12, unit="months"),
            "n must be from 12 to 60 and a multiple of 12, in months.",
        ),
        (Between(parameter="n", unit="months"), "n is in months."),
        (
            Form(parameter="start", format="date"),
            "start must be a date (YYYY-MM-DD), such as 2026-05-31.",
        ),
        (
            Form(
                parameter="address.country",
                pattern="[A-Z]{2}",
                words="two capital letters",
                example="DE",
            ),
            "address.country must be two capital letters, such as DE.",
        ),
        (
            Requires(parameter="start", others=("end", "currency", "amount")),
            "When start is given, end, currency and amount must be given too.",
        ),
        (
            Condition(expression="start <= end", words="start must not be\n after end"),
            "start must not be after end.",
        ),
        (
            CallBefore(tool="find_customer", parameter="customer_id"),
            "Call find_customer first; customer_id comes from its result.",
        ),
    ],
)
def test_a_rule_in_words(rule, sentence) -> None:
    """Values are written as a call would write them, and words end as a sentence does."""
    assert rule_sentence(rule) == sentence


# --- refusals -------------------------------------------------------------------------------------

PERIODS = OneOf(parameter="periods", values=(36, 48, 60))


def test_the_failure_says_all_that_a_model_needs(loan_with) -> None:
    """Sentence with the offending value, path, schema and nearest values, under a typed kind."""
    failure = RuleChecker(loan_with(PERIODS)).refusal({"amount": 1, "periods": 50})
    assert failure is not None
    assert failure.kind == "contract_violated"
    assert failure.cause == "one_of"
    assert failure.rule == "`periods` must be one of 36, 48, 60, got the number 50"
    assert failure.path == "periods"
    assert failure.schema_excerpt == {
        "type": "integer",
        "description": "How long.",
        "enum": [36, 48, 60],
    }
    assert failure.nearest == ("48", "60", "36")
    assert failure.retryable


@pytest.mark.parametrize(
    ("rule", "arguments", "sentence", "nearest"),
    [
        (
            Between(parameter="periods", minimum=12, maximum=60, multiple_of=12),
            {"periods": 40},
            "`periods` must be from 12 to 60 and a multiple of 12, got the number 40",
            ("36", "48"),
        ),
        (
            Form(parameter="start", format="date"),
            {"start": "2024-02-30"},
            (
                "`start` must be a date (YYYY-MM-DD), such as 2026-05-31, "
                "got the string '2024-02-30'"
            ),
            ("2026-05-31",),
        ),
        (
            Form(parameter="address.country", pattern="[A-Z]{2}", words="two capitals", example="DE"),
            {"address": {"country": "DEU"}},
            "`address.country` must be two capitals, such as DE, got the string 'DEU'",
            ("DE",),
        ),
        (
            OneOf(parameter="items[].sku", values=("A1", "B2")),
            {"items": [{"sku": "A1"}, {}, {"sku": "a"}]},
            "`items[2].sku` must be one of \"A1\", \"B2\", got the string 'a'",
            ("A1",),
        ),
        (
            Requires(parameter="start", others=("end",)),
            {"start": "2024-01-01"},
            "`end` must be given too when `start` is given",
            (),
        ),
        (
            Condition(expression="start <= end", words="start must not be after end."),
            {"start": "b", "end": "a"},
            "start must not be after end, got start = 'b' and end = 'a'",
            (),
        ),
    ],
)  # fmt: skip
def test_each_kind_of_rule(loan_with, rule, arguments, sentence, nearest) -> None:
    """The sentence names the place, the demand and the value; allowed values come best first."""
    failure = RuleChecker(loan_with(rule)).refusal(arguments)
    assert failure is not None
    assert (failure.rule, failure.nearest, failure.cause) == (sentence, nearest, rule.kind)


@pytest.mark.parametrize(
    ("rule", "arguments"),
    [
        (PERIODS, {"periods": 36.0}),
        (Between(parameter="amount", multiple_of=0.01), {"amount": 19.99}),
        (Between(parameter="amount", multiple_of=math.nan), {"amount": 3}),
        (Form(parameter="start", pattern="(?=a)b", words="w"), {"start": "a" * 5_000}),
        (Form(parameter="start", pattern="(?i)b", words="w"), {"start": "a"}),
        (Requires(parameter="start", others=("end",)), {"end": "x"}),
        (Condition(expression="start <= end", words="w"), {"start": "b"}),
        (Condition(expression="import os", words="w"), {"amount": 1}),
        (OneOf(parameter="unheard_of", values=(1,)), {"unheard_of": 2}),
        (CallBefore(tool="log_in"), {}),
    ],
)  # fmt: skip
def test_what_a_rule_can_not_judge_it_does_not_refuse(loan_with, rule, arguments) -> None:
    """Values of other types, rules that make no sense and things that are not known pass."""
    assert RuleChecker(loan_with(rule)).refusal(arguments) is None


@pytest.mark.parametrize(
    ("text", "value", "passes"),
    [
        ('{"id":"C-17","name":"Ada"}', "C-17", True),
        ('{"id":"C-17"}', "C-18", False),
        ('{"id":117}', 17, False),
        ('{"said":"a \\"b\\" c"}', 'a "b" c', True),
        ('[{"id":1},{"id":2}]', [1, 3], False),
        ("x" * 300_000, "not there", True),
        ("anything", None, True),
    ],
)
def test_a_value_comes_from_an_earlier_result(text, value, passes) -> None:
    """A value that is found in no result of the other tool is refused; a doubt is no reason."""
    order = ToolDefinition(
        name="order",
        signature=Signature(parameters={"properties": {"customer": {}}}),
        specification=Specification(
            rules=(CallBefore(tool="find_customer", parameter="customer"),)
        ),
    )
    earlier = [EarlierCall(name="find_customer", text=text)]
    failure = RuleChecker(order).refusal({"customer": value}, earlier)
    assert (failure is None) == passes


# --- bounds that are themselves not allowed -------------------------------------------------------

BOUNDS = st.none() | st.sampled_from([-5, -1, -0.5, 0, 0.1, 1, 2, 2.5, 7])
RANGES = st.builds(
    Between,
    parameter=st.just("n"),
    minimum=BOUNDS,
    maximum=BOUNDS,
    exclusive_minimum=BOUNDS,
    exclusive_maximum=BOUNDS,
)
EDGES = (-5, -1, -0.5, 0, 0.1, 1, 2, 2.5, 7)
VALUES = (*EDGES, *(edge + step for edge in EDGES for step in (-0.01, 0.01)), -99, 99, 3, 4)


def tool(kind, **more):
    """A tool with one number."""
    schema = {"type": "object", "properties": {"n": {"type": kind, **more}}, "required": ["n"]}
    return ToolDefinition.from_schema("f", "", schema)


def ruled(rule, kind="number", **more):
    """The tool with a rule."""
    return replace(tool(kind, **more), specification=Specification(rules=(rule,)))


def refuses(rule, value):
    """Whether the executor refuses a value."""
    return RuleChecker(ruled(rule)).refusal({"n": value}) is not None


def accepts(schema, value):
    """What the reference implementation of JSON Schema says."""
    return Draft202012Validator(schema).is_valid({"n": value})


def read_back(rule, definition):
    """The parts of a rule as its own sentence states them."""
    sentence = rule_sentence(rule)
    return [rule_of(stated, "n", definition) for stated in stated_ranges(sentence)]


@given(RANGES, st.sampled_from(["number", "integer"]))
def test_all_that_is_derived_of_a_range_agrees_on_every_value(rule, kind):
    """Schema, refusal and the sentence read back accept the same numbers; the grammar no others."""
    definition = ruled(rule, kind)
    narrowed = definition.parameters_schema
    grammar = grammar_schema(narrowed)
    is_sound = not rule_problems(rule, tool(kind))
    told = read_back(rule, tool(kind)) if is_sound else []
    for value in VALUES:
        if kind == "integer" and value % 1:
            continue
        allowed = not refuses(rule, value)
        assert accepts(narrowed, value) == allowed
        assert not is_sound or all(not refuses(one, value) for one in told) == allowed
        assert (grammar is not None and accepts(grammar, value)) == allowed


@pytest.mark.parametrize(
    ("rule", "value", "near"),
    [
        ({"exclusive_minimum": 0}, 0, ("1",)),
        ({"exclusive_minimum": 0, "exclusive_maximum": 1}, 0, ()),
        ({"exclusive_maximum": 10, "multiple_of": 5}, 12, ("5",)),
    ],
)
def test_the_refusal_names_a_number_that_is_allowed(rule, value, near):
    """Beside a bound that is left out the next whole number or multiple is told, if there is one."""
    failure = RuleChecker(ruled(Between(parameter="n", **rule))).refusal({"n": value})
    assert failure.nearest == near


# --- lengths and counts ---------------------------------------------------------------------------

TITLE = Between(parameter="title", measure="length", minimum=2, maximum=5)
TAGS = Between(parameter="tags", measure="items", maximum=2)
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 1, "maxLength": 80},
        "tags": {"type": "array", "items": {"type": "string"}},
        "year": {"type": "integer"},
    },
}


def note(*rules):
    """A tool that holds these rules."""
    return ToolDefinition(
        name="note",
        signature=ToolDefinition.from_schema("note", "", SCHEMA).signature,
        specification=Specification(rules=rules),
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"title": "sechse"}, "`title` must have from 2 to 5 characters, got the string 'sechse'"),
        ({"tags": ["a", "b", "c"]}, "`tags` must have at most 2 items, got"),
    ],
)
def test_calls_are_held_to_it(arguments, said):
    """The checker refuses a call in the words of the rule, as the narrowed schema does."""
    failure = RuleChecker(note(TITLE, TAGS)).refusal(arguments)
    assert failure.rule.startswith(said)
    assert failure.cause == "between"
    narrowed = ToolDefinition.from_schema("note", "", narrowed_schema(SCHEMA, [TITLE, TAGS]))
    assert validate_arguments(narrowed, arguments)


def test_it_is_written_and_read():
    """The measure is a part of the record, and older readers are told that they cannot read it."""
    assert rule_from_json(rule_to_json(TITLE)) == TITLE
    record = note(TITLE).to_json()
    assert (record["format"], note(OneOf(parameter="year", values=(1,))).to_json()["format"]) == (
        3,
        2,
    )
    assert ToolDefinition.from_json(record) == note(TITLE)
    with pytest.raises(DefinitionError, match="upgrade"):
        ToolDefinition.from_json({**record, "format": 5})


# --- the narrowed schema --------------------------------------------------------------------------


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
        (
            {"allOf": [{"properties": {"periods": {}}}], "unevaluatedProperties": False},
            PERIODS,
        ),
        ({"properties": {"periods": False}}, PERIODS),
        ({"properties": {"periods": {"type": "string"}}}, PERIODS),
        ({"properties": {"a": {}}, "dependentRequired": 3}, Requires(parameter="a", others=("b",))),
    ],
)
def test_what_a_schema_can_not_state(contract, rule) -> None:
    """A rule that would touch more than its parameter stays out of the schema."""
    assert narrowed_schema(contract, [rule]) is contract


# --- never wider than the contract ----------------------------------------------------------------


GIVEN = [-1, 0, 1, 2, 3, 6, 7, 2.5, "", "A", "AB", "ab", "ABC", "2024-02-30", None, True, False]
NUMBERS = st.sampled_from([-1, 0, 1, 2, 3, 6, 7, 2.5])
SCALARS = st.sampled_from(GIVEN)
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
    return [{}, {"extra": 1}, *(make(value) for make in makers for value in GIVEN)]


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
