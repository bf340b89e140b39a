"""Verdicts on what was tried, and records that are no runs of users."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Agent, tool
from agentkit.diagnosis import diagnose
from agentkit.diagnosis.profile import FailureProfile
from agentkit.episodes import Verdict
from agentkit.episodes.labels import SHADOW_OF, VIEW_OF, is_extra_record
from agentkit.evolution.compare import canary_scores
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.observers import CanaryJudge, ShadowRunner, judged
from agentkit.evolution.round import evolve
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.library.store import EpisodeFilter
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.testing import FunctionModel, ScriptedModel

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


async def test_a_verifier_decides_where_there_is_one(store, canary):
    """What the caller's own verifier says is kept."""

    class Never:
        async def verify(self, episode):
            return Verdict(passed=False, verifier="never")

    judge = CanaryJudge(store, verifier=Never())
    agent = Agent(
        ScriptedModel(["ok"]),
        store=store,
        router=CanaryRouter(store, share=1),
        observers=[judge],
    )
    await agent.run("hi")
    await judge.drain()

    (score,) = canary_scores(store.select(EpisodeFilter()), canary.proposal_id)
    assert (score.arm, score.score) == ("candidate", 0)


async def test_a_person_judges_later(store, canary):
    """A thumb that comes a day later is a record of its own."""
    agent = Agent(ScriptedModel(["a"]), store=store, router=CanaryRouter(store, share=1))
    result = await agent.run("hi", session_id="s")

    store.append(judged(result.episode, Verdict(passed=True, score=1, verifier="thumb")))

    (score,) = canary_scores(store.select(EpisodeFilter()), canary.proposal_id)
    assert (score.session, score.score) == ("s", 1)


# --- Whoever counts or learns from the episodes of a store leaves shadow runs and views out ------


REQUEST = "Is a parasol needed in Oslo?"
AGAIN = "And a parasol in Rome?"


@pytest.fixture
async def kept(trial):
    """Two answered runs, a shadow run of each with its view, and a later judgement of one."""

    @tool
    def weather(city: str, days: int = 1) -> str:
        """Code's words."""
        return f"rain in {city}"

    def answer(request):
        if isinstance(request.messages[-1], ToolMessage):
            return "no"
        return AssistantMessage(
            tool_calls=(ToolCall(call_id="c1", name="weather", arguments={"city": "Oslo"}),)
        )

    words = replace(weather.definition.description, summary="What the sky does.")
    trial.publish(replace(weather.definition, description=words))
    trial.step(trial.propose("weather"), "shadow")
    watch = LedgerWatch(trial.store, refresh_seconds=0)
    shadow = ShadowRunner(trial.store, watch=watch)
    agent = Agent(FunctionModel(answer), tools=[weather], store=trial.store, observers=[shadow])
    labels = {"run": "noon", "task": "t1"}
    first = await agent.run(REQUEST, metadata=labels)
    await agent.run(AGAIN, metadata=labels)
    await shadow.drain()
    trial.store.append(judged(first.episode, Verdict(passed=True, score=1.0)))
    episodes = [replace(one, verdict=Verdict(passed=True)) for one in trial.store.select()]
    labels = [label for one in episodes for label in (SHADOW_OF, VIEW_OF) if label in one.metadata]
    assert sorted(labels) == [SHADOW_OF] * 2 + [VIEW_OF] * 3
    return trial.store, episodes


def profile(episodes, library):
    """How many episodes a profile counts, each with the diagnosis that it would get."""
    found = FailureProfile(half_life_days=None)
    return sum(found.observe(one, diagnose(one, library, None)) for one in episodes)


async def test_a_round_of_evolution_leaves_them_out(kept):
    """Proposers are shown the answered runs alone, and the round counts no others."""
    store, episodes = kept
    seen = []

    class Listener:
        name = "listener"

        async def propose(self, observations):
            seen.extend(observations.episodes)
            return []

    outcome = await evolve(ToolManager(store), [Listener()], episodes=episodes)
    assert {one.request for one in seen} == {REQUEST, AGAIN}
    assert [is_extra_record(one.metadata) for one in seen] == [False, False]
    assert outcome.episodes == 2
