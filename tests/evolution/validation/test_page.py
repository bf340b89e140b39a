"""The tables of ``docs/validation.md``: each example does what its row says."""

from __future__ import annotations

import json
import re

import pytest

from agentkit.evolution.validation import validate
from agentkit.evolution.validation.approvals import OVERRULABLE
from agentkit.testing.rewrites import rewrite

ROW = re.compile(
    r"^\| `(?P<code>[a-z_]+)` \| [^|]+ \| `(?P<tool>\w+)` \| (?P<ok>.+) \| (?P<bad>.+) \|$"
)
CELL = re.compile(r"`(?P<place>[^`]+)`: `(?P<text>[^`]*)`")
IN_WORDS = {"too_long", "grew_too_much", "copied_text"}
"""Rows whose examples would be too long for a cell; tests of their own hold them."""


@pytest.fixture(scope="module")
def rows(project_root):
    """The rows by code."""
    lines = (project_root / "docs" / "validation.md").read_text(encoding="utf-8").splitlines()
    return {match["code"]: match for line in lines if (match := ROW.match(line))}


def codes(tool, cell):
    """The codes that the example of a cell draws."""
    place, text = CELL.fullmatch(cell).group("place", "text")
    is_json = text.startswith('"') or place.startswith("/")
    change = rewrite(tool, {place: json.loads(text) if is_json else text})
    return {failed.code for failed in validate(change).failed}


def test_the_examples_of_the_page_hold(rows):
    """What is called accepted is accepted without its code, what is called rejected draws it."""
    tried = {code: row for code, row in rows.items() if code not in IN_WORDS}
    for code, row in tried.items():
        assert codes(row["tool"], row["ok"]) <= {"no_change"} - {code}, code
        assert code in codes(row["tool"], row["bad"]), code
    assert len(tried) > 40


def test_every_code_is_told(rows, attacks, reports):
    """Each code that any attack of the corpora draws has its row, and so have the three others."""
    drawn = {
        failed.code
        for half in attacks.values()
        for case in half
        for failed in reports[id(case)].failed
    }
    assert drawn | IN_WORDS <= set(rows)


@pytest.mark.parametrize(("count", "found"), [(12, set()), (13, {"too_long"})])
def test_twelve_usage_rules_are_allowed(count, found):
    """The thirteenth is one too many."""
    change = rewrite("cars_search", {"/description/usage_rules": ["Give the maker."] * count})
    assert {failed.code for failed in validate(change).failed} == found


def test_the_page_lists_them(project_root):
    """``docs/validation.md`` names each code of the list, and no other beside them."""
    page = (project_root / "docs" / "validation.md").read_text(encoding="utf-8")
    section = page.partition("## When a check is wrong\n")[2].partition("\n## ")[0]
    row = next(line for line in section.splitlines() if line.startswith("| may be overruled"))
    assert set(re.findall(r"`([a-z_]+)`", row)) == OVERRULABLE


def test_every_tool_that_a_text_names_is_told(library):
    """Two names are two reasons, so that who overrules one has seen the other."""
    text = {"rule": "First weather_now, then weather_now, then currency_convert."}
    change = rewrite("cars_search", text, library=library)
    found = [failed.excerpt for failed in validate(change).failed if failed.code == "other_tool"]
    assert found == ["weather_now", "currency_convert"]
