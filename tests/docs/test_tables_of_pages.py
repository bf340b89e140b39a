"""Tables and lists of pages that say what the code says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from agentkit.composites import language
from agentkit.composites.problems import CompositeLimits, RunCode, SourceCode
from agentkit.evolution import RejectionCode
from agentkit.evolution.insert_outcomes import InsertPolicy


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


PAGE = (Path(__file__).resolve().parents[2] / "docs" / "composites.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| `")
]


def arity(words: language.Arity) -> str:
    """How the page writes how a function may be called."""
    if words.most is None:
        count = f"{words.least} or more"
    elif words.most == words.least:
        count = f"{words.least}"
    else:
        count = f"{words.least} to {words.most}"
    return ", ".join([count, *(f"`{keyword}=`" for keyword in words.keywords)])


@pytest.mark.parametrize("table", [language.BUILTINS, language.METHODS])
def test_functions_and_methods_are_those_of_the_language(
    table: dict[str, language.Arity],
) -> None:
    """Each stands in a row with how it may be called."""
    for name, words in table.items():
        assert [f"`{name}`", arity(words)] in [row[:2] for row in ROWS], name


def test_limits_stand_there_with_their_defaults() -> None:
    """Each limit has a row with its default, in the order of the class."""
    expected = [[f"`{field.name}`", f"{field.default:,}"] for field in fields(CompositeLimits)]
    assert [row[:2] for row in ROWS if row[:2] in expected] == expected


@pytest.mark.parametrize("code", [*get_args(SourceCode), *get_args(RunCode)])
def test_each_code_is_explained(code: str) -> None:
    """Every reason for which a text is refused or a run ends stands in a table."""
    assert any(f"`{code}`" in row[0] for row in ROWS)


def test_the_page_names_no_code_that_there_is_not() -> None:
    """A code that was renamed does not stay behind."""
    section = PAGE.split("## Errors")[1].split("## Stored composites")[0]
    named = {
        code
        for line in section.splitlines()
        if line.startswith("| `")
        for code in re.findall(r"`(\w+)`", line.split("|")[1])
    }
    assert named == {*get_args(SourceCode), *get_args(RunCode)}


PAGE_insert = (Path(__file__).parents[2] / "docs" / "insert-tool.md").read_text(encoding="utf-8")


def test_every_rejection_code_has_a_row_in_the_order_of_the_code():
    """The table of codes and the type are the same list."""
    rows = re.findall(r"^\| `(\w+)` \| .+ \| .+ \|$", PAGE_insert, re.MULTILINE)
    codes = [row for row in rows if row not in {"Added", "Merged", "Rejected"}]
    assert codes == list(get_args(RejectionCode))


def test_every_policy_field_that_the_page_names_exists():
    """A renamed knob has to be renamed in the page."""
    known = {field.name for field in fields(InsertPolicy)}
    named = set(re.findall(r"InsertPolicy[.(](\w+)", PAGE_insert))
    assert named <= known
    assert {"min_agreements", "description_similarity", "tolerance"} <= known
