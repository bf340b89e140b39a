"""Scores out of episodes, by their labels."""

from __future__ import annotations

import pytest

from agentkit.evolution.compare import (
    canary_scores,
    shadow_pairs,
    shadow_selections,
)


@pytest.fixture
def shadow(episode):
    """An episode and the shadow run that repeats it."""

    def build(number, control, candidate, **others):
        return [
            episode(f"e{number}", number, passed=control, session_id=others.pop("session", None)),
            episode(
                f"x{number}",
                number + 30,
                passed=candidate,
                experiment="p1",
                arm="candidate",
                shadow_of=f"e{number}",
                **others,
            ),
        ]

    return build


def test_a_shadow_run_makes_a_pair_with_what_it_repeats(shadow):
    """Right and wrong become 1 and 0; the conversation is the group."""
    found = shadow_pairs([*shadow(1, False, True), *shadow(2, True, False, session="s")], "p1")
    assert [(one.task, one.control, one.candidate, one.group) for one in found] == [
        ("e1", 0, 1, ""),
        ("e2", 1, 0, "s"),
    ]


def test_faults_and_missing_verdicts_are_set_aside(shadow, episode):
    """None of these says anything about the definitions."""
    episodes = [
        *shadow(1, False, True),
        *shadow(2, None, True),
        *shadow(3, True, None),
        *shadow(4, True, False, fault="checker_error"),
        *shadow(5, True, True)[1:],  # what it repeats is not there
        *shadow(6, True, True),
        episode("x9", 50, passed=False, experiment="p1", shadow_of="e6"),  # a second run of e6
    ]
    found = shadow_pairs(episodes, "p1")
    assert [one.task for one in found] == ["e1", "e6"]


def test_a_run_that_broke_off_counts_as_a_failure(shadow):
    """Nobody judged it, but the user would have had no answer; a cancelled one says nothing."""
    broken = shadow(1, True, None, stop_reason="error") + shadow(
        2, True, None, stop_reason="step_limit"
    )
    found = shadow_pairs([*broken, *shadow(3, True, None, stop_reason="cancelled")], "p1")
    assert [one.candidate for one in found] == [0, 0]


def test_imported_episodes_are_on_neither_side(shadow, episode):
    """Labels and verdicts of a file decide no experiment; its verdicts on our episodes neither."""
    forged = [
        episode("f1", 3, passed=True, experiment="p1", arm="candidate", imported="theirs.jsonl"),
        *shadow(4, False, True, imported="theirs.jsonl"),
        episode(
            "f2", 5, passed=True, experiment="p1", arm="control", view_of="e1", imported="x.jsonl"
        ),
    ]
    ours = episode("e1", 6, passed=False, experiment="p1", arm="control")
    assert [one.session for one in canary_scores([*forged, ours], "p1")] == ["e1"]
    assert shadow_pairs(forged, "p1") == shadow_selections(forged, "p1") == ()


def test_canary_takes_the_first_judged_episode_of_each_session(episode):
    """Later ones depend on it; the arm of a session is that of its first episode."""
    episodes = [
        episode("e2", 2, passed=False, session_id="s1", experiment="p1", arm="candidate"),
        episode("e1", 1, passed=True, session_id="s1", experiment="p1", arm="control"),
        episode("e3", 3, passed=False, experiment="p1", arm="candidate"),
        episode("e4", 4, experiment="p1", arm="control"),
        episode("e5", 5, passed=True, experiment="p1", arm="neither"),
        episode("e6", 6, passed=True, fault="gold_error", experiment="p1", arm="control"),
    ]
    found = canary_scores(episodes, "p1")
    assert [(one.session, one.arm, one.score) for one in found] == [
        ("s1", "control", 1),
        ("e3", "candidate", 0),
    ]


def test_verdicts_say_which_selections_can_be_lost(shadow):
    """A wrong episode has nothing to lose; a run found right may choose as it likes."""
    episodes = [*shadow(1, False, True), *shadow(2, True, True), *shadow(3, True, False)]
    found = shadow_selections(episodes, "p1")
    assert [(one.task, one.accepted) for one in found] == [("e2", True), ("e3", False)]
