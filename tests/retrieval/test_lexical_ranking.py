"""Words, and ranking by them."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import FieldWeights, IndexConfig, LexicalChannel
from agentkit.retrieval.words import terms


@pytest.fixture
def rank():
    """Names of the definitions that share a word with a query, best first."""

    def ranked(query, definitions, weights=None):
        channel = LexicalChannel(weights=weights or FieldWeights())
        index = Library(definitions).derived(IndexConfig(channels=(channel,)))
        scores = channel.match(index, channel.query(query)).scores()
        return [index.names[row] for row, _ in index.top(scores, 100)]

    return ranked


def test_only_sharing_tools_have_a_score(catalogue, rank):
    """A tool that shares no word with the query does not appear at all."""
    assert rank("reserve a room", catalogue) == ["book_hotel"]


@pytest.mark.parametrize("query", ["xylophone", "what is the", ""])
def test_a_query_without_known_words_scores_nothing(catalogue, rank, query):
    """Unknown words and stop words give no scores."""
    assert rank(query, catalogue) == []


@pytest.mark.parametrize("field", ["name", "description", "parameter_names", "parameter_texts"])
def test_each_field_weight_has_an_effect(define, rank, field):
    """Raising the weight of one field puts the tool that matches there first."""
    tools = {
        "name": define("rocket", "It.", one="It."),
        "description": define("two", "Rocket.", one="It."),
        "parameter_names": define("three", "It.", rocket="It."),
        "parameter_texts": define("four", "It.", one="Rocket."),
    }
    weights = FieldWeights(**{name: 5.0 if name == field else 0.5 for name in tools})
    assert rank("rocket", tools.values(), weights)[0] == tools[field].name


def test_default_weights_rank_name_over_description_over_parameters(define, rank):
    """A word in the name says more than one in the summary, and that more than in parameters."""
    tools = [
        define("plain_four", "Plain words.", one="Rocket words."),
        define("plain_three", "Plain words.", rocket="Plain words."),
        define("plain_two", "Rocket words.", one="Plain words."),
        define("rocket_one", "Plain words.", one="Plain words."),
    ]
    assert rank("rocket", tools) == ["rocket_one", "plain_two", "plain_three", "plain_four"]


def test_rare_words_count_more(define, rank):
    """A word that few tools have tells them apart better than one that all have."""
    tools = [define(f"get_{i}", "Get the data.") for i in range(8)]
    tools.append(define("tides", "Tides at a coast."))
    assert rank("get the tides data", tools)[0] == "tides"


def test_nested_parameters_and_allowed_values_are_searched(define, rank):
    """Names of nested properties, their texts and enum members count like those on top."""
    nested = {
        "type": "object",
        "properties": {"postcode": {"type": "string", "description": "Five digits."}},
    }
    many = {"type": "array", "items": nested}
    tools = [
        define("one", "It.", address=nested),
        define("two", "It.", addresses=many),
        define("three", "It.", unit={"enum": ["kelvin", "celsius"]}),
    ]
    assert set(rank("postcode", tools)) == {"one", "two"}
    assert set(rank("five digits", tools)) == {"one", "two"}
    assert set(rank("in kelvin", tools)) == {"three"}


def test_tags_and_usage_rules_are_searched(rank):
    """Whatever describes a tool helps to find it."""
    definition = ToolDefinition.from_schema("one", "It.", {}, tags=["astronomy"])
    assert rank("astronomy", [definition]) == ["one"]


def test_matched_terms_explain_a_score(catalogue):
    """The shared words are given in the order of the query."""
    channel = LexicalChannel()
    index = catalogue.derived(IndexConfig(channels=(channel,)))
    rows = [index.row("get_weather"), index.row("get_time")]
    found = channel.match(index, channel.query("forecasts of the weather")).shared(rows)
    assert list(found) == [("forecast", "weather"), ()]


def test_a_number_counts_half(rank):
    """What looks like a value says less about the tool than a word does."""
    tools = [
        ToolDefinition.from_schema("form_1040", "Fill in.", {}),
        ToolDefinition.from_schema("form_tax", "Fill in.", {}),
    ]
    assert rank("1040 tax", tools) == ["form_tax", "form_1040"]
    assert rank("1040", tools) == ["form_1040"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("get_weather", ["get", "weather"]),
        ("getWeather", ["get", "weather"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("math.prime_factors", ["math", "prime", "factor"]),
        ("list-all-files", ["list", "all", "file"]),
        ("What is the area of circles?", ["area", "circle"]),
        ("gas bus class", ["gas", "bus", "class"]),
        ("Café CAFÉ cafe", ["cafe", "cafe", "cafe"]),
        ("\uff27\uff25\uff34 weather", ["get", "weather"]),  # full-width letters
        ("", []),
        ("_ . -", []),
    ],
)
def test_identifiers_and_words_become_terms(text, expected):
    """Identifiers are split, case, accents, plurals and stop words are gone."""
    assert terms(text) == expected


def test_scripts_without_spaces_give_pairs():
    """A Chinese query shares terms with a Chinese description although nothing separates words."""
    assert set(terms("查询今天的天气")) & set(terms("天气预报")) == {"天气"}


def test_mixed_scripts_are_separated():
    """An ASCII name inside Chinese text is a term of its own."""
    assert "weather" in terms("请用get_weather查询天气")


@given(st.text())
def test_any_text_has_terms(text):
    """No text is an error, and no term is empty or a stop word."""
    assert all(term and term != "the" for term in terms(text))


@given(st.text(alphabet="abcsyz ._-"))
def test_case_of_whole_words_does_not_matter(text):
    """Upper-casing everything or lower-casing everything gives the same terms."""
    assert terms(text.lower()) == terms(text.upper())
