"""What a rule becomes in the schema that a model is shown."""

from __future__ import annotations

import pytest

from agentkit.tools.rules import (
    Between,
    CallBefore,
    Condition,
    Form,
    OneOf,
    Requires,
    narrowed_schema,
    why_unstated,
)

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
    """The tighter keyword stays; what can not be merged holds as well, under ``allOf``."""
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


def test_a_shared_part_is_copied_before_it_is_narrowed() -> None:
    """Two parameters may refer to one part; a rule about one says nothing of the other."""
    shared = {"$defs": {"Term": {"type": "integer", "minimum": 1}}}
    properties = {
        "periods": {"$ref": "#/$defs/Term", "description": "How long."},
        "other": {"$ref": "#/$defs/Term"},
    }
    schema = narrowed_schema({"properties": properties, **shared}, [PERIODS])
    assert schema["properties"] == {
        "periods": {
            "type": "integer",
            "minimum": 1,
            "description": "How long.",
            "enum": [36, 48, 60],
        },
        "other": {"$ref": "#/$defs/Term"},
    }
    assert schema["$defs"] == shared["$defs"]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            {"$ref": "#/$defs/Term", "minimum": 0},
            {"$ref": "#/$defs/Term", "minimum": 0, "enum": [36, 48, 60]},
        ),
        (
            {"enum": [48, 50], "allOf": [{"enum": [36, 48]}]},
            {"enum": [48], "allOf": [{"enum": [36, 48]}]},
        ),
        (
            {"anyOf": [{"$ref": "#/$defs/Term"}, {"type": "null"}]},
            {"anyOf": [{"$ref": "#/$defs/Term"}, {"type": "null"}], "enum": [36, 48, 60]},
        ),
    ],
)
def test_what_stands_beside_a_reference_is_kept(part, expected) -> None:
    """A reference with further conditions stays one: its own and those of the rule all hold."""
    defs = {"Term": {"type": "integer", "minimum": 5}}
    schema = narrowed_schema({"properties": {"periods": part}, "$defs": defs}, [PERIODS])
    assert schema["properties"]["periods"] == expected


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


def test_a_name_that_may_stay_unevaluated_is_not_named() -> None:
    """Naming it would let ``{"x": 2.5}`` through, which no alternative has looked at."""
    alternatives = [{"properties": {"x": {"type": "integer"}}}, {"properties": {"y": {}}}]
    box = {"anyOf": alternatives, "unevaluatedProperties": False}
    contract = {"properties": {"box": box}}
    assert narrowed_schema(contract, [Between(parameter="box.x", minimum=0)]) is contract


def test_items_of_a_tuple_are_left_alone() -> None:
    """``items`` beside ``prefixItems`` speaks of the rest only, which a path can not say."""
    contract = {"properties": {"x": {"prefixItems": [{}], "items": {"properties": {"y": {}}}}}}
    rule = OneOf(parameter="x[].y", values=(1,))
    assert narrowed_schema(contract, [rule]) is contract


def test_an_optional_object_is_narrowed_beside_its_alternatives() -> None:
    """What only an alternative names is stated next to the alternatives, which stay as they are."""
    address = {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}]}
    defs = {"Address": {"type": "object", "properties": {"city": {"type": "string"}}}}
    contract = {"properties": {"address": address}, "$defs": defs}
    schema = narrowed_schema(contract, [OneOf(parameter="address.city", values=("Bergen",))])
    assert schema["properties"]["address"] == {
        **address,
        "properties": {"city": {"enum": ["Bergen"]}},
    }


def test_required_together(loan_with) -> None:
    """A dependency joins those that the contract has."""
    contract = {"properties": {"a": {}, "b": {}}, "dependentRequired": {"a": ["c"]}}
    rule = Requires(parameter="a", others=("b", "c"))
    assert narrowed_schema(contract, [rule])["dependentRequired"] == {"a": ["c", "b"]}


@pytest.mark.parametrize(
    ("contract", "rule", "why"),
    [
        ({}, CallBefore(tool="log_in"), "earlier calls"),
        ({}, Condition(expression="a < b", words="w"), "compare"),
        ({"properties": {}}, PERIODS, "no parameter periods"),
        ({"properties": {"n": {}}}, Form(parameter="n", pattern="(?=a)a"), "not fit"),
        (
            {"properties": {"periods": {}, "m": {"$ref": "#/properties/periods"}}},
            PERIODS,
            "by '#/properties/periods'",
        ),
        ({"properties": {"periods": {"$dynamicRef": "#/$defs/x"}}}, PERIODS, "depend on the place"),
        (
            {"allOf": [{"properties": {"periods": {}}}], "unevaluatedProperties": False},
            PERIODS,
            "can not be added to",
        ),
        ({"properties": {"periods": False}}, PERIODS, "can not be added to"),
        ({"properties": {"periods": {"type": "string"}}}, PERIODS, "none of the values"),
        (
            {"properties": {"a": {}}, "dependentRequired": 3},
            Requires(parameter="a", others=("b",)),
            "dependentRequired",
        ),
    ],
)
def test_what_a_schema_can_not_state(contract, rule, why) -> None:
    """A rule that would touch more than its parameter stays out of the schema, with the reason."""
    assert why in why_unstated(contract, rule)
    assert narrowed_schema(contract, [rule]) is contract
    assert why_unstated({"properties": {"periods": {}}}, PERIODS) == ""
