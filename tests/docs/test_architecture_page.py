"""The walk-throughs of docs/architecture.md name files that exist, in a code base that imports one way."""

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


def test_no_file_of_a_walk_imports_the_one_that_starts_it(named, runtime_modules):
    """Whoever is called does not know its caller: a walk goes down and never back up."""
    modules = ["agentkit." + name.removesuffix(".py").replace("/", ".") for name in named]
    for start in ("agentkit.agent.agent", "agentkit.evolution.manager"):
        below = [
            name for name in modules if name.startswith(start.rpartition(".")[0]) and name != start
        ]
        for module in below:
            text = runtime_modules[module]
            imported = {node.module for node in text.body if hasattr(node, "module")}
            assert start not in imported or module == "agentkit.evolution.round", module
