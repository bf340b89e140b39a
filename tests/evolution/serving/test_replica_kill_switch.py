"""The kill switch reaches runs on a replica by the loop that brings new versions."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from support.unreliable_store import UnreliableStore

from agentkit import Agent, open_store, tool
from agentkit.evolution import ToolManager
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.library import Author, LibraryChange, Replica
from agentkit.testing import ScriptedModel

ADA = Author(kind="person", name="Ada")


@tool
def look(what: str) -> str:
    """Look."""
    return what


@pytest.fixture
def store():
    """A store with two versions of one tool."""
    store = open_store("memory:")
    for version, text in enumerate(("good words", "bad words")):
        words = replace(look.definition.description, summary=text)
        change = LibraryChange(
            proposal_id=text, upserts=(replace(look.definition, description=words),)
        )
        store.commit(change, expected_version=version)
    yield store
    store.close()


def eventually(holds):
    """Wait until something holds."""
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.005)


async def test_a_pin_reaches_runs_as_soon_as_the_replica_knows(store):
    """Not after the watch's own time, which is a day here: events alone make no version."""
    model = ScriptedModel(["a"] * 3)
    with Replica(store, refresh_seconds=0.01) as replica:
        router = CanaryRouter(LedgerWatch(replica, refresh_seconds=86400))
        agent = Agent(model, tools=[look], store=replica, router=router)
        await agent.run("hi")
        manager = ToolManager(store, author=ADA)
        manager.pin(1, reason="the new words are bad")
        eventually(lambda: replica.last_event == len(store.events()))
        pinned = await agent.run("hi")
        manager.unpin(reason="mended")
        eventually(lambda: replica.last_event == len(store.events()))
        await agent.run("hi")
    offered = [request.tools[0].description.summary for request in model.requests]
    assert offered == ["bad words", "good words", "bad words"]
    assert pinned.episode.library_version == 1


async def test_while_the_store_is_away_the_last_pins_hold(store):
    """A pin that is known is obeyed, and runs do not wait for a store that does not answer."""
    ToolManager(store, author=ADA).pin(1, reason="the new words are bad")
    far = UnreliableStore(store)
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
