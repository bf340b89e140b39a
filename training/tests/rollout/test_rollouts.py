"""Rollouts: the runtime's own agent with a policy, token for token, also with refined calls, long prompts and other writers."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from dataclasses import dataclass, field, replace
from itertools import compress
from types import SimpleNamespace

import pytest

from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings
from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.engines.packing import training_rows
from agentkit_training.generation.decoding import Prompt
from agentkit_training.rollout.policy_model import PolicyWriter


async def test_each_task_is_tried_as_often_as_asked(policy, shop):
    """The rollouts come ordered by task, then by attempt, with verdict, labels and tokens."""
    rollouts = await collect(PolicyModel(policy, max_tokens=8), shop, attempts=3)
    wanted = [(task.task_id, number) for task in shop.tasks for number in range(3)]
    assert [(one.task_id, one.attempt) for one in rollouts] == wanted
    for one in rollouts:
        assert one.labels
        assert one.fault == ""
        (sequence,) = one.sequences
        assert all(sequence.written)
        assert 1 <= len(sequence.completion) <= 8
        assert one.episodes[0].verdict is not None


async def test_equal_questions_of_two_tasks_are_answered_apart(shop):
    """Tasks in the same words are samples of their own, each as it would be drawn alone."""
    task = shop.tasks[0]
    tasks = (task, dataclasses.replace(task, task_id="twin"))
    found = [
        await collect(
            PolicyModel(tiny_policy(), max_tokens=8),
            dataclasses.replace(shop, tasks=asked),
            attempts=2,
        )
        for asked in (tasks, tasks[1:])
    ]
    written = [[one.sequences[0].completion for one in each] for each in found]
    assert len(set(written[0])) == 4
    assert written[0][2:] == written[1]


async def test_equal_seeds_give_equal_rollouts(shop):
    """A repetition writes the same tokens; another seed writes others."""
    first, again, other = [
        await collect(PolicyModel(tiny_policy(), max_tokens=8), shop, attempts=2, seed=seed)
        for seed in (0, 0, 7)
    ]
    assert [one.sequences for one in first] == [one.sequences for one in again]
    assert [one.sequences for one in first] != [one.sequences for one in other]


async def test_attempts_of_a_group_differ(policy, shop):
    """At temperature 1 the attempts at one task are samples, not copies; at 0 they are equal."""
    one_task = dataclasses.replace(shop, tasks=shop.tasks[:1])
    model = PolicyModel(policy, max_tokens=8)
    sampled = await collect(model, one_task, attempts=4)
    assert len({one.sequences for one in sampled}) == 4
    greedy = await collect(model, one_task, attempts=4, temperature=0)
    assert len({one.sequences for one in greedy}) == 1


def _call(item):
    return json.dumps({"calls": [{"name": "get_price", "arguments": {"item": item}}]})


@pytest.fixture
def refined(shop, writing):
    """Lets a policy write given texts, and gives the rollout of one question."""

    async def collected(*texts):
        policy = tiny_policy(["apple bread cheese get_price", *texts])
        left = list(texts)
        writer = writing(policy.tokenizer, lambda _: left.pop(0))
        (rollout,) = await collect(
            PolicyModel(policy, writer=writer, max_tokens=64),
            replace(shop, tasks=shop.tasks[:1]),
            attempts=1,
            settings=EvaluationSettings(refine="adaptive", max_steps=2),
        )
        return policy.tokenizer, rollout

    return collected


def _said(tokenizer, ids):
    return tokenizer.decode(list(ids), skip_special_tokens=True)


async def test_all_proposals_are_trained_on(refined):
    """The direct answer, each round and the answer after the result bear loss, each once."""
    texts = [_call("bread"), _call("apple"), _call("apple"), '{"answer": "3"}']
    tokenizer, rollout = await refined(*texts)
    written = [_said(tokenizer, compress(one.completion, one.written)) for one in rollout.sequences]
    assert "".join(written) == "".join(texts)
    bears = [one for sequence in rollout.sequences for one in sequence.written]
    logprobs = [one for sequence in rollout.sequences for one in sequence.logprobs]
    assert logprobs == [-1.0 if one else 0.0 for one in bears]


async def test_the_next_prompt_has_the_calls_that_were_run(refined):
    """What the policy reads behind a result is the refined call, not the one that it gave up."""
    texts = [_call("bread"), _call("apple"), _call("apple"), '{"answer": "3"}']
    tokenizer, rollout = await refined(*texts)
    prompt = _said(tokenizer, rollout.sequences[-1].prompt)
    assert '"item": "apple"' in prompt
    assert '"item": "bread"' not in prompt


async def test_a_prompt_longer_than_the_window_makes_a_rollout_with_a_fault(shop):
    """The rollout is counted and says why; it is not trained on, and the others go on."""
    policy = tiny_policy(context_tokens=400)
    long = dataclasses.replace(shop.tasks[0], request="What does an apple cost? " * 60)
    mixed = dataclasses.replace(shop, tasks=(long, *shop.tasks[1:]))
    model = PolicyModel(policy, max_tokens=8)
    rollouts = await collect(model, mixed, attempts=2)
    assert [bool(one.fault) for one in rollouts] == [True, True, False, False, False, False]
    assert "tiny has room for 400" in rollouts[0].fault
    assert len(training_rows(rollouts)) == 4


async def test_a_policy_that_fills_its_window_has_failed(shop, writing):
    """What it did is judged and trained on: it is no fault of the task."""
    policy = tiny_policy(context_tokens=700)
    model = PolicyModel(policy, writer=writing(policy.tokenizer, lambda _: _call("bread")))
    rollouts = await collect(model, shop, attempts=1)
    for one in rollouts:
        (episode,) = one.episodes
        assert (episode.stop_reason, one.fault, one.passed) == ("error", "", False)
        assert len(episode.turns) > 1
    assert len(training_rows(rollouts)) == 3


async def test_an_answer_is_cut_where_the_window_ends(shop):
    """The last answer that fits is as long as the room that is left for it."""
    wide = await collect(PolicyModel(tiny_policy(), max_tokens=1), shop, attempts=1)
    prompt = max(len(one.sequences[0].prompt) for one in wide)
    model = PolicyModel(tiny_policy(context_tokens=prompt + 3), max_tokens=50)
    rollouts = await collect(model, shop, attempts=2)
    assert max(len(one.sequences[0]) for one in rollouts) <= prompt + 3
    assert not any(one.fault for one in rollouts)


@dataclass(kw_only=True)
class Noting:
    """Has another writer write, and notes what was asked."""

    inner: PolicyWriter
    asked: list = field(default_factory=list)

    async def write(self, prompts):
        self.asked += prompts
        return await self.inner.write(prompts)


class Refusing:
    """A server that is not there."""

    async def write(self, prompts):
        raise OSError(f"no route to the server for {len(prompts)} prompts")


@dataclass(kw_only=True)
class Forgetful:
    """A server that leaves out its last answer."""

    inner: PolicyWriter

    async def write(self, prompts):
        return (await self.inner.write(prompts))[:-1]


def elsewhere(policy):
    """What is known here of weights that are elsewhere."""
    return SimpleNamespace(
        name=policy.name,
        tokenizer=policy.tokenizer,
        end_ids=policy.end_ids,
        context_tokens=policy.context_tokens,
    )


async def test_rollouts_are_the_same_wherever_they_are_written(shop):
    """A writer that was handed in is asked for every answer, and nothing else changes."""
    policy = tiny_policy()
    writer = Noting(inner=PolicyWriter(policy=policy))
    served = PolicyModel(elsewhere(policy), writer=writer, max_tokens=8)
    here = PolicyModel(policy, max_tokens=8)
    found, wanted = await collect(served, shop, attempts=2), await collect(here, shop, attempts=2)
    assert [one.sequences for one in found] == [one.sequences for one in wanted]
    assert len(writer.asked) == 6


async def test_a_writer_that_fails_spoils_the_rollouts_that_wait_for_it(shop):
    """Each has a fault that says what the writer raised, so that none is trained on."""
    model = PolicyModel(tiny_policy(), writer=Refusing(), max_tokens=8)
    rollouts = await collect(model, shop, attempts=1)
    assert len(rollouts) == 3
    assert all("no route to the server for 3 prompts" in one.fault for one in rollouts)


async def test_a_writer_that_leaves_answers_out_leaves_no_run_waiting(shop):
    """Whose answers are whose is not known then: every run of the batch is told, and none waits."""
    policy = tiny_policy()
    model = PolicyModel(policy, writer=Forgetful(inner=PolicyWriter(policy=policy)), max_tokens=8)
    rollouts = await asyncio.wait_for(collect(model, shop, attempts=1), timeout=60)
    assert all("gave 2 answers to 3 prompts" in one.fault for one in rollouts)


def test_weights_elsewhere_need_a_writer():
    """What has no weights in this process is refused where it is made, not at the first answer."""
    with pytest.raises(UsageError, match="tiny are not in this process; give a writer"):
        PolicyModel(elsewhere(tiny_policy()))


async def test_every_batch_is_written_in_the_same_thread():
    """Batches that are asked for at the same time have one thread, which alone keeps memory."""
    policy, threads = tiny_policy(), set()
    writer = PolicyWriter(policy=policy)
    policy.model.register_forward_pre_hook(lambda *_: threads.add(threading.get_ident()))
    prompts = [Prompt(ids=(5, 6, 7), max_tokens=4)]
    await asyncio.gather(*(writer.write(prompts) for _ in range(3)))
    assert len(threads) == 1
