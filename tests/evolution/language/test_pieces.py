"""What a word is."""

import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.language.pieces import pieces, words


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
