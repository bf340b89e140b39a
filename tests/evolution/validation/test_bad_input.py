"""Malformed, huge and hidden content, and properties that always hold."""

from __future__ import annotations

import time
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from agentkit.evolution.checker import text_faults
from agentkit.evolution.validation import ProposedChange, validate
from agentkit.evolution.validation.checks import STRUCTURAL_CHECKS
from agentkit.evolution.validation.foreign_texts import suspicions
from agentkit.evolution.validation.lexical_checks import no_invisible_characters
from agentkit.library.library import Library
from agentkit.testing import sample_library
from agentkit.testing.rewrites import rewrite
from agentkit.tools.definition import (
    Description,
    Example,
    ToolDefinition,
)
from agentkit.tools.rules import Condition, Form, OneOf
from agentkit.tools.schema import copied

LIBRARY = sample_library()
BASE = LIBRARY["weather_forecast"].definition


def codes(candidate, base=BASE):
    """The codes that a candidate draws."""
    change = ProposedChange(base=base, candidate=candidate, library=LIBRARY)
    return {failed.code for failed in validate(change).failed}


@pytest.mark.parametrize(
    "words",
    [
        Description(summary=7),
        Description(summary="Fine.", parameters=["city"]),
        Description(summary="Fine.", parameters={3: "city"}),
        Description(summary="Fine.", usage_rules=("", " ")),
        Description(summary="Fine.", parameters={"city": "…"}),
        Description(summary="Fine.", tags=({"a": 1},)),
    ],
)
def test_texts_of_other_types_are_malformed(words):
    """A number, a list, an empty text or the dots of a prompt in the place of a text are told."""
    assert "malformed" in codes(replace(BASE, description=words))


@pytest.mark.parametrize(
    "examples",
    [
        (*BASE.examples, "call it"),
        (*BASE.examples, Example(arguments={"city": "Oslo", "days": float("nan")})),
        (*BASE.examples, Example(arguments={"city": "Oslo", "days": 10**5000})),
        "examples",
    ],
)
def test_examples_that_are_no_calls_are_malformed(examples):
    """Arguments that are no object, or no JSON, are told and break nothing."""
    assert "malformed" in codes(replace(BASE, examples=examples))


@pytest.mark.parametrize(
    "text",
    [
        "a" * 1_000_000,
        "<a " * 300_000,
        "((((" * 250_000,
        "A1" * 500_000,
    ],
)
def test_a_megabyte_is_refused_without_being_read_to_its_end(text):
    """A huge text is too long, whatever it holds; what is looked at is bounded."""
    assert "too_long" in codes(replace(BASE, description=Description(summary=text)))


SAMPLES = sample_library().definitions
TOOLS = st.sampled_from(SAMPLES)
HIDDEN = st.sampled_from(
    [
        *"\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202d\u202e\u2060\u2061\u2066\u2067\u2069",
        *"\ufeff\u00ad\u061c\u180e\u115f\u3164\uffa0\u2800\ufe00\ue000\uf8ff\x00\x07\x1b\x7f\x85",
        *map(chr, (0xE0001, 0xE0041, 0xE007F, 0xE0100, 0xF0000, 0x1BCA0)),
    ]
)


@given(TOOLS, st.text(max_size=200), st.lists(st.text(max_size=80), max_size=4))
def test_an_unchanged_definition_is_merely_unchanged(tool, summary, rules):
    """Whatever its texts hold, a definition that stays draws ``no_change`` and nothing else."""
    words = Description(
        summary=summary,
        usage_rules=tuple(rules),
        parameters=dict.fromkeys(tool.signature.properties, summary),
    )
    base = replace(tool, description=words)
    same = ToolDefinition(
        name=base.name,
        signature=base.signature,
        description=replace(words),
        specification=base.specification,
        examples=base.examples,
        body=base.body,
        origin=base.origin,
    )
    for candidate in (base, same):
        change = ProposedChange(base=base, candidate=candidate, library=Library([base]))
        assert [failed.code for failed in validate(change).failed] == ["no_change"]


@given(TOOLS, st.sampled_from(["summary", "rule", "parameter", "tag"]), HIDDEN, st.data())
def test_a_hidden_character_is_found_wherever_it_stands(tool, place, char, data):
    """In any text of any tool, at any place in it."""
    words = tool.description
    parameter = next(iter(words.parameters))
    text = {"parameter": words.parameters[parameter], "tag": "weather"}.get(place, words.summary)
    at = data.draw(st.integers(0, len(text)))
    hidden = text[:at] + char + text[at:]
    changed = {
        "summary": replace(words, summary=hidden),
        "rule": replace(words, usage_rules=(hidden,)),
        "parameter": replace(words, parameters={**words.parameters, parameter: hidden}),
        "tag": replace(words, tags=(hidden,)),
    }[place]
    change = ProposedChange(
        base=tool, candidate=replace(tool, description=changed), library=sample_library()
    )
    assert [found.code for found in no_invisible_characters(change)] == ["invisible_characters"]


def test_scripts_that_join_keep_their_joiners():
    """Persian, Hindi and emoji are written with joiners, and nothing is hidden by them."""
    for text in ("می‌خواهم", "क्‍ष", "👩‍🔧 ok", "❤️ ok", "©️"):
        assert list(no_invisible_characters(rewrite("weather_now", {"rule": text}))) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 100) | st.text("abc", max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("abc", max_size=3), inner),
    max_leaves=4,
)
KEYWORDS = ["type", "enum", "minimum", "maximum", "default", "pattern", "title", "$comment", "x-y"]


@given(TOOLS, st.data())
def test_any_change_of_the_contract_is_found(tool, data):
    """Whatever is put into a parameter's schema, or taken out, structure checks see it."""
    schema = copied(tool.signature.parameters)
    name = data.draw(st.sampled_from(list(schema["properties"])))
    keyword = data.draw(st.sampled_from(KEYWORDS))
    value = data.draw(st.just("gone") | JSON)
    part = schema["properties"][name]
    if value == "gone":
        part.pop(keyword, None)
    else:
        part[keyword] = value
    candidate = replace(tool, signature=replace(tool.signature, parameters=schema))
    change = ProposedChange(base=tool, candidate=candidate, library=sample_library())
    codes = {found.code for check in STRUCTURAL_CHECKS for found in check(change)}
    assert (codes == {"no_change"}) == (candidate.digest == tool.digest)


@pytest.mark.parametrize(
    "rule",
    [
        Form(parameter="city", pattern=".*", words="x" * 40_000),
        Form(parameter="city", pattern="x" * 40_000, words="a city"),
        OneOf(parameter="city", values=("Oslo", "x" * 40_000)),
        Condition(expression="days > 1", words="x" * 40_000),
    ],
    ids=lambda rule: rule.kind,
)
def test_a_long_text_of_a_rule_is_rejected_unread(rule):
    """Whatever field holds it, in a change as in a tool that comes whole, it takes no time."""
    candidate = replace(BASE, specification=replace(BASE.specification, rules=(rule,)))
    begun = time.process_time()
    assert codes(candidate) == {"too_long"}
    assert {failed.code for failed in text_faults(candidate)} == {"too_long"}
    assert [failed.code for failed in suspicions(candidate)] == ["too_long"]
    assert codes(replace(candidate, description=BASE.description), base=candidate) == {"no_change"}
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    "unit", ["x", "xY", "x_", "1.", "-", "中", "1 or ", "2024-01-01 ", "for x use cars_reserve; "]
)
def test_a_text_of_one_piece_takes_linear_time(unit):
    """A text that is one word, number, sign or phrase again and again, as long as may be, is read soon."""
    begun = time.process_time()
    codes(replace(BASE, description=replace(BASE.description, summary=(unit * 7_900)[:7_900])))
    assert time.process_time() - begun < 1
