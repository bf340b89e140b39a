"""The text ranker: words and meaning, whole requests and their clauses."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.retrieval import IndexConfig, LexicalChannel, word_vectors
from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.embedders import FunctionEmbedder
from agentkit.retrieval.ranking import TextRanker, _fused, both_ends, clauses
from agentkit.retrieval.retriever import SubGoal
from agentkit.retrieval.words import terms

TOPICS = (
    {"movie", "film", "cinema"},
    {"flight", "plane", "airline"},
    {"weather", "rain", "umbrella"},
)


def by_topic(texts: list[str]) -> np.ndarray:
    """A vector that says how often a text speaks of each topic."""
    words = [re.findall(r"\w+", text.lower()) for text in texts]
    return np.array(
        [[float(sum(word in topic for word in one)) for topic in TOPICS] for one in words]
    )


MODEL = FunctionEmbedder(by_topic, name="topics")


@pytest.fixture(autouse=True)
def no_packaged_vectors(monkeypatch):
    """The same results whether or not the extra is installed."""
    monkeypatch.setattr(word_vectors, "_PACKAGE", "no_such_package_of_vectors")


@pytest.fixture
def library():
    """Tools that a request may mean without sharing a word with them."""
    return Library(
        [
            ToolDefinition.from_schema("find_film", "Find a film by its director.", {}),
            ToolDefinition.from_schema("book_plane", "Book a seat with an airline.", {}),
            ToolDefinition.from_schema("get_rain", "How much rain falls in a city.", {}),
            ToolDefinition.from_schema("send_mail", "Send a mail to a person.", {}),
            ToolDefinition.from_schema("convert_money", "Convert money to another currency.", {}),
        ]
    )


async def ranked(stage, library, text, candidates=None, **goal):
    candidates = candidates or Candidates.of(library, stage.channels)
    return await stage(text, SubGoal(intent=text, **goal), candidates)


def names(candidates):
    return [hit.definition.name for hit in candidates.hits]


async def test_shared_words_rank_without_vectors(library):
    """Words alone suffice; the best match has 1, the reason names the words."""
    found = await ranked(TextRanker(embedder=None), library, "Send Ann a mail about currency")
    assert names(found) == ["send_mail", "convert_money"]
    assert found.hits[0].score == pytest.approx(1.0)
    assert found.hits[0].reason == "shares send, mail"
    assert found.hits[0].fields == {"lexical": pytest.approx(1.0)}
    assert found.notes == ()


async def test_meaning_finds_what_shares_no_word(library):
    """A cinema is a film to the model, though no word is the same."""
    words = await ranked(TextRanker(embedder=None), library, "Anything good at the cinema?")
    meaning = await ranked(TextRanker(embedder=MODEL), library, "Anything good at the cinema?")
    assert names(words) == []
    assert names(meaning) == ["find_film"]
    assert meaning.hits[0].reason == "is close in meaning"
    assert set(meaning.hits[0].fields) == {"lexical", "model_vectors"}


async def test_each_clause_finds_its_tool(library):
    """A long first wish does not drown a short second one."""
    text = (
        "Convert money, all the money of my account, to another currency, any currency. "
        "Then mail Ann."
    )
    found = await ranked(TextRanker(embedder=None), library, text)
    assert names(found)[:2] == ["convert_money", "send_mail"]
    assert found.hits[1].fields["clauses"] > found.hits[1].fields["lexical"]


@pytest.mark.parametrize("clauses_there", [2, 3, 8])
def test_the_best_clause_counts_more_the_more_clauses_there_are(clauses_there):
    """Of n clauses the best has the share n / (n + 4) of a score."""
    scores = np.zeros((1 + clauses_there, 2))
    scores[0, 0] = scores[1:, 1] = 1.0
    total = sum(_fused({"words": scores}).values())
    by_clause = clauses_there / (clauses_there + 4)
    assert total[1] / total[0] == pytest.approx(by_clause / (1 - by_clause))


async def test_two_shared_words_win_over_a_rare_one():
    """A name in a request does not lift a tool that has nothing else to do with it."""
    games = ("Rules of a game.", "Buy a game.")
    ratings = ("Rating of food.", "Rating of a hotel.")
    texts = ("Build Catan.", "Give a rating to a game.", *ratings, *games)
    tools = [ToolDefinition.from_schema(f"tool_{at}", text, {}) for at, text in enumerate(texts)]
    found = await ranked(TextRanker(embedder=None), Library(tools), "Rating of the game Catan")
    assert names(found)[0] == "tool_1"


async def test_an_absent_extra_is_said_once_and_is_no_error(library):
    """By default words alone are used, and the trace says why, once for all steps."""
    stage = TextRanker()
    found = await ranked(stage, library, "Send a mail")
    again = await ranked(stage, library, "Send a mail", candidates=found)
    assert names(found) == ["send_mail"]
    assert len(again.notes) == 1
    assert 'pip install "agentkit-evolve[vectors]"' in again.notes[0]


async def test_only_tools_in_the_running_are_ranked(library):
    """What an earlier stage dropped stays dropped, by words and by meaning."""
    stage = TextRanker(embedder=MODEL)
    candidates = Candidates.of(library, stage.channels).where(lambda one: one.name != "find_film")
    found = await ranked(stage, library, "Find a film at the cinema", candidates)
    assert "find_film" not in names(found)


async def test_tools_ranked_before_get_their_share_and_stay(library):
    """An earlier stage's choice outlives the cut and is raised by its own match."""
    stage = TextRanker(keep=1, embedder=None)
    candidates = Candidates.of(library, stage.channels).add({"convert_money": 2.0, "get_rain": 0.5})
    found = await ranked(stage, library, "Send a mail about currency", candidates)
    assert names(found) == ["convert_money"]
    uncut = TextRanker(keep=1, embedder=None, cut=False)
    found = await ranked(uncut, library, "Send a mail about currency", candidates)
    assert names(found) == ["convert_money", "send_mail", "get_rain"]
    assert found.hits[0].score > 2.0
    assert len(found) == len(library)


async def test_argument_names_are_searched_too(library):
    """A planner's guess at an argument finds a tool that the intent does not."""
    stage = TextRanker(embedder=None)
    found = await ranked(stage, library, "do it", argument_names=("currency",))
    assert names(found) == ["convert_money"]


async def test_an_embedder_that_fails_on_a_request_has_no_say(library):
    """Words alone answer until it is back."""
    reachable = True

    def sometimes(texts):
        if not reachable:
            raise ConnectionError("no route to the embedder")
        return by_topic(texts)

    stage = TextRanker(embedder=FunctionEmbedder(sometimes, name="sometimes"))
    start = Candidates.of(library, stage.channels)
    reachable = False
    found = await ranked(stage, library, "A film, and mail it", start)
    words = await ranked(TextRanker(embedder=None), library, "A film, and mail it")
    assert names(found) == names(words)
    assert found.hits[0].fields.keys() == words.hits[0].fields.keys()
    assert "no route to the embedder" in found.notes[0]
    reachable = True
    assert not (await ranked(stage, library, "A film, and mail it", start)).notes


async def test_a_request_of_a_hundred_kilobytes_is_read_at_both_ends(library):
    """What stands before or behind pasted text is found, the middle is not."""
    padding = "lorem ipsum dolor " * 6_000
    stage = TextRanker(embedder=MODEL)
    for text in (f"Send a mail. {padding}", f"{padding} Send a mail."):
        assert names(await ranked(stage, library, text)) == ["send_mail"]
    assert names(await ranked(stage, library, f"{padding} Send a mail. {padding}")) == []


def test_there_are_at_most_eight_clauses():
    """A long request costs no more than a list of eight."""
    assert len(clauses("Book a flight. " * 50)) == 8


@given(st.text(max_size=400))
def test_clauses_stand_in_the_text(text):
    """No clause is made up, whatever the text."""
    assert all(part in text for part in clauses(text))
    assert len(both_ends(text * 60)) <= 8_001


@settings(deadline=None)
@given(st.integers(1, 4), st.integers(0, 6), st.randoms(use_true_random=False))
def test_fused_scores_lie_between_0_and_1(texts, candidates, random):
    """However much evidence there is, the best candidate has 1, and the fields add up."""

    def numbers(*shape: int) -> np.ndarray:
        values = [random.choice([0.0, random.random() * 30]) for _ in range(int(np.prod(shape)))]
        return np.array(values, np.float32).reshape(shape)

    parts = {"words": numbers(texts, candidates), "vectors": numbers(texts, candidates)}
    total = sum(_fused(parts).values())
    assert total.shape == (candidates,)
    assert np.isfinite(total).all()
    highest = float(total.max(initial=0.0))
    assert highest == 0.0 or highest == pytest.approx(1.0)


@pytest.fixture
def rank():
    """Names of the definitions that share a word with a query, best first."""

    def ranked(query, definitions):
        channel = LexicalChannel()
        index = Library(definitions).derived(IndexConfig(channels=(channel,)))
        scores = channel.match(index, channel.query(query)).scores()
        return [index.names[row] for row, _ in index.top(scores, 100)]

    return ranked


def test_weights_rank_name_over_description_over_parameters(define, rank):
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


def test_a_long_text_counts_its_words_less(define, rank):
    """What is one word of few says more about a tool than one of many."""
    tools = [define("one", f"Tides {'tall ships ' * 20}."), define("two", "Tides.")]
    assert rank("tides", tools) == ["two", "one"]


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
