"""What the tests of agentkit-training share: one thread, a tiny policy, a small world of tools."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch
from hypothesis import HealthCheck, settings

from agentkit import tool
from agentkit.evaluation import Benchmark, ExactCalls, GoldCall, Task, with_tools as environment_of
from agentkit_training import Policy, tiny_policy

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
def policy() -> Policy:
    """A random policy of its own for each test."""
    return tiny_policy()


@pytest.fixture
def shop() -> Benchmark:
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
