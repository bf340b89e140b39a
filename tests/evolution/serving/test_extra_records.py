"""Whoever counts or learns from the episodes of a store leaves shadow runs and views out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Agent, tool
from agentkit.diagnosis import diagnose
from agentkit.diagnosis.profile import FailureProfile
from agentkit.episodes import Verdict
from agentkit.episodes.labels import SHADOW_OF, VIEW_OF, is_extra_record
from agentkit.evaluation.doctor.catalogue import usage_of
from agentkit.evolution import ToolManager
from agentkit.evolution.observers import judged
from agentkit.evolution.round import evolve
from agentkit.evolution.serving import LedgerWatch
from agentkit.evolution.shadow import ShadowRunner
from agentkit.evolution.trajectories import trajectories_of
from agentkit.evolution.usage import unmatched_words, uses_of
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.testing import FunctionModel

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
    async with ShadowRunner(trial.store, watch=watch) as shadow:
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


READERS = {
    "mining": lambda episodes, _: trajectories_of(episodes).trajectories,
    "mining failures too": lambda episodes, _: (
        trajectories_of(episodes, failed_too=True).trajectories
    ),
    "learning": lambda episodes, _: uses_of(episodes),
    "words of users": unmatched_words,
    "doctor": lambda episodes, _: usage_of(episodes),
    "failures": profile,
}


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_readers_see_what_happened_to_users(kept, reader):
    """A reader gives the same with and without the extra records, in either order."""
    store, episodes = kept
    served = [one for one in episodes if not is_extra_record(one.metadata)]
    assert len(served) == 2
    expected = reader(served, store.load())
    assert expected
    assert reader(episodes, store.load()) == expected
    assert reader(episodes[::-1], store.load()) == reader(served[::-1], store.load())


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
