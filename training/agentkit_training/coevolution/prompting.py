"""How a policy is asked for better descriptions beside its calls (ToolDNA, section 3.2.1)."""

from __future__ import annotations

from agentkit.evolution.proposers.blocks import OPENING
from agentkit_training.rollout.samples import Rollout

BLOCK_PROMPT = """\
If the text of a function left out something that you had to know to call it right, say it after \
your answer in one block of this form, about that function only; otherwise write no block:
<description>
Tool Name: name of the function
Tool Description: what it does, in one sentence
Required Parameters:
parameter(type): what it means and which values it takes
</description>"""
"""Asks for the labelled form of ToolDNA's figure 3. The JSON form, which feedback models are asked
for, would be taken for a call: where tools are in the prompt, an object that names a tool and has
parameters is one."""


def block_count(rollout: Rollout) -> int:
    """How many of a rollout's answers hold the beginning of a block."""
    turns = (turn for episode in rollout.episodes for turn in episode.turns)
    return sum(OPENING in turn.message.text for turn in turns)
