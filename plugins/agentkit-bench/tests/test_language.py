"""How the words of tools changed: measures, reports, and word by word."""

import json
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.cli.main import main
from agentkit.library import LibraryChange
from agentkit.library.memory import MemoryStore
from agentkit.library.opening import open_store
from agentkit.retrieval import FunctionEmbedder
from agentkit.tools.definition import Description
from agentkit_bench.language import histories_of, language_report
from agentkit_bench.language.measures import (
    at_most,
    convergence,
    levenshtein,
    moving_type_token_ratio,
    similarities,
    type_token_ratio,
)
from agentkit_bench.language.words import word_diff, words

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


def lengths(asked):
    """An embedder of two dimensions that keeps what it was asked."""

    def embed(texts):
        asked.append(texts)
        return [[float(len(text)), 1.0] if text else [0.0, 0.0] for text in texts]

    return FunctionEmbedder(embed, name="lengths")


def test_embedder_is_asked_once_for_each_text():
    """All pairs go in one batch, equal pairs not at all."""
    asked = []
    found = similarities([("a", "bb"), ("bb", "a"), ("c", "c")], lengths(asked))
    assert asked == [["a", "bb"]]
    assert found[0] == found[1] == pytest.approx(3 / np.sqrt(2 * 5))
    assert found[2] == 1


tokens = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=60)


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


def worded(name, summary, periods=""):
    """A definition with a summary and a text for its one parameter."""
    schema = {"type": "object", "properties": {"periods": {"type": "integer"}}}
    texts = {"periods": periods} if periods else {}
    definition = ToolDefinition.from_schema(name, summary, schema)
    return replace(definition, description=Description(summary=summary, parameters=texts))


def write(store, *definitions, removals=()):
    """Commits definitions or removes names."""
    version = store.load().version
    change = LibraryChange(
        proposal_id=f"change-{version + 1}",
        upserts=definitions,
        removals=removals,
        author="evidence proposer",
        reason="calls failed",
    )
    store.commit(change, expected_version=version)


def test_each_revision_is_held_against_the_one_before():
    """Sizes, fields, tokens and who did it, revision by revision."""
    store = MemoryStore()
    for periods in ("Number of periods.", "Number of months, such as 12.", "Months, such as 24."):
        write(store, worded("loan", "Calculate a loan.", periods))
    (tool,) = language_report(histories_of(store)).tools
    first, second, third = tool.revisions
    assert (first.change, first.fields) == (None, ())
    assert second.fields == third.fields == ("parameters.periods",)
    assert third.from_first.characters >= second.change.characters > 0
    assert second.measures.tokens > first.measures.tokens
    assert (second.author, second.reason) == ("evidence proposer", "calls failed")
    assert tool.convergence.sizes == (second.change.characters, third.change.characters)
    assert [field.field for field in tool.fields] == ["parameters.periods"]


def test_removed_tool_is_told_and_not_counted_in_the_whole():
    """Its history stays readable by name; the library's numbers are those of what is there."""
    store = MemoryStore()
    write(store, worded("loan", "Calculate a loan."), worded("cars", "List cars."))
    write(store, removals=("loan",))
    assert set(histories_of(store)) == {"cars"}  # nothing else tells of its name
    report = language_report(histories_of(store, ["loan", "cars"]))
    cars, loan = report.tools
    assert (loan.is_removed, loan.removed_at, cars.is_removed) == (True, (2,), False)
    assert report.whole.after.words == 2


@pytest.fixture
def store_url(tmp_path):
    """A store with one tool of two revisions."""
    url = f"sqlite:///{tmp_path / 'library.db'}"
    store = open_store(url)
    for version, text in enumerate(("List cars.", "List used\u202e cars.")):
        cars = replace(ToolDefinition(name="cars"), description=Description(summary=text))
        change = LibraryChange(proposal_id=text, upserts=(cars,))
        store.commit(change, expected_version=version)
    store.close()
    return url


def report(*arguments, columns="120"):
    """Run the command, on lines of some width."""
    return CliRunner(env={"COLUMNS": columns}).invoke(main, ["bench", "language", *arguments])


def test_numbers_go_to_stdout_and_methods_to_stderr(store_url):
    """The table names the tool; how numbers were found is said beside it."""
    done = report("--store", store_url)
    assert done.exit_code == 0, done.output
    assert "cars" in done.stdout
    assert "Size of edits by round" in done.stdout
    assert "Likeness:" in done.stderr


def test_json_is_the_report(store_url):
    """One document, with the format's version."""
    record = json.loads(report("--store", store_url, "--json").stdout)
    assert record["format"] == 2
    assert record["tools"][0]["tool_name"] == "cars"


def test_one_tool_is_shown_word_by_word(store_url):
    """Its revisions and each changed field; markup and hidden characters stay text."""
    done = report("--store", store_url, "--tool", "cars")
    assert done.exit_code == 0, done.output
    assert "summary, first against last" in done.stdout
    assert "List{+ used⟨U+202E⟩+} cars." in done.stdout


def test_an_unknown_tool_is_named(store_url):
    """Nothing is reported then."""
    done = report("--store", store_url, "--tool", "vans")
    assert done.exit_code == 2
    assert "no tool named 'vans'" in done.stderr


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
