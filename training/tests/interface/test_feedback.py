"""Feedback on failed calls in training."""

from __future__ import annotations

import asyncio
from typing import get_args

import pytest
from hypothesis import given, strategies as st

from agentkit import Agent, Library, tool
from agentkit.diagnosis.wording import describe_failure
from agentkit.errors import UsageError
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
from agentkit_training.interface import FeedbackModel, call_form, recovery_hint

TEXTS = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=30)
FAILURES = st.builds(
    ToolFailure,
    kind=st.sampled_from(get_args(FailureKind)),
    rule=TEXTS,
    schema_excerpt=st.none() | st.just({"enum": ["kg", "lb"]}),
    nearest=st.sampled_from([(), ("weigh",)]),
    retryable=st.booleans(),
)


class Scripted(ScriptedModel):
    """A scripted model that answers many runs, as a policy does."""

    def expect(self, runs):
        """It answers each request at once."""

    def forget(self):
        """It keeps nothing."""


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
    inner = Scripted([[calling(item=item)], "Done."])
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


def test_an_error_that_a_tool_returns_is_helped():
    """The runtime says nothing about such a result; training says how to go on."""
    helped, _ = run("gold", helped=True)
    assert "about the state that the call met" in helped


def test_help_is_refused_at_evaluation():
    """At temperature 0 a model with help does not answer."""
    request = ModelRequest(
        messages=(UserMessage(text="Hi."), AssistantMessage(text="Hi.")),
        settings=ModelSettings(temperature=0),
    )
    with pytest.raises(UsageError, match="temperature 0 evaluates"):
        asyncio.run(FeedbackModel(Scripted(["No."])).complete(request))


def test_a_form_names_each_parameter_of_the_schema():
    """The form of a call is the schema's names, types and what is required."""
    assert call_form(weigh.definition) == "weigh(item: string, unit?: string)"
    assert Library([weigh])["weigh"].definition == weigh.definition
