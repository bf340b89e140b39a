"""Verdicts on what was tried, and records that are no runs of users."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Agent, tool
from agentkit.episodes import Verdict
from agentkit.evolution.compare import canary_scores
from agentkit.evolution.observers import CanaryJudge, judged
from agentkit.evolution.serving import CanaryRouter
from agentkit.library.store import EpisodeFilter
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

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
