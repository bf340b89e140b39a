"""A bank with a rule that its definition does not state, and a tiny policy that calls it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace

import pytest
import torch

from agentkit import ModelRetry, tool
from agentkit.evaluation import (
    Benchmark,
    EvaluationSettings,
    ExactCalls,
    GoldCall,
    Task,
    with_tools as environment_of,
)
from agentkit_training import PolicyModel, TokenSequence, collect, tiny_policy
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.packing import TrainingRow
from agentkit_training.engines.update import update
from agentkit_training.rollout.samples import Rollout

RULE = "periods must be one of 36, 48, 60"


@tool(effects=["reads"])
def loan_rate(euro: int, periods: int) -> float:
    """What a loan costs a month.

    Args:
        euro: The sum.
        periods: Term in months.
    """
    if periods not in (36, 48, 60):
        raise ModelRetry(f"{RULE}; the bank refuses {periods}")
    return round(euro / periods, 2)


@tool(effects=["reads"])
def saving_rate(euro: int, periods: int) -> float:
    """What has to be saved a month.

    Args:
        euro: The sum.
        periods: Term in months.
    """
    return round(euro / periods, 2)


def _call(name: str, euro: int, periods: int) -> str:
    arguments = {"euro": euro, "periods": periods}
    return json.dumps({"calls": [{"name": name, "arguments": arguments}]})


def _task(at: int) -> Task:
    euro = 1000 * (at + 1)
    gold = GoldCall(name="loan_rate", arguments={"euro": euro, "periods": 36})
    return Task(
        task_id=f"loan-{at}",
        category="loans",
        request=f"A loan of {euro} euro over 24 months",
        offered=("loan_rate", "saving_rate"),
        expects=(ExactCalls(calls=(gold,)),),
    )


_ANSWERS = [_call("loan_rate", 1000, 24), _call("loan_rate", 1000, 18)]
_TEXTS = [*_ANSWERS * 10, *[RULE] * 5]
_BANK = Benchmark(
    name="bank",
    tasks=tuple(map(_task, range(4))),
    definitions=(loan_rate.definition, saving_rate.definition),
    environment=environment_of([loan_rate, saving_rate]),
)


@pytest.fixture
def bank():
    """Four customers who want terms that the bank refuses."""
    return _BANK


@pytest.fixture(scope="session")
def clerk_weights():
    """Weights of a tiny policy that asks for 18 or 24 months, whatever it is asked."""
    policy = tiny_policy(_TEXTS)
    model = PolicyModel(policy, max_tokens=1)
    asked = collect(model, _BANK, attempts=1, settings=EvaluationSettings(max_steps=1))
    end = policy.tokenizer.eos_token_id
    prompts = [rollout.sequences[0].prompt for rollout in asyncio.run(asked)[:2]]
    answers = [(*policy.tokenizer.encode(one, add_special_tokens=False), end) for one in _ANSWERS]
    rows = [
        TrainingRow(
            advantage=1.0,
            sequence=TokenSequence(
                prompt=prompt,
                completion=answer,
                written=(True,) * len(answer),
                logprobs=(0.0,) * len(answer),
            ),
        )
        for prompt in prompts
        for answer in answers
    ]
    adam = torch.optim.AdamW(policy.trainable, lr=5e-3)
    for _ in range(90):
        update(policy, rows, adam)
    return policy.model.state_dict()


@pytest.fixture
def clerk(clerk_weights):
    """Makes such policies; each has weights of its own."""

    def make():
        policy = tiny_policy(_TEXTS)
        policy.model.load_state_dict(clerk_weights)
        return policy

    return make


def brevity(rollout: Rollout):
    """Passing, and an aim with some spread that any policy can learn."""
    ids = [one for sequence in rollout.sequences for one in sequence.completion]
    return {"passed": float(rollout.passed), "even": sum(t % 2 == 0 for t in ids) / len(ids)}


@dataclass(kw_only=True)
class Run:
    """A run and its parts."""

    policy: object
    source: Coevolution
    engine: LeanEngine

    def train(self, steps: int) -> Run:
        """Take steps until there are so many."""
        self.engine.train(self.policy, self.source, steps=steps)
        return self

    @property
    def weights(self):
        """All weights in one tensor."""
        return torch.cat([one.detach().flatten() for one in self.policy.model.parameters()])


@pytest.fixture
def begin(clerk, bank):
    """Begins a run of a clerk in a bank."""

    def make(settings=None, *, policy=None, rate=1e-4, reward=brevity, keeping=None, **more):
        settings = settings or CoevolutionSettings(evidence=True)
        settings = replace(settings, group_size=3, tasks_per_step=2)
        policy = policy or clerk()
        model = PolicyModel(policy, max_tokens=48)
        benchmark = more.pop("benchmark", bank)
        keeper = LibraryKeeper(settings=settings, benchmark=benchmark, **(keeping or {}))
        source = Coevolution(
            model=model,
            keeper=keeper,
            settings=settings,
            benchmark=benchmark,
            reward=reward,
            asking=EvaluationSettings(max_steps=1),
            **more,
        )
        engine = LeanEngine(optimizer=OptimizerSettings(learning_rate=rate))
        return Run(policy=policy, source=source, engine=engine)

    return make
