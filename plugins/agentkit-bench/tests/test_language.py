"""The language report: measures, pages, the command."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations, permutations

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st

from agentkit import ToolDefinition
from agentkit.cli.main import main
from agentkit.errors import ToolNotFoundError, UsageError
from agentkit.library import LibraryChange, ToolRevision
from agentkit.library.event_chain import EventDraft, chained
from agentkit.library.events import Author
from agentkit.library.memory import MemoryStore
from agentkit.library.opening import open_store
from agentkit.retrieval import FunctionEmbedder
from agentkit.tools.definition import Description, Example
from agentkit_bench.language import (
    Measures,
    histories_of,
    language_html,
    language_markdown,
    language_report,
)
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


HOSTILE = "List <script>alert(1)</script> | `cars` \u202e [x](http://a.b) ``` end"


def report_of(*texts, name="cars"):
    """A report on one tool that had these summaries."""
    history = [
        ToolRevision(
            version=at, definition=ToolDefinition.from_schema(name, text, {}), proposal_id=str(at)
        )
        for at, text in enumerate(texts, 1)
    ]
    return language_report({name: history})


class Tags(HTMLParser):
    """Collects tags, and holds that what is opened is closed."""

    def __init__(self):
        super().__init__()
        self.seen, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in {"meta", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_and_loads_nothing():
    """One file, well formed, without scripts or links to anywhere."""
    page = language_html(report_of("List cars.", "List used cars.", "List all used cars."))
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert "script" not in tags.seen
    assert "img" not in tags.seen
    assert re.findall(r'(?:href|src)="(?!#)', page) == []
    assert "<ins>" in page


def test_texts_of_models_stay_text():
    """Markup in a description is shown, and what nobody sees is written out."""
    page = language_html(report_of("List cars.", HOSTILE, name="<b>cars</b>"))
    assert "<script" not in page
    assert "<b>" not in page
    assert "\u202e" not in page
    assert "U+202E" in page
    text = language_markdown(report_of("List cars.", HOSTILE))
    assert "\u202e" not in text
    assert "````text" in text  # a fence longer than the one inside


@pytest.mark.parametrize("texts", [(), ("List cars.",), ("", ""), ("cars", "trucks", "cars")])
def test_small_reports_are_pages_too(texts):
    """Nothing, one revision, no words, or the first words again."""
    report = report_of(*texts)
    assert "</html>" in language_html(report)
    assert language_markdown(report).startswith("# How the words")


def test_difference_is_shown_in_words():
    """Each changed field says what went and what came."""
    report = report_of("Number of periods.", "Number of months.")
    assert "<del>periods</del><ins>months</ins>" in language_html(report)
    assert "Number of [-periods-]{+months+}." in language_markdown(report)


PARAMETERS = {"type": "object", "properties": {"periods": {"type": "integer"}}}


@pytest.fixture
def worded():
    """A definition with a summary and a text for its one parameter."""

    def make(name, summary, periods=""):
        definition = ToolDefinition.from_schema(name, summary, PARAMETERS)
        texts = {"periods": periods} if periods else {}
        return replace(definition, description=Description(summary=summary, parameters=texts))

    return make


@pytest.fixture
def store():
    """An empty store."""
    return MemoryStore()


@pytest.fixture
def write(store):
    """Commits definitions or removes names, and gives the new version."""

    def commit(*definitions, removals=()):
        version = store.load().version
        change = LibraryChange(
            proposal_id=f"change-{version + 1}",
            upserts=definitions,
            removals=removals,
            author="evidence proposer",
            reason="calls failed",
        )
        return store.commit(change, expected_version=version)

    return commit


def test_each_revision_is_held_against_the_one_before(store, write, worded):
    """Sizes, fields, tokens and who did it, revision by revision."""
    write(worded("loan", "Calculate a loan.", "Number of periods."))
    write(worded("loan", "Calculate a loan.", "Number of months, such as 12."))
    write(worded("loan", "Calculate a loan.", "Number of months, such as 24."))
    (tool,) = language_report(histories_of(store)).tools
    first, second, third = tool.revisions
    assert first.change is None
    assert first.fields == ()
    assert second.fields == third.fields == ("parameters.periods",)
    assert second.change.characters > third.change.characters > 0
    assert third.from_first.characters >= second.change.characters
    assert second.measures.tokens > first.measures.tokens
    assert (second.author, second.reason) == ("evidence proposer", "calls failed")
    assert tool.convergence.sizes == (second.change.characters, third.change.characters)
    assert [field.field for field in tool.fields] == ["parameters.periods"]


def test_one_revision_has_numbers_and_no_edits(store, write, worded):
    """A tool that nobody changed is in the report and in no round."""
    write(worded("loan", "Calculate a loan."))
    report = language_report(histories_of(store))
    assert report.changed == report.rounds == ()
    assert report.whole.mean_change is report.whole.mean_similarity is None
    assert report.whole.edit_share == 0
    assert report.whole.before == report.whole.after


def test_change_without_words_is_no_round(store, write, worded):
    """A new example is a revision, and no edit of size zero that would look like convergence."""
    loan = worded("loan", "Calculate a loan.")
    write(loan)
    write(replace(loan, examples=(Example(arguments={"periods": 12}, result=1),)))
    (tool,) = language_report(histories_of(store)).tools
    assert len(tool.revisions) == 2
    assert tool.rounds == 0


def test_coming_back_to_an_earlier_text_is_seen(store, write, worded):
    """A roll-back is a round, and a return."""
    for text in ("Calculate a loan.", "Work out a loan.", "Calculate a loan."):
        write(worded("loan", text))
    (tool,) = language_report(histories_of(store)).tools
    assert tool.convergence.returns == 1
    assert tool.fields == ()
    assert tool.last.from_first.characters == 0


def test_removed_tool_is_told_and_not_counted_in_the_whole(store, write, worded):
    """Its history stays readable by name; the library's numbers are those of what is there."""
    write(worded("loan", "Calculate a loan."), worded("cars", "List cars."))
    write(removals=("loan",))
    assert set(histories_of(store)) == {"cars"}  # nothing else tells of its name
    report = language_report(histories_of(store, ["loan", "cars"]))
    cars, loan = report.tools
    assert loan.is_removed
    assert loan.removed_at == (2,)
    assert not cars.is_removed
    assert report.whole.after.words == 2
    assert [one.tools for one in report.tokens] == [2, 1]


def test_events_name_removed_tools(store, worded):
    """Where the chain of events tells of a tool, it is found without being asked for."""
    author = Author(kind="person", name="Ada")
    loan = worded("loan", "Calculate a loan.")
    change = LibraryChange(proposal_id="a", upserts=(loan,))
    store.commit(change, expected_version=0)
    draft = EventDraft(kind="written", author=author, tool_name="loan")
    events = chained(None, [draft], at="2026-01-01T00:00:00+00:00")
    gone = LibraryChange(proposal_id="b", removals=("loan",), events=events)
    store.commit(gone, expected_version=1)
    assert set(histories_of(store)) == {"loan"}


def test_tool_that_came_back_is_compared_with_its_last_words(store, write, worded):
    """A removal in between is no edit."""
    write(worded("loan", "Calculate a loan."))
    write(removals=("loan",))
    write(worded("loan", "Calculate a loan."))
    (tool,) = language_report(histories_of(store)).tools
    assert tool.rounds == 0
    assert tool.removed_at == (2,)
    assert not tool.is_removed


def test_unknown_tool_is_named(store, write, worded):
    """A name that the store never held is an error that tells near ones."""
    write(worded("loan", "Calculate a loan."))
    with pytest.raises(ToolNotFoundError, match="loan"):
        histories_of(store, ["laon"])


def test_nothing_gives_an_empty_report(store):
    """An empty store, and histories without any definition, are no error."""
    removal = ToolRevision(version=1, definition=None, proposal_id="r")
    for histories in (histories_of(store), {"gone": [removal], "never": []}):
        report = language_report(histories)
        assert report.tools == ()
        assert report.whole.after.words == 0


def test_empty_words_are_counted_as_none(store, write, worded):
    """A tool that says nothing has no ratio, no depth, and is as far as can be from one that does."""
    write(worded("loan", ""))
    write(worded("loan", "Calculate a loan."))
    (tool,) = language_report(histories_of(store)).tools
    assert tool.first.measures.type_token_ratio is None
    assert tool.first.measures.depth == 0
    assert tool.last.change.characters == 1
    assert tool.last.change.similarity is None


def test_all_revisions_of_a_tool_share_one_window(store, write, worded):
    """The moving ratio of a longer revision can be compared with that of the first."""
    text = "List all the used cars in stock that match make model and year"
    write(worded("cars", text))
    write(worded("cars", f"{text}. {text}."))
    (tool,) = language_report(histories_of(store)).tools
    assert tool.window == 13
    first, last = (one.measures for one in tool.revisions)
    assert last.type_token_ratio == first.type_token_ratio / 2
    assert last.moving_ratio == pytest.approx(first.moving_ratio)


def test_methods_are_named(store, write, worded):
    """A proxy says that it is one; what was given is told by its name."""
    write(worded("cars", "List cars."))
    report = language_report(histories_of(store))
    assert report.similarity_method.startswith("lexical proxy")
    assert report.depth_method.startswith("proxy")
    assert report.token_method.startswith("estimate")
    counted = language_report(histories_of(store), Measures(count_tokens=len))
    assert counted.token_method == "counted by len"
    assert counted.whole.after.tokens > 100


def test_counter_that_counts_nothing_sensible_is_refused(store, write, worded):
    """A negative number of tokens is an error of the caller's counter."""
    write(worded("cars", "List cars."))
    with pytest.raises(UsageError, match="count_tokens"):
        language_report(histories_of(store), Measures(count_tokens=lambda _: -1))


def test_report_is_json(store, write, worded):
    """All of it can be written, in any script."""
    write(worded("查询天气", "查询一个城市的天气。"))
    write(worded("查询天气", "查询一个城市未来的天气。"))
    record = language_report(histories_of(store)).to_json()
    assert record["format"] == 1
    assert json.loads(json.dumps(record, allow_nan=False)) == json.loads(json.dumps(record))
    assert record["tools"][0]["convergence"]["sizes"] == (pytest.approx(2 / 12),)


@pytest.fixture
def store_url(tmp_path):
    """A store with one tool of two revisions."""
    url = f"sqlite:///{tmp_path / 'library.db'}"
    store = open_store(url)
    for version, text in enumerate(("List cars.", "List used cars.")):
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


@pytest.mark.parametrize("columns", ["20", "40", "80", "120"])
def test_no_number_is_broken_on_a_narrow_screen(store_url, columns):
    """The row of a tool stands on one line, however narrow the screen; titles break at blanks."""
    shown = report("--store", store_url, columns=columns).stdout
    row = next(line for line in shown.splitlines() if line.startswith("cars"))
    assert row.split()[:5] == ["cars", "1", "0.33", "0.82", "2"]


def test_one_tool_is_shown_in_words(store_url):
    """With a name, the revisions and the difference in words follow."""
    done = report("--store", store_url, "--tool", "cars")
    assert "List{+ used+} cars." in done.stdout


def test_json_is_the_report(store_url):
    """One document, with the format's version."""
    record = json.loads(report("--store", store_url, "--json").stdout)
    assert record["format"] == 1
    assert record["tools"][0]["tool_name"] == "cars"


def test_pages_are_written(store_url, tmp_path):
    """HTML and Markdown, by the names of the files."""
    page, text = tmp_path / "words.html", tmp_path / "words.md"
    done = report("--store", store_url, "--report", str(page), "--report", str(text))
    assert done.exit_code == 0, done.output
    assert "<ins>" in page.read_text(encoding="utf-8")
    assert "{+ used+}" in text.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--report", "words.pdf"], 2, "neither"),
        (["--report", "no/such/folder/words.md"], 2, "no folder"),
        (["--tool", "vans"], 2, "no tool named 'vans'"),
    ],
)
def test_what_can_not_work_is_said(store_url, arguments, status, said):
    """A wrong file name is misuse, an unknown tool is a failure."""
    done = report("--store", store_url, *arguments)
    assert done.exit_code == status
    assert said in done.stderr


def test_missing_store_is_said(tmp_path):
    """Nothing is made where there is nothing to read."""
    done = report("--store", f"sqlite:///{tmp_path / 'none.db'}")
    assert done.exit_code == 2
    assert "no store" in done.stderr
