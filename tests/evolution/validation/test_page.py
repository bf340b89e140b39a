"""Each code of a failed check: its examples, and what ``docs/validation.md`` says of it."""

from __future__ import annotations

import json
import re

import pytest

from agentkit.evolution.validation import validate
from agentkit.evolution.validation.approvals import OVERRULABLE
from agentkit.testing.rewrites import rewrite

IN_WORDS = {"too_long", "grew_too_much", "copied_text"}
"""Codes whose examples would be too long for a line; tests of their own hold them."""


def codes(tool, place, text):
    """The codes that an example draws."""
    is_json = text.startswith('"') or place.startswith("/")
    change = rewrite(tool, {place: json.loads(text) if is_json else text})
    return {failed.code for failed in validate(change).failed}


def test_each_code_accepts_one_example_and_rejects_another(project_root):
    """What is called accepted draws nothing but that nothing changed, what is rejected the code."""
    file = project_root / "tests" / "evolution" / "validation" / "corpora" / "codes.tsv"
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    for code, tool, *cells in rows:
        assert codes(tool, *cells[:2]) <= {"no_change"} - {code}, code
        assert code in codes(tool, *cells[2:]), code
    assert len(rows) > 40


def test_every_code_is_told(project_root, attacks, reports):
    """Each code that any attack of the corpora draws stands on the page, and the three others."""
    page = (project_root / "docs" / "validation.md").read_text(encoding="utf-8")
    cases = (case for half in attacks.values() for case in half)
    drawn = {failed.code for case in cases for failed in reports[id(case)].failed}
    assert drawn | IN_WORDS <= set(re.findall(r"`([a-z_]+)`", page))


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
