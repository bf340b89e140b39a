"""Texts fall apart into search terms."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit.retrieval.words import terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get_weather", ["get", "weather"]),
        ("getWeather", ["get", "weather"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("math.prime_factors", ["math", "prime", "factor"]),
        ("list-all-files", ["list", "all", "file"]),
        ("What is the area of circles?", ["area", "circle"]),
        ("gas bus class", ["gas", "bus", "class"]),
        ("Café CAFÉ cafe", ["cafe", "cafe", "cafe"]),
        ("\uff27\uff25\uff34 weather", ["get", "weather"]),  # full-width letters
        ("", []),
        ("_ . -", []),
    ],
)
def test_identifiers_and_words_become_terms(text, expected):
    """Identifiers are split, case, accents, plurals and stop words are gone."""
    assert terms(text) == expected


def test_scripts_without_spaces_give_pairs():
    """A Chinese query shares terms with a Chinese description although nothing separates words."""
    assert set(terms("查询今天的天气")) & set(terms("天气预报")) == {"天气"}


def test_mixed_scripts_are_separated():
    """An ASCII name inside Chinese text is a term of its own."""
    assert "weather" in terms("请用get_weather查询天气")


@given(st.text())
def test_any_text_has_terms(text):
    """No text is an error, and no term is empty or a stop word."""
    assert all(term and term != "the" for term in terms(text))


@given(st.text(alphabet="abcsyz ._-"))
def test_case_of_whole_words_does_not_matter(text):
    """Upper-casing everything or lower-casing everything gives the same terms."""
    assert terms(text.lower()) == terms(text.upper())
