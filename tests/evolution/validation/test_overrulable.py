"""The list of codes that a person may overrule holds judgements of wording and nothing else."""

from __future__ import annotations

import re

import pytest

from agentkit.evolution.validation import validate
from agentkit.evolution.validation.approvals import OVERRULABLE
from agentkit.testing.rewrites import rewrite


@pytest.fixture(scope="module")
def layers(attacks, library):
    """The layer of each code that any attack draws."""
    return {
        failed.code: failed.layer
        for half in attacks.values()
        for case in half
        for failed in validate(case.change(library)).failed
    } | {"near_copy": "semantic", "invented_parameter": "semantic"}


def test_no_structural_code_and_one_lexical_one(layers):
    """Facts about the contract stand, and of lexical codes only that of tools' names may go."""
    assert set(layers) >= OVERRULABLE
    assert {layers[code] for code in OVERRULABLE} == {"semantic", "lexical"}
    assert {code for code in OVERRULABLE if layers[code] == "lexical"} == {"other_tool"}


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
