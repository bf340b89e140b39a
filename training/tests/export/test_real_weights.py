"""SmolLM2 with an adapter: exact on the way out, and the runtime does what was learned."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from agentkit import Agent, open_store
from agentkit.cli.loading import load_tools
from agentkit.errors import AgentKitError
from agentkit.evolution import ToolManager
from agentkit.library import Author
from agentkit_training import Policy, PolicyModel, load_policy
from agentkit_training.export.handover import hand_over
from agentkit_training.policy.lora import LoraSettings, with_lora

# Seconds on an idle machine; on one that is shared the time limit of other tests is too short.
pytestmark = [pytest.mark.weights, pytest.mark.timeout(1200)]

BASE = "local:smollm2-135m"
QUESTION = "What does my usual cost?"
LEARNED = {"calls": [{"name": "get_price", "arguments": {"item": "heliotrope"}}]}
CODE = '''
from agentkit import tool

@tool
def get_price(item: str) -> int:
    """Get the price of an item."""
    return 42
'''


@pytest.fixture
def base():
    """The file of SmolLM2's weights; skips the test where they are not installed."""
    weights = pytest.importorskip("agentkit_local.weights", reason="the plugin is not installed")
    try:
        return weights.path("smollm2-135m")
    except AgentKitError as error:
        pytest.skip(str(error))


@pytest.fixture
def library(tmp_path):
    """The store of a library with one tool, and the file of its code."""
    code = tmp_path / "shop.py"
    code.write_text(CODE)
    (tool,) = load_tools([f"{code}:get_price"])
    store = open_store("memory:")
    manager = ToolManager(store, author=Author(kind="program", name="training"))
    manager.register([tool.definition], reason="the first tool")
    return store, code


def test_the_runtime_does_what_was_learned(base, library, tmp_path):
    """One question is trained by a plain loop; `agentkit run` then calls as it was taught."""
    store, code = library
    policy = with_lora(load_policy(BASE), LoraSettings(rank=16, alpha=32))
    _learn(policy, _prompt(policy, store), json.dumps(LEARNED))
    made = hand_over(tmp_path / "made", base=BASE, policy=policy, store=store)
    assert made.manifest.base.licence == "Apache-2.0"
    options = ["--tools", str(code), "--max-steps", "1", "--json"]
    before = _asked("--model", BASE, "--library", str(made.folder / "library.json"), *options)
    after = _asked(*shlex.split(made.command)[3:], *options)
    assert before["calls"] != after["calls"]
    assert [call["arguments"] for call in after["calls"]] == [{"item": "heliotrope"}]


def _prompt(policy: Policy, store) -> list[int]:
    """The tokens that the runtime makes of the question and the library."""
    agent = Agent(PolicyModel(policy, max_tokens=1), library=store.load())
    tokens = agent.run_sync(QUESTION).episode.turns[0].tokens
    assert tokens is not None
    return list(tokens.prompt)


def _learn(policy: Policy, prompt: list[int], answer: str) -> None:
    """Learn one answer by heart: the loss of its tokens, until each is certain."""
    written = policy.tokenizer(answer)["input_ids"] + [policy.tokenizer.eos_token_id]
    rows = torch.tensor([prompt + written])
    labels = torch.tensor([[-100] * len(prompt) + written])
    optimizer = torch.optim.AdamW(policy.trainable, lr=2e-3)
    for _ in range(40):
        loss = policy.model(input_ids=rows, labels=labels).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if loss.item() < 0.02:
            return
    pytest.fail(f"the answer was not learned: the loss is {loss.item():.3f}")


def _asked(*options: str) -> dict[str, object]:
    command = [str(Path(sys.executable).parent / "agentkit"), "run", QUESTION, *options]
    environment = ["--store", "memory:"]
    done = subprocess.run([*command, *environment], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found
