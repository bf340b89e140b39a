"""Data flow of NESTFUL's gold answers."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from agentkit_bench.data_flow import (
    NOWHERE,
    ExecutedCall,
    FlowCall,
    Reference,
    compare_data_flow,
    compare_executed_flow,
    pieces_of,
    value_at,
)

SAMPLE = [
    {"name": "find", "label": "var1", "arguments": {"query": "Aker"}, "response": [{"id": 7}]},
    {"name": "find", "label": "var2", "arguments": {"query": "Moss"}, "response": [{"id": 9}]},
    {
        "name": "boats",
        "label": "var3",
        "arguments": {"from": "$var1.id$", "to": "$var2.id$", "note": "to $var2.id$"},
        "response": {"count": 2},
    },
]


def gold_of(calls):
    return [
        FlowCall(name=call["name"], arguments=call["arguments"], label=call["label"])
        for call in calls
    ]


def run(calls):
    """The calls as an agent would have run them, or None where the recording is cut short."""
    labels = [call["label"] for call in calls]
    results: dict[str, object] = {}
    done = []
    for call in calls:
        try:
            arguments = {
                key: filled(item, labels, results) for key, item in call["arguments"].items()
            }
        except LookupError:
            return None
        results[call["label"]] = call["response"]
        done.append(ExecutedCall(name=call["name"], arguments=arguments, result=call["response"]))
    return done


def filled(value, labels, results):
    if isinstance(value, list):
        return [filled(item, labels, results) for item in value]
    if not isinstance(value, str):
        return value
    values = [
        value_at(results[piece.label], piece.path) if isinstance(piece, Reference) else piece
        for piece in pieces_of(value, labels)
    ]
    if NOWHERE in values:
        raise LookupError(value)
    return values[0] if len(values) == 1 else "".join(map(str, values))


def check(calls):
    """Gold equals gold, and equals its own run."""
    gold = gold_of(calls)
    found = compare_data_flow(gold, gold, {})
    if found.problems:
        return found.problems
    assert found.is_full
    done = run(calls) if all("response" in call for call in calls) else None
    if done is not None:
        assert compare_executed_flow(done, gold, {}).is_full
        assert not compare_executed_flow(done[:-1], gold, {}).is_full
    return ()


def test_a_sample_in_nestfuls_form_matches_itself():
    """References into lists and among words are followed in three calls written by us."""
    assert check(SAMPLE) == ()
    assert run(SAMPLE)[2].arguments == {"from": 7, "to": 9, "note": "to 9"}


@pytest.mark.corpora
def test_all_gold_answers_match_themselves(project_root):
    """1,300 gold answers equal themselves and their own runs; one has a broken reference."""
    root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))
    path = root / "nestful" / "queries.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"no nestful/queries.jsonl.gz in {root}; name the folder in AGENTKIT_CORPORA")
    broken = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            calls = [call for call in row["gold"] if call["name"] != "var_result"]
            broken += [(row["id"], problem) for problem in check(calls)]
    assert len(broken) == 1
    assert broken[0][0].startswith("nestful:executable:")
    assert "does not end" in broken[0][1]
