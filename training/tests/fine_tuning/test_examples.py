"""Examples: the prompts of rollouts, and gold answers as the policy would write them."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from agentkit.library import Library
from agentkit.models.prompt_format import parse_calls
from agentkit_training import collect, tiny_policy
from agentkit_training.errors import PolicyError
from agentkit_training.fine_tuning.examples import Prompting, closing_token, make_examples
from agentkit_training.toolace.difficulty import counted, gold_answers

STYLES = [Prompting(), Prompting(constrained=False), Prompting(format="python")]
TEMPLATE = Prompting(tools_in="template")


def made(policy, benchmark, **more):
    answers = gold_answers(benchmark, no_call="Nothing fits.").answers
    return asyncio.run(make_examples(policy, benchmark, answers, **more))


@pytest.mark.parametrize("style", STYLES, ids=["constrained", "json", "python"])
def test_the_prompt_is_that_of_a_rollout(policy, shop, style):
    """What is trained is token for token what the policy reads when it acts."""
    rollouts = asyncio.run(collect(style.model(policy, max_tokens=2), shop, attempts=1))
    rows = made(policy, shop, prompting=style).rows
    assert [one.prompt for one in rows] == [one.sequences[0].prompt for one in rollouts]


@pytest.mark.parametrize("style", STYLES, ids=["constrained", "json", "python"])
def test_the_answer_is_read_back_as_the_gold_calls(policy, shop, style):
    """The completion ends with the end token, and its text is the gold calls."""
    for row, task in zip(made(policy, shop, prompting=style).rows, shop.tasks, strict=True):
        assert row.completion[-1] in policy.end_ids
        text = policy.tokenizer.decode(row.completion[:-1])
        (call,) = parse_calls(text, shop.definitions).calls
        (gold,) = task.expects[0].calls
        assert (call.name, call.arguments) == (gold.name, gold.arguments)


def test_a_template_with_a_place_for_tools_writes_prompt_and_answer(shop):
    """Where the template writes tools, examples are its own text, and are read back as calls."""
    policy = tiny_policy(chat_template="chatml-tools")
    rollouts = asyncio.run(collect(TEMPLATE.model(policy, max_tokens=2), shop, attempts=1))
    rows = made(policy, shop, prompting=TEMPLATE).rows
    assert [one.prompt for one in rows] == [one.sequences[0].prompt for one in rollouts]
    for row, task in zip(rows, shop.tasks, strict=True):
        assert row.completion[-1] in policy.end_ids
        text = policy.tokenizer.decode(row.completion[:-1])
        (call,) = parse_calls(text, shop.definitions).calls
        assert call.arguments == task.expects[0].calls[0].arguments


def test_the_prompt_is_rendered_from_the_library_that_is_given(policy, shop):
    """New words for a tool are in the prompt that is trained."""
    (definition,) = shop.definitions
    words = dataclasses.replace(definition.description, summary="Look up what it costs.")
    library = Library([dataclasses.replace(definition, description=words)], version=3)
    row = made(policy, shop, library=library).rows[0]
    assert "Look up what it costs." in policy.tokenizer.decode(row.prompt)


def test_an_example_that_is_too_long_is_left_out_and_counted(policy, shop):
    """Room for no example makes none, and says how long each was."""
    found = made(policy, shop, max_tokens=50)
    assert found.rows == ()
    assert counted(found.left_out) == {"too long": 3}


def test_the_end_token_is_the_one_that_the_template_writes(policy):
    """Of several end tokens the template's own is taught; without any, an error says so."""
    both = dataclasses.replace(policy, end_ids=policy.end_ids | {0})
    assert closing_token(both) == policy.tokenizer.eos_token_id
    with pytest.raises(PolicyError, match="none of the end tokens"):
        closing_token(dataclasses.replace(policy, end_ids=frozenset({0})))
