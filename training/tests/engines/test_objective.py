"""The objective: groups and advantages, packed sequences, the loss of a token."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings, strategies as st

from agentkit_training import Rollout, TokenSequence, tiny_policy
from agentkit_training.engines.objective import (
    BatchSize,
    Objective,
    divergences,
    is_clipped,
    token_losses,
    token_share,
)
from agentkit_training.engines.packing import (
    group_advantages,
    groups,
    packed_scores,
    packs,
    training_rows,
    weighted,
)
from agentkit_training.engines.trl.feed import batch_rows

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=12)
LOGPROB = st.floats(-8, -0.01)
ADVANTAGE = st.floats(-3, 3)
BOUND = st.floats(0.05, 0.5)


@given(new=LOGPROB, old=LOGPROB, advantage=ADVANTAGE, low=BOUND, high=BOUND)
def test_the_clipped_loss_is_that_of_ppo(new, old, advantage, low, high):
    """The loss is -min(rho A, clip(rho) A) (ToolDNA, Eq. 1), in other words -rho A until bounded."""
    objective = Objective(clip_low=low, clip_high=high)
    now, was = torch.tensor([new], dtype=torch.float64), torch.tensor([old], dtype=torch.float64)
    gain = torch.tensor([advantage], dtype=torch.float64)
    found = token_losses(now, old=was, advantages=gain, reference=None, objective=objective)
    ratio = float(torch.exp(now - was))
    bound = max(ratio, 1 - low) if advantage < 0 else min(ratio, 1 + high)
    assert float(found) == pytest.approx(-bound * advantage)


@given(new=LOGPROB, old=LOGPROB, advantage=ADVANTAGE.filter(lambda one: abs(one) > 1e-3))
def test_a_clipped_token_has_no_gradient(new, old, advantage):
    """Tokens told as clipped are those whose loss does not depend on the weights."""
    objective = Objective()
    now = torch.tensor([new], dtype=torch.float64, requires_grad=True)
    was, gain = torch.tensor([old], dtype=torch.float64), torch.tensor([advantage])
    token_losses(
        now, old=was, advantages=gain, reference=None, objective=objective
    ).sum().backward()
    told = bool(is_clipped(now.detach(), old=was, advantages=gain, objective=objective))
    assert told == (float(now.grad) == 0)


@given(new=LOGPROB, reference=LOGPROB)
def test_the_divergence_is_never_negative(new, reference):
    """Schulman's estimate is 0 for equal log-probabilities and positive for all others."""
    found = divergences(torch.tensor([new]), torch.tensor([reference]))
    assert float(found) >= 0
    assert float(divergences(torch.tensor([new]), torch.tensor([new]))) == 0


def test_the_divergence_is_that_of_the_distributions_in_the_mean():
    """Over tokens of the policy the estimate's mean is KL(policy || reference)."""
    ours = torch.log_softmax(torch.tensor([0.3, -1.0, 2.0]), -1)
    theirs = torch.log_softmax(torch.tensor([1.0, 0.5, 0.0]), -1)
    mean = (ours.exp() * divergences(ours, theirs)).sum()
    assert float(mean) == pytest.approx(float((ours.exp() * (ours - theirs)).sum()), rel=1e-5)


@given(outputs=st.lists(LENGTHS, min_size=1, max_size=8))
def test_shares_make_the_means_that_their_names_say(outputs):
    """grpo: each output counts alike; dapo and bnpo: each token; dr_grpo: a constant."""
    tokens = sum(map(sum, outputs))
    size = BatchSize(outputs=len(outputs), tokens=tokens)

    def sums(loss_type):
        objective = Objective(loss_type=loss_type)
        return [
            sum(
                one * token_share(one, one / sum(lengths), size=size, objective=objective)
                for one in lengths
            )
            for lengths in outputs
        ]

    count = len(outputs)
    assert sums("grpo") == pytest.approx([1 / count] * count)
    assert sums("dapo") == sums("bnpo") == pytest.approx([sum(one) / tokens for one in outputs])
    assert sums("dr_grpo") == pytest.approx([sum(one) / (256 * count) for one in outputs])


@pytest.mark.parametrize("loss_type", ["grpo", "bnpo", "dapo", "dr_grpo"])
def test_empty_batches_divide_nothing_by_zero(loss_type):
    """No outputs, or none with tokens, have shares all the same."""
    objective = Objective(loss_type=loss_type)
    for outputs in (0.0, 2.0):
        size = BatchSize(outputs=outputs, tokens=0)
        assert 0 <= token_share(0, 0.5, size=size, objective=objective) <= 1


REWARDS = st.floats(-2, 2).map(lambda one: round(one, 3))
WEIGHTS = st.floats(0.5, 2)


@st.composite
def rollouts(draw):
    """Rollouts of some tasks, as many attempts at each as come, in any order; some with a fault."""
    found = []
    for place in range(draw(st.integers(1, 14))):
        sequence = TokenSequence(
            prompt=(1,), completion=(place,), written=(True,), logprobs=(-1.0,)
        )
        one = Rollout(
            task_id=draw(st.sampled_from("abc")),
            attempt=place,
            episodes=(),
            sequences=(sequence,) * draw(st.integers(0, 2)),
            library_version=0,
            reward=draw(REWARDS),
            weight=draw(WEIGHTS),
            fault=draw(st.sampled_from(["", "", "", "broken"])),
        )
        found.append(one)
    return found


def by_token(rows):
    """The advantage of each rollout, by the token that it wrote."""
    return {row.sequence.completion[0]: row.advantage for row in rows}


@given(st.lists(REWARDS, min_size=1, max_size=9), st.booleans())
def test_advantages_are_about_the_mean(rewards, scaled):
    """They sum to nothing, rise with the reward, and are 0 where all rewards are equal."""
    found = group_advantages(rewards, scaled=scaled)
    assert sum(found) == pytest.approx(0, abs=1e-6)
    ordered = [one for _, one in sorted(zip(rewards, found, strict=True))]
    assert ordered == sorted(ordered)
    if len(set(rewards)) == 1:
        assert set(found) == {0.0}


# Half of the smallest number there is is 0, which says nothing about weights.


@pytest.mark.parametrize("weight", [0.0, -1.0])
def test_a_weight_that_would_turn_an_advantage_is_refused(weight):
    """Only positive weights keep the sign."""
    with pytest.raises(ValueError, match="only positive ones keep the sign"):
        weighted([1.0, -1.0], [1.0, weight])


@given(rollouts(), st.randoms(use_true_random=False))
def test_the_order_of_rollouts_changes_no_advantage(found, dice):
    """Attempts at a task are compared with each other wherever they stand in a step."""
    mixed = list(found)
    dice.shuffle(mixed)
    wanted, other = by_token(training_rows(found)), by_token(training_rows(mixed))
    assert wanted == pytest.approx(other, abs=1e-9)


@given(rollouts())
def test_every_sequence_of_a_rollout_has_its_advantage(found):
    """A rollout of several sequences pulls all of them one way; TRL's log has its reward for each."""
    rows, rewards, _ = batch_rows(found)
    assert len(rows) == sum(len(one.sequences) for one in found if not one.fault)
    reward = {one.attempt: one.reward for one in found}
    assert list(rewards) == [reward[row.sequence.completion[0]] for row in rows]
    for group in groups(found):
        sound = [one for one in group if not one.fault]
        plain = group_advantages([one.reward for one in sound])
        for one, advantage in zip(sound, plain, strict=True):
            own = [row.advantage for row in rows if row.sequence.completion == (one.attempt,)]
            assert own == [pytest.approx(advantage * one.weight)] * len(one.sequences)


@given(rollouts())
def test_the_sequences_of_a_rollout_are_parts_of_one_output(found):
    """However many sequences a rollout wrote, and wherever a batch is cut, it weighs 1 in all."""
    parts = Counter()
    for row in training_rows(found):
        parts[row.sequence.completion[0]] += row.part
    wanted = {one.attempt: 1.0 for one in found if one.sequences and not one.fault}
    assert dict(parts) == pytest.approx(wanted)


POLICY = tiny_policy()
TOKENS = st.integers(0, 400)


def sequence(prompt, completion):
    return TokenSequence(
        prompt=tuple(prompt),
        completion=tuple(completion),
        written=(True,) * len(completion),
        logprobs=(0.0,) * len(completion),
    )


def alone(prompt, completion):
    """The log-probabilities as the plain model computes them, one sequence at a time."""
    ids = torch.tensor([[*prompt, *completion]])
    logits = POLICY.model(input_ids=ids).logits[0, len(prompt) - 1 : -1].float()
    return torch.log_softmax(logits, -1).gather(1, ids[0, len(prompt) :, None])[:, 0]


@settings(max_examples=20, deadline=None)
@given(
    prompt=st.lists(TOKENS, min_size=1, max_size=12),
    completions=st.lists(st.lists(TOKENS, min_size=1, max_size=9), min_size=1, max_size=5),
)
def test_a_pack_is_read_as_its_parts_alone(prompt, completions):
    """Log-probabilities of a pack equal those of its sequences read one by one."""
    sequences = [sequence(prompt, one) for one in completions]
    with torch.no_grad():
        for places, pack in packs(sequences, max_tokens=10_000):
            found = packed_scores(POLICY, pack, 1.0).logprobs
            wanted = torch.cat([alone(prompt, completions[place]) for place in places])
            assert torch.allclose(found, wanted, atol=1e-5)


@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=12),
    prompts=st.integers(1, 3),
    limit=st.integers(4, 40),
)
def test_packs_hold_every_sequence_once(lengths, prompts, limit):
    """Each sequence is in one pack, beside others of its prompt, within the limit if possible."""
    sequences = [sequence([n % prompts] * 3, [5] * length) for n, length in enumerate(lengths)]
    seen = []
    for places, pack in packs(sequences, max_tokens=limit):
        seen += places
        assert {sequences[place].prompt for place in places} == {pack.prompt}
        assert len(pack) <= limit or len(places) == 1
    assert sorted(seen) == list(range(len(lengths)))
