"""What the tests of verl share: settings of a few small tasks, and servers that write tokens."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from agentkit_training import Policy
from agentkit_training.engines.verl.workspace import VerlSettings
from agentkit_training.generation.decoding import Prompt, complete
from agentkit_training.tasks.loading import TaskSpec


class PolicyServer:
    """A server with a policy of its own, which speaks as verl's do."""

    def __init__(self, policy: Policy, *, seed=0, logprobs=True):
        self.policy, self.seed, self.logprobs = policy, seed, logprobs
        self.asked = []

    async def generate(self, request_id, *, prompt_ids, sampling_params, **more):
        self.asked.append(SimpleNamespace(request=request_id, ids=prompt_ids, **sampling_params))
        prompt = Prompt(
            ids=tuple(prompt_ids),
            max_tokens=sampling_params["max_tokens"],
            temperature=sampling_params["temperature"],
            seed=self.seed,
        )
        (one,) = complete(self.policy, [prompt])
        return written(list(one.ids), list(one.logprobs) if self.logprobs else None)


class ScriptedServer:
    """Writes given texts one after another, letter by letter as no tokenizer would."""

    def __init__(self, policy: Policy, *texts: str):
        self.tokenizer, self.texts = policy.tokenizer, list(texts)
        self.asked = []

    async def generate(self, request_id, *, prompt_ids, sampling_params, **more):
        self.asked.append(prompt_ids)
        text = self.texts.pop(0)
        ids = [self.tokenizer(one, add_special_tokens=False)["input_ids"] for one in text]
        ids = [*(token for letter in ids for token in letter), self.tokenizer.eos_token_id]
        return written(ids, [-0.5] * len(ids))


def written(ids, logprobs):
    steps = {"min_global_steps": 7, "max_global_steps": 8}
    return SimpleNamespace(token_ids=ids, log_probs=logprobs, num_preempted=1, extra_fields=steps)


@pytest.fixture
def policy_server() -> type[PolicyServer]:
    """Makes servers that write with a policy."""
    return PolicyServer


@pytest.fixture
def scripted_server() -> type[ScriptedServer]:
    """Makes servers that write what they are told."""
    return ScriptedServer


@pytest.fixture
def settings() -> Callable[..., VerlSettings]:
    """Settings of four tasks to train on, with changes."""

    def made(**changes):
        tasks = TaskSpec(source="hidden-constraints", train=4, validation=2, test=2)
        return VerlSettings(tasks=tasks, **changes)

    return made
