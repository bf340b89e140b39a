"""A directory store, and the changes that tests make to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentkit import ToolDefinition
from agentkit.library import LibraryChange
from agentkit.library.directory import DirectoryStore
from agentkit.tools.definition import Description


class Workshop:
    """A store in a folder, and short words for what is done to it.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = DirectoryStore(path)

    def again(self) -> DirectoryStore:
        """The store, opened anew."""
        self.store.close()
        self.store = DirectoryStore(self.path)
        return self.store

    def put(self, *tools: ToolDefinition, remove: tuple[str, ...] = ()) -> int:
        """Commit tools on the newest version."""
        version = self.store.load().version
        change = LibraryChange(proposal_id=f"change-{version}", upserts=tools, removals=remove)
        return self.store.commit(change, expected_version=version)

    def file(self, name: str) -> Path:
        """The file of a tool."""
        return self.path / "tools" / f"{name}.yaml"

    def edit(self, name: str, old: str, new: str) -> None:
        """Change the text of a tool's file, as an editor does."""
        text = self.file(name).read_text(encoding="utf-8")
        assert old in text
        self.file(name).write_text(text.replace(old, new), encoding="utf-8")

    def contents(self) -> dict[str, bytes]:
        """Every file but those of this machine."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and "local" not in path.parts
        }


def tool(name: str, summary: str = "", *rules: str) -> ToolDefinition:
    """A tool of some words."""
    return ToolDefinition(name=name, description=Description(summary=summary, usage_rules=rules))


@pytest.fixture
def make_tool():
    """Makes a tool of some words."""
    return tool


@pytest.fixture
def workshop(tmp_path):
    """A store with two tools at version 1."""
    workshop = Workshop(tmp_path / "library")
    workshop.put(tool("ping", "Ping a host."), tool("pong", "Answer."))
    yield workshop
    workshop.store.close()
