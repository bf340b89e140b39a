"""Verdicts that came after their episode, beside it."""

from __future__ import annotations

from dataclasses import replace

from agentkit.episodes import Diagnosis, Episode, Turn, Verdict
from agentkit.episodes.labels import is_late_verdict, with_late_verdicts
from agentkit.messages import AssistantMessage

EPISODE = Episode(
    episode_id="e",
    request="Hi",
    turns=(Turn(message=AssistantMessage(text="Hello")),),
    verdict=Verdict(passed=True, score=1.0),
    diagnosis=Diagnosis(label="pass"),
)


def said(record_id, *, passed=False, of="e", fault=None, **labels):
    """A verdict beside an episode."""
    return Episode(
        episode_id=record_id,
        request="Hi",
        verdict=Verdict(passed=passed, score=float(passed), fault=fault),
        metadata={"view_of": of, **labels},
    )


def test_the_latest_verdict_counts():
    """Of two that came later the later one does, in whatever order they are given."""
    records = [said("2", passed=True), EPISODE, said("1")]
    for given_in in (records, records[::-1]):
        (found,) = with_late_verdicts(given_in)
        assert (found.verdict, found.turns) == (records[0].verdict, EPISODE.turns)


def test_a_diagnosis_of_the_other_outcome_is_left_out():
    """One that explains what is still so is kept."""
    (turned,) = with_late_verdicts([EPISODE, said("1", passed=False)])
    (same,) = with_late_verdicts([EPISODE, said("1", passed=True)])
    assert (turned.diagnosis, same.diagnosis) == (None, EPISODE.diagnosis)


def test_a_verdict_with_a_fault_takes_nothings_place():
    """A verifier that broke tonight does not wipe out what a person said before."""
    records = [EPISODE, said("1", passed=False), said("2", fault="gold_error")]
    assert with_late_verdicts(records)[0].verdict == records[1].verdict
    assert with_late_verdicts([EPISODE, records[2]])[0].verdict == EPISODE.verdict
    unjudged = replace(EPISODE, verdict=None)
    assert with_late_verdicts([unjudged, records[2]])[0].verdict == records[2].verdict


def test_sides_of_shadow_runs_are_no_verdicts():
    """What was said of calls that nobody ran says nothing of the answer."""
    view = replace(
        EPISODE, episode_id="v", verdict=Verdict(passed=False), metadata={"view_of": "e"}
    )
    shadow = said("s", shadow_of="v")
    of_view = said("t", of="v")
    assert not is_late_verdict(view)
    assert not is_late_verdict(shadow)
    assert with_late_verdicts([EPISODE, view, shadow, of_view]) == (EPISODE,)


def test_a_verdict_on_a_verdict_is_about_the_episode():
    """It is followed to what it is about; a circle leads nowhere."""
    (found,) = with_late_verdicts([EPISODE, said("1", passed=True), said("2", of="1")])
    assert not found.verdict.passed
    assert with_late_verdicts([said("1", of="2"), said("2", of="1"), EPISODE]) == (EPISODE,)
