"""Public catalogues of tools are read without loss, and as their curators normalised them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from agentkit.tools.sources import definitions_from_json, normalise_parameters

SAMPLE = [
    (
        {
            "type": "dict",
            "properties": {
                "base": {"type": "integer", "description": "The base."},
                "unit": {"type": "String", "optional": True, "default": "cm"},
            },
            "required": ["base"],
        },
        {
            "type": "object",
            "properties": {
                "base": {"type": "integer", "description": "The base."},
                "unit": {"type": "string", "default": "cm"},
            },
            "required": ["base"],
        },
    ),
    (
        {
            "type": "dict",
            "properties": {
                "points": {"type": "Array", "items": {"type": "tuple", "items": {"type": "float"}}},
                "callback": {"type": "any", "description": "What to call."},
                "flags": {"type": "HashMap"},
                "big": {"type": "long"},
            },
            "required": [],
        },
        {
            "type": "object",
            "properties": {
                "points": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": "number"}},
                },
                "callback": {"description": "What to call."},
                "flags": {"type": "object"},
                "big": {"type": "integer"},
            },
            "required": [],
        },
    ),
]


def without_marker(schema, *, names_below=False):
    """A schema without the word ``optional`` on properties, which says nothing in JSON Schema."""
    if isinstance(schema, list):
        return [without_marker(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_marker(item, names_below=key == "properties" and not names_below)
        for key, item in schema.items()
        if names_below or key != "optional"
    }


@pytest.mark.parametrize(("raw", "expected"), SAMPLE)
def test_sample_in_the_style_of_the_benchmark(raw, expected) -> None:
    """A small sample of our own in BFCL's dialect is normalised as expected."""
    assert normalise_parameters(raw).schema == expected


@pytest.mark.corpora
def test_bfcl_agrees_with_its_curators(corpus_rows, project_root: Path) -> None:
    """All 3,386 tools of BFCL come out as in the curated copy, but for the word ``optional``."""
    rows = corpus_rows("bfcl")
    rules: Counter[str] = Counter()
    exact = 0
    for row in rows:
        found = normalise_parameters(row["raw_parameters"])
        rules.update(change.rule for change in found.changes)
        exact += found.schema == row["parameters"]
        assert without_marker(found.schema) == without_marker(row["parameters"]), row["id"]
    assert exact == 3342
    curated = {
        "type dict -> object": 3641, "type float -> number": 879, "type 'any' dropped": 187,
        "type String -> string": 115, "type tuple -> array": 21, "type Array -> array": 13,
        "type HashMap -> object": 7, "type long -> integer": 7, "type ArrayList -> array": 6,
        "type Boolean -> boolean": 4, "type double -> number": 1, "type char -> string": 1,
        "type '' dropped": 1,
    }  # fmt: skip
    assert {rule: rules[rule] for rule in curated} == curated


@pytest.mark.corpora
@pytest.mark.parametrize(
    ("corpus", "size"),
    [("bfcl", 3386), ("seal_tools", 4076), ("nestful", 173), ("tooluniverse", 3025)],
)
def test_catalogue_is_imported_whole(corpus_rows, corpus: str, size: int) -> None:
    """Each record of a catalogue becomes a definition that survives JSON, and none is rejected."""
    records = []
    for row in corpus_rows(corpus):
        raw = row.get("raw_parameters", row["parameters"])
        own_keys = corpus in {"seal_tools", "nestful"}
        words = {key: row[key] for key in ("name", "description", "returns") if key in row}
        records.append(words | (raw if own_keys else {"parameters": raw}))
    batch = definitions_from_json(records)
    assert batch.rejected == ()
    assert len(batch.definitions) == size
    some = batch.definitions[::10]
    again = definitions_from_json(json.dumps([definition.to_json() for definition in some]))
    assert again.definitions == some


@pytest.mark.corpora
def test_corpus_schemas_are_valid(corpus_rows) -> None:
    """What comes out is valid by the meta-schema, on a spread of every catalogue."""
    for corpus in ("bfcl", "seal_tools", "nestful", "tooluniverse"):
        for row in corpus_rows(corpus)[::60]:
            raw = row.get("raw_parameters", row["parameters"])
            Draft202012Validator.check_schema(normalise_parameters(raw).schema)
