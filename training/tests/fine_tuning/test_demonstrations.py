"""Demonstrations: gold trajectories of several turns, acted out and taught whole."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agentkit.errors import UsageError
from agentkit.models.prompt_format import parse_calls
from agentkit_training import tiny_policy
from agentkit_training.errors import PolicyError
from agentkit_training.fine_tuning.examples import Example, Prompting
from agentkit_training.fine_tuning.teaching import make_demonstrations
from agentkit_training.fine_tuning.training import IGNORED, SftSettings, block, mean_loss, sft
from agentkit_training.tasks.arithmetic import arithmetic, arithmetic_episodes

TASKS = arithmetic(train=1).train
GOLD = {one.metadata["task"]: one for one in arithmetic_episodes(TASKS)}


@pytest.fixture
def roomy():
    """A random policy whose window takes whole trajectories."""
    return tiny_policy(context_tokens=2048)


def made(policy, gold=GOLD, **more):
    return asyncio.run(make_demonstrations(policy, TASKS, gold, **more))


def test_all_answers_of_a_trajectory_are_taught_and_nothing_else(roomy):
    """What bears loss is the gold calls, turn by turn, and the last words; results do not."""
    found = made(roomy)
    assert not found.left_out
    for row, task in zip(found.rows, TASKS.tasks, strict=True):
        tokens = [t for t, own in zip(row.completion, row.taught, strict=True) if own]
        assert row.loss_tokens == len(tokens) < len(row.completion)
        end = roomy.tokenizer.decode([row.completion[-1]])
        said = roomy.tokenizer.decode(tokens).split(end)[:-1]
        calls = [call for text in said for call in parse_calls(text).calls]
        wanted = [(one.name, one.arguments) for one in task.expects[0].calls]
        assert [(one.name, one.arguments) for one in calls] == wanted
        assert said[-1] == f'{{"answer": "{task.expects[0].state["result"]}"}}'


def test_results_are_those_of_the_world(roomy):
    """The text between the answers holds what the tools of the task's own world gave."""
    row, *_ = made(roomy).rows
    first, *_ = next(iter(GOLD.values())).results
    assert f"Result of {first.name}: {first.value}" in roomy.tokenizer.decode(row.completion)


def test_a_trajectory_that_does_not_solve_its_task_is_left_out(roomy):
    """The task's verifier has the last word about what is taught."""
    (task, episode), *rest = GOLD.items()
    cut = replace(episode, turns=(episode.turns[0], episode.turns[-1]))
    found = made(roomy, {task: cut, **dict(rest)})
    assert len(found.rows) == len(rest)
    (left,) = found.left_out
    assert left.where == task
    assert left.reason.startswith("the gold trajectory does not solve the task: ")


def test_the_chat_template_may_not_write_the_tools():
    """Demonstrations have one form of calls."""
    with pytest.raises(PolicyError, match="use tools_in='prompt'"):
        made(tiny_policy(chat_template="chatml-tools"), prompting=Prompting(tools_in="template"))


def test_tokens_that_are_read_bear_no_loss():
    """The labels of a block leave out what tools said."""
    one = Example(task_id="1", prompt=(5,), completion=(6, 7, 8), written=(True, False, True))
    assert one.loss_tokens == 2
    assert block([one], pad=0).labels.tolist() == [[6, IGNORED, 8]]
    with pytest.raises(UsageError, match="says of 1 tokens"):
        Example(task_id="1", prompt=(5,), completion=(6, 7), written=(True,))


def test_a_policy_learns_a_demonstration_by_heart(roomy):
    """The loss is a mean over the taught tokens, and falls."""
    rows = made(roomy).rows[:1]
    before = mean_loss(roomy, rows)
    report = sft(roomy, rows, SftSettings(epochs=3))
    assert report.steps[0].loss == pytest.approx(before, rel=1e-2)
    assert report.steps[0].loss_tokens == rows[0].loss_tokens
    assert mean_loss(roomy, rows) < before
