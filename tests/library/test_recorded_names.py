"""Tools in code find the definitions that were stored under another name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Agent, Library, open_store
from agentkit.library.conflicts import plan_import
from agentkit.library.store import LibraryChange
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import Description, Origin, Signature, ToolDefinition
from agentkit.tools.tool import Tool

PARAMETERS = {"type": "object", "properties": {"id": {"type": "integer"}}}


def look_up(reference: str, *, name: str = "look_up", original: str | None = None) -> Tool:
    """A tool that answers with where it came from."""
    definition = ToolDefinition(
        name=name,
        signature=Signature(parameters=PARAMETERS),
        description=Description(summary=f"Look up, by {reference}."),
        origin=Origin(kind="openapi", reference=reference, original_name=original),
    )
    return Tool(definition=definition, function=lambda **_: reference)


def stored(*tools: Tool) -> Library:
    """A library that they came into one after another, each without its code."""
    library = Library()
    for tool in tools:
        plan = plan_import([tool.definition], library, on_conflict="suffix")
        library = library.with_tools(plan.upserts.values())
    return library


@pytest.mark.parametrize("original", [None, "look-up"])
def test_a_renamed_definition_gets_its_own_code(original):
    """Two tools of one name are told apart by where they came from, whatever their order."""
    cats, dogs = look_up("cats.json#/a"), look_up("dogs.json#/a", original=original)
    library = stored(cats, dogs)
    assert list(library.tools) == ["look_up", "look_up__2"]
    for code in ([cats, dogs], [dogs, cats], [dogs]):
        bound = library.bind(code)
        assert bound["look_up__2"]() == "dogs.json#/a"
        assert bound["look_up"].is_bound is (cats in code)


def test_an_agent_calls_the_code_of_a_renamed_definition():
    """The words in the store and the code in the program come together again."""
    cats, dogs = look_up("cats.json#/a"), look_up("dogs.json#/a")
    store = open_store("memory:")
    library = stored(cats, dogs)
    evolved = replace(library["look_up__2"].definition, description=Description(summary="Dogs."))
    upserts = (library["look_up"].definition, evolved)
    store.commit(LibraryChange(proposal_id="1", upserts=upserts), expected_version=0)
    agent = Agent(ScriptedModel([]), tools=[cats, dogs], store=store)
    assert list(agent.library.tools) == ["look_up", "look_up__2"]
    assert agent.library["look_up__2"].definition.description.summary == "Dogs."
    assert [tool() for tool in agent.library] == ["cats.json#/a", "dogs.json#/a"]


def test_another_tool_of_the_same_place_is_not_taken_for_it():
    """One function may be two tools; only the one that was renamed is found elsewhere."""
    first, second = look_up("tools:f", name="first"), look_up("tools:f", name="second")
    library = stored(look_up("other:f", name="first"), first)
    assert list(library.tools) == ["first", "first__2"]
    agent = Agent(ScriptedModel([]), tools=[first, second], library=library)
    assert list(agent.library.tools) == ["first", "first__2", "second"]
    assert not agent.library["first"].is_bound


def test_without_a_place_the_name_counts():
    """A definition that does not tell where it came from is found by its name alone."""
    library = stored(look_up("cats.json#/a"), look_up("dogs.json#/a"))
    assert library.bind([look_up("")])["look_up"]() == ""
