"""From a store to the report."""

import json
from dataclasses import replace

import pytest

from agentkit.errors import ToolNotFoundError, UsageError
from agentkit.library import LibraryChange, ToolRevision
from agentkit.library.event_chain import EventDraft, chained
from agentkit.library.events import Author
from agentkit.tools.definition import Example
from agentkit_bench.language import Measures, histories_of, language_report


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
