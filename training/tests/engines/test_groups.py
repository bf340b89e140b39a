"""Groups and advantages: who is compared with whom, and which way a rollout pulls."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit_training import Rollout, TokenSequence
from agentkit_training.engines.packing import group_advantages, groups, training_rows, weighted
from agentkit_training.engines.trl.feed import batch_rows

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
@given(st.lists(st.tuples(st.floats(-3, 3, allow_subnormal=False), WEIGHTS), max_size=9))
def test_weights_keep_the_sign_of_each_advantage(pairs):
    """What is better than its group stays so, whatever its diagnosis weighs (SEAL, Eq. 12)."""
    plain, weights = [one for one, _ in pairs], [one for _, one in pairs]
    for one, other in zip(plain, weighted(plain, weights), strict=True):
        assert (one > 0, one < 0) == (other > 0, other < 0)


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
def test_a_fault_is_as_if_the_attempt_had_not_been_made(found):
    """Rollouts with a fault have no rows, and do not move the mean of their group."""
    wanted = by_token(training_rows([one for one in found if not one.fault]))
    worse = [replace(one, reward=-9.0) if one.fault else one for one in found]
    assert by_token(training_rows(found)) == by_token(training_rows(worse)) == wanted


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
