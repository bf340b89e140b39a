"""How far texts are apart."""

import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.language.edit_distance import (
    character_distance,
    levenshtein,
    normalised_distance,
    word_distance,
)

texts = st.text(alphabet="ab é中\n", max_size=40) | st.text(max_size=40)


def by_table(one, other):
    """The textbook's table, row by row."""
    row = list(range(len(other) + 1))
    for at, left in enumerate(one, 1):
        corner, row[0] = row[0], at
        for place, right in enumerate(other, 1):
            corner, row[place] = (
                row[place],
                min(row[place] + 1, row[place - 1] + 1, corner + (left != right)),
            )
    return row[-1]


@given(texts, texts)
def test_bit_parallel_distance_is_the_table_s(one, other):
    """The fast method finds what the table of Wagner and Fischer finds."""
    assert levenshtein(one, other) == by_table(one, other)


@given(texts, texts)
def test_distance_is_symmetric_and_bounded(one, other):
    """Both ways it is the same, never below 0 and never above 1."""
    for distance in (character_distance, word_distance):
        assert distance(one, other) == distance(other, one)
        assert 0 <= distance(one, other) <= 1


@given(texts, texts)
def test_distance_is_zero_for_equal_texts_only(one, other):
    """Zero means the very same text."""
    assert (character_distance(one, other) == 0) == (one == other)


@given(texts, texts, texts)
def test_unnormalised_distance_obeys_the_triangle(one, two, three):
    """A detour is never shorter."""
    assert levenshtein(one, three) <= levenshtein(one, two) + levenshtein(two, three)


def test_normalised_distance_may_break_the_triangle():
    """The documented exception is real: shares of unlike lengths do not add up."""
    direct = normalised_distance("ab", "ba")
    assert direct > normalised_distance("ab", "aba") + normalised_distance("aba", "ba")


@given(texts, texts, texts)
def test_shared_ends_change_nothing(one, other, around):
    """What both texts share at their ends costs nothing."""
    assert levenshtein(around + one, around + other) == levenshtein(one, other)
    assert levenshtein(one + around, other + around) == levenshtein(one, other)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("", "", 0.0), ("", "word", 1.0), ("used cars", "used  cars", 0.0), ("a b", "a c", 0.5)],
)
def test_words_are_counted_without_the_space_between(one, other, distance):
    """White space is no word, and an empty text is as far as can be from any other."""
    assert word_distance(one, other) == distance


def test_chinese_characters_count_as_words():
    """One of four characters replaced is a quarter, not the whole text."""
    assert word_distance("查询天气", "查看天气") == 0.25


def test_long_texts_are_compared_in_one_pass():
    """Texts far above any limit of descriptions are no trouble."""
    assert levenshtein("ab" * 5_000, "ba" * 5_000) == 2
