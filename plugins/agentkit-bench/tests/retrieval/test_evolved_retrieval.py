"""The experiment on retrieval with evolved definitions: what is split, shuffled and paired."""

import gzip
import importlib
import json
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from agentkit_bench.retrieval import RetrievalQuery

TOOLS = {
    "tide": ("High and low water at a harbour.", "place"),
    "stamp": ("Price of sending a letter.", "country"),
    "ferry": ("Departures between two shores.", "place"),
    "room": ("Vacant rooms of a hotel.", "city"),
    "rain": ("Forecast for a town.", "city"),
    "rate": ("Exchange of two currencies.", "currency"),
}
SAID = {
    "tide": "Can I go paddling in {} today",
    "stamp": "How dear is the postage to {}",
    "ferry": "When does the boat sail to {}",
    "room": "Somewhere to sleep over in {}",
    "rain": "Shall I take my umbrella to {}",
    "rate": "How much money do I get in {}",
}
PLACES = ("Husum", "Dover", "Oslo", "Lund", "Bergen", "Calais")


@pytest.fixture(scope="module")
def script(project_root):
    """The script as a module; what it loads from its folder is unloaded after it."""
    folder = str(project_root / "tests" / "benchmarks")
    sys.path.insert(0, folder)
    yield importlib.import_module("evolved_retrieval")
    sys.path.remove(folder)
    for name in ("evolved_retrieval", "bench_learning"):
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path):
    """A corpus of six tools, each asked for six times in words that its text does not have."""
    tools = [
        {
            "id": f"id-{name}",
            "name": name,
            "description": text,
            "parameters": {
                "type": "object",
                "properties": {parameter: {"type": "string"}},
                "required": [parameter],
            },
        }
        for name, (text, parameter) in TOOLS.items()
    ]
    questions, calls = [], []
    for name, (_, parameter) in TOOLS.items():
        for place in PLACES:
            number, key = f"{name}-{place}", f"id-{name}"
            text = SAID[name].format(place) + ", please?"
            call = {"name": name, "tool": key, "arguments": {parameter: place}}
            questions.append({"id": number, "query": text, "gold_tools": [key], "category": "test"})
            calls.append({"id": number, "query": text, "gold": [call]})
    for name, records in (("tools", tools), ("retrieval", questions), ("queries", calls)):
        lines = "".join(json.dumps(record) + "\n" for record in records)
        (tmp_path / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    return tmp_path


def asked(*texts):
    """Questions with these texts."""
    return [
        RetrievalQuery(query_id=str(at), text=text, gold=frozenset({"a"}))
        for at, text in enumerate(texts)
    ]


@given(
    words=st.lists(st.sampled_from(["rain 1", "rain 2", "Rain", "sun", "wind 3"])),
    seed=st.integers(),
)
def test_each_question_is_lived_or_asked(script, words, seed):
    """No question is on both sides or on none, and none is lived whose like is asked."""
    queries = asked(*words)
    lived, held = script.halves(queries, seed)
    assert sorted(one.query_id for one in (*lived, *held)) == sorted(q.query_id for q in queries)
    assert not {one.text.split()[0].lower() for one in lived} & {
        one.text.split()[0].lower() for one in held
    }


def row(script, question, *, fixed, evolved, taught=()):
    """A row about the tools a and b."""
    return script.Row(
        question=question,
        gold=frozenset("ab"),
        taught=frozenset(taught),
        is_new=False,
        found={"fixed": tuple(fixed), "evolved": tuple(evolved), "shuffled": tuple(fixed)},
    )


def test_gains_are_paired_and_a_question_counts_once(script):
    """A question that two seeds ask counts with the mean of its differences."""
    rows = [
        row(script, "1", fixed="x", evolved="ab"),
        row(script, "1", fixed="x", evolved="a"),
        row(script, "2", fixed="ab", evolved="b"),
    ]
    assert script.gain(rows, "evolved", "@5").value == pytest.approx((0.75 - 0.5) / 2)
    assert script.gain(rows, "evolved", "full@10").value == pytest.approx((0.5 - 1) / 2)
    assert script.gain(rows, "shuffled", "@5").value == 0
    assert script.gain([], "evolved", "@5") is None


@pytest.mark.long
def test_it_runs_on_a_folder(project_root, folder):
    """Half of the questions teach the words of the others, and the wrong words teach nothing."""
    script = project_root / "tests" / "benchmarks" / "evolved_retrieval.py"
    out = folder / "figures.json"
    command = [sys.executable, str(script), "--corpus", f"sample={folder}", "--seeds", "2"]
    command += ["--methods", "examples,words,added", "--json", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    examples, words, added = json.loads(out.read_text())
    assert added["recall"]["fixed"] == examples["recall"]["evolved"]
    for one in (examples, words):
        assert one["lived"] == 18
        assert one["recall"]["evolved"]["@5"] > one["recall"]["fixed"]["@5"]
        assert one["recall"]["evolved"]["@5"] > one["recall"]["shuffled"]["@5"]
        assert one["gains"]["@5"]["evolved"]["low"] > 0
    assert "sample, words: 18 episodes lived" in done.stdout
