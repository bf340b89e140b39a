"""ToolACE-R: assignment and overlap equation by equation, and its iterations on a tiny policy."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.evaluation import EvaluationSettings
from agentkit.messages import ToolCall
from agentkit.metrics import calls_equal
from agentkit_training import tiny_policy
from agentkit_training.engines.base import OptimizerSettings
from agentkit_training.errors import CheckpointError
from agentkit_training.fine_tuning.examples import Prompting, make_examples
from agentkit_training.fine_tuning.training import SftSettings, sft
from agentkit_training.toolace import rounds
from agentkit_training.toolace.difficulty import gold_answers
from agentkit_training.toolace.overlap import (
    call_overlap,
    call_similarity,
    difficulty,
)
from agentkit_training.toolace.records import (
    RoundRecord,
    SelectionSettings,
    ToolAceSettings,
    select,
)
from agentkit_training.toolace.rounds import iterate

TRIP = ToolDefinition.from_schema(
    "trip",
    "A trip.",
    {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "days": {"type": "integer"},
            "class": {"type": "string", "default": "second"},
        },
    },
)
MAIL = ToolDefinition.from_schema("mail", "Send.", {"properties": {"to": {"type": "string"}}})
TOOLS = [TRIP, MAIL]


def call(name="trip", malformed=None, **arguments):
    return ToolCall(call_id="1", name=name, arguments=arguments, malformed=malformed)


CALLS = st.builds(
    lambda name, arguments: call(name, **arguments),
    st.sampled_from(["trip", "mail", "absent"]),
    st.dictionaries(
        st.sampled_from(["to", "days", "class"]),
        st.sampled_from(["Bonn", "Ulm", "3", 3, 2.0, True, 1, "second", None, [1], {"a": 1}]),
        max_size=3,
    ),
)
ANSWERS = st.lists(CALLS, max_size=5)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (call(to="Bonn", days=3), call(days="3", to="Bonn"), 1),
        (call(to="Bonn", days=3), call(to="Bonn"), 1 / 2),
        (call(to="Bonn", days=3), call(to="Bonn", days=2), 1 / 3),
        (call(to="Bonn", days=3), call(to="Ulm", days=2), 0),
        (call(to="Bonn"), call("mail", to="Bonn"), 0),
        (call(), call(), 1),
        (call(), call(to="Bonn"), 0),
        (call(to="Bonn"), call(to="Bonn", **{"class": "second"}), 1),
        (call(to="Bonn"), call(to="Ulm", **{"class": "second"}), 0),
        (call(malformed="{"), call(malformed="{"), 0),
    ],
)
def test_similarity_is_the_share_of_arguments_that_both_have(one, other, expected):
    """Eq. 2: equal arguments over distinct ones; different values of one name count twice."""
    assert call_similarity(one, other, TOOLS) == pytest.approx(expected)


def brute_force(predicted, reference):
    """Eq. 4 by trying every matching."""
    longer = max(len(predicted), len(reference))
    if not longer:
        return 1.0
    short, long = sorted((predicted, reference), key=len)
    return max(
        sum(call_similarity(a, b, TOOLS) for a, b in zip(short, order, strict=False)) / longer
        for order in itertools.permutations(long, len(short))
    )


@given(predicted=st.lists(CALLS, max_size=4), reference=st.lists(CALLS, max_size=4))
@settings(max_examples=50, deadline=None)
def test_overlap_is_the_best_over_all_matchings(predicted, reference):
    """Eq. 4 equals brute force."""
    assert call_overlap(predicted, reference, TOOLS) == pytest.approx(
        brute_force(predicted, reference)
    )


@given(predicted=ANSWERS, reference=ANSWERS)
@settings(max_examples=50, deadline=None)
def test_overlap_is_one_exactly_for_equal_answers(predicted, reference):
    """O = 1 says the same as canonical equality of the answers."""
    assert (call_overlap(predicted, reference, TOOLS) == 1) == calls_equal(
        predicted, reference, TOOLS
    )
    assert call_overlap(reference, reference, TOOLS) == 1


@given(attempts=st.lists(ANSWERS, min_size=1, max_size=4), reference=ANSWERS)
@settings(max_examples=50, deadline=None)
def test_difficulty_is_the_mean_shortfall(attempts, reference):
    """Eq. 5: D is in [0, 1], falls when an attempt gets better, is 0 only when all are right."""
    value = difficulty(attempts, reference, TOOLS)
    shortfalls = [1 - call_overlap(attempt, reference, TOOLS) for attempt in attempts]
    assert 0 <= value <= 1
    assert value == pytest.approx(math.fsum(shortfalls) / len(attempts))
    assert difficulty([*attempts[:-1], reference], reference, TOOLS) <= value + 1e-12
    assert (value == 0) == all(calls_equal(attempt, reference, TOOLS) for attempt in attempts)


RATE = OptimizerSettings(learning_rate=5e-3, schedule="cosine", warmup_ratio=0.1)
SHORT = ToolAceSettings(
    rounds=2,
    attempts=4,
    temperature=0.3,
    least_gain=-1.0,
    answer_tokens=40,
    selection=SelectionSettings(low=-1, high=2),
    evaluation=EvaluationSettings(max_steps=1),
    sft=SftSettings(optimizer=RATE, batch_size=3, epochs=10),
)
LITTLE = SftSettings(optimizer=RATE, batch_size=3, epochs=2)


@pytest.fixture(scope="module")
def half_taught():
    """Weights of a policy that begins to know the gold answers; made once."""
    taught: dict[str, torch.Tensor] = {}

    def policy_for(shop):
        policy = tiny_policy()
        if not taught:
            answers = gold_answers(shop).answers
            rows = asyncio.run(make_examples(policy, shop, answers)).rows
            sft(policy, rows, SftSettings(optimizer=RATE, batch_size=3, epochs=48))
            taught.update({n: w.clone() for n, w in policy.model.state_dict().items()})
        policy.model.load_state_dict(taught)
        return policy

    return policy_for


def run(policy, shop, settings=SHORT, **more):
    return asyncio.run(iterate(policy, shop, shop, settings, **more))


def weights(policy):
    return torch.cat([one.detach().flatten() for one in policy.model.parameters()])


def test_a_round_tells_all(half_taught, shop):
    """What a round selected, estimated and learned is in its record, with the accuracies."""
    seen = []
    short = dataclasses.replace(SHORT, sft=LITTLE)
    report = run(half_taught(shop), shop, short, listen=seen.append)
    first = report.rounds[0]
    assert first.accuracy_before == report.base_accuracy
    assert report.accuracy >= report.base_accuracy
    plain = [one for one in first.samples if "#" not in one.sample_id]
    assert [one.sample_id for one in plain] == [task.task_id for task in shop.tasks]
    assert len(first.samples) > len(plain)
    assert all(len(one.attempts) == 4 for one in first.samples)
    assert all(0 <= one.difficulty <= 1 for one in first.samples)
    assert first.examples == len(first.taken) == len(first.samples)
    assert len(first.losses) == 2 * -(-first.examples // 3)
    phases = [one.phase for one in seen if one.step is None and one.round == 1]
    assert phases == ["difficulty", "refine", "sft", "evaluate", "done"]
    assert [one.record for one in seen if one.record is not None] == list(report.rounds)
    assert report.rounds[1].accuracy_before == first.accuracy_after


def test_what_becomes_easy_is_no_longer_selected(half_taught, shop):
    """Each round estimates anew: what the policy has learned has D = 0 and is left out."""
    longer = dataclasses.replace(SHORT.sft, epochs=30)
    chosen = dataclasses.replace(
        SHORT, selection=SelectionSettings(high=2), refines=False, sft=longer
    )
    report = run(half_taught(shop), shop, chosen)
    assert report.accuracy > report.base_accuracy
    assert len(report.rounds[-1].taken) < len(report.rounds[0].taken)
    for record in report.rounds:
        easy = {one.sample_id for one in record.samples if one.difficulty == 0}
        assert easy == {one.sample_id for one in record.samples if one.excluded == "too_easy"}


def test_a_random_choice_is_another_one_in_each_round(half_taught, shop, monkeypatch):
    """Rounds draw with seeds of their own, or all of them would take the same samples."""
    seeds = []

    def noted(tasks, settings):
        seeds.append(settings.seed)
        return select(tasks, settings)

    monkeypatch.setattr(rounds, "select", noted)
    run(half_taught(shop), shop, dataclasses.replace(SHORT, refines=False, sft=LITTLE))
    assert len(set(seeds)) == len(seeds) == 2


def test_a_run_that_goes_on_equals_one_that_was_not_broken_off(half_taught, shop, tmp_path):
    """Interrupted in the second round, a run repeats that round and ends in the same weights."""
    short = dataclasses.replace(SHORT, sft=LITTLE)
    whole = half_taught(shop)
    wanted = run(whole, shop, short)

    def interrupt(progress):
        if progress.round == 2 and progress.phase == "sft":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(half_taught(shop), shop, short, folder=tmp_path, listen=interrupt)
    fresh = half_taught(shop)
    told = []
    found = run(fresh, shop, short, folder=tmp_path, listen=told.append)
    assert {one.round for one in told} == {2}
    assert [one.samples for one in found.rounds] == [one.samples for one in wanted.rounds]
    assert [one.losses for one in found.rounds] == [one.losses for one in wanted.rounds]
    assert torch.equal(weights(whole), weights(fresh))
    assert run(half_taught(shop), shop, short, folder=tmp_path) == found


def test_a_marginal_gain_ends_the_run(half_taught, shop):
    """A round that brings less than asked is the last one, and its record stays."""
    settings = dataclasses.replace(SHORT, rounds=3, least_gain=2.0, sft=LITTLE)
    report = run(half_taught(shop), shop, settings)
    assert len(report.rounds) == 1
    assert report.stopped == "marginal_gain"


def test_a_policy_that_knows_nothing_selects_nothing(shop):
    """Where every D is 1 there is nothing to learn from, and the weights stay as they are."""
    policy = tiny_policy()
    before = weights(policy)
    report = run(policy, shop, dataclasses.replace(SHORT, selection=SelectionSettings()))
    assert report.stopped == "nothing_selected"
    assert report.best == 0
    assert {one.excluded for one in report.rounds[0].samples} == {"too_difficult"}
    assert report.rounds[0].left_out == {"the first answer has no calls to refine": 3}
    assert torch.equal(weights(policy), before)


def test_a_round_that_makes_it_worse_is_not_kept(half_taught, shop, tmp_path):
    """The policy ends with the weights of the best round, be it none."""
    policy = half_taught(shop)
    before = weights(policy)
    broken = OptimizerSettings(learning_rate=1.0)
    settings = dataclasses.replace(SHORT, rounds=1, sft=SftSettings(optimizer=broken))
    report = run(policy, shop, settings, folder=tmp_path)
    assert report.best == 0
    assert report.accuracy == report.base_accuracy
    assert torch.equal(weights(policy), before)


def test_a_damaged_record_is_told():
    """A record is read back as it was; one that is none says which part is wrong."""
    record = RoundRecord(number=1, accuracy_before=0.25, losses=(1.5,), left_out={"too long": 2})
    assert RoundRecord.from_json(record.to_json()) == record
    with pytest.raises(CheckpointError, match="number"):
        RoundRecord.from_json('{"samples": []}')


def test_training_asks_with_the_words_of_evaluation(shop):
    """Instructions of the evaluation stand in every prompt that a round samples from."""
    asked = []

    class Listening(Prompting):
        def model(self, policy, **more):
            model = Prompting.model(self, policy, **more)
            complete = model.complete

            async def told(request):
                asked.append(request.messages[0].text)
                return await complete(request)

            model.complete = told
            return model

    worded = EvaluationSettings(max_steps=1, instructions="Be brief.", refine="adaptive")
    settings = dataclasses.replace(
        SHORT, rounds=1, answer_tokens=4, sft=LITTLE, evaluation=worded, prompting=Listening()
    )
    run(tiny_policy(), shop, settings)
    assert len(asked) > 12
    assert set(asked) == {"Be brief."}
