"""The record of a step: what a log, a plot and another process need."""

from __future__ import annotations

import json

import pytest

from agentkit.episodes import Episode, Turn, Verdict
from agentkit.messages import AssistantMessage
from agentkit_training.coevolution.records import CoevolutionStep, Memory
from agentkit_training.coevolution.settings import CoevolutionSettings, with_stable_ids
from agentkit_training.interface import LearningInterface
from agentkit_training.rewards import tooldna_reward
from agentkit_training.rollout.samples import Rollout
from agentkit_training.weighting import DynamicWeighting


def test_records_survive_json(begin):
    """Records and memory come back from JSON as they were."""
    run = begin(CoevolutionSettings(evidence=True, every=3)).train(2)
    for record in run.source.records:
        assert CoevolutionStep.from_json(json.loads(json.dumps(record.to_json()))) == record
    memory = run.source.memory
    assert len(memory.pending) == 12
    assert Memory.from_json(json.loads(json.dumps(memory.to_json()))) == memory


def test_the_log_gets_the_figures_of_the_report(begin):
    """A record becomes a line of the run's log: numbers, labels and what was decided, in words."""
    heard = []
    run = begin(listen=heard.append).train(1)
    assert heard == run.source.records
    line = heard[0].to_record()
    assert line.figures["library/version"] == 2
    assert line.figures["library/rendered_version"] == 1
    assert line.figures["library/accepted"] == line.figures["library/proposed"] == 1
    assert line.figures["library/edit_size"] > 0
    assert line.labels == {"argument_mismatch": 6}
    assert line.notes[0].startswith("evidence, loan_rate: active")


def test_what_a_reward_notes_is_in_the_log(begin, bank):
    """Numbers that do not count, such as ToolDNA's metrics, are logged as means over the step."""
    run = begin(CoevolutionSettings(), reward=tooldna_reward(bank, "R1")).train(1)
    line = run.source.records[0].to_record()
    assert line.figures["noted/tooldna_tool_name"] == 1
    assert line.figures["noted/tooldna_perfect_match"] == 0
    assert "reward/tooldna_tool_name" not in line.figures
    assert line.figures["reward"] == line.figures["reward/format"]


def test_a_fault_is_counted_and_taught_to_nobody(begin):
    """Rollouts whose reward raised are in the record, and the library learns nothing from them."""

    def reward(rollout):
        raise RuntimeError("no gold")

    run = begin(reward=reward).train(1)
    (record,) = run.source.records
    assert (record.rollouts.count, record.rollouts.faults) == (6, 6)
    assert record.proposals == ()
    assert record.rollouts.labels == {}
    (note,) = record.to_record().notes
    assert note == (
        "6 of 6 rollouts have a fault and are not trained on; the first: the reward raised "
        "RuntimeError: no gold"
    )


def test_equal_rewards_are_told_as_nothing_learned(begin):
    """A step whose groups have no spread says so, and what may help."""
    run = begin(reward=lambda _: {"same": 0.5}).train(1)
    line = run.source.records[0].to_record()
    assert line.figures["skipped"] == 1
    assert line.figures["gradient_norm"] == 0
    assert line.notes[-1].startswith("nothing was learned: the rewards within each group are equal")


def test_what_the_engine_says_of_the_update_is_in_the_log(begin):
    """Entropy, learning rate, tokens and the figure of health are written beside the loss."""
    numbers = iter(range(100))
    run = begin(reward=lambda _: {"place": float(next(numbers))}).train(1)
    figures = run.source.records[0].to_record().figures
    assert figures["entropy"] > 0
    assert figures["learning_rate"] > 0
    assert figures["skipped"] == pytest.approx(1 / 3)  # one of three rewards is the mean
    assert figures["read_tokens"] > figures["completion_tokens"] > 0
    assert figures["max_log_ratio"] < 1e-3
    assert not any("nothing was learned" in one for one in run.source.records[0].to_record().notes)


def test_weights_and_interface_follow_the_failures(begin):
    """With SEAL's switches on, failures weigh more, and the next prompt says what is lacking."""
    settings = CoevolutionSettings(interface=True, weighting=True)
    interface = LearningInterface(guidelines="by_profile", turns=1.0)
    weighting = DynamicWeighting(clip=(0.5, 4.0))
    run = begin(settings, interface=interface, weighting=weighting).train(1)
    assert run.source.records[0].rollouts.weight > 1
    assert run.source.weighting != weighting
    shown = run.source._interface()
    assert shown.labels == ("argument_mismatch",)
    assert shown.instructions()


def test_ids_of_episodes_say_where_they_come_from():
    """Equal runs give equal ids, also where a recovery names the episode of its failure."""
    episode = Episode(
        episode_id="random",
        request="",
        session_id="random too",
        turns=(Turn(message=AssistantMessage(text="Done.")),),
        verdict=Verdict(passed=True),
    )
    rollout = Rollout(task_id="t", attempt=1, episodes=(episode,), sequences=(), library_version=1)
    (named,) = with_stable_ids([rollout], run="r", step=12)
    assert named.episodes[0].episode_id == "r-000012-t-001-00"
    assert named.episodes[0].session_id == "r-000012-t-001"
    assert named.episodes[0].verdict == episode.verdict
