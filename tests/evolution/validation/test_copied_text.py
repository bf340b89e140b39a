"""What users said and tools returned does not become the text of a tool."""

from __future__ import annotations

import pytest

from agentkit.evolution.validation.pattern_checks import not_copied
from agentkit.testing.rewrites import rewrite

SAID = (
    "Hello, I am looking for a small red car that my daughter can drive to university every day.",
    "客户说他想要一辆适合一家五口周末去郊外露营的白色七座车。",
    '{"order": "B-204178", "total": 17, "day": "2026-03-02"}',
)


def codes(text, sources=SAID):
    """What the check says of a usage rule."""
    change = rewrite("cars_search", {"rule": text}, sources=sources)
    return [found.code for found in not_copied(change)]


@pytest.mark.parametrize(
    "text",
    [
        "Look for a small red car that my daughter can drive to university.",
        "LOOK FOR: a small, red car - that my daughter can drive!",
        "适合一家五口周末去郊外露营的白色七座车。",
        "An order such as B-204178 is no stock id.",
    ],
)
def test_taken_over_words_are_found(text):
    """Eight words, twenty characters or an order number, whatever the case and punctuation."""
    assert codes(text) == ["copied_text"]


@pytest.mark.parametrize(
    "text",
    [
        "Small cars are found by their maker.",
        "Days are written as 2026-03-02.",
        "白色的车按品牌查询。",
        "Give 17 as a number.",
    ],
)
def test_shared_words_are_not_taken_over(text):
    """A few words in common, a date that shows a format and short numbers are no copies."""
    assert codes(text) == []


def test_what_the_base_says_is_its_own():
    """A sentence of the definition that a user quoted may stay in the definition."""
    sentence = "Find used cars in stock. Gives stock ids, cheapest first."
    change = rewrite("cars_search", {"rule": sentence}, sources=(sentence,))
    assert list(not_copied(change)) == []


def test_examples_are_calls_that_were_made():
    """An example holds what was asked; that is what it is for."""
    example = {"arguments": {"make": "Volvo"}, "result": ["C-102"], "query": SAID[0]}
    change = rewrite("cars_search", {"/examples/-": example}, sources=SAID)
    assert list(not_copied(change)) == []
