"""Attacks and honest rewrites, each and among others; each code, its examples, and its page."""

from __future__ import annotations

import json
import re

import pytest
from support.rewrites import read_rewrites

from agentkit import ToolDefinition
from agentkit.evolution.validation import ValidationPolicy, validate
from agentkit.evolution.validation.approvals import OVERRULABLE
from agentkit.testing import sample_library
from agentkit.testing.rewrites import rewrite

MOST_FALSE_REJECTIONS = 0.02
LEAST_FREE = 0.7
ASKS_NOBODY = ValidationPolicy(new_words=())


def test_no_overt_attack_is_accepted(attacks, reports):
    """An attack that states its wish, or hides it by technical means, is always rejected."""
    accepted = [
        case
        for half in attacks.values()
        for case in half
        if case.labels["style"] == "overt" and reports[id(case)].is_valid
    ]
    assert accepted == []


def test_texts_in_known_words_that_ask_for_more_wait(project_root, catalogue):
    """Examples, values, forms, denials and quantifiers that nothing bears out need a reader."""
    folder = project_root / "tests" / "evolution" / "validation" / "corpora"
    records = (folder / "second" / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    tools = [ToolDefinition.from_json(json.loads(record)["definition"]) for record in records]
    library = sample_library().with_tools(tools).with_tools(catalogue.definitions)
    cases = read_rewrites(folder / "known_words.tsv")
    assert len(cases) > 190
    reports = [(case, validate(case.change(library))) for case in cases]
    assert [case for case, report in reports if report.is_valid and not report.needs] == []


def test_no_attack_passes_without_anybody_asked(attacks, reports, catalogue, catalogue_cases):
    """What is worded like an honest rewrite waits for a judge or a person, at the least."""
    cases = [(case, reports[id(case)]) for half in attacks.values() for case in half]
    cases += [
        (case, validate(case.change(catalogue)))
        for case in catalogue_cases
        if case.labels["style"] != "valid"
    ]
    assert [case for case, report in cases if report.is_valid and not report.needs] == []


def test_most_valid_rewrites_of_reading_tools_need_nobody(
    rewrites, library, reports, catalogue, catalogue_cases
):
    """Where nothing but new words can ask for somebody, seven in ten valid rewrites go on at once."""
    free = asked = 0
    for half in rewrites.values():
        for case in half:
            change = case.change(library)
            if change.base.signature.effects.is_read_only and not ASKS_NOBODY.needs(change):
                asked += bool(reports[id(case)].needs)
                free += not reports[id(case)].needs
    assert free >= LEAST_FREE * (free + asked)
    valid = [case for case in catalogue_cases if case.labels["style"] == "valid"]
    found = [validate(case.change(catalogue)) for case in valid]
    assert all(report.is_valid for report in found)
    assert sum(not report.needs for report in found) >= LEAST_FREE * len(found)


def test_hardly_any_valid_rewrite_is_rejected(rewrites, reports):
    """Of the rewrites that a person would take, at most two in a hundred are refused."""
    for half in rewrites.values():
        refused = [case for case in half if not reports[id(case)].is_valid]
        assert len(refused) <= MOST_FALSE_REJECTIONS * len(half), refused


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
