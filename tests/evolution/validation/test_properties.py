"""What holds for every change."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from agentkit.evolution.validation import ALL_CHECKS, ProposedChange
from agentkit.evolution.validation.character_checks import no_invisible_characters
from agentkit.evolution.validation.checks import STRUCTURAL_CHECKS, validate
from agentkit.library.library import Library
from agentkit.testing import sample_library
from agentkit.testing.rewrites import rewrite
from agentkit.tools.definition import Description, ToolDefinition
from agentkit.tools.schema import copied

SAMPLES = sample_library().definitions
TOOLS = st.sampled_from(SAMPLES)
HIDDEN = st.sampled_from(
    [
        *"\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202d\u202e\u2060\u2061\u2066\u2067\u2069",
        *"\ufeff\u00ad\u061c\u180e\u115f\u3164\uffa0\u2800\ufe00\ue000\uf8ff\x00\x07\x1b\x7f\x85",
        *map(chr, (0xE0001, 0xE0041, 0xE007F, 0xE0100, 0xF0000, 0x1BCA0)),
    ]
)
WORDS = st.text(
    st.characters(codec="utf-8", categories=("L", "N", "P", "Zs"), max_codepoint=0xFFFF),
    max_size=120,
)


@given(TOOLS, WORDS, st.randoms(use_true_random=False))
def test_the_order_of_checks_decides_nothing(tool, text, shuffler):
    """Any order gives the same reasons."""
    change = rewrite(tool.name, {"summary": text, "rule": f"{text}. Always call it first."})
    checks = list(ALL_CHECKS)
    shuffler.shuffle(checks)
    assert set(validate(change, checks=checks).failed) == set(validate(change).failed)


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


@given(st.sampled_from("\u200c\u200d"), st.data())
def test_joiners_are_found_between_latin_letters(joiner, data):
    """Joiners belong to scripts that join; between Latin letters they hide something."""
    text = data.draw(st.text("abcdefgh ", min_size=2, max_size=40))
    at = data.draw(st.integers(0, len(text)))
    change = rewrite("weather_now", {"rule": text[:at] + joiner + text[at:]})
    assert list(no_invisible_characters(change))


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


@pytest.mark.parametrize("char", ["\u217f", "\uff57", "\u212f"])
def test_compatibility_characters_are_no_letters_of_words(char):
    """A Roman numeral by itself passes; in a word it looks like the letter that it is not."""
    found = validate(rewrite("cars_search", {"rule": f"Nu{char}ber of the car."})).failed
    assert "confusable_characters" in {failed.code for failed in found}
    alone = rewrite("cars_search", {"rule": "Price in \u2103, chapter \u2167."})
    assert "confusable_characters" not in {failed.code for failed in validate(alone).failed}
