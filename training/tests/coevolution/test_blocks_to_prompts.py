"""ToolDNA's evolution stream from end to end: what a policy writes is in its next prompts."""

from __future__ import annotations

import json

import pytest

from agentkit.evaluation import EvaluationSettings
from agentkit_training import PolicyModel, tiny_policy
from agentkit_training.coevolution.keeper import LibraryKeeper
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.source import Coevolution
from agentkit_training.engines.base import Share
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.generation.decoding import Completion
from agentkit_training.rewards import tooldna_reward

BLOCK = """<description>
Tool Name: loan_rate
Tool Description: What a loan costs a month.
Required Parameters:
periods(int): Term in months; the bank lends for {terms} only.
</description>"""


class Scribe:
    """Writes the right call for the question in a prompt, and a block behind it: a ``Writer``."""

    def __init__(self, policy, blocks):
        self.policy, self.blocks = policy, blocks

    async def write(self, prompts):
        return tuple(map(self._completion, prompts))

    def _completion(self, prompt):
        tokenizer = self.policy.tokenizer
        asked = tokenizer.decode(prompt.ids)
        euro = int(asked.rpartition("A loan of ")[2].partition(" ")[0])
        call = {"name": "loan_rate", "arguments": {"euro": euro, "periods": 36}}
        text = json.dumps({"calls": [call]}) + "\n" + next(self.blocks)
        ids = (*tokenizer.encode(text, add_special_tokens=False), tokenizer.eos_token_id)
        return Completion(ids=ids, logprobs=(-1.0,) * len(ids), is_ended=True)


@pytest.fixture
def begin(bank):
    """Begins a run whose policy writes these blocks, one behind each answer."""

    def make(blocks):
        policy = tiny_policy()
        model = PolicyModel(policy, writer=Scribe(policy, iter(blocks)), max_tokens=400)
        settings = CoevolutionSettings(evolution=True, group_size=2, tasks_per_step=2)
        source = Coevolution(
            model=model,
            keeper=LibraryKeeper(settings=settings, benchmark=bank, model=model),
            settings=settings,
            benchmark=bank,
            reward=tooldna_reward(bank, "R3"),
            asking=EvaluationSettings(max_steps=1),
        )
        return policy, source

    return make


def test_a_block_becomes_a_version_that_the_next_prompts_show(begin):
    """Rollouts with r = 1 propose, the Tool Manager commits, and the policy reads the new text."""
    said = BLOCK.format(terms="36, 48 or 60 months")
    policy, source = begin([said] * 8)
    LeanEngine().train(policy, source, steps=1)
    (record,) = source.records
    assert record.rollouts.reward == 1
    assert {(one.stream, one.tool, one.state) for one in record.proposals} == {
        ("evolution", "loan_rate", "active")
    }
    assert (record.version, record.next_version) == (1, 2)
    shown = [
        policy.tokenizer.decode(one.sequences[0].prompt) for one in source.rollouts(1, Share())
    ]
    assert all("36, 48 or 60 months only" in prompt for prompt in shown)


def test_one_of_several_blocks_of_a_step_is_taken(begin):
    """Blocks that word the same text otherwise conflict with it; half a block is told, not taken."""
    blocks = [
        BLOCK.format(terms="36 months"),
        BLOCK.format(terms="36 months").partition("</description>")[0],
        BLOCK.format(terms="36 or 48 months"),
        "",
    ]
    policy, source = begin(blocks)
    LeanEngine().train(policy, source, steps=1)
    (record,) = source.records
    assert [one.state for one in record.proposals].count("active") == 1
    refused = {one.codes for one in record.proposals if one.state == "rejected"}
    assert refused == {("conflict",), ("half_block",)}
    assert record.next_version == 2
