"""The files, the gold calls, and the tasks made of them."""

from __future__ import annotations

import json
import shutil
import sys

import pytest

from agentkit.errors import DatasetError, MissingExtraError
from agentkit.evaluation import AnyCall, FinalState, GoldCall
from agentkit.tools import ToolDefinition
from agentkit_bench.bfcl_multi_turn import (
    ADDED_FUNCTIONS_REQUEST,
    UnreadableGoldError,
    load_bfcl_multi_turn,
    parse_gold,
)


def rewrite(path, change):
    """Change the rows of a file."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in change(rows)))


def reasons(folder, simulators):
    """What is left out, and why."""
    benchmark = load_bfcl_multi_turn(folder, simulators=simulators)
    return {one.where: one.reason for one in benchmark.left_out}


def test_user_turns_expect_what_the_gold_calls_do(task_of):
    """A turn with gold calls expects their state and results, and a call at all."""
    first, second, third = task_of("multi_turn_base_0").turns
    assert first.request == "File an empty paper named 'Plan' and show me what is there."
    gold = (
        GoldCall(name="file_paper", arguments={"title": "Plan"}),
        GoldCall(name="list_papers"),
    )
    assert first.expects == (AnyCall(), FinalState(calls=gold, responses=True))
    assert second.expects[1].calls[0].arguments == {"title": "Plan", "drawer": "archive"}
    assert third.expects == ()


def test_missing_functions_are_offered_later(task_of):
    """A held-out tool is offered from its turn on, which says so in upstream's words."""
    first, second = task_of("multi_turn_miss_func_0").turns
    assert "shred" not in first.offers
    assert first.expects == ()
    assert (second.offers, second.request) == (("shred",), ADDED_FUNCTIONS_REQUEST)


def test_a_broken_row_is_left_out_by_its_line(sample_folder, simulators):
    """A row that is no question costs its line and no other."""
    path = sample_folder / "BFCL_v4_multi_turn_base.json"
    path.write_text(path.read_text() + '{"id": "multi_turn_base_3"\n{"id": 3}\n')
    assert list(reasons(sample_folder, simulators)) == [f"{path.name}, line {n}" for n in (4, 5)]


@pytest.mark.parametrize(
    ("gold", "reason"),
    [
        ([["file_paper(", "list_papers()"], [], []], "is no Python"),
        ([["burn(title='Plan')"], [], []], "a tool that no simulator has"),
        ([["stamp(number='three')"], [], []], "breaks the tool's own schema"),
        ([["stamp(number=open('x'))"], [], []], "no plain value"),
        ([["list_papers()"]], "its gold answer has 1"),
    ],
)
def test_gold_that_can_not_be_followed_is_left_out(sample_folder, simulators, gold, reason):
    """A question whose gold is no call that an agent could make is named with its reason."""
    path = sample_folder / "possible_answer" / "BFCL_v4_multi_turn_base.json"
    rewrite(path, lambda rows: [{**rows[0], "ground_truth": gold}, *rows[1:]])
    left_out = reasons(sample_folder, simulators)
    assert reason in left_out["multi_turn_base_0"]
    assert len(left_out) == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"involved_classes": ["Typewriter"]}, "['Typewriter'], which are not known"),
        ({"missed_function": {"1": ["burn"]}}, "['burn'], which no simulator has"),
        ({"question": [[], []]}, "0 messages and 0 added tools"),
        ({"question": []}, "0 user turns"),
    ],
)
def test_a_question_that_can_not_be_asked_is_left_out(sample_folder, simulators, change, reason):
    """What the simulators or a conversation can not give is no task."""
    path = sample_folder / "BFCL_v4_multi_turn_miss_func.json"
    rewrite(path, lambda rows: [{**rows[0], **change}])
    assert reason in reasons(sample_folder, simulators)["multi_turn_miss_func_0"]


def test_a_folder_without_questions_is_an_error(sample_folder, simulators):
    """The message says how many rows were left out, and why the first was."""
    for path in sample_folder.glob("BFCL_v4_*.json"):
        path.write_text("{}\n")
    with pytest.raises(DatasetError, match=r"4 were left out; the first of them: BFCL_v4"):
        load_bfcl_multi_turn(sample_folder, simulators=simulators)


def test_what_a_simulator_lacks_is_told_at_once(sample_folder, simulators, monkeypatch):
    """A missing package, class or method stops the loading, not the thousandth question."""
    path = sample_folder / "func_source_code" / "counter.py"
    text = path.read_text()
    monkeypatch.setitem(sys.modules, "mpmath", None)
    path.write_text(f"import mpmath\n{text}")
    with pytest.raises(MissingExtraError, match="pip install agentkit-bench"):
        load_bfcl_multi_turn(sample_folder, simulators=simulators)
    path.write_text(text.replace("def exact", "def inexact"))
    with pytest.raises(DatasetError, match=r"Counter has no method for the tools \['exact'\]"):
        load_bfcl_multi_turn(sample_folder, simulators=simulators)
    path.write_text(text.replace("class Counter", "class Abacus"))
    with pytest.raises(DatasetError, match="has no class Counter"):
        load_bfcl_multi_turn(sample_folder, simulators=simulators)


def test_the_package_is_read_as_it_lies(sample_folder, simulators, tmp_path):
    """An installed package, or the folder it lies in, is as good as what was fetched."""
    package = tmp_path / "site" / "bfcl_eval"
    code = package / "eval_checker" / "multi_turn_eval" / "func_source_code"
    shutil.copytree(sample_folder / "func_source_code", code)
    shutil.rmtree(sample_folder / "func_source_code")
    shutil.copytree(sample_folder, package / "data")
    for folder in (package, package.parent):
        assert len(load_bfcl_multi_turn(folder, simulators=simulators).tasks) == 6


NAMES = ("first", "second", "third")
TOOL = ToolDefinition.from_schema(
    "act", "", {"type": "object", "properties": {name: {} for name in NAMES}}
)
TOOLS = {"act": TOOL}


def test_a_gold_call_is_read():
    """Plain values of any depth, with or without names."""
    arguments = {"first": -1.5, "second": [None, True, {"a": "b"}], "third": "x"}
    written = "act(-1.5, [None, True, {'a': 'b'}], third='x')"
    assert parse_gold(written, TOOLS) == GoldCall(name="act", arguments=arguments)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("act(1, first=2)", "gives 'first' twice"),
        ("act(fourth=1)", "has no such parameter"),
        ("act(1, 2, 3, 4)", "has 4 arguments"),
        ("act(first={1, 2})", "JSON has no set"),
        ("act(first=act())", "no plain value"),
        ("world.act(first=1)", "no simulator has"),
        ("act", "is not a call"),
        ("act(first=" + "-" * 100_000 + "1)", "is no Python"),
        ("act(first='\0')", "is no Python"),
    ],
)
def test_what_is_no_call_of_the_tool_is_refused(text, reason):
    """The reason says what is wrong with it."""
    with pytest.raises(UnreadableGoldError, match=reason):
        parse_gold(text, TOOLS)
