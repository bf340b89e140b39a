"""A phrasebook finds what its patterns find, only sooner."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from agentkit.evolution.validation.phrasebook import Phrasebook, alternatives, shipped_lines
from agentkit.evolution.validation.texts import folded

BOOKS = [
    "call_first", "conditions", "deeds", "demands", "exclusive", "exfiltration", "explains",
    "limits", "no_consent", "optional", "override", "promises", "promotion", "required",
    "restrictions", "secrecy", "steering", "user_said", "warnings",
]  # fmt: skip


def patterns_of(name):
    """The patterns of a file, with their named parts put in."""
    parts, patterns = {}, []  # read here once more, not by the code under test
    for line in shipped_lines(name):
        if line.startswith("@"):
            part, _, pattern = line[1:].partition(" ")
            parts[f"<{part}>"] = pattern
        else:
            patterns.append(re.sub(r"<\w+>", lambda found: parts.get(found[0], found[0]), line))
    return patterns


@pytest.mark.parametrize("name", BOOKS)
def test_nothing_is_missed_on_the_corpora(name, attacks, rewrites):
    """On every other text of the corpora the book gives what each of its patterns gives by itself."""
    book = Phrasebook.shipped(name)
    plain = [re.compile(part) for line in patterns_of(name) for part in alternatives(line)]
    cases = [case for halves in (attacks, rewrites) for half in halves.values() for case in half]
    for case in cases[::2]:
        text = folded(str(case.value))
        found = [match.span() for match in book.matches(text)]
        assert found == [match.span() for pattern in plain for match in pattern.finditer(text)]
        assert book.holds(text) == bool(found)


MADE_UP = [
    (
        Phrasebook.shipped(name),
        [re.compile(part) for line in patterns_of(name) for part in alternatives(line)],
    )
    for name in ("override", "promotion", "exfiltration")
]
WORDS = st.sampled_from(
    ["send", "the", "best", "tool", "ignore", "rules", "忽略", "规则", "a", "42"]
)


@settings(deadline=None, max_examples=50)
@given(st.lists(WORDS, max_size=12), st.sampled_from([" ", "", "-", ", "]))
def test_nothing_is_missed_in_made_up_texts(words, between):
    """The same on texts of words that patterns begin with, joined in several ways."""
    text = between.join(words)
    for book, plain in MADE_UP:
        found = [match.span() for match in book.matches(text)]
        assert found == [match.span() for pattern in plain for match in pattern.finditer(text)]


def test_every_shipped_pattern_is_one():
    """Each line of each file compiles."""
    for name in BOOKS:
        patterns = patterns_of(name)
        assert [re.compile(pattern).pattern for pattern in patterns] == list(patterns) != []
