"""Answers may be written elsewhere; what is read and written stays the same tokens."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, field

import pytest

from agentkit.errors import UsageError
from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.generation.decoding import Prompt
from agentkit_training.rollout.policy_model import PolicyWriter


@dataclass(kw_only=True)
class Elsewhere:
    """What is known here of weights that are elsewhere."""

    name: str
    tokenizer: object
    end_ids: frozenset[int]
    context_tokens: int


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
    return Elsewhere(
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
