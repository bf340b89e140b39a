"""A store with a tool, proposals that change it, and their way through the life cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.evolution.proposal import Proposal
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.store import LibraryChange, Store
from agentkit.tools.definition import Effects

ADA = Author(kind="person", name="ada")
OLD, NEW = "Old words.", "New words."


def definition(name: str, text: str = OLD, **more: Any) -> ToolDefinition:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    }
    return ToolDefinition.from_schema(name, text, schema, **more)


@dataclass
class Trial:
    """Writes definitions and events into a store, as the Tool Manager would."""

    store: Store

    def publish(self, *definitions: ToolDefinition) -> int:
        """Commit definitions; the new version."""
        versions = self.store.versions()
        at = versions[-1] if versions else 0
        change = LibraryChange(proposal_id=f"publish-{at}", upserts=definitions)
        return self.store.commit(change, expected_version=at)

    def events(self, *drafts: EventDraft) -> None:
        """Append events."""
        known = self.store.events()
        made = chained(known[-1] if known else None, drafts, at="2026-11-21T12:00:00Z")
        versions = self.store.versions()
        number = len(known)
        change = LibraryChange(proposal_id=f"events-{number}", events=made)
        self.store.commit(change, expected_version=versions[-1] if versions else 0)

    def propose(
        self, tool_name: str, text: str = NEW, *, proposal_id: str = "", **changes: Any
    ) -> Proposal:
        """A validated proposal for other words."""
        base = self.store.load()[tool_name].definition
        words = replace(base.description, summary=text)
        candidate = replace(base, description=words, **changes)
        proposal = Proposal.of(
            base, candidate, stream="person", author=ADA, proposal_id=proposal_id or None
        )
        record = proposal.to_json()
        self.step(proposal, "proposed", proposal=record, base=base.digest)
        self.step(proposal, "validated")
        return proposal

    def step(self, proposed: Proposal, /, *states: str, **facts: Any) -> None:
        """Bring a proposal into the next states."""
        for state in states:
            draft = EventDraft(
                kind=state,  # type: ignore[arg-type]
                author=ADA,
                proposal_id=proposed.proposal_id,
                tool_name=proposed.tool_name,
                facts=facts,
            )
            self.events(draft)

    def pin(self, version: int, tool_name: str = "") -> None:
        """The kill switch."""
        facts = {"version": version}
        self.events(EventDraft(kind="pinned", author=ADA, tool_name=tool_name, facts=facts))

    def unpin(self, tool_name: str = "") -> None:
        """Lift it."""
        self.events(EventDraft(kind="unpinned", author=ADA, tool_name=tool_name))


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:")
    yield opened
    opened.close()


@pytest.fixture
def trial(store: Store) -> Trial:
    """A library of two tools, ``weather`` and ``tides``."""
    return _published(store)


@pytest.fixture(scope="session")
def make_trial() -> Callable[[Store], Trial]:
    """``make_trial(store)`` is ``trial`` for another store, for tests with many examples."""
    return _published


def _published(store: Store) -> Trial:
    made = Trial(store)
    made.publish(definition("weather"), definition("tides", effects=Effects.of(["reads"])))
    return made


@pytest.fixture
def make() -> Callable[..., ToolDefinition]:
    """``make("name", "text")`` is a definition with a required city and optional days."""
    return definition
