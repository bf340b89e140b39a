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
    roots = (project_root, project_root / "agentkit")
    missing = [name for name in named if not any((root / name).is_file() for root in roots)]
    assert missing == []


def test_the_folder_map_is_the_tree(project_root):
    """Every folder of the package that holds code stands in the map, and none that is gone."""
    page = (project_root / "docs" / "architecture.md").read_text(encoding="utf-8")
    block = page.partition("```text\nagentkit/\n")[2].partition("plugins/ ")[0]
    shown = set(re.findall(r"^  ([a-z_]+)/", block, re.MULTILINE))
    there = {path.parent.name for path in (project_root / "agentkit").glob("*/__init__.py")}
    assert shown == there


def test_each_change_names_at_most_three_files(project_root):
    """Whoever adds a stage, a check or a proposer finds the places, and they are few."""
    page = (project_root / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Three changes")[2].partition("\n## ")[0]
    changes = re.split(r"^\*\*Another ", section, flags=re.MULTILINE)[1:]
    assert len(changes) == 3
    for change in changes:
        places = re.findall(r"`((?:tests|cli|retrieval|evolution)/[a-z_/]*(?:\.py)?)`", change)
        assert 2 <= len(set(places)) <= 4  # one of them may be a page to read first
        for place in places:
            assert (project_root / "agentkit" / place).exists() or (project_root / place).exists()
