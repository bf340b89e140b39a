"""What fine-tuning learns from: single answers and whole trajectories, of real forms of tasks."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings
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
