"""Tools with a history, in a real store."""

from dataclasses import replace

import pytest

from agentkit import ToolDefinition
from agentkit.library import LibraryChange
from agentkit.library.memory import MemoryStore
from agentkit.tools.definition import Description

PARAMETERS = {"type": "object", "properties": {"periods": {"type": "integer"}}}


@pytest.fixture
def worded():
    """A definition with a summary and a text for its one parameter."""

    def make(name, summary, periods=""):
        definition = ToolDefinition.from_schema(name, summary, PARAMETERS)
        texts = {"periods": periods} if periods else {}
        return replace(definition, description=Description(summary=summary, parameters=texts))

    return make


@pytest.fixture
def store():
    """An empty store."""
    return MemoryStore()


@pytest.fixture
def write(store):
    """Commits definitions or removes names, and gives the new version."""

    def commit(*definitions, removals=()):
        version = store.load().version
        change = LibraryChange(
            proposal_id=f"change-{version + 1}",
            upserts=definitions,
            removals=removals,
            author="evidence proposer",
            reason="calls failed",
        )
        return store.commit(change, expected_version=version)

    return commit
