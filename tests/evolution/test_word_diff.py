"""Pieces of texts, and the difference of two texts in words."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.word_diff import marked, pieces, word_diff, words


@given(st.text())
def test_pieces_together_are_the_text(text):
    """Nothing is lost or changed, whatever the text."""
    assert "".join(pieces(text)) == text
    assert all(pieces(text))


@given(st.text())
def test_case_and_width_make_no_other_word(text):
    """Words are folded, so folding them again changes nothing."""
    assert len(words(text)) <= len(text)
    assert words(text) == words(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't pass max_price=3.5!", ["don't", "pass", "max_price", "3.5"]),
        ("查询天气", ["查", "询", "天", "气"]),
        ("VW车 golf", ["vw", "车", "golf"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),  # four letters, two with a vowel above
        ("\uff21\uff22\uff23 abc", ["abc", "abc"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("Zu\u0308rich", ["zürich"]),
        ("end. Start", ["end", "start"]),
        ("__ -- !?", []),
        ("👍🏽", []),
        ("", []),
    ],
)
def test_words_of_many_scripts(text, expected):
    """Accents stay on their letters, scripts without spaces give characters, marks give nothing."""
    assert words(text) == expected


@given(st.text(), st.text())
def test_parts_make_both_texts_again(before, after):
    """Kept and removed is the first text, kept and added the second."""
    parts = word_diff(before, after)
    assert "".join(part.text for part in parts if part.kind != "added") == before
    assert "".join(part.text for part in parts if part.kind != "removed") == after
    assert all(part.text for part in parts)


def test_words_are_the_unit():
    """A changed word goes and comes whole."""
    assert marked(word_diff("Number of periods.", "Number of months.")) == (
        "Number of [-periods-]{+months+}."
    )
    assert marked(word_diff("查询天气", "查看天气")) == "查[-询-]{+看+}天气"


def test_very_long_texts_are_shown_whole():
    """Matching stops where nobody would read the result."""
    before, after = "a " * 5_000, "b " * 5_000
    assert [part.kind for part in word_diff(before, after)] == ["removed", "added"]


def test_texts_with_little_in_common_are_shown_whole():
    """Words that happen to stand in both are not picked out."""
    before, after = "Add two numbers to it.", "Where is the station, and who goes to it?"
    assert marked(word_diff(before, after)) == f"[-{before}-]{{+{after}+}}"


def test_a_blank_between_two_changes_is_part_of_them():
    """Two words in a row are one change, not two around a blank."""
    shown = marked(word_diff("It gives the old price back.", "It gives the very new back."))
    assert shown == "It gives the [-old price-]{+very new+} back."


def test_equal_texts_are_kept():
    """Whatever their length, nothing is shown as changed."""
    long = "a " * 5_000
    assert [part.kind for part in word_diff(long, long)] == ["kept"]
    assert word_diff("", "") == ()
