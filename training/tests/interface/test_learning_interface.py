"""The learning interface: cues and feedback, chosen by failures, shown in training, gone at evaluation."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import get_args

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Agent, Episode, Library, ToolDefinition, tool
from agentkit.diagnosis import FailureProfile
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.diagnosis.wording import describe_failure
from agentkit.episodes import Diagnosis, FailureLabel, Turn, TurnDiagnosis
from agentkit.errors import UsageError
from agentkit.evaluation import EvaluationSettings, ExactCalls, GoldCall
from agentkit.messages import (
    AssistantMessage,
    FailureKind,
    ToolCall,
    ToolFailure,
    ToolMessage,
    UserMessage,
)
from agentkit.models.base import ModelRequest, ModelSettings
from agentkit.testing import ScriptedModel
from agentkit.tools.rules import OneOf
from agentkit.tools.schema import detach_descriptions
from agentkit_training import PolicyModel, collect, tiny_policy
from agentkit_training.interface import (
    GUIDELINES,
    MOST_VALUES,
    FeedbackModel,
    LearningInterface,
    collect_through,
    cued,
    prevalent_labels,
    recovery_hint,
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


TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30)
FAILURES = st.builds(
    ToolFailure,
    kind=st.sampled_from(get_args(FailureKind)),
    rule=TEXTS,
    schema_excerpt=st.none() | st.just({"enum": ["kg", "lb"]}),
    nearest=st.sampled_from([(), ("weigh",)]),
    retryable=st.booleans(),
)


@tool
def weigh(item: str, unit: str = "kg") -> float:
    """Weigh an item.

    Args:
        item: What to weigh.
        unit: In which unit.
    """
    if item == "air":
        raise ValueError("air can not be weighed")
    if item == "gold":
        return {"error": "the vault is locked"}
    return 1.0


KNOWN = {"weigh": weigh.definition}


def told(failure):
    return ToolMessage(call_id="1", name="weigh", text=describe_failure("weigh", failure))


@given(FAILURES)
def test_help_is_made_of_the_definition_alone(failure):
    """Whatever failed, the help says how the tool is called and nothing of this call."""
    hint = recovery_hint(told(failure), KNOWN)
    form = "weigh(item: string, unit?: string)"
    assert hint in {
        "",
        f"It is called as {form}. Change what the error is about and keep the rest.",
    }


@pytest.mark.parametrize(
    "kind", ["tool_failed", "denied", "limit_exceeded", "unserialisable_result"]
)
def test_what_must_not_be_repeated_is_not_helped(kind):
    """Where the runtime says to go on without the call, nothing tells how to call."""
    failure = ToolFailure(kind=kind, rule="No.")
    assert recovery_hint(told(failure), KNOWN) == ""


def test_an_unknown_tool_is_answered_with_those_there_are():
    """A call of a tool that is not there lists the offered ones, not too many."""
    message = ToolMessage(
        call_id="1",
        name="way",
        text=describe_failure("way", ToolFailure(kind="unknown_tool", rule="No.")),
    )
    many = {f"tool_{at}": weigh.definition for at in range(14)}
    assert recovery_hint(message, KNOWN).startswith("Offered are weigh. ")
    assert "tool_11 and 2 more." in recovery_hint(message, many)


def calling(**arguments):
    return ToolCall(call_id="1", name="weigh", arguments=arguments)


def run(item, *, helped=False):
    """The messages that a model reads after a call, and the episode."""
    inner = ScriptedModel([[calling(item=item)], "Done."])
    model = FeedbackModel(inner) if helped else inner
    episode = Agent(model, tools=[weigh]).run_sync("Weigh it.").episode
    (message,) = [one for one in inner.requests[-1].messages if isinstance(one, ToolMessage)]
    return message.text, episode


@pytest.mark.parametrize("item", ["air", "gold", "tea"])
def test_only_what_the_model_reads_is_changed(item):
    """Results and failures are recorded as without feedback, so verdicts can not differ."""
    plain, before = run(item)
    helped, after = run(item, helped=True)
    assert before.results[0].text == after.results[0].text == plain
    assert before.results[0].failure == after.results[0].failure
    assert helped.startswith(plain)
    assert (helped == plain) == (item == "tea")
    assert ("about the state that the call met" in helped) == (item == "gold")  # an error returned


def test_help_is_refused_at_evaluation():
    """At temperature 0 a model with help does not answer."""
    request = ModelRequest(
        messages=(UserMessage(text="Hi."), AssistantMessage(text="Hi.")),
        settings=ModelSettings(temperature=0),
    )
    with pytest.raises(UsageError, match="temperature 0 evaluates"):
        asyncio.run(FeedbackModel(ScriptedModel(["No."])).complete(request))


NAMES = st.text(st.characters(codec="ascii", categories=["Ll"]), min_size=1, max_size=5)
VALUES = st.lists(st.text(max_size=6) | st.integers() | st.booleans(), min_size=1, max_size=4) | (
    st.just(list(range(MOST_VALUES + 1)))
)
WORDS = st.text(max_size=12)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "boolean", ["string", "null"]]),
        "enum": VALUES,
        "description": WORDS,
    },
)


def objects(parts):
    """Schemas of objects over ``parts``, of which some are required."""
    return st.dictionaries(NAMES, parts, max_size=4).flatmap(
        lambda properties: st.fixed_dictionaries(
            {
                "type": st.just("object"),
                "properties": st.just(properties),
                "required": st.lists(st.sampled_from(sorted(properties)), unique=True)
                if properties
                else st.just([]),
            },
            optional={"description": WORDS},
        )
    )


def arrays(parts):
    return st.fixed_dictionaries({"type": st.just("array"), "items": parts})


PARTS = st.recursive(LEAVES, lambda parts: objects(parts) | arrays(parts), max_leaves=4)
TOOLS = objects(PARTS).map(lambda schema: ToolDefinition.from_schema("tool", "A tool.", schema))


def part_at(definition, path):
    """The schema of a parameter, and whether it is required, by walking down its path."""
    part, is_required = definition.signature.parameters, False
    for step in path.split("."):
        name, *items = step.split("[]")
        is_required = name in part.get("required", ()) and not items
        part = part["properties"][name]
        for _ in items:
            part = part["items"]
    return part, is_required


def added(definition):
    """The cue behind each text that has one."""
    before, after = definition.description.parameters, cued(definition).description.parameters
    for path, text in after.items():
        old = before.get(path, "")
        assert text.startswith(old)
        if text != old:
            cue = text[len(old) :].strip()
            assert cue[0] == "["
            assert cue[-1] == "]"
            yield path, cue[1:-1]


@settings(max_examples=50)
@given(TOOLS)
def test_a_cue_states_nothing_that_the_schema_does_not(definition):
    """Required and allowed values in a cue are those of the parameter's own schema."""
    for path, cue in added(definition):
        part, is_required = part_at(definition, path)
        wanted = ["required"] if is_required else []
        if len(part.get("enum", ())) in range(1, MOST_VALUES + 1):
            values = (json.dumps(one, ensure_ascii=False) for one in part["enum"])
            wanted.append(f"one of {', '.join(values)}")
        assert cue == "; ".join(wanted)


@settings(max_examples=50)
@given(TOOLS)
def test_only_texts_of_parameters_change(definition):
    """The contract, the conditions, the summary and the schema without words stay as they are."""
    shown = cued(definition)
    assert shown.signature is definition.signature
    assert shown.specification is definition.specification
    assert (shown.name, shown.text, shown.examples) == (
        definition.name,
        definition.text,
        definition.examples,
    )
    bare, _ = detach_descriptions(definition.parameters_schema)
    assert detach_descriptions(shown.parameters_schema)[0] == bare


def test_what_a_rule_narrowed_is_in_the_cue():
    """Learned rules narrow the schema that a model reads, and the cue says what it reads."""
    schema = {"properties": {"periods": {"type": "integer"}}, "required": ["periods"]}
    loan = ToolDefinition.from_schema("loan", "A loan.", schema)
    rules = (OneOf(parameter="periods", values=(36, 48, 60)),)
    specification = dataclasses.replace(loan.specification, rules=rules)
    ruled = dataclasses.replace(loan, specification=specification)
    assert cued(ruled).description.parameters["periods"] == "[required; one of 36, 48, 60]"
