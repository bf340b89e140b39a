"""Stored definitions and code come together in the snapshot of an agent."""

from __future__ import annotations

from dataclasses import replace

from agentkit import Agent, Library
from agentkit.library.store import LibraryChange
from agentkit.testing import ScriptedModel


async def test_code_runs_under_the_stored_words(add, call, store):
    """An evolved description reaches the model while the function stays the program's."""
    words = replace(add.definition.description, summary="Sum of two numbers, evolved.")
    evolved = replace(add.definition, description=words)
    store.commit(LibraryChange(proposal_id="1", upserts=(evolved,)), expected_version=0)

    model = ScriptedModel([[call("add", a=1, b=2)], "3"])
    result = await Agent(model, tools=[add], store=store).run("1 + 2?")

    assert model.requests[0].tools[0].description.summary == "Sum of two numbers, evolved."
    assert result.episode.results[0].value == 3
    assert result.episode.library_version == 1


async def test_an_explicit_library_is_used_as_it_is(add, store):
    """A given snapshot is not replaced by the store's."""
    agent = Agent(ScriptedModel([]), library=Library([add], version=7), store=store)

    assert agent.refresh().version == 7
