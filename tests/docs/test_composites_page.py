"""The tables of docs/composites.md are those of the language."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest

from agentkit.composites import language
from agentkit.composites.problems import ADVICE, CompositeLimits, RunCode

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
    """Each stands there with how it may be called."""
    page = PAGE.replace("\n", " ")
    for name, words in table.items():
        assert f"`{name}` ({arity(words)})" in page, name


def test_limits_stand_there_with_their_defaults() -> None:
    """Each limit has a row with its default, in the order of the class."""
    expected = [[f"`{field.name}`", f"{field.default:,}"] for field in fields(CompositeLimits)]
    assert [row[:2] for row in ROWS if row[:2] in expected] == expected


@pytest.mark.parametrize("code", [*ADVICE, *get_args(RunCode)])
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
    assert named == {*ADVICE, *get_args(RunCode)}
