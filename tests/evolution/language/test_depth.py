"""Depth of sentences, by a parser or by the proxy."""

from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit.evolution.language.depth import (
    SpacyParser,
    StanzaParser,
    depth_proxy,
    sentence_depths,
    sentences,
    tree_depth,
)


@dataclass(frozen=True)
class Chains:
    """A parser for which each word hangs on the one before it."""

    name: str = "chains"

    def heads(self, text):
        return [range(len(text.split()))]


@pytest.mark.parametrize(
    ("heads", "depth"), [([], 0), ([0], 1), ([2, 0, 5, 5, 2], 3), ([0, 1, 2, 3], 4), ([0, 0], 1)]
)
def test_depth_is_the_longest_way_from_a_root(heads, depth):
    """Words are counted, the root included."""
    assert tree_depth(heads) == depth


@given(st.integers(1, 200))
def test_depth_lies_between_one_and_the_number_of_words(count):
    """A chain is as deep as it is long, a star has two levels."""
    assert tree_depth(range(count)) == count
    assert tree_depth([0, *[1] * count]) == 2


@pytest.mark.parametrize("heads", [[2, 1], [5], [-1], [1]])
def test_heads_that_are_no_tree_are_refused(heads):
    """A circle, or a head that is no word, is a fault of the parser."""
    with pytest.raises(UsageError, match="no tree"):
        tree_depth(heads)


def test_parser_gets_lines_one_by_one():
    """A field's end is a sentence's end, whatever the parser thinks."""
    assert sentence_depths("one two three\n\nfour five", Chains()) == [3, 2]


@pytest.mark.parametrize("text", ["", "  \n", "!?"])
def test_text_without_words_has_no_sentences(text):
    """Nothing is parsed where nothing is said."""
    assert sentence_depths(text) == sentence_depths(text, Chains()) == []


def test_proxy_grows_with_words_and_prepositions():
    """More words are deeper, and more so with a preposition among them."""
    assert 0 == depth_proxy("") < depth_proxy("city") < depth_proxy("city name")
    assert depth_proxy("name city town") < depth_proxy("name of city")


def test_sentences_end_at_full_width_marks_and_lines():
    """Chinese marks need no space after them; an abbreviation does not end a sentence."""
    assert sentences("查询天气。请给出城市\uff01") == ["查询天气。", "请给出城市\uff01"]
    assert sentences("Rates, e.g. for loans\nThe city") == ["Rates, e.g. for loans", "The city"]


def test_objects_of_spacy_are_read():
    """Tokens know their head; a root is its own head; numbers start anew in each sentence."""
    tokens = [SimpleNamespace(i=at) for at in (4, 5, 6)]
    for token, head in zip(tokens, (5, 5, 5), strict=True):
        token.head = tokens[head - 4]
    parser = SpacyParser(lambda _: SimpleNamespace(sents=[tokens]))
    assert parser.heads("any text") == [[2, 0, 2]]


def test_objects_of_stanza_are_read():
    """Words carry the number of their head."""
    sentence = SimpleNamespace(words=[SimpleNamespace(head=2), SimpleNamespace(head=0)])
    parser = StanzaParser(lambda _: SimpleNamespace(sentences=[sentence]))
    assert parser.heads("any text") == [[2, 0]]
