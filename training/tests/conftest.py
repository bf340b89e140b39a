"""What the tests of agentkit-training share: one thread, a tiny policy, a small world of tools."""

from __future__ import annotations

import json
import os
import random
import threading

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
from hypothesis import HealthCheck, settings

from agentkit import tool
from agentkit.evaluation import Benchmark, ExactCalls, GoldCall, Task, with_tools as environment_of
from agentkit_training import Rollout, TokenSequence, tiny_policy
from agentkit_training.generation.decoding import Completion

torch.set_num_threads(1)  # several test processes share the machine
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

PRICES = {"apple": 3, "bread": 4, "cheese": 12}


@tool
def get_price(item: str, unit: str = "kg") -> int:
    """Get the price of an item.

    Args:
        item: What is sold.
        unit: Its unit.
    """
    return PRICES[item]


@pytest.fixture
def policy():
    """A random policy of its own for each test."""
    return tiny_policy()


@pytest.fixture
def shop():
    """Three questions about prices, in a world where the tool runs."""
    tasks = tuple(
        Task(
            task_id=f"price-{item}",
            category="price",
            request=f"What does {item} cost?",
            offered=("get_price",),
            expects=(ExactCalls(calls=(GoldCall(name="get_price", arguments={"item": item}),)),),
        )
        for item in PRICES
    )
    return Benchmark(
        name="shop",
        tasks=tasks,
        definitions=(get_price.definition,),
        environment=environment_of([get_price]),
    )


_TOKENS = 400


class Recorded:
    """A source of made-up rollouts of several turns: equal for equal steps, whoever asks.

    Groups are of several sizes, some rollouts have a fault, some two sequences, and the tokens of
    tools stand between those of the policy.
    """

    def __init__(self, *, faults=0.15, rewritten=0.15, change=lambda rollout: rollout):
        self.faults, self.rewritten, self.change = faults, rewritten, change
        self.reports = []

    def rollouts(self, step, share):
        dice = random.Random(1000 * step + share.rank)
        found = []
        for task in range(3):
            prompt = tuple(dice.randrange(_TOKENS) for _ in range(dice.randint(3, 20)))
            for attempt in range(dice.randint(3, 5)):
                two = dice.random() < self.rewritten
                sequences = [_sequence(dice, prompt)]
                if two:
                    sequences.append(_sequence(dice, (*prompt, 7, 8)))
                rollout = Rollout(
                    task_id=f"{share.rank}-{task}",
                    attempt=attempt,
                    episodes=(),
                    sequences=tuple(sequences),
                    library_version=0,
                    reward=dice.choice([0.0, 0.25, 1.0]),
                    weight=dice.uniform(0.5, 2.0),
                    fault="the tool broke" if dice.random() < self.faults else "",
                )
                found.append(self.change(rollout))
        return found

    def finished(self, report):
        self.reports.append(report)


def _sequence(dice, prompt):
    """Some tokens of the policy, some of a tool, some of the policy."""
    written = [turn % 2 == 0 for turn in range(3) for _ in range(dice.randint(1, 5))]
    return TokenSequence(
        prompt=prompt,
        completion=tuple(dice.randrange(_TOKENS) for _ in written),
        written=tuple(written),
        logprobs=tuple(-dice.uniform(5.5, 6.5) if one else 0.0 for one in written),
    )


@pytest.fixture
def recorded():
    """Makes sources of made-up rollouts."""
    return Recorded


class Writing:
    """A ``Writer`` that writes what a function of the prompt's text says."""

    def __init__(self, tokenizer, answer):
        self.tokenizer, self.answer = tokenizer, answer

    async def write(self, prompts):
        return [self._completion(self.tokenizer.decode(list(one.ids))) for one in prompts]

    def _completion(self, prompt):
        ids = self.tokenizer.encode(self.answer(prompt), add_special_tokens=False)
        ids = (*ids, self.tokenizer.eos_token_id)
        return Completion(ids=ids, logprobs=(-1.0,) * len(ids), is_ended=True)


@pytest.fixture
def writing():
    """Makes writers of given texts."""
    return Writing


class Threads:
    """One rank of two that are threads; what they exchange goes through JSON."""

    world = 2

    def __init__(self, rank, barrier, values):
        self.rank, self.barrier, self.values = rank, barrier, values

    def _exchanged(self, value):
        self.values[self.rank] = json.dumps(value)
        self.barrier.wait()
        found = [json.loads(self.values[one]) for one in range(2)]
        self.barrier.wait()
        return found

    def gather(self, value):
        found = self._exchanged(value)
        return found if self.rank == 0 else ()

    def broadcast(self, value):
        return self._exchanged(value)[0]


@pytest.fixture
def two_ranks():
    """Two ranks, and what a piece of work returned or raised in each of them."""
    barrier, values = threading.Barrier(2, timeout=60), {}
    ranks, found = [Threads(rank, barrier, values) for rank in range(2)], {}

    def together(work):
        def run(one):
            try:
                found[one.rank] = work(one)
            except Exception as error:  # noqa: BLE001 - looked at by the test
                found[one.rank] = error

        threads = [threading.Thread(target=run, args=(one,)) for one in ranks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        return found[0], found[1]

    return ranks, together
