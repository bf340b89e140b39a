"""Hand-off: another agent takes the conversation over, and its answer ends the run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Agent, Rewrite, RunContext, guardrail, tool
from agentkit.agent import HandedOver, Limits, RunFinished, RunStarted, ToolPolicy
from agentkit.diagnosis import FailureProfile, diagnose
from agentkit.errors import ModelConnectionError, UsageError
from agentkit.evolution.learning import uses_of
from agentkit.evolution.trajectories import is_success, trajectories_of
from agentkit.library import EpisodeFilter
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models import ModelResponse, TextDelta
from agentkit.testing import FunctionModel, ScriptedModel


def call(name, call_id="1", **arguments):
    return [ToolCall(call_id=call_id, name=name, arguments=arguments)]


TRANSFER = call("transfer_to_billing", "t")


@tool(effects=["reads"])
def look_up(order: str) -> str:
    """Look an order up."""
    return f"{order}: delivered"


def billing_of(*script, **options):
    return Agent(ScriptedModel(list(script)), name="billing", **options)


def desk_of(billing, *script, tools=(), **options):
    model = ScriptedModel(list(script))
    return Agent(model, tools=[billing.handoff(), *tools], name="desk", **options), model


def test_it_sees_the_conversation_and_answers(store):
    """History, request and earlier calls go along; its answer is the output and the last message."""
    billing = billing_of("A17 costs 12 euros.", store=store)
    desk, _ = desk_of(billing, call("look_up", order="A17"), TRANSFER, tools=[look_up])
    before = Agent(ScriptedModel(["Hello Ada."])).run_sync("I am Ada.")
    result = desk.run_sync("What does A17 cost?", history=before, metadata={"user": "ada"})
    assert (result.output, result.text) == ("A17 costs 12 euros.", "A17 costs 12 euros.")
    assert result.messages[-1] == AssistantMessage(text="A17 costs 12 euros.")
    said = [(m.role, m.text) for m in billing.model.requests[0].messages]
    assert said == [
        ("user", "I am Ada."),
        ("assistant", "Hello Ada."),
        ("user", "What does A17 cost?"),
        ("assistant", ""),
        ("tool", "A17: delivered"),
    ]
    (taken,) = store.select(EpisodeFilter(labels={"parent_run": result.episode.episode_id}))
    assert (taken.request, taken.metadata["handed_over_by"]) == ("What does A17 cost?", "desk")
    assert (taken.metadata["user"], taken.history_length) == ("ada", 2)
    handed = result.episode.turns[1].results[0]
    assert handed.value == {"agent": "billing", "run": taken.episode_id}


def test_with_one_store_evolution_and_diagnosis_see_both(store):
    """Each agent is offered its own tools, and what was called counts for one conversation."""
    hides = ToolPolicy(unbound="hide")
    billing = billing_of(
        call("look_up", order="A17"), "Paid.", tools=[look_up], store=store, tool_policy=hides
    )
    desk, model = desk_of(billing, TRANSFER, store=store, tool_policy=hides)
    result = desk.run_sync("Is A17 paid?")
    assert [tool.name for tool in model.requests[0].tools] == ["transfer_to_billing"]
    assert [tool.name for tool in billing.model.requests[0].tools] == ["look_up"]
    calls = [
        [step.tool for step in one.steps] for one in trajectories_of(store.select()).trajectories
    ]
    assert sorted(calls) == [["look_up"], ["transfer_to_billing"]]
    profile = FailureProfile()
    assert all(profile.observe(one, diagnose(one, desk.library, None)) for one in store.select())
    uses = uses_of(store.select(), passed=is_success)
    assert {(one.tool, one.query) for one in uses} >= {("look_up", "Is A17 paid?")}
    (taken,) = (one for one in store.select() if one.episode_id != result.episode.episode_id)
    assert taken.metadata["conversation"] == result.episode.episode_id


def test_a_session_goes_on_with_the_first_agent():
    """The next request reads the answer as one of the conversation."""
    desk, model = desk_of(billing_of("12 euros."), TRANSFER, "Bye.", store="memory:")
    desk.run_sync("What does A17 cost?", session_id="s")
    desk.run_sync("Thanks", session_id="s")
    assert [m.text for m in model.requests[1].messages][-2:] == ["12 euros.", "Thanks"]


def test_it_shares_deps_and_what_is_left_of_the_limits():
    """Its tools find the deps; steps, tokens and calls count for both."""

    @tool(effects=["reads"])
    def who(ctx: RunContext[str]) -> str:
        """Who asks."""
        return ctx.deps

    billing = Agent(
        FunctionModel(
            lambda r: r.messages[-1].text if r.messages[-1].role == "tool" else call("who")
        ),
        tools=[who],
        deps_type=str,
        name="billing",
    )
    desk, _ = desk_of(billing, TRANSFER, deps_type=str)
    assert desk.run_sync("?", deps="ann").output == "ann"
    with pytest.raises(UsageError, match="make it with deps_type=str"):
        desk_of(billing, TRANSFER)

    looping = Agent(
        FunctionModel(lambda _: call("who")), tools=[who], deps_type=str, name="billing"
    )
    asked = FunctionModel(lambda _: TRANSFER)
    limited = Agent(asked, tools=[looping.handoff()], deps_type=str, limits=Limits(max_steps=5))
    result = limited.run_sync("?", deps="ann")
    assert result.stop_reason == "step_limit"
    assert len(result.episode.turns) == 1  # the other four were of the other agent
    assert "ended with step_limit" in result.episode.results[0].text

    dear = ModelResponse(message=AssistantMessage(text="12."), usage=Usage(completion_tokens=90))
    desk, _ = desk_of(billing_of(dear), TRANSFER, limits=Limits(max_tokens=500))
    assert desk.run_sync("?").usage.total_tokens >= 90


@pytest.mark.parametrize(
    ("limits", "ends", "made"),
    [
        (Limits(max_calls=3), "step_limit", ["ok", "ok"]),
        (Limits(max_tokens=100), "token_limit", ["ok", "ok"]),
        (Limits(max_steps=4), "step_limit", ["ok", "ok", "ok"]),
    ],
)
def test_it_stops_where_the_caller_would(limits, ends, made, store):
    """Calls, tokens and steps that are left bound it, whatever its own limits are."""

    def look_again(_):
        message = AssistantMessage(tool_calls=tuple(call("look_up", order="A17")))
        return ModelResponse(message=message, usage=Usage(completion_tokens=60))

    billing = Agent(FunctionModel(look_again), tools=[look_up], name="billing", store=store)
    desk, _ = desk_of(billing, TRANSFER, "Later.", limits=limits)
    desk.run_sync("?")
    (taken,) = store.select()
    assert taken.stop_reason == ends
    assert [one.status for one in taken.results if one.status == "ok"] == made


@pytest.mark.parametrize(
    ("billing", "words"),
    [
        (lambda: billing_of(ModelConnectionError("down")), "its model failed"),
        (lambda: billing_of(call("pay"), "Paid.", tools=[pay]), "wait for a person"),
    ],
)
def test_one_that_does_not_answer_leaves_it_to_the_caller(billing, words):
    """The model reads why, and goes on itself."""
    desk, _ = desk_of(billing(), TRANSFER, "I will ask again later.")
    result = desk.run_sync("Pay A17")
    assert words in result.episode.results[0].text
    assert result.output == "I will ask again later."


@tool(effects=["destructive"])
def pay(order: str = "A17") -> str:
    """Pay."""
    return order


class Later:
    """An agent that is made after those that hand over to it."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, attribute):
        return getattr(self.agent, attribute)


def test_a_cycle_is_one_recorded_end(store):
    """Who had the conversation does not get it back; all runs are recorded, and few."""
    later = Later("desk")
    later.agent = Agent(ScriptedModel([]))  # its deps_type and tools are asked for
    back = Agent.handoff(later)
    billing = Agent(
        FunctionModel(lambda _: call("transfer_to_desk")), tools=[back], name="billing", store=store
    )
    desk = Agent(FunctionModel(lambda _: TRANSFER), tools=[billing.handoff()], name="desk")
    later.agent = desk
    result = desk.run_sync("?")
    assert result.stop_reason == "step_limit"
    (taken,) = store.select()
    assert taken.stop_reason == "step_limit"
    assert "a conversation is handed on only" in taken.results[0].text
    assert len(result.episode.turns) + len(taken.turns) == 10


def test_two_hand_offs_of_one_turn():
    """The first is carried out, the second refused."""
    billing, other = billing_of("12 euros."), Agent(ScriptedModel(["No."]), name="other")
    both = [*TRANSFER, *call("transfer_to_other", "o")]
    agent = Agent(ScriptedModel([both]), tools=[billing.handoff(), other.handoff()])
    result = agent.run_sync("?")
    assert result.output == "12 euros."
    assert [one.status for one in result.episode.results] == ["ok", "failed"]
    assert other.model.requests == []


async def test_a_stream_goes_on_with_its_events():
    """An event tells who took over; then come its calls and its text, in one run."""
    billing = billing_of(call("look_up", order="A17"), "12 euros.", tools=[look_up])
    desk, _ = desk_of(billing, TRANSFER)
    events = [event async for event in desk.stream("?")]
    kinds = [type(event).__name__ for event in events]
    handed = next(event for event in events if isinstance(event, HandedOver))
    assert handed.agent == "billing"
    assert kinds.index("HandedOver") < kinds.index("TextDelta") < kinds.index("RunFinished")
    assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "12 euros."
    assert sum(isinstance(event, RunStarted | RunFinished) for event in events) == 2


async def test_guardrails_of_the_caller_check_its_answer():
    """Nothing of it is shown before."""

    @guardrail("output")
    def hide(ctx, answer):
        return Rewrite(answer.replace("12", "some"))

    desk, _ = desk_of(billing_of("12 euros."), TRANSFER, guardrails=[hide])
    events = [event async for event in desk.stream("?")]
    assert [e.text for e in events if isinstance(e, TextDelta)] == ["some euros."]
    assert events[-1].result.output == "some euros."


async def test_a_hand_off_can_need_approval():
    """It waits like any call, and the other agent answers when the run is resumed."""
    billing = billing_of("12 euros.")
    asked = replace(billing.handoff(), requires_approval=True)
    desk = Agent(ScriptedModel([TRANSFER]), tools=[asked])
    waiting = await desk.run("What does A17 cost?")
    assert waiting.stop_reason == "deferred"
    result = await desk.resume(waiting, approvals={"t": True})
    assert result.output == "12 euros."
    assert billing.model.requests[0].messages[-1].text == "What does A17 cost?"


async def test_a_tool_called_outside_of_a_run():
    """There is no conversation to hand over."""
    with pytest.raises(UsageError, match="there is none here"):
        await RunContext().hand_over(billing_of("12."))
