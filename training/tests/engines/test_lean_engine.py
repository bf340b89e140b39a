"""The lean engine learns, resumes from where it was saved, and counts what had something to teach."""

import asyncio
import dataclasses
import math

import pytest
import torch
from hypothesis import given, strategies as st

from agentkit.errors import UsageError
from agentkit_training import PolicyModel, Rollout, TokenSequence, collect, tiny_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.engines.lean import LeanEngine
from agentkit_training.engines.objective import Limits, Objective
from agentkit_training.engines.packing import TrainingRow, mini_batches, training_rows
from agentkit_training.engines.scoring import token_logprobs
from agentkit_training.engines.trl.engine import TrlEngine
from agentkit_training.engines.update import update
from agentkit_training.errors import CheckpointError, DivergedError
from agentkit_training.rewards import rewarded

FAST = OptimizerSettings(learning_rate=3e-3)
SMALL = OptimizerSettings(learning_rate=1e-5)


def even(rollout):
    """The share of even tokens: an aim that any policy can learn."""
    ids = [one for sequence in rollout.sequences for one in sequence.completion]
    return {"even": sum(token % 2 == 0 for token in ids) / len(ids)}


class Shop:
    """A source that lets a policy try the same tasks in each step."""

    def __init__(self, policy, benchmark, reward=even):
        self.model = PolicyModel(policy, max_tokens=12)
        self.benchmark = benchmark
        self.reward = reward
        self.means = []

    def rollouts(self, step, share):
        asked = collect(self.model, self.benchmark, attempts=8, seed=1000 * step)
        judged = rewarded(asyncio.run(asked), self.reward)
        self.means.append(sum(one.reward for one in judged) / len(judged))
        return judged

    def finished(self, report):
        self.last = report


def weights(policy):
    return torch.cat([one.detach().flatten() for one in policy.model.parameters()])


def test_the_reward_rises(policy, shop):
    """Some twenty steps make a random policy prefer what is rewarded."""
    source = Shop(policy, shop)
    LeanEngine(optimizer=FAST).train(policy, source, steps=24)
    assert sum(source.means[-4:]) / 4 > sum(source.means[:4]) / 4 + 0.1


def test_equal_rewards_change_nothing(policy, shop):
    """A step whose groups have no spread reads nothing and leaves the weights as they are."""
    before = weights(policy)
    source = Shop(policy, shop, reward=lambda _: {"same": 1.0})
    LeanEngine(optimizer=FAST).train(policy, source, steps=1)
    assert torch.equal(before, weights(policy))
    assert source.last.read_rows == 0


SAMPLED = Objective(old_logprobs="sampled")


def sequence(prompt, completion, logprobs=None):
    return TokenSequence(
        prompt=tuple(prompt),
        completion=tuple(completion),
        written=(True,) * len(completion),
        logprobs=tuple(logprobs or (-5.0,) * len(completion)),
    )


def rollout(task, attempt, one, reward):
    return Rollout(
        task_id=task,
        attempt=attempt,
        episodes=(),
        sequences=(one,),
        library_version=0,
        reward=reward,
    )


class Recorded:
    """A source of the same rollouts in each step, with the log-probabilities of the policy."""

    def __init__(self, policy, rewards=(0.0, 1.0, 1.0)):
        sequences = [
            sequence([5, 6, 7, task], [20 + task, 30 + attempt, 40])
            for task in range(2)
            for attempt in range(len(rewards))
        ]
        known = token_logprobs(policy, sequences)
        self.found = [
            rollout(
                str(number // len(rewards)),
                number % len(rewards),
                sequence(one.prompt, one.completion, logprobs.tolist()),
                rewards[number % len(rewards)],
            )
            for number, (one, logprobs) in enumerate(zip(sequences, known, strict=True))
        ]
        self.reports = []

    def rollouts(self, step, share):
        return self.found

    def finished(self, report):
        self.reports.append(report)


def adam(policy, rate=1e-3):
    return torch.optim.AdamW(policy.trainable, lr=rate)


def test_several_updates_go_through_the_rollouts_again(policy):
    """Two iterations of two mini-batches are four updates, and the later ones are off-policy."""
    source = Recorded(policy)
    engine = LeanEngine(optimizer=FAST, objective=SAMPLED, iterations=2, mini_batches=2)
    engine.train(policy, source, steps=1)
    (report,) = source.reports
    assert report.rows == 12
    assert report.max_log_ratio < 1e-5  # told of the first update
    (one,) = source.found[1].sequences
    (now,) = token_logprobs(policy, [one])
    assert (now - torch.tensor(one.logprobs)).abs().max() > 0.01


def test_the_bound_holds_later_updates_back(policy):
    """Many updates on the same rollouts are clipped, and the report says how many tokens were."""
    source = Recorded(policy)
    hot = OptimizerSettings(learning_rate=1e-2)
    LeanEngine(optimizer=hot, objective=SAMPLED, iterations=6).train(policy, source, steps=1)
    assert source.reports[0].clip_share > 0.3


def test_several_updates_need_the_log_probabilities_of_sampling():
    """A ratio to the current weights is 1 and bounds nothing, so that the settings are refused."""
    with pytest.raises(UsageError, match="sampled"):
        LeanEngine(iterations=2)
    with pytest.raises(UsageError, match="mini_batches"):
        LeanEngine(mini_batches=0)


@given(prompts=st.lists(st.integers(0, 4), max_size=20), count=st.integers(1, 6))
def test_mini_batches_hold_every_row_once(prompts, count):
    """Rows of a prompt stay together, and an order of the seed is the same each time."""
    rows = [
        TrainingRow(sequence=sequence([prompt], [number]), advantage=1.0)
        for number, prompt in enumerate(prompts)
    ]
    found = mini_batches(rows, count=count, seed=(1, 2))
    assert found == mini_batches(rows, count=count, seed=(1, 2))
    assert sorted(row.sequence.completion for part in found for row in part) == sorted(
        row.sequence.completion for row in rows
    )
    assert len(found) == max(1, min(count, len(set(prompts))))
    parts = [{row.sequence.prompt for row in part} for part in found]
    assert sum(map(len, parts)) == len(set().union(*parts))


def test_pieces_change_the_update_by_rounding_alone():
    """A batch that is read in the smallest pieces makes the step that one read makes."""
    steps = []
    for limits in (Limits(), Limits(tokens=1, logits=1)):
        policy = tiny_policy()
        rows = training_rows(Recorded(policy).found)
        before = weights(policy)
        report = update(policy, rows, torch.optim.SGD(policy.trainable, lr=1.0), limits=limits)
        steps.append((weights(policy) - before, report.loss))
    assert (steps[0][0] - steps[1][0]).norm() <= 1e-5 * steps[0][0].norm()
    assert steps[0][1] == pytest.approx(steps[1][1], abs=1e-6)


def test_the_report_tells_of_entropy_and_divergence(policy):
    """A random policy's entropy is near that of even chances; a reference apart from it counts."""
    rows = training_rows(Recorded(policy).found)
    report = update(
        policy, rows, adam(policy), Objective(kl_coefficient=0.1), reference=tiny_policy(seed=1)
    )
    assert report.entropy == pytest.approx(math.log(len(policy.tokenizer)), abs=0.3)
    assert report.divergence > 0
    assert report.max_log_ratio < 1e-5
    assert report.clip_share == 0


def test_tool_outputs_bear_no_loss(policy):
    """Tokens that the policy did not write have no gradient of their own."""
    one = TokenSequence(
        prompt=(5, 6),
        completion=(7, 8, 9),
        written=(True, False, True),
        logprobs=(-5.0, float("nan"), -5.0),
    )
    report = update(policy, [TrainingRow(sequence=one, advantage=1.0)], adam(policy), SAMPLED)
    assert report.loss_tokens == 2
    assert report.gradient_norm > 0


def test_a_gradient_that_is_no_number_stops_before_the_weights_change(policy):
    """An infinite loss of one token leaves the weights as they were."""
    before = weights(policy)
    rows = [TrainingRow(sequence=sequence([5], [6], [-1e9]), advantage=-1.0)]
    with pytest.raises(DivergedError, match="at step 3") as caught:
        update(policy, rows, adam(policy), SAMPLED, step=3)
    assert caught.value.step == 3
    assert torch.equal(before, weights(policy))


def test_checkpointing_activations_trains_alike():
    """With gradient checkpointing a step is the same but for rounding."""
    found = []
    for wanted in (False, True):
        policy = tiny_policy()
        source = Recorded(policy)
        LeanEngine(optimizer=FAST, gradient_checkpointing=wanted).train(policy, source, steps=1)
        found.append(source.reports[0].gradient_norm)
        assert not policy.model.is_gradient_checkpointing
    assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_a_damaged_state_is_refused(policy, tmp_path):
    """A state that can not be read, or of another model, is refused with its path."""
    engine = LeanEngine(optimizer=FAST)
    engine.train(policy, Recorded(policy), steps=1)
    engine.save(tmp_path)
    other = tiny_policy(layers=1)
    again = LeanEngine(optimizer=FAST)
    again.restore(tmp_path)
    with pytest.raises(CheckpointError, match="another"):
        again.train(other, Recorded(other), steps=2)
    (tmp_path / "lean.pt").write_bytes(b"nothing")
    again.restore(tmp_path)
    with pytest.raises(CheckpointError, match=r"lean\.pt"):
        again.train(policy, Recorded(policy), steps=2)


def test_a_state_that_can_not_be_written_leaves_the_last_one(policy, tmp_path):
    """Saving where no folder can be says so, and what is there stays."""
    engine = LeanEngine(optimizer=FAST)
    engine.train(policy, Recorded(policy), steps=1)
    (tmp_path / "file").write_text("kept")
    with pytest.raises(CheckpointError, match="can not be written"):
        engine.save(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"


def only_the_first_task(rollout):
    """All attempts at the other tasks are worth the same."""
    is_first = rollout.task_id.endswith("-0")
    return rollout if is_first else dataclasses.replace(rollout, reward=1.0)


def speechless(rollout):
    """The first attempt at each task wrote nothing."""
    if rollout.attempt:
        return rollout
    silent = tuple(
        dataclasses.replace(one, written=(False,) * len(one.written)) for one in rollout.sequences
    )
    return dataclasses.replace(rollout, sequences=silent)


@pytest.mark.parametrize("divergence", [0.0, 0.1])
@pytest.mark.parametrize("change", [only_the_first_task, speechless])
def test_rows_with_a_gradient_are_counted_alike(recorded, change, divergence):
    """An advantage or a divergence counts; rows that only fill up a batch do not."""
    told = []
    for engine in (LeanEngine, TrlEngine):
        source = recorded(change=change)
        objective = Objective(kl_coefficient=divergence)
        made = engine(objective=objective, reference=tiny_policy(seed=1), scaled=False)
        made.train(tiny_policy(), source, steps=2)
        told.append([(one.rows, one.read_rows) for one in source.reports])
    assert told[0] == told[1]
    everything = divergence and change is only_the_first_task
    assert all((read == rows) if everything else (0 < read < rows) for rows, read in told[1])
