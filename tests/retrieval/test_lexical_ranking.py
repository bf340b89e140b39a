"""Definitions are ranked by the words that they share with a query."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import ToolDefinition
from agentkit.retrieval import FieldWeights, LexicalIndex, best


def test_only_sharing_tools_have_a_score(catalogue):
    """A tool that shares no word with the query does not appear at all."""
    index = LexicalIndex(catalogue.definitions)
    found = {catalogue.definitions[place].name for place in index.score("reserve a room")}
    assert found == {"book_hotel"}


def test_a_query_without_known_words_scores_nothing(catalogue):
    """Unknown words and stop words give no scores."""
    index = LexicalIndex(catalogue.definitions)
    assert index.score("xylophone") == {}
    assert index.score("what is the") == {}
    assert index.score("") == {}


def test_an_empty_index_scores_nothing():
    """A library without tools is no error."""
    assert LexicalIndex([]).score("weather") == {}


@pytest.mark.parametrize("field", ["name", "description", "parameter_names", "parameter_texts"])
def test_each_field_weight_has_an_effect(define, field):
    """Raising the weight of one field puts the tool that matches there first."""
    tools = {
        "name": define("rocket", "It.", one="It."),
        "description": define("two", "Rocket.", one="It."),
        "parameter_names": define("three", "It.", rocket="It."),
        "parameter_texts": define("four", "It.", one="Rocket."),
    }
    weights = FieldWeights(**{name: 5.0 if name == field else 0.5 for name in tools})
    index = LexicalIndex(tools.values(), weights=weights)
    assert best(index.score("rocket"), 1) == [list(tools).index(field)]


def test_default_weights_rank_name_over_description_over_parameters(define):
    """A word in the name says more than one in the summary, and that more than in parameters."""
    index = LexicalIndex(
        [
            define("plain_four", "Plain words.", one="Rocket words."),
            define("plain_three", "Plain words.", rocket="Plain words."),
            define("plain_two", "Rocket words.", one="Plain words."),
            define("rocket_one", "Plain words.", one="Plain words."),
        ]
    )
    assert best(index.score("rocket"), 4) == [3, 2, 1, 0]


def test_rare_words_count_more(define):
    """A word that few tools have tells them apart better than one that all have."""
    tools = [define(f"get_{i}", "Get the data.") for i in range(8)]
    index = LexicalIndex([*tools, define("tides", "Tides at a coast.")])
    assert best(index.score("get the tides data"), 1) == [8]


def test_nested_parameters_and_allowed_values_are_searched(define):
    """Names of nested properties, their texts and enum members count like those on top."""
    nested = {
        "type": "object",
        "properties": {"postcode": {"type": "string", "description": "Five digits."}},
    }
    many = {"type": "array", "items": nested}
    index = LexicalIndex(
        [
            define("one", "It.", address=nested),
            define("two", "It.", addresses=many),
            define("three", "It.", unit={"enum": ["kelvin", "celsius"]}),
        ]
    )
    assert set(index.score("postcode")) == {0, 1}
    assert set(index.score("five digits")) == {0, 1}
    assert set(index.score("in kelvin")) == {2}


def test_a_parameter_may_have_no_schema(define):
    """``true`` as a schema, which allows anything, is no error; nor is an empty one."""
    index = LexicalIndex(
        [
            define("one", "Plain.", x={"items": {}}),
            ToolDefinition.from_schema("two", "Plain.", {"properties": {"y": True}}),
        ]
    )
    assert set(index.score("plain")) == {0, 1}


def test_tags_and_usage_rules_are_searched():
    """Whatever describes a tool helps to find it."""
    definition = ToolDefinition.from_schema("one", "It.", {}, tags=["astronomy"])
    index = LexicalIndex([definition])
    assert set(index.score("astronomy")) == {0}


def test_matched_terms_explain_a_score(catalogue):
    """The shared words are given in the order of the query."""
    index = LexicalIndex(catalogue.definitions)
    assert index.matched("forecasts of the weather", [0, 1]) == {0: ("forecast", "weather"), 1: ()}


@given(st.dictionaries(st.integers(0, 50), st.sampled_from([0.1, 0.5, 0.9])), st.integers(1, 60))
def test_best_is_a_prefix_of_the_full_order(scores, count):
    """The highest come first, ties by position, whatever the order of the mapping."""
    full = sorted(scores, key=lambda place: (-scores[place], place))
    shuffled = list(scores.items())
    random.Random(0).shuffle(shuffled)
    assert best(dict(shuffled), count) == full[:count]
