"""docs/architecture.md names what is there; that all of it imports one way, ``test_layering`` holds."""

from __future__ import annotations

import re

import pytest


@pytest.fixture
def named(project_root):
    """The files that the page names, by their dotted names below the package."""
    page = (project_root / "docs" / "architecture.md").read_text(encoding="utf-8")
    walks = page.partition("## A run, top to bottom")[2].partition("## Imports run one way")[0]
    return re.findall(r"`([a-z_]+(?:/[a-z_]+)*\.py)`", walks)


def test_each_file_of_the_walks_exists(named, project_root):
    """A reader who follows the page finds every file of it."""
    assert len(named) > 20
    missing = [name for name in named if not (project_root / "agentkit" / name).is_file()]
    assert missing == []


def test_the_folder_map_is_the_tree(project_root):
    """Every folder of the package that holds code stands in the map, and none that is gone."""
    page = (project_root / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = page.partition("```text\nagentkit/\n")[2].partition("plugins/ ")[0]
    shown = set(re.findall(r"^  ([a-z_]+)/", block, re.MULTILINE))
    there = {path.parent.name for path in (project_root / "agentkit").glob("*/__init__.py")}
    assert shown == there
