"""The learning interface: chosen by failures, shown in training, gone at evaluation."""

from __future__ import annotations

import dataclasses
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Episode, Library
from agentkit.diagnosis import FailureProfile
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import Diagnosis, FailureLabel, Turn, TurnDiagnosis
from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings, ExactCalls, GoldCall
from agentkit.messages import AssistantMessage
from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.interface import (
    GUIDELINES,
    LearningInterface,
    collect_through,
    prevalent_labels,
)

ALL = get_args(FailureLabel)
COUNTS = st.dictionaries(st.sampled_from(ALL), st.integers(1, 30), max_size=5)
ON = LearningInterface(cues="always", feedback="always", guidelines="always")


def profile_of(counts):
    """A profile of episodes of one turn each."""
    profile = FailureProfile(half_life_days=None, name="test")
    for label, count in counts.items():
        for number in range(count):
            diagnosis = Diagnosis(label="pass", turns=(TurnDiagnosis(turn=0, label=label),))
            turn = Turn(message=AssistantMessage(text=""))
            profile.observe(
                Episode(episode_id=f"{label}-{number}", request="?", turns=(turn,)), diagnosis
            )
    return profile


@settings(max_examples=30)
@given(COUNTS)
def test_prevalent_failures_are_frequent_in_share_and_number(counts):
    """A failure counts from a tenth of the turns and eight of them on, the most frequent first."""
    total = sum(counts.values())
    found = prevalent_labels(profile_of(counts))
    assert set(found) == {
        label
        for label, count in counts.items()
        if label not in NOT_FAILURES and count >= 8 and count / total >= 0.1
    }
    assert [counts[one] for one in found] == sorted((counts[one] for one in found), reverse=True)


@settings(max_examples=30)
@given(COUNTS)
def test_guidelines_are_sentences_of_the_table(counts):
    """Whatever failed and where, guidelines are fixed sentences for the failure's type."""
    interface = LearningInterface(guidelines="by_profile").updated(profile_of(counts))
    lines = interface.instructions().split("\n")[1:]
    assert len(lines) <= 3
    assert {line.removeprefix("- ") for line in lines} <= set(GUIDELINES.values())
    assert bool(lines) == bool(interface.labels)


@pytest.mark.parametrize(
    ("label", "cues", "feedback"),
    [
        ("argument_mismatch", True, False),
        ("missing_tool_call", True, False),
        ("recovery_failure", False, True),
        ("invalid_tool_call", True, True),
        ("response_mismatch", False, False),
        ("pass", False, False),
    ],
)
def test_components_are_selected_by_the_type_of_failure(label, cues, feedback):
    """Cues, feedback and guidelines come with the failures that they are for."""
    interface = LearningInterface(cues="by_profile", feedback="by_profile", guidelines="by_profile")
    assert not interface.helps
    found = interface.updated(profile_of({label: 10}))
    assert (found.has_cues, found.has_feedback) == (cues, feedback)
    assert found.has_guidelines == (label != "pass")


def test_help_goes_as_the_failure_becomes_rare():
    """The next profile replaces the last one."""
    interface = LearningInterface(guidelines="by_profile")
    before = interface.updated(profile_of({"missing_tool_call": 10, "pass": 10}))
    after = before.updated(profile_of({"missing_tool_call": 10, "pass": 100}))
    assert before.helps
    assert not after.helps


@given(COUNTS)
@settings(max_examples=10)
def test_components_that_are_off_stay_off(counts):
    """No profile switches anything on that the run has off."""
    interface = LearningInterface().updated(profile_of(counts))
    library = Library()
    assert not interface.helps
    assert interface.library(library) is library
    assert interface.instructions("Be brief.") == "Be brief."


async def test_an_interface_that_is_off_changes_no_token(shop):
    """Rollouts through an interface that is off are those of ``collect``, token for token."""
    plain = await collect(PolicyModel(tiny_policy(), max_tokens=6), shop, attempts=2)
    model = PolicyModel(tiny_policy(), max_tokens=6)
    off = LearningInterface(cues="by_profile", feedback="by_profile", guidelines="by_profile")
    through = await collect_through(off, model, shop, attempts=2)
    assert [one.sequences for one in through] == [one.sequences for one in plain]


async def test_training_reads_the_interface_and_evaluation_does_not(shop):
    """After training through an interface, evaluation reads the original prompt."""
    policy = tiny_policy()
    model = PolicyModel(policy, max_tokens=6)
    before = await collect(model, shop, attempts=1, temperature=0)
    trained = await collect_through(ON, model, shop, attempts=1)
    after = await collect(model, shop, attempts=1, temperature=0)
    assert [one.sequences for one in after] == [one.sequences for one in before]
    (shown, *_), (original, *_) = [
        [policy.tokenizer.decode(one.sequences[0].prompt) for one in rollouts]
        for rollouts in (trained, before)
    ]
    assert "What is sold. [required]" in shown
    assert "Keep in mind:" in shown
    assert "[required]" not in original
    assert "Keep in mind:" not in original


async def test_evaluation_through_an_interface_is_refused(shop):
    """Temperature 0 with anything added is a mistake, and is told."""
    with pytest.raises(UsageError, match="training alone"):
        await collect_through(ON, PolicyModel(tiny_policy()), shop, temperature=0)


async def test_gold_is_nowhere_in_what_the_interface_adds(shop):
    """A value that only the gold holds never comes into a prompt."""
    gold = ExactCalls(calls=(GoldCall(name="get_price", arguments={"item": "zqx9"}),))
    tasks = tuple(dataclasses.replace(task, expects=(gold,)) for task in shop.tasks)
    policy = tiny_policy()
    secret = dataclasses.replace(shop, tasks=tasks)
    found = await collect_through(ON, PolicyModel(policy, max_tokens=4), secret, attempts=1)
    for one in found:
        assert "zqx9" not in policy.tokenizer.decode(one.sequences[0].prompt)


async def test_verdicts_and_version_are_those_of_the_original(shop):
    """The library's version and its contracts are what they are without cues."""
    model = PolicyModel(tiny_policy(), max_tokens=4)
    library = Library(shop.definitions, version=3)
    found = await collect_through(ON, model, shop, library=library, attempts=1)
    assert {one.library_version for one in found} == {3}
    shown = ON.library(library)
    assert [one.signature for one in shown.definitions] == [
        one.signature for one in library.definitions
    ]
    assert library.definitions[0].description.parameters["item"] == "What is sold."


async def test_instructions_of_the_run_stay_in_front(shop):
    """What the run says anyway is said first, and the interface adds to it."""
    policy = tiny_policy()
    asked = EvaluationSettings(instructions="Be brief.")
    found = await collect_through(
        ON, PolicyModel(policy, max_tokens=4), shop, attempts=1, settings=asked
    )
    prompt = policy.tokenizer.decode(found[0].sequences[0].prompt)
    assert prompt.index("Be brief.") < prompt.index("Keep in mind:")


@pytest.mark.parametrize(
    ("counts", "shown"),
    [
        ({}, 3),  # nothing is known
        ({"pass": 4}, 3),  # too few turns
        ({"pass": 4, "state_mismatch": 7}, 3),  # a share that counts, in too few turns
        ({"pass": 20}, 0),
        ({"pass": 200, "state_mismatch": 9}, 0),  # a rare failure
        ({"pass": 20, "state_mismatch": 9}, 1),
    ],
)
def test_guidelines_that_do_not_wait_still_follow_the_profile(counts, shown):
    """``always`` says the first ones until a profile can tell, and nothing once it is clean."""
    interface = LearningInterface(guidelines="always").updated(profile_of(counts))
    assert interface.instructions().count("\n- ") == shown
    assert interface.has_guidelines == interface.helps == bool(shown)
