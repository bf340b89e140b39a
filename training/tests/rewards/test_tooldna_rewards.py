"""ToolDNA's rewards of rollouts: from calls, gold and format."""

import asyncio
import dataclasses

import pytest
from hypothesis import given, strategies as st

from agentkit import Episode, ToolDefinition
from agentkit.episodes import Attribution, Diagnosis, Turn, TurnDiagnosis, Verdict
from agentkit.evaluation import (
    AllowedCalls,
    Benchmark,
    ExactCalls,
    GoldCall,
    NoCall,
    NumberAnswer,
    Task,
)
from agentkit.evaluation.task import UserTurn
from agentkit.evaluation.verifiers import Scene, verifier_for
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.metrics import AllowedCall
from agentkit_training import Rollout
from agentkit_training.rewards import (
    is_readable,
    reward_parts,
    rewarded,
    tooldna_metrics,
    tooldna_reward,
)

BOOK = ToolDefinition.from_schema(
    "book",
    "Book a table.",
    {
        "type": "object",
        "properties": {
            "day": {"type": "string", "enum": ["Monday", "Tuesday"]},
            "seats": {"type": "integer"},
            "name": {"type": "string"},
        },
        "required": ["day"],
    },
)
CALLS = st.lists(
    st.fixed_dictionaries(
        {"day": st.sampled_from(["Monday", "Tuesday"])},
        optional={"seats": st.integers(1, 3), "name": st.sampled_from(["Ann", "Ann Lee", "Bo"])},
    ),
    max_size=3,
)


def calls_of(many):
    return tuple(
        ToolCall(call_id=str(at), name="book", arguments=one) for at, one in enumerate(many)
    )


def episode_of(calls=(), *, text="", is_cut=False, is_unread=False, verdict=None):
    message = AssistantMessage(text=text, tool_calls=tuple(calls))
    results = tuple(ToolResult(call_id=c.call_id, name=c.name, status="deferred") for c in calls)
    attributions = (Attribution(label="invalid_tool_call"),) if is_unread else ()
    diagnosis = Diagnosis(
        label="pass", turns=(TurnDiagnosis(turn=0, label="pass", attributions=attributions),)
    )
    turn = Turn(message=message, results=results, finish_reason="length" if is_cut else None)
    return Episode(
        episode_id="e",
        request="?",
        turns=(turn,),
        stop_reason="deferred" if calls else "finished",
        verdict=verdict,
        diagnosis=diagnosis,
    )


def rollout_of(*episodes, task_id="t"):
    return Rollout(task_id=task_id, attempt=0, episodes=episodes, sequences=(), library_version=0)


def benchmark_of(*expects, follow_ups=()):
    task = Task(
        task_id="t",
        category="",
        request="?",
        offered=("book",),
        expects=expects,
        follow_ups=follow_ups,
    )
    return Benchmark(name="b", tasks=(task,), definitions=(BOOK,))


def exact(many):
    return ExactCalls(calls=tuple(GoldCall(name="book", arguments=one) for one in many))


@pytest.mark.parametrize("design", ["R1", "R2", "R3"])
@given(made=CALLS, gold=CALLS, is_cut=st.booleans(), is_unread=st.booleans())
def test_a_reward_is_the_papers_formula(design, made, gold, is_cut, is_unread):
    """The parts add up to R1, R2 and R3 over the metrics of the calls and the gold."""
    found = tooldna_reward(benchmark_of(exact(gold)), design)(
        rollout_of(episode_of(calls_of(made), is_cut=is_cut, is_unread=is_unread))
    )
    metrics = tooldna_metrics(
        calls_of(made),
        exact(gold).calls,
        [BOOK],
        format_ok=not is_cut and not is_unread,
        parsed_ok=not is_unread,
    )
    assert sum(found.parts.values()) == pytest.approx(sum(reward_parts(design, metrics).values()))
    assert found.noted == {f"tooldna_{name}": v for name, v in metrics.to_json().items()}


@pytest.mark.parametrize("design", ["R1", "R2", "R3"])
@given(text=st.text(max_size=20))
def test_structure_alone_earns_nothing(design, text):
    """A well-formed answer whose calls are useless has no positive reward."""
    found = tooldna_reward(benchmark_of(exact([{"day": "Monday"}])), design)(
        rollout_of(episode_of(text=text))
    )
    assert sum(found.parts.values()) <= 0


@pytest.mark.parametrize(("design", "worth"), [("R1", -1), ("R2", -2), ("R3", -1)])
def test_words_in_the_place_of_a_call_are_malformed_in_the_paper(design, worth):
    """Format asks for all tags: where a call is right, plain words cost as much as nonsense."""
    said = rollout_of(episode_of(text="It is open on Monday."))
    benchmark = benchmark_of(exact([{"day": "Monday"}]))
    for strict_format, wanted in ((True, worth), (False, 0)):
        found = tooldna_reward(benchmark, design, strict_format=strict_format)(said)
        assert sum(found.parts.values()) == wanted
    abstaining = tooldna_reward(benchmark_of(NoCall()), design, strict_format=True)(said)
    assert sum(abstaining.parts.values()) == 1


@given(
    days=st.lists(st.sampled_from(["Monday", "Tuesday"]), min_size=1, max_size=2, unique=True),
    seats=st.lists(st.integers(1, 3) | st.just(""), min_size=1, max_size=3),
    made=CALLS,
)
def test_allowed_values_agree_with_the_verdict(days, seats, made):
    """Of BFCL's allowed values each right choice is a perfect match, and no wrong one is."""
    gold = AllowedCall(name="book", allowed={"day": days, "seats": seats, "name": ["Ann", ""]})
    expected = AllowedCalls(calls=(gold,))
    episode = episode_of(calls_of(made))
    verdict = asyncio.run(verifier_for(expected, Scene(definitions=(BOOK,))).verify(episode))
    found = tooldna_reward(benchmark_of(expected), "R1")(rollout_of(episode))
    if verdict.fault is None:
        assert found.noted["tooldna_perfect_match"] == float(verdict.passed)


def test_abstaining_is_right_where_no_call_is_wanted():
    """Without gold calls no call earns 1 and any call earns nothing."""
    reward = tooldna_reward(benchmark_of(NoCall()))
    assert sum(reward(rollout_of(episode_of(text="No."))).parts.values()) == 1
    assert sum(reward(rollout_of(episode_of(calls_of([{"day": "Monday"}])))).parts.values()) == 0


@pytest.mark.parametrize("design", ["R1", "R2", "R3"])
def test_tasks_without_gold_calls_go_by_their_verdict(design):
    """A task that is judged by its answer earns 1 when it passed and 0 when not, format kept."""
    reward = tooldna_reward(benchmark_of(NumberAnswer(value="7")), design)
    for passed in (True, False):
        episode = episode_of(text="7", verdict=Verdict(passed=passed))
        assert sum(reward(rollout_of(episode)).parts.values()) == float(passed)


def test_turns_that_were_not_reached_earn_nothing():
    """The reward is the mean over the judged turns, those that never came included."""
    turn = UserTurn(request="And Tuesday?", expects=(exact([{"day": "Tuesday"}]),))
    benchmark = benchmark_of(exact([{"day": "Monday"}]), follow_ups=(turn,))
    found = tooldna_reward(benchmark)(rollout_of(episode_of(calls_of([{"day": "Monday"}]))))
    assert sum(found.parts.values()) == 0.5


def test_tools_offered_under_another_name_are_judged_by_their_own():
    """Calls are compared in the names of the catalogue, whatever the prompt called the tool."""
    call = ToolCall(call_id="0", name="reserve", arguments={"day": "Monday"})
    episode = dataclasses.replace(episode_of([call]), library_names={"reserve": "book"})
    found = tooldna_reward(benchmark_of(exact([{"day": "Monday"}])))(rollout_of(episode))
    assert sum(found.parts.values()) == 1


def test_a_rollout_of_another_benchmark_is_a_fault():
    """A task that the reward does not know is told, and its rollout is not trained on."""
    reward = tooldna_reward(benchmark_of(NoCall()))
    (found,) = rewarded([rollout_of(episode_of(), task_id="other")], reward)
    assert "task 'other' is not among the 1" in found.fault


def test_a_readable_answer_is_whole_and_read():
    """An answer that was cut off, or holds a call that stayed text, is not readable."""
    assert is_readable(episode_of(text="Hello."))
    assert not is_readable(episode_of(is_cut=True))
    assert not is_readable(episode_of(is_unread=True))
