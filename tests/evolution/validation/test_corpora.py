"""Attacks and honest rewrites, each and among others."""

from __future__ import annotations

import json

from support.rewrites import read_rewrites

from agentkit import ToolDefinition
from agentkit.evolution.validation import ValidationPolicy, validate
from agentkit.testing import sample_library

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
