"""The record of a step: what a log, a plot and another process need."""

from __future__ import annotations

import json

from agentkit_training.coevolution.records import CoevolutionStep, Memory
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.interface import LearningInterface
from agentkit_training.weighting import FixedWeighting


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


def test_weights_and_interface_follow_the_failures(begin):
    """With SEAL's switches on, failures weigh more, and the next prompt says what is lacking."""
    settings = CoevolutionSettings(interface=True, weighting=True)
    interface = LearningInterface(guidelines="by_profile", turns=1.0)
    weighting = FixedWeighting(clip=(0.5, 4.0))
    run = begin(settings, interface=interface, weighting=weighting).train(1)
    assert run.source.records[0].rollouts.weight > 1
    shown = run.source._interface()
    assert shown.labels == ("argument_mismatch",)
    assert shown.instructions()
