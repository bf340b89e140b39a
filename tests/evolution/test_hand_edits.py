"""Edits by hand become proposals of the person who made them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agentkit import ToolDefinition
from agentkit.errors import UsageError
from agentkit.evolution import ToolManager
from agentkit.evolution.hand_edits import propose_edits
from agentkit.library import Author, LibraryChange
from agentkit.library.directory import DirectoryStore
from agentkit.tools.definition import Description

ADA = Author(kind="person", name="Ada")


def weather(summary: str = "Weather of a city.", *tags: str) -> ToolDefinition:
    """A tool with one parameter."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = ToolDefinition.from_schema("weather", summary, schema)
    return replace(tool, description=Description(summary=summary, tags=tags))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DirectoryStore]:
    store = DirectoryStore(tmp_path / "library")
    change = LibraryChange(proposal_id="1", upserts=(weather(),))
    store.commit(change, expected_version=0)
    yield store
    store.close()


def write(store: DirectoryStore, old: str, new: str) -> None:
    """Edit the file of the tool."""
    path = store.path / "tools" / "weather.yaml"
    path.write_text(path.read_text().replace(old, new))


def proposed(store: DirectoryStore, **options):
    """Propose all edits, as Ada."""
    manager = ToolManager(store)
    return manager, asyncio.run(propose_edits(store.edits(), manager, person=ADA, **options))


def test_an_edit_goes_the_way_of_every_change(store):
    """An edit is checked, waits for whom it must, and serves once it is brought on."""
    write(store, "Weather of a city.", "Weather of a city in the coming days.")
    manager, (came,) = proposed(store, reason="clearer")
    assert (came.outcome, came.record.state) == ("proposed", "validated")
    assert (came.record.author.name, came.record.tool_name) == ("Ada", "weather")
    assert store.load().version == 1
    manager.approve(came.record.proposal_id, person=ADA)
    manager.advance()
    assert store.load()["weather"].definition == weather("Weather of a city in the coming days.")
    assert store.edits() == ()
    assert [event.kind for event in store.events()] == [
        "proposed",
        "validated",
        "approved",
        "active",
    ]
    assert {event.author.name for event in store.events() if event.kind == "proposed"} == {"Ada"}


def test_a_deleted_file_takes_a_tool_out_when_asked(store):
    """A deleted file alone takes nothing out; with ``removes`` the tool goes, and an event tells."""
    (store.path / "tools" / "weather.yaml").unlink()
    _, (came,) = proposed(store)
    assert (came.outcome, len(store.load())) == ("deleted", 1)
    _, (came,) = proposed(store, removes=True)
    assert (came.outcome, len(store.load()), store.edits()) == ("removed", 0, ())
    assert [event.kind for event in store.events()] == ["written"]


def test_only_a_person_edits_by_hand(store):
    """A program can not pass its changes off as those of a person."""
    robot = Author(kind="program", name="robot")
    with pytest.raises(UsageError, match="robot"):
        asyncio.run(propose_edits((), ToolManager(store), person=robot))
