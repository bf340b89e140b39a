"""The small parts of validation: patterns, formats and references."""

from __future__ import annotations

import pytest

from agentkit.tools.formats import FORMAT_EXAMPLES, FORMATS
from agentkit.tools.patterns import (
    LENGTH_LIMIT,
    NESTED_LIMIT,
    has_nested_repeat,
    is_compilable,
    pattern_holds,
)
from agentkit.tools.problem import value_text
from agentkit.tools.references import inline_root, references, resolve_local

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
    ("pattern", "nested"),
    [
        ("(a+)+", True),
        ("(a*)*b", True),
        ("(?:a|b+){2,}", True),
        ("((a?)b)*", True),
        (r"(\d{1,3},)*", True),
        ("(a+)?(b+)", False),
        ("(a+){3}", False),
        ("[(a+)]+", False),
        (r"\(a+\)+", False),
        ("[^]+)]+(b)*", False),
        ("(?P<x>a)+", False),
        ("^[a-z]+(-[a-z])*$", False),
        ("a{2,3}b*", False),
        ("(", False),
        ("a)+", False),
        ("[", False),
    ],
)
def test_nested_repetition_is_recognised(pattern, nested) -> None:
    """A group that holds a repetition and is itself repeated is what can explode."""
    assert has_nested_repeat(pattern) is nested


def test_patterns_are_bounded() -> None:
    """Beyond its bound a pattern counts as matched; below it, it decides."""
    assert not pattern_holds("^(a+)+$", "a" * (NESTED_LIMIT - 1) + "!")
    assert pattern_holds("^(a+)+$", "a" * NESTED_LIMIT + "!")
    assert not pattern_holds("^a+$", "a" * (LENGTH_LIMIT - 1) + "!")
    assert pattern_holds("^a+$", "a" * LENGTH_LIMIT + "!")


def test_compilable_patterns() -> None:
    """Patterns in a syntax that Python lacks are recognised, without warnings."""
    assert is_compilable("[[a]")  # Python warns that this may change its meaning
    assert not any(map(is_compilable, ["(", r"\p{L}", "(?<n>a)", "a{99999999999}"]))


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
        ("#/anyOf/1/not", {"$ref": "#other"}),
        ("#/anyOf/2", None),
        ("#/anyOf/-1", None),
        ("#/missing", None),
        ("#other", None),
        ("https://example.org/#/$defs", None),
        ("", None),
    ],
)
def test_references_are_resolved_inside_the_document(reference, target) -> None:
    """JSON pointers are followed; anything else is not resolved."""
    assert resolve_local(DOCUMENT, reference) == target


def test_references_of_a_schema() -> None:
    """Every reference is listed, but not what looks like one in names or data."""
    assert sorted(references(DOCUMENT)) == ["#", "#/$defs/a~1b", "#other"]


def test_inline_root_stops_at_circles() -> None:
    """A root that only refers to itself is left as it is."""
    circle = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}
    assert inline_root(circle)["$ref"] == "#/$defs/A"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        ({"a": 1}, 'the object {"a": 1}'),
        ("x" * 100, f"the string '{'x' * 60}…'"),
    ],
)
def test_values_in_sentences(value, text) -> None:
    """A value is shown with its kind, and shortened."""
    assert value_text(value) == text


def test_values_beyond_showing() -> None:
    """A value nested beyond the stack, or of thousands of digits, is hinted at."""
    assert value_text(10**5000) == "the number with very many digits"
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert value_text(deep) == "the list …"
