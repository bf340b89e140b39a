"""A shadow run asks once more with the candidate, after the answer, and executes nothing."""

from __future__ import annotations

import pytest

from agentkit import Agent, tool
from agentkit.errors import (
    ModelConnectionError,
    ModelStatusError,
)
from agentkit.evolution.observers import ShadowRunner
from agentkit.evolution.serving import LedgerWatch
from agentkit.library.store import EpisodeFilter
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, Usage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel

OLD, NEW = "Old words.", "New words."


def call(name="weather", **arguments):
    return ToolCall(call_id=f"c-{name}", name=name, arguments=arguments)


def reads(request, name="weather"):
    """What a request says of a tool."""
    return next(t.description.summary for t in request.tools if t.name == name)


def reader(old, new):
    """A model that proposes other calls for other words, and answers once it has a result."""

    def answer(request):
        if isinstance(request.messages[-1], ToolMessage):
            return "done"
        return old if reads(request) == OLD else new

    return FunctionModel(answer)


def runner(store, **more):
    return ShadowRunner(store, watch=LedgerWatch(store, refresh_seconds=0), **more)


@pytest.fixture
def rains(trial):
    """The tool in code; it knows one city, and counts how often it really ran."""
    ran = []

    @tool
    def weather(city: str, days: int = 1) -> str:
        """Code's words."""
        ran.append(city)
        if city != "Oslo":
            raise LookupError(f"no such city: {city}")
        return "rain"

    trial.publish(
        type(weather.definition)(
            name="weather",
            signature=weather.definition.signature,
            description=type(weather.definition.description)(summary=OLD),
        )
    )
    return weather, ran


@pytest.fixture
def tried(trial, rains):
    """A proposal for ``weather`` that is in shadow."""
    proposal = trial.propose("weather")
    trial.step(proposal, "shadow")
    return proposal


def sides(store, proposal):
    """The candidate's records and the originals' sides, from the store."""
    found = list(
        store.select(EpisodeFilter(labels={"experiment": proposal.proposal_id}, oldest_first=True))
    )
    shadows = [one for one in found if "shadow_of" in one.metadata]
    views = {one.episode_id: one for one in found if "view_of" in one.metadata}
    return [(views[one.metadata["shadow_of"]], one) for one in shadows]


async def test_no_call_of_a_shadow_run_is_executed(store, tried, rains):
    """What the candidate proposes is looked at alone, whatever the tool does."""
    weather, ran = rains
    model = reader([call(city="Oslo")], [call(city="Bergen")])
    shadow = runner(store)

    await Agent(model, tools=[weather], store=store, observers=[shadow]).run("Rain?")
    await shadow.drain()

    assert ran == ["Oslo"]
    ((control, candidate),) = sides(store, tried)
    assert [one.arguments["city"] for one in control.calls] == ["Oslo"]
    assert [one.arguments["city"] for one in candidate.calls] == ["Bergen"]
    assert {one.status for one in (*control.results, *candidate.results)} == {"denied"}
    assert {one.attempts for one in (*control.results, *candidate.results)} == {0}


async def test_the_request_is_the_same_but_for_the_definition(store, tried, rains):
    """Instructions, history, settings and the other tools are those of the answer."""
    model = reader([call(city="Oslo")], [call(city="Oslo")])
    shadow = runner(store)
    agent = Agent(
        model, tools=[rains[0]], store=store, observers=[shadow], instructions="Be brief."
    )
    await agent.run("Rain?", session_id="s")
    await agent.run("And now?", session_id="s")
    await shadow.drain()

    asked = [r for r in model.requests if not isinstance(r.messages[-1], ToolMessage)]
    control = [r for r in asked if reads(r) == OLD]
    candidate = [r for r in asked if reads(r) == NEW]
    assert len(control) == len(candidate) == 2
    for one, other in zip(control, candidate, strict=True):
        assert one.messages == other.messages
        assert isinstance(one.messages[0], SystemMessage)
        assert (one.settings, one.tool_choice) == (other.settings, other.tool_choice)
        assert [t.name for t in one.tools] == [t.name for t in other.tools]
        assert reads(one, "tides") == reads(other, "tides")


@pytest.mark.parametrize(
    ("old", "new", "scores"),
    [
        ([call(city="Oslo")], [call(city="Oslo")], (True, True)),
        (
            [call(city="Oslo")],
            [call(city="Oslo", days=1)],
            (True, True),
        ),  # the default, spelled out
        ([call(city="Oslo")], [call(city="Bergen")], (True, False)),
        ([call(city="Oslo")], [call(town="Oslo")], (True, False)),
        ([call(city="Oslo")], "No idea.", (True, False)),
        ("No idea.", "No idea!", (True, True)),
        ([call(city="Bergen")], [call(city="Bergen")], (False, False)),
        (
            [call(city="Oslo")],
            [ToolCall(call_id="1", name="weather", arguments={}, malformed="{")],
            (True, False),
        ),
    ],
)
async def test_agreement_goes_by_what_worked(store, tried, rains, old, new, scores):
    """A side passes when each call it makes is one that worked in the run itself."""
    shadow = runner(store)
    agent = Agent(reader(old, new), tools=[rains[0]], store=store, observers=[shadow])

    await agent.run("Rain?")
    await shadow.drain()

    ((control, candidate),) = sides(store, tried)
    assert (control.verdict.passed, candidate.verdict.passed) == scores
    assert control.verdict.fault is None


async def test_the_budget_holds_for_an_hour(store, tried, rains):
    """At most one answer more than the budget; after an hour there is room again."""

    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    def answer(_):
        usage = Usage(requests=1, prompt_tokens=90, completion_tokens=10)
        return ModelResponse(message=AssistantMessage(text="done"), usage=usage)

    clock = Clock()
    model = FunctionModel(answer)
    shadow = runner(store, tokens_per_hour=250, clock=clock)
    agent = Agent(model, tools=[rains[0]], store=store, observers=[shadow])

    for _ in range(5):
        await agent.run("Rain?")
        await shadow.drain()
    assert (shadow.counts["recorded"], shadow.counts["over_budget"]) == (3, 2)
    clock.now = 3601
    await agent.run("Rain?")
    await shadow.drain()

    assert shadow.counts["recorded"] == 4


@pytest.mark.parametrize(
    "error",
    [
        ModelConnectionError("gone"),
        ModelStatusError("busy", status=429, body="", retry_after=None),
    ],
)
async def test_a_model_that_is_busy_says_nothing_of_the_candidate(store, tried, rains, error):
    """Nothing is recorded, and the loss is counted."""

    def answer(request):
        if reads(request) == NEW:
            raise error
        return "done"

    shadow = runner(store)
    agent = Agent(FunctionModel(answer), tools=[rains[0]], store=store, observers=[shadow])
    await agent.run("Rain?")
    await shadow.drain()

    assert sides(store, tried) == []
    assert shadow.counts["unavailable"] == 1


async def test_what_a_candidate_answered_is_not_repeated(store, tried, rains):
    """There is nothing to compare it with."""
    shadow = runner(store)
    model = reader([call(city="Oslo")], [call(city="Oslo")])
    agent = Agent(model, tools=[rains[0]], store=store, observers=[shadow])
    await agent.run("Rain?", metadata={"arm": "candidate"})
    await shadow.drain()

    assert (shadow.counts["skipped"], sides(store, tried)) == (1, [])
