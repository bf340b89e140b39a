"""What fine-tuning learns from: single answers and trajectories whose gold calls work."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit import tool
from agentkit.errors import ModelRetry, ToolFailed, UsageError
from agentkit.evaluation import (
    Benchmark,
    EvaluationSettings,
    ExactCalls,
    FinalState,
    GoldCall,
    NumberAnswer,
    Task,
    TextAnswer,
    with_tools as environment_of,
)
from agentkit.models.prompt_format import parse_calls
from agentkit_training import tiny_policy
from agentkit_training.fine_tuning.examples import Prompting
from agentkit_training.fine_tuning.solutions import DONE
from agentkit_training.fine_tuning.teaching import left_out_notes, taught_examples
from agentkit_training.tasks.bfcl import bfcl_multi_turn_tasks
from agentkit_training.tasks.loading import TaskSpec, load_tasks_for_training
from agentkit_training.tasks.splits import Shares

SAMPLES = Path(__file__).parents[3] / "plugins" / "agentkit-bench" / "tests"
SIMULATORS = {"FilingCabinet": "cabinet", "Counter": "counter"}
MULTI_TURN = TaskSpec(source="bfcl-multi-turn")
ALL = Shares(train=1, validation=0, test=0)


@pytest.fixture
def roomy():
    """A random policy whose window takes whole conversations."""
    return tiny_policy(context_tokens=8192)


@pytest.fixture(scope="module")
def conversations():
    """Conversations of BFCL's form, in which the user speaks several times."""
    folder = SAMPLES / "bfcl_multi_turn" / "sample"
    return bfcl_multi_turn_tasks(folder, simulators=SIMULATORS, shares=ALL).train


def taught(policy, benchmark, spec, **more):
    return asyncio.run(taught_examples(policy, benchmark, spec, **more))


def spoken(policy, rows):
    """What bears loss in rows, answer by answer."""
    said = []
    for row in rows:
        tokens = [t for t, own in zip(row.completion, row.taught, strict=True) if own]
        end = policy.tokenizer.decode([policy.tokenizer.eos_token_id])
        said += policy.tokenizer.decode(tokens).split(end)[:-1]
    return said


def read(policy, rows):
    """What stands between the answers of rows."""
    return "".join(
        policy.tokenizer.decode(
            [t for t, own in zip(r.completion, r.taught, strict=True) if not own]
        )
        for r in rows
    )


def test_a_conversation_is_taught_from_its_first_turn_to_its_last(roomy, conversations):
    """The calls of every turn bear loss; later questions and results of tools do not."""
    (task,) = (one for one in conversations.tasks if one.task_id == "multi_turn_base_0")
    part = replace(conversations, tasks=(task,))
    found = taught(roomy, part, MULTI_TURN, no_call="You are welcome.")
    assert not found.left_out
    said = spoken(roomy, found.rows)
    wanted = [
        (one.name, dict(one.arguments))
        for turn in task.turns
        for expected in turn.expects
        for one in getattr(expected, "calls", ())
    ]
    made = [(one.name, one.arguments) for text in said for one in parse_calls(text).calls]
    assert made == wanted
    assert len(wanted) >= 2
    words = [json.loads(text)["answer"] for text in said if not parse_calls(text).calls]
    assert words == [DONE, DONE, "You are welcome."]
    between = read(roomy, found.rows)
    assert "Now put it into the archive." in between
    assert "Result of" in between
    assert "Now put it" not in "".join(said)


def test_a_turn_without_gold_needs_words(roomy, conversations):
    """Without words for it, a conversation in which no call is right is left out, and told."""
    (task,) = (one for one in conversations.tasks if one.task_id == "multi_turn_base_0")
    part = replace(conversations, tasks=(task,))
    with pytest.raises(UsageError, match=r"no call is right, and there are no words to teach"):
        taught(roomy, part, MULTI_TURN)


def test_a_first_turn_that_must_call_is_taught_as_a_text_of_its_own(roomy, conversations):
    """Where the prompt changes after the first call, each of the texts is an example."""
    (task,) = (one for one in conversations.tasks if one.task_id == "multi_turn_long_context_0")
    part = replace(conversations, tasks=(task,))
    whole = taught(roomy, part, MULTI_TURN)
    forced = taught(roomy, part, MULTI_TURN, settings=EvaluationSettings(tool_choice="required"))
    assert (len(whole.rows), len(forced.rows)) == (1, 2)
    assert spoken(roomy, forced.rows) == spoken(roomy, whole.rows)


def gsm8k(folder):
    """Word problems of GSM8K's form, one of them without a calculation."""
    lines = [
        {
            "question": f"Ann has {n} bags with 3 apples and 2 more. How many?",
            "answer": f"<<{n}*3={n * 3}>>, <<{n * 3}+2={n * 3 + 2}>>.\n#### {n * 3 + 2}",
        }
        for n in range(2, 8)
    ]
    lines.append({"question": "How many are none?", "answer": "None.\n#### 0"})
    for name, rows in (("train", lines), ("test", [{"question": "One?", "answer": "#### 1"}])):
        text = "".join(f"{json.dumps(one)}\n" for one in rows)
        (folder / f"{name}.jsonl").write_text(text)
    return TaskSpec(source="gsm8k", data=str(folder), shares=Shares(train=1, validation=0))


def test_solutions_of_word_problems_are_taught_with_calculations(roomy, tmp_path):
    """A folder of GSM8K is trained on train.jsonl; answers end as the instructions ask for it."""
    spec = gsm8k(tmp_path)
    parts = load_tasks_for_training(spec)
    assert parts.sizes == {"train": 7, "validation": 0, "test": 1}
    found = taught(roomy, parts.train, spec)
    assert len(found.rows) == 6
    said = spoken(roomy, found.rows[:1])
    assert [one.name for text in said for one in parse_calls(text).calls] == ["mul", "add"]
    assert said[-1] == '{"answer": "#### 8"}'
    (note,) = left_out_notes(found.left_out)
    assert note.startswith("1 task is left out: no calls to teach: the task expects number (")


ORDERS = Path(__file__).parents[2] / "examples" / "orders"


@pytest.mark.parametrize(
    ("steps", "words"), [(None, "delivered"), (3, "delivered"), (1, None)], ids=["free", "3", "1"]
)
def test_a_call_is_taught_with_the_words_after_it(roomy, steps, words):
    """Where tools run, the policy learns to end with what was found; with one turn the call alone.

    Of a policy that learned calls alone the runtime got call after call.
    """
    spec = TaskSpec(
        source=str(ORDERS / "tasks.jsonl"), environment=str(ORDERS / "tools.py"), shares=ALL
    )
    benchmark = load_tasks_for_training(spec).train
    (task,) = (one for one in benchmark.tasks if one.task_id == "order-1")
    settings = EvaluationSettings(max_steps=steps)
    found = taught(roomy, replace(benchmark, tasks=(task,)), spec, settings=settings)
    (call, *ends) = spoken(roomy, found.rows)
    assert [one.arguments for one in parse_calls(call).calls] == [{"order": "A10"}]
    assert [json.loads(one)["answer"] for one in ends] == ([words] if words else [])


def test_templates_that_write_tools_teach_single_answers_alone(tmp_path):
    """Trajectories are left out with the setting that would take them."""
    spec = gsm8k(tmp_path)
    policy = tiny_policy(chat_template="chatml-tools", context_tokens=8192)
    with pytest.raises(UsageError, match=r"6 tasks are left out: .*tools_in: prompt"):
        taught(
            policy,
            load_tasks_for_training(spec).train,
            spec,
            prompting=Prompting(tools_in="template"),
        )


LITRES = {"fern": 1.5, "cactus": 0.1}


@tool
def water_need(plant: str, days: int) -> dict[str, float | str]:
    """How much water a plant needs, in litres.

    Args:
        plant: Its name.
        days: For how long.
    """
    if plant == "weed":
        raise ToolFailed("weeds are not watered")
    if plant == "seed":
        raise ModelRetry("ask for the plant that it becomes")
    if plant == "stone":
        return {"error": "a stone drinks nothing"}
    if plant not in LITRES:
        raise ValueError(f"no plant is named {plant}")
    return {"litres": LITRES[plant] * days}


def call(plant, days=3):
    return GoldCall(name="water_need", arguments={"plant": plant, "days": days})


def garden(**expected):
    """Tasks by their ids, each with what it expects."""
    tasks = tuple(
        Task(task_id=name, category="", request="Water?", offered=("water_need",), expects=expects)
        for name, expects in expected.items()
    )
    return Benchmark(
        name="garden",
        tasks=tasks,
        definitions=(water_need.definition,),
        environment=environment_of([water_need]),
    )


def taught_in_garden(benchmark, *, template="chatml", **more):
    """The ids of the tasks that are taught, and why the others are not."""
    policy = tiny_policy(context_tokens=2048, chat_template=template)
    spec = TaskSpec(source="garden.jsonl")
    found = asyncio.run(taught_examples(policy, benchmark, spec, **more))
    return [one.task_id for one in found.rows], {one.where: one.reason for one in found.left_out}


def test_a_call_that_raises_is_left_out_with_its_error():
    """The reason names the call and what the tool raised; other tasks are taught."""
    rows, left_out = taught_in_garden(
        garden(fern=(ExactCalls(calls=(call("fern"),)),), rose=(ExactCalls(calls=(call("rose"),)),))
    )
    assert rows == ["fern"]
    assert left_out == {
        "rose": (
            'a gold call fails: water_need(plant="rose", days=3): '
            "ValueError: no plant is named rose"
        )
    }


def test_a_call_on_the_way_to_a_state_is_named_as_well():
    """Where gold calls lead to a state, the one that raises is told, not the fault it makes."""
    expects = (FinalState(calls=(call("fern"), call("rose"))),)
    rows, left_out = taught_in_garden(
        garden(fern=(ExactCalls(calls=(call("fern"),)),), both=expects)
    )
    assert rows == ["fern"]
    assert left_out["both"].startswith('a gold call fails: water_need(plant="rose"')


@pytest.mark.parametrize("plant", ["weed", "seed"])
def test_a_refusal_is_taught_where_the_task_expects_more_than_calls(plant):
    """What a tool refuses on purpose belongs to a solution that words or a state confirm."""
    calls = ExactCalls(calls=(call(plant),))
    rows, left_out = taught_in_garden(
        garden(
            told=(calls, TextAnswer(text="I can not say.")),
            alone=(calls,),
            state=(FinalState(calls=(call(plant),)),),
        )
    )
    assert rows == ["told", "state"]
    assert left_out["alone"].startswith(f'a gold call fails: water_need(plant="{plant}", days=3)')


def test_an_answer_that_no_result_holds_is_taught():
    """Answers may be worked out from results, so that only their author knows them."""
    expects = (ExactCalls(calls=(call("fern"),)), NumberAnswer(value="99"))
    assert taught_in_garden(garden(sum=expects)) == (["sum"], {})
