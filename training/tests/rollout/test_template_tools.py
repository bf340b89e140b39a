"""Tools, calls and results in the tokenizer's own chat template."""

from __future__ import annotations

import json

import pytest
import torch

from agentkit import Agent, tool
from agentkit.errors import UsageError
from agentkit.messages import AssistantMessage
from agentkit.models.base import ModelResponse, ModelSettings
from agentkit_training import PolicyModel, collect, tiny_policy, token_sequences
from agentkit_training.errors import PolicyError
from agentkit_training.policy.policy import CHAT_TEMPLATES
from agentkit_training.rollout.policy_model import TemplatedModel
from agentkit_training.rollout.rendering import Renderer


@tool(name="shop.get_price")
def get_price(item: str, units: list[str] | None = None) -> int:
    """Get the price of an item.

    Args:
        item: What is sold.
        units: Its units.
    """
    return len(item)


class Scripted:
    """A model that renders what it is asked as the policy would, and answers from a list."""

    name = "scripted"

    def __init__(self, *answers):
        self.answers, self.prompts = list(answers), []
        self.renderer = Renderer(tiny_policy(chat_template="chatml-tools"))

    async def complete(self, request):
        text = self.renderer.text(request.messages, asks=True, tools=request.tools)
        self.prompts.append(text)
        return ModelResponse(message=AssistantMessage(text=self.answers.pop(0)))


def call(name="shop_get_price", **arguments):
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_tools_calls_and_results_go_through_the_template():
    """The agent runs the call that the answer holds, and the template shows call and result."""
    inner = Scripted(f"Let me see.\n{call(item='apple', units=['kg'])}", "It costs 5.")
    agent = Agent(TemplatedModel(inner), tools=[get_price])
    episode = agent.run_sync("What does it cost?").episode
    first, second = inner.prompts
    assert '"name": "shop_get_price"' in first
    assert '"required": ["item"]' in first
    assert second.startswith(first)
    assert 'Let me see.\n<tool_call>\n{"name": "shop_get_price", "arguments": ' in second
    assert '{"item": "apple", "units": ["kg"]}' in second
    assert "<tool_response>\n5\n</tool_response><|im_end|>" in second
    made = [one.name for turn in episode.turns for one in turn.message.tool_calls]
    assert made == ["shop.get_price"]
    assert episode.turns[-1].message.text == "It costs 5."


async def test_rollouts_with_tools_in_the_template_are_token_exact(shop):
    """A policy that reads its tools from the template gives one sequence for each rollout."""
    model = PolicyModel(
        tiny_policy(chat_template="chatml-tools"), tools_in="template", max_tokens=8
    )
    rollouts = await collect(model, shop, attempts=2)
    for one in rollouts:
        (sequence,) = one.sequences
        said = model_text(model, sequence.prompt)
        assert '<tools>\n{"type": "function", "function": {"name": "get_price"' in said


def model_text(model, ids):
    return model._engine._renderer.said(ids)


def taught(texts):
    """A policy that has learned by heart to write the answers among ``texts``, and reads the rest.

    Args:
        texts: What is read and what is written, in turn.
    """
    policy = tiny_policy(texts, chat_template="chatml-tools")
    parts = [policy.tokenizer(one, add_special_tokens=False)["input_ids"] for one in texts]
    ids = torch.tensor([[token for part in parts for token in part]])
    owner = [number % 2 for number, part in enumerate(parts) for _ in part]
    labels = torch.where(torch.tensor([owner]) == 1, ids, -100)
    adam = torch.optim.AdamW(policy.trainable, lr=1e-2)
    for _ in range(200):
        loss = policy.model(input_ids=ids, labels=labels).loss
        if loss < 0.01:
            break
        loss.backward()
        adam.step()
        adam.zero_grad()
    return policy


async def test_turns_with_calls_make_one_sequence():
    """When the policy calls a tool, its answers and the result between them are one sequence."""
    inner = Scripted(call(item="apple"), "It costs 5.")
    await Agent(TemplatedModel(inner), tools=[get_price]).run("What does it cost?")
    first, second = inner.prompts
    texts = [first, call(item="apple") + "<|im_end|>"]
    between = "\n<|im_start|>user\n<tool_response>\n5\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    assert second.endswith(between)
    policy = taught([*texts, between, "It costs 5.<|im_end|>"])
    model = PolicyModel(policy, tools_in="template")
    settings = ModelSettings(temperature=0)
    agent = Agent(model, tools=[get_price], settings=settings)
    episode = (await agent.run("What does it cost?")).episode
    assert episode.turns[-1].message.text == "It costs 5."
    (sequence,) = token_sequences([episode])
    read = [t for t, own in zip(sequence.completion, sequence.written, strict=True) if not own]
    assert policy.tokenizer.decode(read) == between
    assert policy.tokenizer.decode(sequence.prompt) == first


@pytest.mark.parametrize(
    ("template", "lacks"),
    [
        (CHAT_TEMPLATES["chatml"], "has no place for tools"),
        ("{{ tools }}" + CHAT_TEMPLATES["chatml"], "has no place for calls"),
        ("{{ tools }}{% for m in messages %}{{ m.tool_calls }}{% endfor %}", "place for results"),
        ("{{ raise_exception('no tools here') }}", "can not be offered tools"),
    ],
)
def test_a_template_without_tools_is_refused(template, lacks):
    """The error comes when the model is made, says what is missing and what to do."""
    policy = tiny_policy(chat_template=template)
    with pytest.raises(PolicyError, match=lacks) as caught:
        PolicyModel(policy, tools_in="template")
    assert "tools_in='prompt'" in str(caught.value)
    assert "chatml-tools" in str(caught.value)


def test_an_unknown_way_is_refused(policy):
    """Tools travel in the prompt or in the template."""
    with pytest.raises(UsageError, match="'prompt' or 'template'"):
        PolicyModel(policy, tools_in="system")
