"""``RunContext``: what tools know of the run that calls them, hidden from models."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from dataclasses import dataclass

import pytest

from agentkit import Agent, Library, RunContext, composite, tool
from agentkit.agent import ToolPolicy
from agentkit.errors import DefinitionError, UsageError
from agentkit.testing import ScriptedModel


@dataclass
class Shop:
    """What tools work with."""

    customer: str


@tool
def greet(ctx: RunContext[Shop], word: str) -> str:
    """Greet the customer.

    Args:
        ctx: Never shown to a model.
        word: How.
    """
    return f"{word} {ctx.deps.customer}"


@tool
async def greet_later(ctx: RunContext[Shop], word: str) -> str:
    """Greet the customer."""
    await asyncio.sleep(0)
    return f"{word} {ctx.deps.customer}"


@tool(effects=("reads",))
def name_of_customer(ctx: RunContext[Shop]) -> str:
    """The customer's name."""
    return ctx.deps.customer


@tool(deferred=True)
def ask_person(question: str) -> str:
    """Ask somebody."""
    raise NotImplementedError


@composite
def greet_twice(word: str) -> str:
    """Greet twice."""
    return greet(word) + ", " + greet_later(word)


ADA, BOB = Shop("Ada"), Shop("Bob")


def shop_agent(script, **options):
    tools = [greet, greet_later, name_of_customer, greet_twice, ask_person]
    return Agent(ScriptedModel(script), tools=tools, deps_type=Shop, **options)


@pytest.mark.parametrize("name", ["greet", "greet_later", "greet_twice"])
async def test_tools_and_children_of_composites_get_the_deps_of_their_run(name, call):
    """Sync, async and as children, side by side runs each see their own deps; the schema is bare."""
    script = [[call(name, word="Hi")], "done"]
    one, other = shop_agent(script), shop_agent(script)

    results = await asyncio.gather(one.run("go", deps=ADA), other.run("go", deps=BOB))

    twice = name == "greet_twice"
    expected = [f"Hi {who}, Hi {who}" if twice else f"Hi {who}" for who in ("Ada", "Bob")]
    assert [r.episode.results[0].value for r in results] == expected
    assert list(one.library[name].definition.signature.properties) == ["word"]
    assert "ctx" not in str(one.library[name].definition.to_json())


async def test_streams_and_resumed_runs_have_deps(call):
    """``stream`` and ``resume`` take deps as ``run`` does."""
    script = [[call("greet", word="Hi"), call("ask_person", question="?")], "done"]
    agent = shop_agent(script)
    events = [event async for event in agent.stream("go", deps=ADA)]
    assert events[-1].result.episode.results[0].value == "Hi Ada"

    needs_yes = tool(greet.function, requires_approval=True)
    agent = Agent(
        ScriptedModel([[call("greet", word="Hi")], "done"]), tools=[needs_yes], deps_type=Shop
    )
    waiting = await agent.run("go", deps=ADA)
    with pytest.raises(UsageError, match="deps is to be a Shop"):
        await agent.resume(waiting, approvals={"greet": True})
    resumed = await agent.resume(waiting, deps=BOB, approvals={"greet": True})
    assert resumed.episode.results[0].value == "Hi Bob"


async def test_the_context_tells_of_its_run(call):
    """Session, labels, ids, version, attempt and usage are there."""
    seen = []

    @tool(effects=("reads",), max_retries=2)
    def look(ctx: RunContext) -> int:
        """Look."""
        seen.append(ctx)
        facts = ctx.session_id, dict(ctx.metadata), ctx.run_id, ctx.library_version
        if ctx.attempt == 1:
            raise OSError
        assert (ctx.call_id, ctx.tool_name) == ("look", "look")
        assert facts == ("chat", {"user": "ada"}, "e1", agent.library.version)
        return ctx.usage.requests

    agent = Agent(
        ScriptedModel([[call("look")], "done"]),
        tools=[look],
        store="memory:",
        tool_policy=ToolPolicy(backoff_seconds=0),
    )
    result = await agent.run("go", session_id="chat", metadata={"user": "ada"}, episode_id="e1")

    assert (result.episode.results[0].value, [one.attempt for one in seen]) == (1, [1, 2])


async def test_a_context_outside_its_run_is_an_error(call):
    """Kept beyond its run it says so, and so does a tool that no run calls."""
    kept = []

    @tool
    def keep(ctx: RunContext[Shop]) -> str:
        """Keep the context."""
        kept.append(ctx)
        return ctx.deps.customer

    script = [[call("keep")], "done"]
    await Agent(ScriptedModel(script), tools=[keep], deps_type=Shop).run("go", deps=ADA)

    with pytest.raises(UsageError, match="is over, and with it the RunContext that it gave keep"):
        _ = kept[0].deps
    with pytest.raises(UsageError, match=r"no run calls it here; .* RunContext\(deps\)"):
        keep.convert({})
    assert keep(RunContext(ADA)) == "Ada"


async def test_deps_of_a_wrong_type_never_reach_a_model():
    """The run and the agent say what is wrong before anything is asked."""
    model = ScriptedModel(["never"])
    agent = Agent(model, tools=[greet], deps_type=Shop)
    for wrong in (None, "Ada"):
        with pytest.raises(UsageError, match="deps is to be a Shop"):
            await agent.run("go", deps=wrong)
    assert not model.requests

    for kind, given in ((None, {}), (str, {"deps_type": str})):
        expected = f"greet takes RunContext.Shop., .* is {'none' if kind is None else 'str'}"
        with pytest.raises(UsageError, match=expected):
            Agent(model, tools=[greet], **given)
    with pytest.raises(UsageError, match="deps_type=Shop"):
        Agent(model, library=Library([greet]))


async def test_a_thread_that_nobody_waits_for_is_told(call):
    """A blocking tool sees that its time is over, or that its run was cancelled."""
    ended = threading.Event()

    @tool(timeout_seconds=0.05, max_retries=0)
    def slow(ctx: RunContext) -> None:
        """Take long."""
        assert not ctx.cancel_token.is_set()
        if ctx.cancel_token.wait(5):
            ended.set()

    result = await Agent(ScriptedModel([[call("slow")], "done"]), tools=[slow]).run("go")

    assert result.episode.results[0].failure.kind == "timeout"
    assert await asyncio.to_thread(ended.wait, 5)


def test_values_that_models_can_not_write_point_to_the_context():
    """A handle as a plain parameter, or a context that is not first, is refused when defined."""
    with pytest.raises(DefinitionError, match=r"parameter 'db' .*take `ctx: RunContext"):

        @tool
        def query(db: sqlite3.Connection, text: str) -> str:
            """Query."""

    with pytest.raises(DefinitionError, match="'ctx' takes the RunContext; make it the first"):

        @tool
        def late(text: str, ctx: RunContext[Shop]) -> str:
            """Say."""
