"""Rollouts in verl's words, and the weights of a batch."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit_training import Rollout, TokenSequence
from agentkit_training.engines.verl.batch_weights import batch_weights
from agentkit_training.engines.verl.serving import checked, noted, token_rows
from agentkit_training.engines.verl.workspace import compute_score
from agentkit_training.errors import TrainingError

WEIGHTS = st.lists(st.floats(0.5, 2.0), min_size=1, max_size=12)


def rollout(*completions, **changes):
    sequences = tuple(
        TokenSequence(
            prompt=(1, 2, 3),
            completion=completion,
            written=tuple(token % 2 == 0 for token in completion),
            logprobs=(-1.0,) * len(completion),
        )
        for completion in completions
    )
    return Rollout(
        task_id="t", attempt=0, episodes=(), sequences=sequences, library_version=5, **changes
    )


def test_each_sequence_is_a_row_with_a_mask():
    """1 stands where the policy wrote, and lists are as long as each other."""
    first, second = token_rows(rollout((4, 5, 6), (8,)), longest=9, has_logprobs=True)
    assert (first.prompt, first.response, first.mask) == ([1, 2, 3], [4, 5, 6], [1, 0, 1])
    assert (second.response, second.logprobs) == ([8], [-1.0])


def test_responses_are_cut_where_verl_cuts_them():
    """Beyond the longest response nothing is handed over, neither tokens nor mask."""
    (row,) = token_rows(rollout((4, 5, 6)), longest=2, has_logprobs=False)
    assert (row.response, row.mask, row.logprobs) == ([4, 5], [1, 0], None)


@pytest.mark.parametrize(
    ("tried", "reason"),
    [
        (rollout((4,)), "the prompt has 3 tokens"),
        (rollout(()), "wrote nothing"),
        (rollout(), "wrote nothing"),
        (rollout((4,), fault="the tool broke"), "the tool broke"),
    ],
)
def test_what_verl_can_not_train_on_has_a_fault(tried, reason):
    """Too long a prompt is left out and not cut, for the tools stand at its beginning."""
    assert reason in checked(tried, longest_prompt=2).fault


def test_labels_version_and_weight_travel_along():
    """What is noted is plain data, with the same keys for every rollout."""
    one = noted(rollout((4,), reward=0.5, weight=1.5, reward_parts={"passed": 0.5}))
    assert (one["library_version"], one["weight"], one["reward"]) == (5, 1.5, 0.5)
    assert set(one) == set(noted(rollout(())))


@given(WEIGHTS)
def test_normalised_weights_have_a_mean_of_one(weights):
    """Over the rows that count; rows that only fill the batch up stay as they are."""
    notes = [{"weight": one, "library_version": 1} for one in weights]
    found = batch_weights([None, *notes, None], is_normalised=True).factors
    assert found[0] == found[-1] == 1.0
    assert sum(found[1:-1]) / len(weights) == pytest.approx(1)


@given(WEIGHTS)
def test_fixed_weights_are_handed_on(weights):
    """Without a scale each row has its own weight, and the mean is told (SEAL, Eq. 12)."""
    notes = [{"weight": one, "library_version": 1} for one in weights]
    found = batch_weights(notes, is_normalised=False)
    assert found.factors == tuple(weights)
    assert found.figures["agentkit/weight_mean"] == pytest.approx(sum(weights) / len(weights))


def test_a_batch_of_several_versions_is_told():
    """Where rollouts were asked with different libraries, the metrics say so."""
    notes = [{"weight": 1.0, "library_version": one} for one in (3, 4)]
    figures = batch_weights(notes, is_normalised=False).figures
    assert (figures["agentkit/library_version"], figures["agentkit/library_versions"]) == (4, 2)


def test_a_score_is_what_the_loop_found():
    """A reward manager that asks is told the reward and its parts; another loop's is an error."""
    extra = noted(rollout((4,), reward=0.5, reward_parts={"passed": 0.5}))
    assert compute_score("shop", "text", "{}", extra) == {"score": 0.5, "passed": 0.5}
    with pytest.raises(TrainingError, match="not made by AgentkitLoop"):
        compute_score("shop", "text", "{}", {"index": 0})
