"""Patterns of rules: matched as a whole, portable, and quick on any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, strategies as st

from agentkit.tools.patterns import anchored, matches_whole, why_unsafe

SAFE = [
    "[A-Z]{2}",
    "^[A-Z]{2}$",
    r"\d{4}-\d{2}-\d{2}",
    "EUR|USD",
    r"(\d{1,3}\.){3}\d{1,3}",
    "[a-z]+",
    "[a-z]{1,20}(-[a-z]{1,20}){0,2}",
    "a?b?c?",
    r"\$\d{1,6}\.\d\d",
    "[$^]+",
    "",
    "é{2}",
    "[a-z]+@[a-z]+",
    "(a+)+",
    "(a|ab)*c",
]
UNSAFE = {
    "(a{0,200}){200}": "too large",
    "(?i)abc": "not every reader",
    "(?P<x>a)": "not every reader",
    "(?=a)a": "not every reader",
    r"(a)\1": "not every reader",
    r"\Aa\Z": "not every reader",
    "a{,3}": "not every reader",
    "[0||]": "not every reader",
    "[a&&b]": "not every reader",
    "[^[a]": "not every reader",
    "a++": "no regular expression",
    "[": "no regular expression",
    "x" * 201: "201 characters",
}


@pytest.mark.parametrize("pattern", SAFE)
def test_usual_patterns_are_safe(pattern) -> None:
    """Classes, counts, groups and alternatives are all that the usual forms need."""
    assert why_unsafe(pattern) == ""


@pytest.mark.parametrize(("pattern", "why"), UNSAFE.items())
def test_others_are_refused_with_the_reason(pattern, why) -> None:
    """What could take long, or means something else to another reader, is no pattern of a rule."""
    assert why in why_unsafe(pattern) or "not every reader" in why_unsafe(pattern)


@given(st.sampled_from([p for p in SAFE if p]), st.text("AZazEURSD$1.-é^", max_size=6))
def test_the_anchored_pattern_says_the_same_to_a_search(pattern, text) -> None:
    """The form for JSON Schema, which searches, matches what the rule matches as a whole."""
    whole = re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text) is not None
    assert matches_whole(pattern, text) == whole
    assert (re.search(anchored(pattern), text) is not None) == whole


@given(st.text("a+*?{},()|[]0129\\d^$-", max_size=14))
@example("[0||]")  # Python warns of it as of an operation on sets
def test_any_text_is_judged(pattern) -> None:
    """Whatever is given as a pattern, there is an answer; a safe one can be applied at once."""
    if not why_unsafe(pattern):
        matches_whole(pattern, "a" * 5_000)
        re.compile(anchored(pattern))
