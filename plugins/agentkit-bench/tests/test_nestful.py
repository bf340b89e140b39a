"""The questions of NESTFUL, and their flows of data."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from agentkit.errors import DatasetError
from agentkit.evolution.mining import mine
from agentkit.evolution.trajectories import Flow, Given
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


def test_the_answer_tells_which_results_it_needs(sample):
    """The closing record is no call; what it names is needed outside."""
    question = by_id(sample, "nestful:glaive:0")
    assert [step.tool for step in question.trajectory.steps] == ["make_note", "send_note"]
    assert question.trajectory.answered == {0, 1}


def test_composites_are_mined_from_the_gold_calls(sample):
    """Three calls that recur in the questions become one."""
    tools = {definition.name: definition for definition in sample.definitions}
    recorded = [q.trajectory for q in sample.questions if q.is_recorded]
    (composite, *_) = mine(recorded, tools).composites
    assert composite.calls == 3
    assert composite.saves == 2 * composite.uses


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
        ("complexfuncbench-data.json", "{}", "no list"),
        ("complexfuncbench-data.json", '[{"input": "x"}]', "KeyError: 'output'"),
        ("complexfuncbench-data.json", '[{"input": "x", "output": [{}]}]', "not NESTFUL's"),
        ("complexfuncbench-data.json", '[{"input": "x", "output": [7]}]', "not NESTFUL's"),
        ("complexfuncbench-spec.json", '[{"name": "x"}]', "KeyError: 'description'"),
    ],
)
def test_broken_files_are_refused(tmp_path, file, text, told):
    """A file of another form is refused with its name and what is wrong."""
    shutil.copytree(SAMPLE, tmp_path / "data")
    (tmp_path / "data" / "complexfuncbench" / file).write_text(text)
    with pytest.raises(DatasetError, match=told):
        load_nestful(tmp_path / "data")


def test_a_broken_line_is_named(tmp_path):
    """A line of the packed form that is no JSON is named by file and number."""
    for name, text in (("tools.jsonl.gz", "\n"), ("queries.jsonl.gz", "\n{broken\n")):
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DatasetError, match=r"queries\.jsonl\.gz, line 2: not JSON"):
        load_nestful(tmp_path)


def test_an_empty_folder_is_told(tmp_path):
    """Without any questions the message says what to give."""
    with pytest.raises(DatasetError, match="fetch_nestful"):
        load_nestful(tmp_path)


@pytest.mark.corpora
def test_the_real_corpus(project_root):
    """All 1,300 questions load; the ones with a flow of data are those that upstream counts."""
    root = Path(os.environ.get("AGENTKIT_CORPORA", project_root.parent / "shared" / "data"))
    folder = root / "nestful"
    if not (folder / "queries.jsonl.gz").is_file():
        pytest.skip(f"no corpus 'nestful' in {root}; name the folder in AGENTKIT_CORPORA")
    nestful = load_nestful(folder)
    assert (len(nestful.questions), len(nestful.definitions)) == (1300, 173)
    assert sum(len(question.trajectory.steps) for question in nestful.questions) == 5867
    tools = {definition.name for definition in nestful.definitions}
    assert all(step.tool in tools for q in nestful.questions for step in q.trajectory.steps)
    recorded = [question for question in nestful.questions if question.is_recorded]
    assert {question.category for question in recorded} == {"complexfuncbench"}


SAMPLE_nestful = [
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
    assert check(SAMPLE_nestful) == ()
    assert run(SAMPLE_nestful)[2].arguments == {"from": 7, "to": 9, "note": "to 9"}


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
