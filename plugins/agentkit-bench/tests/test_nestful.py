"""The questions of NESTFUL, and their flows of data."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from agentkit.errors import DatasetError
from agentkit.evolution.trajectories import Flow, Given
from agentkit_bench.nestful import load_nestful

SAMPLE = Path(__file__).parent / "sample_nestful"


@pytest.fixture
def sample():
    """Eight questions written by us, in the form of two of the sources."""
    return load_nestful(SAMPLE)


def by_id(nestful, question_id):
    """One question."""
    return next(q for q in nestful.questions if q.trajectory.trajectory_id == question_id)


def test_references_become_flows(sample):
    """A reference names the call and the place; into a list it means the first item."""
    boats = by_id(sample, "nestful:complexfuncbench:0").trajectory
    assert boats.request == "Which boats go from Aker to Moss on 2026-05-01?"
    assert boats.steps[2].sources == {
        "from_id": Flow(step=0, path=(0, "id")),
        "to_id": Flow(step=1, path=(0, "id")),
        "day": Given(value="2026-05-01"),
    }
    assert boats.arguments(2) == {"from_id": "AK01", "to_id": "MO02", "day": "2026-05-01"}


def test_tools_have_schemas(sample):
    """Upstream's table of parameters becomes a schema; GET requests only read."""
    tools = {definition.name: definition for definition in sample.definitions}
    boats = tools["Find_Boats(Day)"]
    assert boats.signature.required == ("from_id", "to_id", "day")
    assert boats.signature.properties["class"] == {
        "type": "string",
        "enum": ["deck", "cabin"],
        "default": "deck",
    }
    assert boats.description.parameters["day"] == "The day."
    assert boats.signature.effects.is_read_only
    assert not tools["send_note"].signature.effects.is_read_only


def test_what_was_not_recorded_is_made_up(sample):
    """A source without responses gets one text for each place that a later call refers to."""
    question = by_id(sample, "nestful:glaive:0")
    assert not question.is_recorded
    assert question.trajectory.steps[0].result == {"note_id": "var1.note_id"}
    assert question.trajectory.arguments(1) == {"note_id": "var1.note_id", "to": "Ada"}
    assert not question.trajectory.steps[0].is_whole
    assert question.trajectory.answered == {0, 1}  # what the closing record names


def packed(folder, target, *, clipped=False):
    """The sample as one question a line, as a corpus beside the checkout has it."""
    rows = json.loads((folder / "complexfuncbench/complexfuncbench-data.json").read_text())
    tools = json.loads((folder / "complexfuncbench/complexfuncbench-spec.json").read_text())
    if clipped:
        for row in rows:
            first = row["output"][0]
            text = json.dumps(first["response"])
            first["response"] = {"_clipped_chars": len(text) - 5, "_head": text[:5]}
    with gzip.open(target / "queries.jsonl.gz", "wt") as lines:
        for number, row in enumerate(rows):
            record = {
                "id": f"nestful:complexfuncbench:{number}",
                "query": row["input"],
                "category": "complexfuncbench",
                "gold": row["output"],
            }
            lines.write(json.dumps(record) + "\n")
    with gzip.open(target / "tools.jsonl.gz", "wt") as lines:
        for tool in tools:
            properties = {n: {"type": "string"} for n in tool["query_parameters"]}
            record = {
                "id": f"nestful:complexfuncbench/{tool['name']}:0",
                "name": tool["name"],
                "description": tool["description"],
                "parameters": {"type": "object", "properties": properties},
            }
            lines.write(json.dumps(record) + "\n")


def test_clipped_responses_are_not_guessed(tmp_path):
    """What was cut off can not be read: the reference stays text, and the call is not whole."""
    packed(SAMPLE, tmp_path, clipped=True)
    trajectory = load_nestful(tmp_path).questions[0].trajectory
    assert not trajectory.steps[0].is_whole
    assert trajectory.steps[2].sources["from_id"] == Given(value="$var1.id$", uses=(0,))
    assert trajectory.steps[2].sources["to_id"] == Flow(step=1, path=(0, "id"))


@pytest.mark.parametrize(
    ("file", "text", "told"),
    [
        ("complexfuncbench-data.json", "[{", "not JSON"),
        ("complexfuncbench-data.json", '[{"input": "x"}]', "KeyError: 'output'"),
        ("complexfuncbench-spec.json", '[{"name": "x"}]', "KeyError: 'description'"),
    ],
)
def test_broken_files_are_refused(tmp_path, file, text, told):
    """A file of another form is refused with its name and what is wrong."""
    shutil.copytree(SAMPLE, tmp_path / "data")
    (tmp_path / "data" / "complexfuncbench" / file).write_text(text)
    with pytest.raises(DatasetError, match=told):
        load_nestful(tmp_path / "data")


def test_an_empty_folder_is_told(tmp_path):
    """Without any questions the message says what to give."""
    with pytest.raises(DatasetError, match="fetch_nestful"):
        load_nestful(tmp_path)


@pytest.mark.corpora
def test_the_real_corpus(corpus):
    """All 1,300 questions load; the ones with a flow of data are those that upstream counts."""
    nestful = load_nestful(corpus("nestful"))
    assert (len(nestful.questions), len(nestful.definitions)) == (1300, 173)
    assert sum(len(question.trajectory.steps) for question in nestful.questions) == 5867
    tools = {definition.name for definition in nestful.definitions}
    assert all(step.tool in tools for q in nestful.questions for step in q.trajectory.steps)
    recorded = [question for question in nestful.questions if question.is_recorded]
    assert {question.category for question in recorded} == {"complexfuncbench"}
