"""The measures of the language report."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.retrieval import FunctionEmbedder
from agentkit_bench.language.measures import (
    at_most,
    character_distance,
    convergence,
    depth_proxy,
    levenshtein,
    moving_type_token_ratio,
    normalised_distance,
    sentence_depths,
    sentences,
    similarities,
    type_token_ratio,
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


def lengths(asked):
    """An embedder of two dimensions that keeps what it was asked."""

    def embed(texts):
        asked.append(texts)
        return [[float(len(text)), 1.0] if text else [0.0, 0.0] for text in texts]

    return FunctionEmbedder(embed, name="lengths")


@given(st.text(max_size=30), st.text(max_size=30))
def test_proxy_is_symmetric_and_bounded(one, other):
    """Both ways it is the same, from 0 to 1, and 1 for equal texts."""
    there, back, same = similarities([(one, other), (other, one), (one, one)])
    assert there == back
    assert there is None or 0 <= there <= 1
    assert same == 1


def test_proxy_sees_no_synonyms_and_no_order():
    """What its docstring says that it can not do."""
    synonym, order = similarities([("cars", "vehicles"), ("buy cars", "cars buy")])
    assert synonym == 0
    assert order == pytest.approx(1)


@pytest.mark.parametrize("texts", [("", "cars"), ("cars", "the of"), ("!?", "cars")])
def test_nothing_is_said_of_texts_without_terms(texts):
    """A text of which nothing is known is unknown, not unlike."""
    assert similarities([texts]) == [None]


def test_embedder_is_asked_once_for_each_text():
    """All pairs go in one batch, equal pairs not at all."""
    asked = []
    found = similarities([("a", "bb"), ("bb", "a"), ("c", "c")], lengths(asked))
    assert asked == [["a", "bb"]]
    assert found[0] == found[1] == pytest.approx(3 / np.sqrt(2 * 5))
    assert found[2] == 1


def test_rows_of_zeros_are_unknown():
    """An embedder that knows nothing of a text gives zeros."""
    assert similarities([("a", "")], lengths([])) == [None]


def test_equal_texts_need_no_embedder():
    """Nothing is embedded where nothing changed."""
    asked = []
    assert similarities([("a", "a")], lengths(asked)) == [1]
    assert asked == []


tokens = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60)


@given(tokens)
def test_ratio_is_above_zero_and_at_most_one(some):
    """One means that no word comes twice."""
    ratio = type_token_ratio(some)
    assert 0 < ratio <= 1
    assert (ratio == 1) == (len(set(some)) == len(some))


@given(tokens, st.randoms())
def test_order_does_not_matter_to_the_plain_ratio(some, random):
    """A shuffled text has the same ratio."""
    shuffled = random.sample(some, len(some))
    assert type_token_ratio(shuffled) == type_token_ratio(some)


@given(tokens)
def test_saying_a_text_twice_halves_the_plain_ratio(some):
    """The bias by length that the docstring warns of."""
    assert type_token_ratio(some * 2) == pytest.approx(type_token_ratio(some) / 2)


@given(tokens)
def test_saying_a_text_again_hardly_moves_the_moving_ratio(some):
    """Once a text is repeated, further repetitions leave the moving ratio near where it is."""
    twice, thrice = (moving_type_token_ratio(some * n, len(some)) for n in (2, 3))
    assert twice == pytest.approx(type_token_ratio(some)) == thrice


@given(tokens, st.integers(1, 60))
def test_moving_ratio_is_the_mean_over_all_windows(some, window):
    """The running count gives what cutting out each window gives."""
    found = moving_type_token_ratio(some, window)
    if window > len(some):
        assert found is None
        return
    cut = [some[at : at + window] for at in range(len(some) - window + 1)]
    assert found == pytest.approx(sum(map(type_token_ratio, cut)) / len(cut))
    assert 0 < found <= 1


def test_no_words_have_no_ratio():
    """Nothing is said about an empty text."""
    assert type_token_ratio([]) is None
    assert moving_type_token_ratio([], 1) is None


def test_window_of_no_words_is_refused():
    """A window has to hold a word."""
    with pytest.raises(UsageError, match="window of 0 words"):
        moving_type_token_ratio(["a"], 0)


sizes = st.lists(st.floats(0, 1), max_size=45)


@pytest.mark.parametrize("rounds", [2, 3, 4, 5, 6])
def test_chances_are_those_of_all_orders(rounds):
    """Counted over every order of so many different sizes."""
    scores = [
        sum(1 if b > a else -1 for a, b in combinations(order, 2))
        for order in permutations(range(rounds))
    ]
    pairs = rounds * (rounds - 1) // 2
    for score in range(-pairs - 1, pairs + 2):
        share = sum(one <= score for one in scores) / len(scores)
        assert at_most(score, rounds) == pytest.approx(share)


def test_approximation_joins_the_exact_chances():
    """Above thirty rounds the chances go on where the exact ones end."""
    assert at_most(-75, 31) == pytest.approx(at_most(-75, 30), abs=0.02)


@given(sizes)
def test_numbers_keep_their_bounds(some):
    """Tau is a correlation, chances are chances, whatever the sizes."""
    found = convergence(some)
    if len(some) < 2:
        assert found.tau is None
        assert found.p_shrinking is None
        return
    assert -1 <= found.tau <= 1
    assert 0 <= found.p_shrinking <= 1
    assert 0 <= found.p_growing <= 1


@given(sizes)
def test_direction_turns_with_the_order(some):
    """Sizes read backwards shrink where they grew."""
    there, back = convergence(some), convergence(some[::-1])
    assert there.p_shrinking == back.p_growing


@given(sizes, st.floats(0.1, 10))
def test_scale_does_not_matter(some, factor):
    """Only the order of sizes counts, so ties stay ties and the scale is nothing."""
    ranks = sorted(set(some))
    assert convergence([ranks.index(size) * factor for size in some]).tau == convergence(some).tau


@pytest.mark.parametrize(
    ("some", "trend"),
    [
        ([], "too few"),
        ([0.5, 0.3, 0.1], "too few"),
        ([0.5, 0.3, 0.2, 0.1], "shrinking"),
        ([0.1, 0.2, 0.3, 0.5], "growing"),
        ([0.3, 0.5, 0.2, 0.4], "no trend"),
        ([0.3] * 10, "no trend"),
    ],
)
def test_trend_needs_four_rounds_and_a_clear_order(some, trend):
    """Equal sizes show nothing, and three rounds can not."""
    assert convergence(some).trend == trend


def test_coming_back_is_counted():
    """A text that was there before is oscillation; a text that stays is not."""
    assert convergence([0.5] * 4, ["a", "b", "a", "b", "c"]).returns == 2
    assert convergence([0.5], ["a", "b"]).returns == 0


@pytest.mark.parametrize("text", ["", "  \n", "!?"])
def test_text_without_words_has_no_sentences(text):
    """Nothing is measured where nothing is said."""
    assert sentence_depths(text) == []


def test_proxy_grows_with_words_and_prepositions():
    """More words are deeper, and more so with a preposition among them."""
    assert 0 == depth_proxy("") < depth_proxy("city") < depth_proxy("city name")
    assert depth_proxy("name city town") < depth_proxy("name of city")


def test_sentences_end_at_full_width_marks_and_lines():
    """Chinese marks need no space after them; an abbreviation does not end a sentence."""
    assert sentences("查询天气。请给出城市\uff01") == ["查询天气。", "请给出城市\uff01"]
    assert sentences("Rates, e.g. for loans\nThe city") == ["Rates, e.g. for loans", "The city"]
