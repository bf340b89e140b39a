"""How tools are shown, and what that is estimated to cost."""

from __future__ import annotations

import json
from types import MappingProxyType

import pytest
from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.retrieval import card, estimate_tokens, schema_text
from agentkit.retrieval.cards import first_sentence, type_text
from agentkit.tools import Signature


def test_a_card_has_parameters_result_and_first_sentence():
    """Optional parameters are three dots, a declared result has an arrow."""
    definition = ToolDefinition.from_schema(
        "loan.quote",
        "Quote a loan. Ask for the term first.",
        {
            "type": "object",
            "properties": {"amount": {"type": "number"}, "term": {"enum": [36, 48, 60]}},
            "required": ["amount"],
        },
        result={"type": "number"},
    )
    assert card(definition) == ("loan.quote(amount: number, ...) -> number  # Quote a loan.")


@pytest.mark.parametrize("result", [{"type": "object"}, {}])
def test_a_result_of_no_particular_type_is_left_out(result):
    """That something comes back needs no words."""
    assert card(ToolDefinition.from_schema("ping", "Ping.", {}, result=result)) == "ping()  # Ping."


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string|null"),
        ({"type": "array", "items": {"type": "integer"}}, "[integer]"),
        ({"type": "array"}, "[any]"),
        ({"type": ["array", "null"], "items": {"type": "integer"}}, "[integer]|null"),
        ({"enum": ["a", "b"]}, "a|b"),
        ({"enum": 5}, "any"),
        ({"type": ["string", "string"]}, "string"),
        ({"type": "integer", "enum": list(range(7))}, "integer"),
        ({"const": True}, "true"),
        ({"$ref": "#/$defs/Address"}, "Address"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}, {"type": "string"}]}, "string|null"),
        ({}, "any"),
        (True, "any"),
        ({"enum": ["x" * 100]}, "x" * 59 + "\u2026"),
    ],
)
def test_types_in_a_word(schema, text):
    """A type is what a reader would write in a signature."""
    assert type_text(schema) == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One."),
        ("Uses units, e.g. metres, i.e. SI. More.", "Uses units, e.g. metres, i.e. SI."),
        ("Version 2.0 of it. More", "Version 2.0 of it."),
        ("Really? Yes.", "Really?"),
        ("第一句。第二句。", "第一句。"),
        ("line one\n  line two", "line one line two"),
        ("x" * 200, "x" * 119 + "\u2026"),
        ("", ""),
    ],
)
def test_the_first_sentence(text, sentence):
    """Abbreviations and decimals do not end a sentence; long ones are cut."""
    assert first_sentence(text) == sentence


@given(
    name=st.text(min_size=1).filter(str.strip),
    summary=st.text(),
    parameter=st.text(min_size=1),
    option=st.text(),
)
def test_a_card_is_one_line(name, summary, parameter, option):
    """Whatever names and texts hold, a card cannot run into the next one."""
    schema = {"type": "object", "properties": {parameter: {"enum": [option, "b"]}}}
    shown = card(ToolDefinition.from_schema(name, summary, schema))
    assert len(shown.splitlines()) == 1


def test_the_full_schema_is_compact_json(catalogue):
    """Descriptions are in their places and nothing is indented."""
    text = schema_text(catalogue["get_weather"].definition)
    function = json.loads(text)["function"]
    assert function["parameters"]["properties"]["city"]["description"] == "Name of the city."
    assert ": " not in text


def test_read_only_mappings_are_shown_like_others():
    """A definition may hold frozen mappings; what is no JSON data is refused with its type."""
    frozen = MappingProxyType({"type": "string"})
    shown = schema_text(ToolDefinition.from_schema("one", "It.", {"properties": {"x": frozen}}))
    assert '"x":{"type":"string"}' in shown
    unread = Signature(parameters={"properties": {"x": {"enum": {1, 2}}}})
    wrong = ToolDefinition(name="one", signature=unread)
    with pytest.raises(TypeError, match="holds a set"):
        schema_text(wrong)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("天气", 2)]
)
def test_the_estimate_is_four_bytes_a_token(text, tokens):
    """Bytes of UTF-8 are counted, rounded up."""
    assert estimate_tokens(text) == tokens
