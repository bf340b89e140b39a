"""Likeness of meaning, by vectors or by the proxy."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from agentkit.evolution.language.similarity import similarities
from agentkit.retrieval import FunctionEmbedder


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
