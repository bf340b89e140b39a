"""Patterns, formats and references of schemas."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, strategies as st

from agentkit.tools.patterns import (
    FORMAT_EXAMPLES,
    FORMATS,
    anchored,
    pattern_holds,
    why_unsafe,
    why_unusable,
)
from agentkit.tools.schema import resolve_local

# --- patterns, formats, references ----------------------------------------------------------------

GOOD = {
    "date": ["2024-02-29"],
    "date-time": ["2026-05-31T12:00:00Z", "2026-05-31t12:00:00+02:00", "2026-05-31 12:00"],
    "duration": ["P1D", "PT1H30M", "P2W", "-PT5S", "P1Y2M3DT4H5M6.5S"],
    "email": ["a@b", "ada.l@example.org"],
    "ipv4": ["192.0.2.1"],
    "ipv6": ["::1", "2001:db8::1"],
    "time": ["14:30", "14:30:00Z", "23:59:59.123456+01:00"],
    "uri": ["https://example.org/a?b#c", "mailto:a@b", "urn:isbn:1"],
    "uuid": ["123E4567-e89b-12d3-a456-426614174000"],
}
BAD = {
    "date": ["2023-02-29", "20240229", "2024-2-9", "tomorrow", "2024-W01-1", "\uff12024-01-01"],
    "date-time": ["2026-05-31", "2026-05-31T25:00:00", "now"],
    "duration": ["P", "PT", "1D", "P1", "PT1D"],
    "email": ["a", "@b", "a@", "a b@c", "a@b@c"],
    "ipv4": ["256.0.0.1", "1.2.3", "01.2.3.4"],
    "ipv6": ["1.2.3.4", "::g"],
    "time": ["24:00", "14", "2pm"],
    "uri": ["example.org", "//a", "http:// a", ""],
    "uuid": ["123e4567", "123e4567e89b12d3a456426614174000"],
}


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_formats(name) -> None:
    """Each format takes its own values, its example among them, and refuses others."""
    assert all(map(FORMATS[name], [FORMAT_EXAMPLES[name], *GOOD[name]]))
    assert not any(map(FORMATS[name], BAD[name]))


@pytest.mark.parametrize(
    "pattern",
    ["^(a|a)*$", r"^(\w+\s?)*$", "(.*a){20}$"],
)
def test_patterns_that_explode_elsewhere_are_matched_at_once(pattern) -> None:
    """What takes a backtracking engine longer than the world has stood is just an answer."""
    assert not pattern_holds(f"^(?:{pattern})$", "a" * 5_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)b", "look-around"),
        (r"(a)\1", "back-references"),
        ("(", "not a regular expression"),
        ("a++", "not a regular expression"),
        ("((a{100}){100}){100}", "too large"),
        (r"\p{L}{5000}", "too large"),
    ],
)
def test_patterns_that_have_no_bound_are_refused_with_a_reason(pattern, why) -> None:
    """A pattern is matched in linear time, or its reader is told why it is not."""
    assert why in why_unusable(pattern)
    with pytest.raises(ValueError, match=why):
        pattern_holds(pattern, "a")


@pytest.mark.parametrize(
    ("pattern", "found", "missing"),
    [
        (r"^\d$", "7", "\u0663"),
        (r"^\w+$", "a_1", "\u00e9"),
        (r"^[^\w]$", "-", "a"),
        ("^a$", "a", "a\n"),
        (r"^\p{Lu}$", "\u00c9", "\u00e9"),
        ("^(?<year>a)$", "a", "b"),
        ("^[a&&b]+$", "a&b", "c"),
        ("^a{,3}$", "aa", "aaaa"),
        ("^.{1,4000}$", "a" * 4_000, "a" * 4_001),
    ],
)
def test_patterns_mean_what_json_schema_says(pattern, found, missing) -> None:
    """Classes are ASCII, ``$`` is the end, and brackets and braces stand for themselves."""
    assert pattern_holds(pattern, found)
    assert not pattern_holds(pattern, missing)


DOCUMENT = {
    "$defs": {"a/b": {"type": "integer"}, "c~d": {}, "e f": {"x": 1}},
    "anyOf": [{"$ref": "#/$defs/a~1b"}, {"not": {"$ref": "#other"}}],
    "properties": {"$ref": {"default": {"$ref": "#/in/data"}}, "default": {"$ref": "#"}},
}


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("#", DOCUMENT),
        ("#/$defs/a~1b", {"type": "integer"}),
        ("#/$defs/c~0d", {}),
        ("#/$defs/e%20f/x", 1),
        ("#/anyOf/2", None),
        ("https://example.org/#/$defs", None),
    ],
)
def test_references_are_resolved_inside_the_document(reference, target) -> None:
    """JSON pointers are followed; anything else is not resolved."""
    assert resolve_local(DOCUMENT, reference) == target


# --- patterns of rules ----------------------------------------------------------------------------

SAFE = [
    "[A-Z]{2}",
    "EUR|USD",
    "[a-z]{1,20}(-[a-z]{1,20}){0,2}",
    r"\$\d{1,6}\.\d\d",
    "[$^]+",
    "",
    "(a|ab)*c",
]
UNSAFE = {
    "(a{0,200}){200}": "too large",
    "(?i)abc": "not every reader",
    "(?=a)a": "not every reader",
    r"(a)\1": "not every reader",
    r"\Aa\Z": "not every reader",
    "a{,3}": "not every reader",
    "[0||]": "not every reader",
    "[": "not a regular expression",
    "x" * 201: "201 characters",
}


@pytest.mark.parametrize(("pattern", "why"), UNSAFE.items())
def test_others_are_refused_with_the_reason(pattern, why) -> None:
    """What could take long, or means something else to another reader, is no pattern of a rule."""
    assert why in why_unsafe(pattern) or "not every reader" in why_unsafe(pattern)


@given(st.sampled_from([p for p in SAFE if p]), st.text("AZazEURSD$1.-é^", max_size=6))
def test_the_anchored_pattern_says_the_same_to_a_search(pattern, text) -> None:
    """The form for JSON Schema, which searches, matches what the rule matches as a whole."""
    whole = re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text) is not None
    assert pattern_holds(anchored(pattern), text) == whole
    assert (re.search(anchored(pattern), text) is not None) == whole


@given(st.text("a+*?{},()|[]0129\\d^$-", max_size=14))
@example("[0||]")  # Python warns of it as of an operation on sets
def test_any_text_is_judged(pattern) -> None:
    """Whatever is given as a pattern, there is an answer; a safe one can be applied at once."""
    if not why_unsafe(pattern):
        pattern_holds(anchored(pattern), "a" * 5_000)
        re.compile(anchored(pattern))
