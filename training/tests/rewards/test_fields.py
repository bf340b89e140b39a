"""Which parameters are free text, and when two free texts agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from agentkit_training.rewards import field_kind, texts_agree


@pytest.mark.parametrize(
    ("name", "schema", "kind"),
    [
        ("query", {"type": "string"}, "text"),
        ("query", {"type": ["string", "null"]}, "text"),
        ("query", {"anyOf": [{"type": "string"}, {"type": "null"}]}, "text"),
        ("city", {"type": "string"}, "text"),
        ("query", {"type": "string", "enum": ["a"]}, "exact"),
        ("query", {"type": "string", "format": "date"}, "exact"),
        ("query", {"type": "string", "pattern": "^a"}, "exact"),
        ("departure_date", {"type": "string"}, "exact"),
        ("user_id", {"type": "string"}, "exact"),
        ("website_url", {"type": "string"}, "exact"),
        ("currency", {"type": "string"}, "exact"),
        ("n", {"type": "integer"}, "exact"),
        ("flag", {"type": "boolean"}, "exact"),
        ("anything", {}, "exact"),
        ("anything", {"type": ["string", "integer"]}, "exact"),
        ("anything", True, "exact"),
        ("fields", {"type": "array", "items": {"type": "string"}}, "selection"),
        ("fields", {"type": "array", "uniqueItems": True}, "selection"),
        ("point", {"type": "array", "items": {"type": "number"}}, "exact"),
        ("address", {"type": "object"}, "exact"),
        ("query", {"anyOf": "broken"}, "exact"),
        ("query", {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}, "exact"),
    ],
)
def test_the_kind_of_a_field_follows_from_its_definition(name, schema, kind):
    """Plain strings are free unless their name says otherwise; doubt means exact."""
    assert field_kind(name, schema) == kind


def test_a_description_can_make_a_text_structured():
    """The author's words count like the name."""
    assert field_kind("when", {"type": "string"}, description="Day as YYYY-MM-DD.") == "exact"


@pytest.mark.parametrize(
    ("given_text", "gold", "agree"),
    [
        ("Passat", "Passat380", True),
        ("passat 380", "Passat 380", True),
        ("2023 used cars", "used 2023 vehicles", True),
        ("New York", "New York City", True),
        ("restaraunt", "restaurant", True),
        ("\uff22\uff2d\uff37 \uff38\uff13", "BMW X3", True),
        ("BMW X3", "BMW X5", False),
        ("San Diego", "San Francisco", False),
        ("C", "C#", False),
        ("CO", "Colorado", False),
        ("x + y", "x - y", False),
        ("67890", "67890XYZ", False),
        ("2024-03-01", "2024-03-02", False),
        ("a@example.org", "b@example.org", False),
        ("$100", "$1000", False),
        ("", "anything", False),
        ("!!!", "anything", False),
    ],
)
def test_texts_agree_when_they_say_about_the_same(given_text, gold, agree):
    """Other words, spelling and case may differ; numbers, dates, codes and formulas may not."""
    assert texts_agree(given_text, gold) is agree


@given(one=st.text(max_size=40), other=st.text(max_size=40))
@settings(max_examples=100, deadline=None)
def test_any_texts_can_be_compared(one, other):
    """Whatever the characters, there is an answer, and a text agrees with itself."""
    assert texts_agree(one, other) in {True, False}
    assert texts_agree(one, one)


def test_long_texts_are_compared_by_words_alone():
    """Texts beyond a hundred characters end quickly, whatever they hold."""
    assert not texts_agree("a" * 200_000, "b" * 200_000)
    assert not texts_agree("xab" * 10_000, "yba" * 10_000)
    assert texts_agree("word " * 50_000 + "end", "word " * 50_000)
