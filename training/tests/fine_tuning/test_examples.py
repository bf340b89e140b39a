"""Examples, demonstrations and batches: the prompts of rollouts, gold answers, loss on answers alone."""

import asyncio
import dataclasses
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st

from agentkit.errors import UsageError
from agentkit.library import Library
from agentkit.models.prompt_format import parse_calls
from agentkit_training import collect, tiny_policy
from agentkit_training.errors import PolicyError
from agentkit_training.fine_tuning.examples import Example, Prompting, closing_token, make_examples
from agentkit_training.fine_tuning.teaching import make_demonstrations
from agentkit_training.fine_tuning.training import (
    IGNORED,
    block,
    block_loss,
    mean_loss,
    parts,
    step_orders,
)
from agentkit_training.tasks.arithmetic import arithmetic, arithmetic_episodes
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
    written = tiny_policy(chat_template="chatml-tools").tokenizer.chat_template
    needs_tools = written.replace("and message.tool_calls", "and tools and message.tool_calls")
    policy = tiny_policy(chat_template=needs_tools)
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


TASKS = arithmetic(train=1).train
GOLD = {one.metadata["task"]: one for one in arithmetic_episodes(TASKS)}


@pytest.fixture
def roomy():
    """A random policy whose window takes whole trajectories."""
    return tiny_policy(context_tokens=2048)


def demonstrations_of(policy, gold=GOLD, **more):
    return asyncio.run(make_demonstrations(policy, TASKS, gold, **more))


def test_all_answers_of_a_trajectory_are_taught_and_nothing_else(roomy):
    """What bears loss is the gold calls, turn by turn, and the last words; results do not."""
    found = demonstrations_of(roomy)
    assert not found.left_out
    for row, task in zip(found.rows, TASKS.tasks, strict=True):
        tokens = [t for t, own in zip(row.completion, row.taught, strict=True) if own]
        assert row.loss_tokens == len(tokens) < len(row.completion)
        end = roomy.tokenizer.decode([row.completion[-1]])
        said = roomy.tokenizer.decode(tokens).split(end)[:-1]
        calls = [call for text in said for call in parse_calls(text).calls]
        wanted = [(one.name, one.arguments) for one in task.expects[0].calls]
        assert [(one.name, one.arguments) for one in calls] == wanted
        assert said[-1] == f'{{"answer": "{task.expects[0].state["result"]}"}}'


def test_results_are_those_of_the_world(roomy):
    """The text between the answers holds what the tools of the task's own world gave."""
    row, *_ = demonstrations_of(roomy).rows
    first, *_ = next(iter(GOLD.values())).results
    assert f"Result of {first.name}: {first.value}" in roomy.tokenizer.decode(row.completion)


def test_a_trajectory_that_does_not_solve_its_task_is_left_out(roomy):
    """The task's verifier has the last word about what is taught."""
    (task, episode), *rest = GOLD.items()
    cut = replace(episode, turns=(episode.turns[0], episode.turns[-1]))
    found = demonstrations_of(roomy, {task: cut, **dict(rest)})
    assert len(found.rows) == len(rest)
    (left,) = found.left_out
    assert left.where == task
    assert left.reason.startswith("the gold trajectory does not solve the task: ")


def test_the_chat_template_may_not_write_the_tools():
    """Demonstrations have one form of calls."""
    with pytest.raises(PolicyError, match="use tools_in='prompt'"):
        demonstrations_of(
            tiny_policy(chat_template="chatml-tools"), prompting=Prompting(tools_in="template")
        )


def test_tokens_that_are_read_bear_no_loss():
    """The labels of a block leave out what tools said."""
    one = Example(task_id="1", prompt=(5,), completion=(6, 7, 8), written=(True, False, True))
    assert one.loss_tokens == 2
    assert block([one], pad=0).labels.tolist() == [[6, IGNORED, 8]]
    with pytest.raises(UsageError, match="says of 1 tokens"):
        Example(task_id="1", prompt=(5,), completion=(6, 7), written=(True,))


POLICY = tiny_policy()
TOKENS = st.lists(st.integers(0, 299), min_size=1, max_size=12).map(tuple)
EXAMPLES = st.lists(
    st.builds(lambda p, c: Example(task_id="t", prompt=p, completion=c), TOKENS, TOKENS),
    min_size=1,
    max_size=6,
)


def alone(example):
    """The sum of ``-log p`` of the completion, by the plain model on the whole row."""
    ids = torch.tensor([[*example.prompt, *example.completion]])
    scores = POLICY.model(input_ids=ids).logits[0, len(example.prompt) - 1 : -1]
    return torch.nn.functional.cross_entropy(
        scores, torch.tensor(example.completion), reduction="sum"
    )


@settings(max_examples=20, deadline=None)
@given(examples=EXAMPLES)
def test_a_block_has_the_loss_of_its_examples_alone(examples):
    """Padding and cut logits change nothing: the loss is that of each example read by itself."""
    with torch.no_grad():
        found = block_loss(POLICY, block(examples, pad=POLICY.pad_id))
        wanted = sum(alone(one) for one in examples)
    assert float(found) == pytest.approx(float(wanted), rel=1e-5)


@given(examples=EXAMPLES, bound=st.integers(1, 60))
def test_parts_hold_each_example_once_within_the_bound(examples, bound):
    """A step's parts are its examples, none above the bound unless it is one long example."""
    found = list(parts(examples, input_tokens=bound))
    assert sorted(map(id, (one for part in found for one in part))) == sorted(map(id, examples))
    for part in found:
        assert len(part) == 1 or max(map(len, part)) * len(part) <= bound


@settings(max_examples=10, deadline=None)
@given(examples=EXAMPLES, bound=st.integers(1, 60))
def test_the_bound_does_not_change_the_loss(examples, bound):
    """However small the parts are, the mean is over all tokens that bear loss."""
    whole = mean_loss(POLICY, examples)
    assert mean_loss(POLICY, examples, input_tokens=bound) == pytest.approx(whole, rel=1e-5)


@given(
    count=st.integers(1, 40),
    batch_size=st.integers(1, 9),
    epochs=st.integers(1, 3),
    seed=st.integers(0, 3),
)
def test_each_epoch_sees_each_example_once(count, batch_size, epochs, seed):
    """Orders are drawn from the seed, one for each epoch."""
    orders = step_orders(count, batch_size=batch_size, epochs=epochs, seed=seed)
    steps = -(-count // batch_size)
    assert len(orders) == epochs * steps
    for epoch in range(epochs):
        seen = [one for step in orders[epoch * steps : (epoch + 1) * steps] for one in step]
        assert sorted(seen) == list(range(count))
    assert orders == step_orders(count, batch_size=batch_size, epochs=epochs, seed=seed)
