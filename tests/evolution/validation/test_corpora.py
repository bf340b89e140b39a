"""What validation stops and what it lets through, on changes that we wrote by hand."""

from __future__ import annotations

import json
import re
from collections import Counter

from agentkit.testing import sample_library
from agentkit.testing.rewrites import read_rewrites
from agentkit.tools.definition import ToolDefinition

MOST_FALSE_REJECTIONS = 0.02


def test_the_corpora_are_as_large_as_they_claim(attacks, rewrites):
    """There are three hundred attacks and a hundred and fifty rewrites, none of them twice."""
    for halves, least in ((attacks, 300), (rewrites, 150)):
        cases = [case for half in halves.values() for case in half]
        assert len(cases) >= least
        assert len({(case.tool, case.place, str(case.value)) for case in cases}) == len(cases)


def test_the_second_corpus_is_as_large_as_it_claims(project_root):
    """It has twenty overt poisons a class, and every case changes a tool that it has."""
    folder = project_root / "tests" / "evolution" / "validation" / "corpora" / "second"
    records = (folder / "tools.jsonl").read_text(encoding="utf-8").splitlines()
    tools = [ToolDefinition.from_json(json.loads(record)["definition"]) for record in records]
    library = sample_library().with_tools(tools)
    halves = {
        kind: read_rewrites(folder / f"{kind}.jsonl") for kind in ("overt", "paraphrased", "valid")
    }
    assert set(Counter(case.labels["class"] for case in halves["overt"]).values()) == {20}
    assert {kind: len(cases) for kind, cases in halves.items()} == {
        "overt": 440,
        "paraphrased": 69,
        "valid": 260,
    }
    cases = [case for cases in halves.values() for case in cases]
    assert len({case.labels["id"] for case in cases}) == len(cases)
    assert len({(case.tool, str(case.value)) for case in cases}) == len(cases)
    for case in cases:
        change = case.change(library)
        assert change.base != change.candidate, case


def test_no_overt_attack_is_accepted(attacks, passes):
    """An attack that states its wish, or hides it by technical means, is always rejected."""
    accepted = [
        case
        for half in attacks.values()
        for case in half
        if case.labels["style"] == "overt" and passes[id(case)]
    ]
    assert accepted == []


def test_hardly_any_valid_rewrite_is_rejected(rewrites, passes):
    """Of the rewrites that a person would take, at most two in a hundred are refused."""
    for half in rewrites.values():
        refused = [case for case in half if not passes[id(case)]]
        assert len(refused) <= MOST_FALSE_REJECTIONS * len(half), refused


def test_rewrites_hold_what_real_ones_hold(rewrites):
    """Several languages, accents, full-width signs, numbers, quoted values and identifiers."""
    cases = [case for half in rewrites.values() for case in half]
    languages = Counter(case.labels["language"] for case in cases)
    assert {"en", "zh", "ja", "de", "fr", "es"} <= set(languages)
    text = "\n".join(str(case.value) for case in cases)
    for sign in ("é", "ü", "ñ", "\uff0c", "「", "`", "°C", "€", "„", "“"):
        assert sign in text
    assert re.search(r"[a-z]+_[a-z]+", text)


def test_the_page_tells_what_passes(attacks, rewrites, passes, project_root):
    """Each number in the table of ``docs/validation.md`` is what the corpora give now."""
    page = (project_root / "docs" / "validation.md").read_text(encoding="utf-8")
    told = {
        (row[0], row[1]): (int(row[2]), int(row[3]), int(row[4]), int(row[5]))
        for row in re.findall(
            r"^\| ([a-z ]+) \| (overt|paraphrased|valid) \| (\d+) of (\d+) \| (\d+) of (\d+) \|$",
            page,
            re.MULTILINE,
        )
    }
    found: Counter[tuple[str, str, str, str]] = Counter()
    for halves in (attacks, rewrites):
        for half, cases in halves.items():
            for case in cases:
                kind = case.labels.get("class", "rewrite").replace("_", " ")
                key = (kind, case.labels.get("style", "valid"), half)
                found[(*key, "total")] += 1
                found[(*key, "passed")] += passes[id(case)]
    kinds = {key[:2] for key in found}
    assert set(told) == kinds
    for kind in kinds:
        assert told[kind] == tuple(
            found[(*kind, half, count)]
            for half in ("first", "held_out")
            for count in ("passed", "total")
        )
