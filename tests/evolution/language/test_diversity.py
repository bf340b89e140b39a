"""The ratio of types to tokens, and what length does to it."""

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evolution.language.diversity import moving_type_token_ratio, type_token_ratio

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
