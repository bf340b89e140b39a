"""Words of texts in any script, and the difference of two texts."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit_bench.language.words import word_diff, words


def test_a_word_that_changes():
    """Only the word that changes is told, in scripts without blanks as well."""
    assert word_diff("from 1 to 12", "from 1 to 60") == (
        ("same", "from 1 to "),
        ("removed", "12"),
        ("added", "60"),
    )
    assert word_diff("今日の天気", "明日の天気") == (
        ("removed", "今"),
        ("added", "明"),
        ("same", "日の天気"),
    )


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
    assert "".join(text for kind, text in parts if kind != "added") == before
    assert "".join(text for kind, text in parts if kind != "removed") == after
    assert all(text for kind, text in parts)
