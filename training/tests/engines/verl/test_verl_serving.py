"""Rollouts through a server of tokens are those of a policy in this process."""

from __future__ import annotations

import dataclasses
import json

import pytest

from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.engines.verl.serving import ServedSpeaker, ServerWriter

SAMPLING = {"temperature": 0.7, "top_p": 0.9, "top_k": -1, "logprobs": True}


def writer_of(policy, server):
    return ServerWriter(
        server=server, end_ids=policy.end_ids, sampling=SAMPLING, request_id="r", priority=2
    )


def served(policy, writer, *, max_tokens=24):
    speaker = ServedSpeaker(
        name="served",
        tokenizer=policy.tokenizer,
        end_ids=policy.end_ids,
        context_tokens=policy.context_tokens,
    )
    return PolicyModel(speaker, writer=writer, max_tokens=max_tokens, batch_size=1)


def alone(shop):
    return dataclasses.replace(shop, tasks=shop.tasks[:1])


async def test_a_later_turn_goes_on_from_the_very_tokens_that_were_written(shop, scripted_server):
    """Tokens that no tokenizer would choose stay; what the tool said bears no loss."""
    policy = tiny_policy()
    call = json.dumps({"calls": [{"name": "get_price", "arguments": {"item": "apple"}}]})
    server = scripted_server(policy, call, "It costs 3.")
    writer = writer_of(policy, server)
    (rollout,) = await collect(
        served(policy, writer, max_tokens=200), alone(shop), attempts=1, temperature=0.7
    )
    assert rollout.passed
    (sequence,) = rollout.sequences
    first, second = server.asked
    assert (*sequence.prompt, *sequence.completion)[: len(second)] == tuple(second)
    assert second[: len(first)] == first
    assert sum(sequence.written) == len(call) + 1 + len("It costs 3.") + 1
    assert not all(sequence.written)


async def test_servers_are_told_what_verl_says_of_sampling(shop, policy_server):
    """Each request has verl's own parameters, the rollout's id and room for an answer."""
    policy = tiny_policy()
    server = policy_server(policy)
    await collect(served(policy, writer_of(policy, server)), alone(shop), attempts=1)
    (asked,) = server.asked
    assert (asked.request, asked.temperature, asked.top_p) == ("r", 0.7, 0.9)
    assert asked.max_tokens == 24


async def test_what_servers_tell_is_noted(shop, policy_server):
    """Weights' versions, requests put off and the time that was waited are there for verl."""
    policy = tiny_policy()
    writer = writer_of(policy, policy_server(policy))
    await collect(served(policy, writer), alone(shop), attempts=1)
    assert writer.steps == [7, 8]
    assert writer.preempted == 1
    assert writer.seconds > 0
    assert writer.has_logprobs


async def test_servers_without_log_probabilities_are_taken(shop, policy_server):
    """The rollout is the same; that nothing is known of its probabilities is noted."""
    policy = tiny_policy()
    found = []
    for logprobs in (True, False):
        writer = writer_of(policy, policy_server(policy, logprobs=logprobs))
        (rollout,) = await collect(served(policy, writer), alone(shop), attempts=1)
        found.append(rollout.sequences[0].completion)
        assert writer.has_logprobs is logprobs
    assert found[0] == found[1]


async def test_what_a_server_raises_is_kept(shop, scripted_server):
    """The agent turns it into an error of the model; verl is to hear of it as it was."""
    policy = tiny_policy()
    writer = writer_of(policy, scripted_server(policy))
    (rollout,) = await collect(served(policy, writer), alone(shop), attempts=1)
    assert rollout.fault
    with pytest.raises(IndexError):
        raise writer.error
