"""Canary and shadow: who is served which definition, and what is recorded of it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from support.unreliable_store import UnreliableStore

from agentkit import Agent, open_store, tool
from agentkit.agent.session import RouteRequest
from agentkit.composites.source import compose
from agentkit.errors import ModelConnectionError, ModelStatusError, StoreError
from agentkit.evolution import ToolManager
from agentkit.evolution.compare import canary_scores
from agentkit.evolution.observers import CanaryJudge, ShadowRunner
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.library import Author, LibraryChange, Replica
from agentkit.library.store import EpisodeFilter
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, Usage
from agentkit.models.base import ModelResponse
from agentkit.testing import FunctionModel, ScriptedModel
from agentkit.tools.definition import Description

# --- A canary serves a share of the conversations, each with one definition from start to end ----


OLD, NEW = "Old words.", "New words."


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


def watching(store, **more):
    """A watch that looks each time."""
    return LedgerWatch(store, refresh_seconds=0, **more)


def agent_with(store, *, share=1.0, answers=20, **more):
    router = CanaryRouter(watching(store), share=share)
    model = ScriptedModel(["ok"] * answers)
    return Agent(model, store=store, router=router, **more), model


def words(model, name="weather"):
    """What each request said of a tool."""
    return [
        tool.description.summary
        for request in model.requests
        for tool in request.tools
        if tool.name == name
    ]


async def test_the_candidate_serves_and_is_labelled(trial, store):
    """With a share of 1 every new conversation reads the candidate's words."""
    proposal = trial.propose("weather")
    trial.step(proposal, "canary")
    agent, model = agent_with(store)

    result = await agent.run("hi")

    assert words(model) == [NEW]
    assert result.episode.metadata == {
        "experiment": proposal.proposal_id,
        "arm": "candidate",
        "candidate_digest": proposal.candidate.digest,
    }
    assert store.get(result.episode.episode_id) == result.episode


async def test_a_conversation_keeps_its_arm_in_another_process(trial, store):
    """A new agent with another share reads the arm from the stored episodes."""
    trial.step(trial.propose("weather"), "canary")
    first, _ = agent_with(store, share=1.0)
    begun = await first.run("hi", session_id="s")

    second, model = agent_with(store, share=0.0)
    result = await second.run("again", session_id="s")

    assert words(model) == [NEW]
    assert result.episode.metadata == begun.episode.metadata


@pytest.mark.parametrize("tool_name", ["", "weather"])
async def test_the_kill_switch_stops_a_canary(trial, store, tool_name):
    """A pin of the tool, or of all, holds for conversations that begin and for those under way."""
    proposal = trial.propose("weather")
    trial.step(proposal, "canary")
    agent, model = agent_with(store)
    await agent.run("hi", session_id="s")

    trial.pin(1, tool_name)
    under_way = await agent.run("again", session_id="s")
    begun = await agent.run("hi", session_id="t")
    trial.unpin(tool_name)
    still_out = await agent.run("again", session_id="s")

    assert words(model) == [NEW, OLD, OLD, OLD]
    left = {"left_experiment": proposal.proposal_id, "left_because": "pinned"}
    assert under_way.episode.metadata == still_out.episode.metadata == left
    assert begun.episode.metadata == {}


async def test_a_candidate_with_another_contract_is_not_served(trial, store, make):
    """Code and approvals rely on the contract, whatever validation let pass."""
    base = store.load()["weather"].definition
    other = make("weather", "x", effects=None).signature
    wider = replace(other, parameters={"type": "object", "properties": {}})
    proposal = trial.propose("weather", signature=wider)
    assert proposal.base == base.digest
    trial.step(proposal, "canary")
    agent, model = agent_with(store)

    await agent.run("hi")

    assert words(model) == [OLD]


async def test_composites_above_the_tool_still_run(trial, store):
    """Their pins move along with the candidate."""

    @tool
    def double(x: float) -> float:
        """Twice a number."""
        return 2 * x

    text = 'def four(x: float) -> float:\n    "Four times."\n    return double(double(x))\n'
    trial.publish(double.definition, compose(text, {"double": double}))
    trial.step(trial.propose("double"), "canary")
    call = ToolCall(call_id="1", name="four", arguments={"x": 2})
    model = ScriptedModel([[call], "done"])
    router = CanaryRouter(watching(store), share=1)

    result = await Agent(model, tools=[double], store=store, router=router).run("hi")

    assert words(model, "double")[0] == NEW
    assert result.episode.results[0].value == 8


class Unreadable:
    """A store whose events cannot be read while ``fails`` is set."""

    def __init__(self, store):
        self.store, self.fails, self.reads = store, False, 0

    def events(self, *, after=0):
        self.reads += 1
        if self.fails:
            raise StoreError("the disk is gone")
        return self.store.events(after=after)


async def test_the_store_is_asked_once_in_a_while(trial, store):
    """Not before each answer; a kill switch works after ``refresh_seconds`` at the latest."""
    counted, clock = Unreadable(store), Clock()
    trial.step(trial.propose("weather"), "canary")
    router = CanaryRouter(LedgerWatch(counted, refresh_seconds=5, clock=clock), share=1)
    library = store.load()
    asked = RouteRequest(key="s", library=library, at=store.load)

    for _ in range(10):
        assert (await router.route(asked)).labels["arm"] == "candidate"
    trial.pin(1)
    clock.now += 4.9
    assert (await router.route(asked)).labels
    clock.now += 0.2

    assert (await router.route(asked)).labels == {}
    assert counted.reads == 2


async def test_a_store_that_fails_for_long_stops_candidates(trial, store, caplog):
    """A while the last answer counts; then nobody knows whether the candidate is still safe."""
    broken, clock = Unreadable(store), Clock()
    proposal = trial.propose("weather")
    trial.step(proposal, "canary")
    watch = LedgerWatch(broken, refresh_seconds=5, max_age_seconds=60, clock=clock)
    router = CanaryRouter(watch, share=1)
    library = store.load()
    new = RouteRequest(key="s", library=library, at=store.load)
    begun = await router.route(new)
    going_on = RouteRequest(
        key="s", library=library, at=store.load, is_new=False, labels=begun.labels
    )

    broken.fails = True
    clock.now += 60
    assert await router.route(going_on) == begun
    clock.now += 1
    after = await router.route(going_on)

    assert after.library is library
    assert after.labels["left_because"] == "ledger_unreadable"
    assert (await router.route(new)).labels == {}
    assert "the disk is gone" in caplog.text


# --- Whatever happens to an experiment, a conversation has one arm, or has left it for good ------


SHARES = {"none": 0.0, "all": 1.0, "half": 0.5}
PINS = {"pin": "weather", "pin all": ""}
steps = st.lists(
    st.sampled_from(["s", "t", "u", *SHARES, *PINS, "unpin", "roll back"]), max_size=14
)


class Course:
    """One experiment, and what happens to it and to three conversations."""

    def __init__(self, trial):
        self.trial, self.pins, self.stopped = trial, set(), False
        self.proposal = trial.propose("weather")
        trial.step(self.proposal, "canary")
        self.model = FunctionModel(lambda _: "ok")
        self.router = CanaryRouter(LedgerWatch(trial.store, refresh_seconds=0), share=0.5)
        self.agent = Agent(self.model, store=trial.store, router=self.router)
        self.arms = {}

    def take(self, step):
        if step in SHARES:
            self.router.share = SHARES[step]
        elif step in PINS:
            self.trial.pin(1, PINS[step])
            self.pins.add(PINS[step])
        elif step == "unpin":
            for tool_name in self.pins:
                self.trial.unpin(tool_name)
            self.pins.clear()
        elif step != "roll back":
            self.run(step)
        elif not self.stopped:
            self.trial.step(self.proposal, "rolled_back")
            self.stopped = True

    def run(self, session):
        result = asyncio.run(self.agent.run("hi", session_id=session))
        labels = result.episode.metadata
        words = next(t.text for t in self.model.requests[-1].tools if t.name == "weather")
        assert (words == NEW) == (labels.get("arm") == "candidate")
        assert not (words == NEW and (self.stopped or self.pins))
        self.arms.setdefault(session, []).append(labels.get("arm", "left" if labels else "apart"))


@settings(max_examples=40, deadline=None)
@given(taken=steps)
def test_a_conversation_has_one_arm(taken, make_trial):
    """Over any course of shares, pins and roll-backs labels are true, and nobody changes sides.

    What a run reads is what its labels say; a conversation never changes its arm, and never comes
    back once it left; nobody reads the candidate while it is pinned or after it was taken back.
    """
    course = Course(make_trial(open_store("memory:")))

    for step in taken:
        course.take(step)

    for arms in course.arms.values():
        begun = {arms[0]}
        assert set(arms) <= (begun if begun == {"apart"} else begun | {"left"})
        if "left" in arms:
            assert set(arms[arms.index("left") :]) == {"left"}


ADA = Author(kind="person", name="Ada")


@tool
def look(what: str) -> str:
    """Look."""
    return what


@pytest.fixture
def versions():
    """A store with two versions of one tool."""
    versions = open_store("memory:")
    for version, text in enumerate(("good words", "bad words")):
        words = replace(look.definition.description, summary=text)
        change = LibraryChange(
            proposal_id=text, upserts=(replace(look.definition, description=words),)
        )
        versions.commit(change, expected_version=version)
    yield versions
    versions.close()


def eventually(holds):
    """Wait until something holds."""
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


async def test_a_pin_reaches_runs_as_soon_as_the_replica_knows(versions):
    """Not after the watch's own time, which is a day here: events alone make no version."""
    model = ScriptedModel(["a"] * 3)
    with Replica(versions, refresh_seconds=0.01) as replica:
        router = CanaryRouter(LedgerWatch(replica, refresh_seconds=86400))
        agent = Agent(model, tools=[look], store=replica, router=router)
        await agent.run("hi")
        manager = ToolManager(versions, author=ADA)
        manager.pin(1, reason="the new words are bad")
        eventually(lambda: replica.last_event == len(versions.events()))
        pinned = await agent.run("hi")
        manager.unpin(reason="mended")
        eventually(lambda: replica.last_event == len(versions.events()))
        await agent.run("hi")
    offered = [request.tools[0].description.summary for request in model.requests]
    assert offered == ["bad words", "good words", "bad words"]
    assert pinned.episode.library_version == 1


async def test_while_the_store_is_away_the_last_pins_hold(versions):
    """A pin that is known is obeyed, and runs do not wait for a store that does not answer."""
    ToolManager(versions, author=ADA).pin(1, reason="the new words are bad")
    far = UnreliableStore(versions)
    model = ScriptedModel(["a", "b"])
    with Replica(far, refresh_seconds=0.01) as replica:
        watch = LedgerWatch(replica, refresh_seconds=5)
        agent = Agent(model, tools=[look], store=replica, router=CanaryRouter(watch))
        await agent.run("hi")
        far.away()
        eventually(lambda: replica.status.state == "away")
        with pytest.raises(Exception, match="the store is away"):  # nobody keeps the episode
            await agent.run("hi")
    offered = [request.tools[0].description.summary for request in model.requests]
    assert offered == ["good words"] * 2


# --- Runs of a canary get their verdicts after the answer, as records beside the episodes --------


@pytest.fixture
def canary(trial):
    """A proposal for ``weather`` that is in canary."""
    proposal = trial.propose("weather")
    trial.step(proposal, "canary")
    return proposal


async def test_each_session_gets_a_score(store, canary):
    """Both arms are judged; the gate finds one score a session."""
    judge = CanaryJudge(store)
    router = CanaryRouter(store, share=0.5)
    agent = Agent(ScriptedModel(["ok"] * 40), store=store, router=router, observers=[judge])

    for number in range(20):
        await agent.run("hi", session_id=f"s{number}")
        await agent.run("more", session_id=f"s{number}")
    await judge.drain()

    scores = canary_scores(store.select(EpisodeFilter()), canary.proposal_id)
    assert len(scores) == 20
    assert {one.arm for one in scores} == {"control", "candidate"}
    assert judge.counts["done"] == 40


async def test_a_failed_call_is_seen(store, canary):
    """Without a verifier the outcome decides: a call that was refused costs the run its verdict."""

    @tool
    def weather(city: str, days: int = 1) -> str:
        """Code's words."""
        return "rain"

    bad = ToolCall(call_id="1", name="weather", arguments={"town": "Oslo"})
    judge = CanaryJudge(store)
    agent = Agent(
        ScriptedModel([[bad], "sorry", "fine"]),
        tools=[replace(weather, definition=store.load()["weather"].definition)],
        store=store,
        router=CanaryRouter(store, share=1),
        observers=[judge],
    )
    await agent.run("one", session_id="s")
    await agent.run("two", session_id="t")
    await judge.drain()

    verdicts = {
        one.session_id: one.verdict.passed for one in store.select(EpisodeFilter()) if one.verdict
    }
    assert verdicts == {"s": False, "t": True}


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

    trial.publish(replace(weather.definition, description=Description(summary=OLD)))
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


@pytest.fixture
def shadowed(store, rains):
    """Lets a model answer one request, and then its shadow run; gives the runner."""

    async def run(model, **more):
        shadow = runner(store)
        agent = Agent(model, tools=[rains[0]], store=store, observers=[shadow])
        await agent.run("Rain?", **more)
        await shadow.drain()
        return shadow

    return run


async def test_no_call_of_a_shadow_run_is_executed(store, tried, rains, shadowed):
    """What the candidate proposes is looked at alone, whatever the tool does."""
    await shadowed(reader([call(city="Oslo")], [call(city="Bergen")]))

    assert rains[1] == ["Oslo"]
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
async def test_agreement_goes_by_what_worked(store, tried, shadowed, old, new, scores):
    """A side passes when each call it makes is one that worked in the run itself."""
    await shadowed(reader(old, new))

    ((control, candidate),) = sides(store, tried)
    assert (control.verdict.passed, candidate.verdict.passed) == scores
    assert control.verdict.fault is None


async def test_the_budget_holds_for_an_hour(store, tried, rains):
    """At most one answer more than the budget; after an hour there is room again."""

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
    clock.now += 3601
    await agent.run("Rain?")
    await shadow.drain()

    assert shadow.counts["recorded"] == 4


async def test_a_tool_that_changed_since_is_served_as_it_is(trial, store, make):
    """The candidate was made for another revision, so no conversation begins with it."""
    trial.step(trial.propose("weather"), "canary")
    trial.publish(make("weather", "Newest words."))
    agent, model = agent_with(store)

    result = await agent.run("hi")

    assert words(model) == ["Newest words."]
    assert result.episode.metadata == {}


async def test_what_a_candidate_answered_is_not_repeated(store, tried, shadowed):
    """There is nothing to compare it with."""
    model = reader([call(city="Oslo")], [call(city="Oslo")])
    shadow = await shadowed(model, metadata={"arm": "candidate"})
    assert (shadow.counts["skipped"], sides(store, tried)) == (1, [])


@pytest.mark.parametrize(
    "error",
    [ModelConnectionError("gone"), ModelStatusError("busy", status=429, body="", retry_after=None)],
)
async def test_a_model_that_is_busy_says_nothing_of_the_candidate(store, tried, shadowed, error):
    """Nothing is recorded, and the loss is counted."""

    def answer(request):
        if reads(request) == NEW:
            raise error
        return "done"

    shadow = await shadowed(FunctionModel(answer))
    assert sides(store, tried) == []
    assert shadow.counts["unavailable"] == 1


async def test_the_share_of_the_event_goes_before_that_of_the_router(trial, store):
    """Whoever began the canary named it."""
    trial.step(trial.propose("weather"), "canary", share=1.0)
    agent, model = agent_with(store, share=0.0)
    await agent.run("hi")
    assert words(model) == [NEW]
