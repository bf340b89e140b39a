"""Candidates that serve a share of the sessions, the kill switch, also on a replica, and who judges them."""

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
from agentkit.errors import StoreError
from agentkit.evolution import ToolManager
from agentkit.evolution.compare import canary_scores
from agentkit.evolution.observers import CanaryJudge
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.library import Author, LibraryChange, Replica
from agentkit.library.store import EpisodeFilter
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel, ScriptedModel

# --- Sessions are divided by a hash: exactly, always alike, and so that more is only ever mor ----
# Sessions are divided by a hash: exactly, always alike, and so that more is only ever more.


# --- A canary serves a share of the conversations, each with one definition from start to end ----


OLD, CANARY_NEW = "Old words.", "New words."


class Clock:
    """A clock that a test sets."""

    def __init__(self):
        self.now = 1000.0

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

    assert words(model) == [CANARY_NEW]
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

    assert words(model) == [CANARY_NEW]
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

    assert words(model) == [CANARY_NEW, OLD, OLD, OLD]
    left = {"left_experiment": proposal.proposal_id, "left_because": "pinned"}
    assert under_way.episode.metadata == still_out.episode.metadata == left
    assert begun.episode.metadata == {}


async def test_a_candidate_with_another_contract_is_not_served(trial, store, make):
    """Code and approvals rely on the contract, whatever validation let pass."""
    base = store.load()["weather"].definition
    other = make("weather", "x", effects=None).signature
    from dataclasses import replace

    wider = replace(other, parameters={"type": "object", "properties": {}})
    proposal = trial.propose("weather", signature=wider)
    assert proposal.base == base.digest
    trial.step(proposal, "canary")
    agent, model = agent_with(store)

    await agent.run("hi")

    assert words(model) == [OLD]


async def test_composites_above_the_tool_still_run(trial, store):
    """Their pins move along with the candidate."""
    from agentkit.messages import ToolCall

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

    assert words(model, "double")[0] == CANARY_NEW
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


CONVERSATIONS_NEW = "New words."
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
        assert (words == CONVERSATIONS_NEW) == (labels.get("arm") == "candidate")
        assert not (words == CONVERSATIONS_NEW and (self.stopped or self.pins))
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
