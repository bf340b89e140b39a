"""Agents as tools of other agents: answers, limits, links, and what can go wrong."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agentkit import Agent, RunContext, tool
from agentkit.agent import Limits
from agentkit.errors import ModelConnectionError, UsageError
from agentkit.library import EpisodeFilter
from agentkit.messages import AssistantMessage, ToolCall, Usage
from agentkit.models import ModelResponse
from agentkit.testing import FunctionModel, ScriptedModel


def call(name, **arguments):
    return [ToolCall(call_id="1", name=name, arguments=arguments)]


def desk(expert, *script, **options):
    """An agent that asks an expert once, and says what came."""
    said = script or (lambda request: request.messages[-1].text,)
    answers = iter([call(expert.name, request="Price of A17?"), *said])

    def answer(request):
        following = next(answers)
        return following(request) if callable(following) else following

    return Agent(FunctionModel(answer), tools=[expert.as_tool()], **options)


def test_an_agent_answers_another_one(store):
    """Its answer is the result, its run an episode that names the one above and who asked."""
    expert = Agent(ScriptedModel(["12 euros.", "8.", "12."]), name="billing", store=store)
    result = desk(expert).run_sync("What does A17 cost?", metadata={"user": "ann", "task": "t1"})
    assert result.output == "12 euros."
    (child,) = store.select(EpisodeFilter(labels={"parent_run": result.episode.episode_id}))
    assert child.request == "Price of A17?"
    assert child.metadata["user"] == "ann"
    assert "task" not in child.metadata
    assert child.metadata["conversation"] == result.episode.episode_id
    served = {"user": "ann", "key": "shop", "witness": "shop", "request_id": "r1"}
    below = desk(expert).run_sync("And B2?", metadata=served)
    (child,) = store.select(EpisodeFilter(labels={"parent_run": below.episode.episode_id}))
    assert served.items() <= child.metadata.items()  # who asks stays one witness
    again = desk(expert, store=store).run_sync("Again?", session_id="s1")
    (second,) = store.select(EpisodeFilter(labels={"parent_run": again.episode.episode_id}))
    assert second.metadata["conversation"] == "s1"


def test_a_run_within_another_one_is_of_its_conversation(store):
    """A tool of one's own that asks an agent links its run as ``as_tool`` does."""
    expert = Agent(ScriptedModel(["12 euros."]), name="billing", store=store)

    @tool
    async def ask_billing(ctx: RunContext, request: str) -> str:
        """Ask the billing desk."""
        done = await expert.run(request, within=ctx, metadata={"user": "bob"})
        return done.output

    model = ScriptedModel([call("ask_billing", request="Price of A17?"), "12 euros."])
    result = Agent(model, tools=[ask_billing], store=store).run_sync("What is it?", session_id="s1")
    (child,) = store.select(EpisodeFilter(labels={"parent_run": result.episode.episode_id}))
    assert (child.metadata["conversation"], child.metadata["user"]) == ("s1", "bob")


def test_it_shares_deps_and_limits():
    """The expert's tools find the caller's deps, and what it spends counts for the caller."""

    @tool(effects=["reads"])
    def who(ctx: RunContext[str]) -> str:
        """Who asks."""
        return ctx.deps

    def spend(request):
        last = request.messages[-1]
        if last.role != "tool":
            return call("who")
        return last.text

    expert = Agent(FunctionModel(spend), tools=[who], deps_type=str, name="expert")
    assert desk(expert, deps_type=str).run_sync("?", deps="ann").output == "ann"

    with pytest.raises(UsageError, match="make it with deps_type=str"):
        desk(expert)

    dear = ScriptedModel(
        [ModelResponse(message=AssistantMessage(text="Done."), usage=Usage(completion_tokens=90))]
    )
    limited = desk(Agent(dear, name="expert"), limits=Limits(max_tokens=50))
    result = limited.run_sync("?")
    assert result.stop_reason == "token_limit"
    assert result.usage.total_tokens >= 90


def test_it_reads_where_its_tools_only_read():
    """What it may do is what its tools may do."""

    @tool(effects=["writes"])
    def book(day: str) -> str:
        """Book a day."""
        return day

    plain = Agent(ScriptedModel([]), name="plain").as_tool()
    writer = Agent(ScriptedModel([]), tools=[book], name="writer").as_tool(description="Books.")
    assert plain.definition.signature.effects.is_read_only
    assert not writer.definition.signature.effects.is_read_only
    assert writer.definition.description.summary == "Books."


def test_what_it_can_not_answer_is_a_failure_that_the_model_reads(store):
    """A model that fails, a step limit, and calls that wait for a person."""

    @tool(effects=["destructive"])
    def wipe() -> str:
        """Wipe it."""
        return "wiped"

    fails = Agent(ScriptedModel([ModelConnectionError("down")]), name="expert")
    assert "its model failed" in desk(fails).run_sync("?").output
    loops = Agent(FunctionModel(lambda _: call("none")), name="expert", limits=Limits(max_steps=2))
    assert "ended with step_limit" in desk(loops).run_sync("?").output
    waits = Agent(ScriptedModel([call("wipe"), "Gone."]), tools=[wipe], name="expert", store=store)
    told = desk(waits).run_sync("?").output
    (waiting,) = store.select()
    assert (
        f"its calls of wipe wait for a person or a value; its run is {waiting.episode_id}" in told
    )


def test_agents_that_ask_each_other_end():
    """A circle is told to the model at a depth of eight."""
    ring = {}

    @tool(name="circle")
    async def ask_on(ctx: RunContext, request: str) -> str:
        """Ask in a circle."""
        return await ring["tool"](ctx, request=request)

    def answer(request):
        last = request.messages[-1]
        return last.text if last.role == "tool" else call("circle", request="And you?")

    agent = Agent(FunctionModel(answer), tools=[ask_on], name="circle")
    ring["tool"] = agent.as_tool()
    assert "8 agents stand above it" in agent.run_sync("?").output


class Dear(FunctionModel):
    """A model whose answers cost two cents and 2,000 tokens each; counts them."""

    reports_cost = True

    def __init__(self, answer):
        super().__init__(answer)
        self.asked = 0

    async def complete(self, request):
        self.asked += 1
        answered = await super().complete(request)
        await asyncio.sleep(0.001)
        usage = Usage(requests=1, prompt_tokens=1_000, completion_tokens=1_000, cost_usd=0.02)
        return replace(answered, usage=usage)


def test_an_agent_that_is_asked_answers_when_its_caller_has_no_call_left():
    """It reads why, and its next request lets it call nothing."""

    @tool(effects=["reads"])
    def look(q: str) -> str:
        """Look."""
        return q

    def answer(request):
        if request.tool_choice == "none":
            return f"I could not look: {request.messages[-1].text}"
        return [ToolCall(call_id=f"l{len(request.messages)}", name="look", arguments={"q": "a"})]

    expert = Agent(FunctionModel(answer), tools=[look], name="expert")
    asks = [ToolCall(call_id="n", name="expert", arguments={"request": "?"})]
    caller = Agent(
        ScriptedModel([asks, "Done."]), tools=[expert.as_tool()], limits=Limits(max_calls=3)
    )
    told = caller.run_sync("?").episode.results[0].text
    assert "I could not look" in told
    assert "No call is left" in told


@pytest.mark.parametrize(
    ("limits", "most", "ends"),
    [
        (Limits(max_cost_usd=0.05), 7, "cost_limit"),
        (Limits(max_tokens=5_000), 7, "token_limit"),
        (Limits(max_calls=45), 1_000, "finished"),
    ],
)
@pytest.mark.parametrize("how", ["as_tool", "code_mode", "nested"])
def test_agents_that_are_asked_spend_what_is_left(limits, most, ends, how):
    """Side by side, in programs and below one another they end where the caller's limits do."""
    looked = []

    @tool(effects=["reads"])
    def look(q: str) -> str:
        """Look."""
        looked.append(q)
        return q

    expert_model = Dear(lambda _: call("look", q=str(len(looked))))
    expert = Agent(expert_model, tools=[look], name="expert", limits=Limits(max_steps=5))
    if how == "nested":
        asks = [ToolCall(call_id="n", name="expert", arguments={"request": "?"})]
        answer = lambda r: "no" if r.messages[-1].role == "tool" else asks  # noqa: E731
        expert = Agent(FunctionModel(answer), tools=[expert.as_tool()], name="above")
        expert.model.reports_cost = True
    many = [
        ToolCall(call_id=f"c{n}", name=expert.name, arguments={"request": "?"}) for n in range(40)
    ]
    if how == "code_mode":
        text = "return [expert(request=f'{n}') for n in [1, 2, 3, 4, 5, 6, 7, 8, 9]]"
        many = call("run_program", program=text)
    caller = Dear(lambda r: "Done." if r.messages[-1].role == "tool" else many)
    agent = Agent(caller, tools=[expert.as_tool()], limits=limits, code_mode=how == "code_mode")
    result = agent.run_sync("?")
    asked = caller.asked + expert_model.asked
    assert asked <= most
    assert len(looked) <= limits.max_calls - 1
    assert result.usage.total_tokens == asked * 2_000
    if how != "code_mode":
        assert result.stop_reason == ends


def test_an_agent_without_a_price_is_refused_below_a_cost_limit():
    """As for the agent itself, nobody could hold the limit."""
    model = ScriptedModel([])
    model.reports_cost = False
    expert = Agent(model, name="expert")
    for asked in (expert.as_tool(), expert.handoff()):
        caller = Dear(lambda _: "no")
        with pytest.raises(UsageError, match="no price is known for the model"):
            Agent(caller, tools=[asked], limits=Limits(max_cost_usd=1))
