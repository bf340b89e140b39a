"""Difficulty of a task for a policy (ToolACE-R, Eq. 5): gold answers, and which samples are trained on."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.episodes import Episode, Turn
from agentkit.evaluation import (
    AllowedCalls,
    AnyCall,
    Benchmark,
    GoldCall,
    NoCall,
    Task,
    UserTurn,
)
from agentkit.fetch import cache_directory
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.metrics import AllowedCall, GoldCalls
from agentkit_bench import JAVA, DataFlow, load_bfcl
from agentkit_training import PolicyModel
from agentkit_training.rewards import gold_calls
from agentkit_training.rollout.samples import Rollout
from agentkit_training.toolace.difficulty import (
    GoldAnswer,
    TaskDifficulty,
    counted,
    difficulties,
    estimate_difficulty,
    gold_answers,
    nearest_calls,
)
from agentkit_training.toolace.overlap import difficulty
from agentkit_training.toolace.records import SelectionSettings, select

TRIP = ToolDefinition.from_schema(
    "trip",
    "A trip.",
    {"properties": {"to": {"type": "string"}, "days": {"type": "integer"}}, "required": ["to"]},
)
STAY = ToolDefinition.from_schema("stay", "Stay.", {"properties": {"nights": {"type": "integer"}}})
ARGUMENTS = st.dictionaries(
    st.sampled_from(["to", "days", "nights"]), st.integers(0, 3) | st.sampled_from(["Bonn", "Rom"])
)
CALLS = st.lists(st.tuples(st.sampled_from(["trip", "stay", "fly"]), ARGUMENTS), max_size=4)


def made(calls):
    return tuple(
        ToolCall(call_id=str(n), name=name, arguments=arguments)
        for n, (name, arguments) in enumerate(calls)
    )


def attempt(calls, *, number=0, names=None, fault="", task="t"):
    """A rollout whose first turn makes ``calls``."""
    turn = Turn(message=AssistantMessage(text="", tool_calls=made(calls)))
    episode = Episode(episode_id="e", request="", turns=(turn,), library_names=names or {})
    return Rollout(
        task_id=task,
        attempt=number,
        episodes=(episode,),
        sequences=(),
        library_version=0,
        fault=fault,
    )


def gold(*calls):
    return {
        "t": GoldAnswer(task_id="t", calls=tuple(GoldCall(name=n, arguments=a) for n, a in calls))
    }


def one(rollouts, answers):
    (found,) = difficulties(rollouts, answers, [TRIP, STAY]).tasks
    return found


@settings(max_examples=60, deadline=None)
@given(attempts=st.lists(CALLS, min_size=1, max_size=5), reference=CALLS)
def test_difficulty_lies_between_0_and_1_and_is_that_of_the_metric(attempts, reference):
    """D is in [0, 1] and equals one minus the mean overlap of the attempts (Eq. 5)."""
    found = one([attempt(calls) for calls in attempts], gold(*reference))
    wanted = difficulty(
        [made(calls) for calls in attempts],
        [GoldCall(name=n, arguments=a) for n, a in reference],
        [TRIP, STAY],
    )
    assert 0 <= found.difficulty <= 1
    assert found.difficulty == pytest.approx(wanted)
    assert found.attempts == tuple(made(calls) for calls in attempts)


def test_any_allowed_value_is_right():
    """Attempts that choose other allowed values, or leave out what is free, are not difficult."""
    allowed = AllowedCall(name="trip", allowed={"to": ["Bonn", "Cologne"], "days": [3, ""]})
    task = Task(
        task_id="t",
        category="",
        request="Where to?",
        offered=("trip",),
        expects=(AllowedCalls(calls=(allowed, allowed)),),
    )
    answers = gold_answers(Benchmark(name="", tasks=(task,), definitions=(TRIP, STAY))).answers
    both = [("trip", {"to": "cologne", "days": 3}), ("trip", {"to": "Bonn"})]
    assert one([attempt(both), attempt(both[::-1])], answers).difficulty == 0
    wrong = [("trip", {"to": "cologne", "days": 4}), ("trip", {"to": "Bonn"})]
    assert one([attempt(wrong)], answers).shortfalls[0] == pytest.approx((0.5 + 0) / 2)


def test_faulty_attempts_do_not_count():
    """An attempt that could not be made is none; a task without any is left out, with the reason."""
    right, broken = [("trip", {"to": "Bonn"})], attempt([], fault="no room")
    answers = gold(("trip", {"to": "Bonn"}))
    assert one([attempt(right), broken], answers).difficulty == 0
    found = difficulties([broken], answers, [TRIP, STAY])
    assert found.tasks == ()
    assert [str(out) for out in found.left_out] == ["t: could not be asked: no room"]


async def test_a_policy_is_asked_k_times_and_once_each(policy, shop):
    """Each task with a gold answer is tried k times, with one turn each, from a seed."""
    model = PolicyModel(policy, max_tokens=6)
    answers = dict(gold_answers(shop).answers)
    del answers["price-bread"]
    found = await estimate_difficulty(model, shop, answers, attempts=3)
    assert [task.task_id for task in found.tasks] == ["price-apple", "price-cheese"]
    assert {len(task.attempts) for task in found.tasks} == {3}
    again = await estimate_difficulty(PolicyModel(policy, max_tokens=6), shop, answers, attempts=3)
    assert again == found


DIFFICULTIES = st.lists(st.floats(0, 1), max_size=30)


def tasks(values):
    return [
        TaskDifficulty(task_id=f"t{n}", difficulty=value, attempts=(), shortfalls=())
        for n, value in enumerate(values)
    ]


@given(values=DIFFICULTIES)
def test_what_lies_between_alpha_and_beta_is_taken(values):
    """Exactly the samples with ``0 < D < 0.9`` are taken, and each other one has its reason."""
    found = select(tasks(values))
    assert found.taken == tuple(f"t{n}" for n, d in enumerate(values) if 0 < d < 0.9)
    assert dict(found.excluded) == {
        f"t{n}": "too_easy" if d == 0 else "too_difficult"
        for n, d in enumerate(values)
        if not 0 < d < 0.9
    }
    assert len(found.taken) + sum(found.counts.values()) == len(values)


@given(values=DIFFICULTIES, seed=st.integers(0, 5))
def test_random_takes_as_many_as_selected(values, seed):
    """The control draws a sample of the same size from all, the same one for the same seed."""
    settings = SelectionSettings(strategy="random", seed=seed)
    found = select(tasks(values), settings)
    assert len(found.taken) == len(select(tasks(values)).taken)
    assert found == select(tasks(values), settings)
    assert set(found.taken) | set(found.excluded) == {f"t{n}" for n in range(len(values))}
    assert list(found.taken) == sorted(found.taken, key=lambda name: int(name[1:]))


def test_other_thresholds_keep_the_easy_or_the_difficult():
    """The paper's Table 4: ``alpha = -1`` keeps D = 0, ``beta = 2`` keeps D = 1."""
    values = tasks([0.0, 0.5, 1.0])
    assert select(values, SelectionSettings(low=-1)).taken == ("t0", "t1")
    assert select(values, SelectionSettings(low=0.1, high=2)).taken == ("t1", "t2")


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
    for made, mended in (({}, {}), ({"seats": 9}, {"seats": 4}), ({"seats": 4}, {"seats": 4})):
        calls = [ToolCall(call_id="1", name="book", arguments={"day": "Monday", **made})]
        (rewarded,) = gold_calls((expects,), calls, {"book": BOOK})
        assert dict(rewarded.arguments) == {"day": "Monday", **mended}
        (taught,) = nearest_calls(answer, calls, {"book": BOOK})
        right = made if made == mended else {}
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
