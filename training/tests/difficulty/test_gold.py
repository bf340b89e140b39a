"""Gold answers: one of the right answers, and always a right one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentkit import ToolDefinition
from agentkit.evaluation import AllowedCalls, AnyCall, Benchmark, NoCall, Task, UserTurn
from agentkit.fetch import cache_directory
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall, GoldCalls
from agentkit_bench import JAVA, DataFlow, load_bfcl
from agentkit_training.rewards import gold_calls
from agentkit_training.toolace.difficulty import counted, gold_answers, nearest_calls

BOOK = ToolDefinition.from_schema(
    "book",
    "Book a table.",
    {
        "properties": {
            "day": {"type": "string"},
            "seats": {"type": "integer"},
            "place": {"type": "object"},
            "smoking": {"type": "boolean"},
        },
        "required": ["day"],
    },
)


def benchmark(*tasks):
    return Benchmark(name="tables", tasks=tasks, definitions=(BOOK,))


def task(expects, request="A table for Monday, please.", **more):
    name = more.pop("task_id", "t")
    return Task(
        task_id=name, category="", request=request, offered=("book",), expects=(expects,), **more
    )


def taught(allowed, request="A table for Monday, please."):
    expects = AllowedCalls(calls=(AllowedCall(name="book", allowed=allowed),))
    (call,) = gold_answers(benchmark(task(expects, request))).answers["t"].calls
    return dict(call.arguments)


def test_the_first_allowed_value_is_taught():
    """Of several right values the first is taken; the empty text means that none is needed."""
    assert taught({"day": ["Monday", "Mon"]}) == {"day": "Monday"}
    assert taught({"day": ["", "Mon"]}) == {"day": "Mon"}


def test_what_may_be_left_out_is_given_when_the_question_states_it():
    """An optional argument is taught where the question has its value, and nowhere else."""
    allowed = {"day": ["Monday"], "seats": ["", 4], "smoking": [False, ""]}
    assert taught(allowed) == {"day": "Monday"}
    assert taught(allowed, "Monday, 4 people") == {"day": "Monday", "seats": 4}
    assert taught(allowed, "Monday, 40 people") == {"day": "Monday"}


def test_tasks_without_one_answer_are_counted():
    """Data flow, free choice, several turns, silence and broken gold are left out, each counted."""
    right = AllowedCalls(calls=(AllowedCall(name="book", allowed={"day": ["Monday"]}),))
    broken = AllowedCalls(calls=(AllowedCall(name="book", allowed={"day": []}),))
    java = AllowedCalls(calls=right.calls, language=JAVA)
    found = gold_answers(
        benchmark(
            task(DataFlow(calls=()), task_id="flow"),
            task(AnyCall(), task_id="any"),
            task(NoCall(), task_id="no"),
            task(right, task_id="long", follow_ups=(UserTurn(request="And now?"),)),
            task(broken, task_id="broken"),
            task(java, task_id="java"),
            task(right),
        )
    )
    assert list(found.answers) == ["t"]
    assert counted(found.left_out) == {
        "no calls to teach": 2,
        "no call is right, and there are no words to teach": 1,
        "the user speaks several times": 1,
        "no call can match the gold calls": 1,
        "gold values are source text of another language": 1,
    }


def test_words_are_taught_where_no_call_is_right():
    """With words for it, a task that expects no call has an answer without calls."""
    found = gold_answers(benchmark(task(NoCall())), no_call="None of these fits.")
    assert found.answers["t"].calls == ()
    assert found.answers["t"].text == "None of these fits."


def test_the_nearest_right_answer_keeps_what_is_right():
    """Values of an attempt that are allowed are kept, others become the gold answer's."""
    allowed = {"day": ["Monday", "Mon"], "seats": [4, 5]}
    expects = AllowedCalls(calls=(AllowedCall(name="book", allowed=allowed),))
    gold = gold_answers(benchmark(task(expects))).answers["t"]
    call = ToolCall(call_id="1", name="book", arguments={"day": "mon", "seats": 9})
    (nearest,) = nearest_calls(gold, [call], {"book": BOOK})
    assert dict(nearest.arguments) == {"day": "mon", "seats": 4}


def test_rewards_and_difficulty_have_the_same_nearest_gold():
    """Of two gold calls each is compared with the call that is most like it, in any order."""
    days = (["Monday", "Mon"], ["Tuesday", "Tue"])
    allowed = tuple(AllowedCall(name="book", allowed={"day": one, "seats": [2, 3]}) for one in days)
    expects = AllowedCalls(calls=allowed)
    gold = gold_answers(benchmark(task(expects))).answers["t"]
    calls = [
        ToolCall(call_id=str(at), name="book", arguments={"day": day, "seats": seats})
        for at, (day, seats) in enumerate([("Tue", 9), ("Mon", 3)])
    ]
    wanted = [{"day": "Mon", "seats": 3}, {"day": "Tue", "seats": 2}]
    for found in (
        nearest_calls(gold, calls, {"book": BOOK}),
        gold_calls((expects,), calls, {"book": BOOK}),
    ):
        assert [dict(one.arguments) for one in found] == wanted


def test_an_optional_argument_with_a_wrong_value_is_mended_or_left_out():
    """ToolDNA counts its name, so that it is mended; in ToolACE-R it is nearer to leave it out."""
    gold = AllowedCall(name="book", allowed={"day": ["Monday"], "seats": [4, ""]})
    expects = AllowedCalls(calls=(gold,))
    answer = gold_answers(benchmark(task(expects))).answers["t"]
    for given, mended in (({}, {}), ({"seats": 9}, {"seats": 4}), ({"seats": 4}, {"seats": 4})):
        calls = [ToolCall(call_id="1", name="book", arguments={"day": "Monday", **given})]
        (rewarded,) = gold_calls((expects,), calls, {"book": BOOK})
        assert dict(rewarded.arguments) == {"day": "Monday", **mended}
        (taught,) = nearest_calls(answer, calls, {"book": BOOK})
        right = given if given == mended else {}
        assert dict(taught.arguments) == {"day": "Monday", **right}


@pytest.mark.corpora
def test_every_gold_answer_of_bfcl_is_right():
    """Each answer that is taught passes the benchmark's own verifier."""
    folder = Path(os.environ.get("AGENTKIT_BFCL", cache_directory() / "bfcl-2026.3.23"))
    if not folder.is_dir():
        pytest.skip("the questions are not here; `agentkit.evaluation.fetch_bfcl()` fetches them")
    source = load_bfcl(folder)
    found = gold_answers(source)
    assert len(found.answers) > 2_000
    for answer in found.answers.values():
        offered = [one for one in source.definitions if one.name in {c.name for c in answer.calls}]
        calls = [
            ToolCall(call_id="1", name=one.name, arguments=one.arguments) for one in answer.calls
        ]
        assert GoldCalls(answer.allowed, offered).match(calls).passed
