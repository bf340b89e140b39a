"""Episodes in files: JSON lines, plain and compressed; tables of earlier releases."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from dataclasses import replace

import pytest

from agentkit import Episode, Library, ToolDefinition
from agentkit._waiting import wait_for
from agentkit.diagnosis import FailureProfile, diagnose
from agentkit.diagnosis.labels import label_of_failure
from agentkit.episodes import Diagnosis, Evidence, Redaction, Turn, TurnDiagnosis, Verdict
from agentkit.episodes.files import (
    decode_episode,
    encode_episode,
    export_episodes,
    import_episodes,
    read_episodes,
)
from agentkit.errors import EpisodeFormatError, MissingExtraError
from agentkit.evaluation.results.summary import summarise
from agentkit.evolution.proposal import Observations
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult, Usage

FORMS = ["jsonl", "jsonl.gz"]


def episode(name, text="4"):
    """An episode with two calls, one of them failed, and a verdict."""
    calls = (
        ToolCall(call_id="1", name="add", arguments={"a": 2, "é": None}),
        ToolCall(call_id="2", name="sub", malformed="{"),
    )
    failure = ToolFailure(kind="malformed_arguments", rule="no JSON")
    results = (
        ToolResult(call_id="1", name="add", status="ok", value=4, text="4"),
        ToolResult(call_id="2", name="sub", status="failed", failure=failure),
    )
    return Episode(
        episode_id=name,
        request="2 + 2?",
        turns=(Turn(message=AssistantMessage(text=text, tool_calls=calls), results=results),),
        session_id="s",
        started_at="2026-03-02T10:00:00+01:00",
        usage=Usage(requests=1, prompt_tokens=10, cost_usd=0.5),
        verdict=Verdict(passed=True, score=1.0),
        diagnosis=Diagnosis(label="pass"),
        metadata={"user": "Łukasz", "half": "\ud83d"},
    )


@pytest.fixture(params=FORMS)
def form(request):
    """Each form in turn."""
    return request.param


def test_what_was_written_is_read(form, tmp_path):
    """Every form gives back equal episodes in order, labelled as imported unless they are own."""
    path = tmp_path / f"episodes.{form}"
    odd = replace(episode("odd"), output=[float("inf"), 10**30, "\0"], library_version=10**20)
    told = [
        episode("a"),
        episode("b", "\ud83d half"),
        replace(odd, started_at="soon", seconds=10**400),
    ]
    assert export_episodes(path, iter(told)) == 3
    assert list(import_episodes(path, own=True)) == told
    labelled = list(import_episodes(path))
    assert {one.metadata["imported"] for one in labelled} == {path.name}


def test_a_file_is_replaced_whole_or_not_at_all(form, tmp_path):
    """When writing fails in the middle the old file is as it was, and no draft stays."""
    path = tmp_path / f"episodes.{form}"
    export_episodes(path, [episode("old")])
    bad = Episode(episode_id="bad", request="", output=object())
    with pytest.raises(EpisodeFormatError, match="bad"):
        export_episodes(path, [episode("new"), bad])
    assert [one.episode_id for one in import_episodes(path)] == ["old"]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("cut", [1, 10, 200])
def test_a_compressed_file_that_is_cut_off_gives_what_it_has(tmp_path, cut):
    """The episodes before the cut are read, and the cut is told or raised with its place."""
    path = tmp_path / "e.jsonl.gz"
    export_episodes(path, [episode(f"e{i}") for i in range(3000)])
    path.write_bytes(path.read_bytes()[:-cut])
    problems = []
    found = list(read_episodes(path, on_broken=problems.append))
    assert [one.episode_id for one in found] == [f"e{i}" for i in range(len(found))]
    (problem,) = problems
    assert "cut off" in str(problem)
    with pytest.raises(EpisodeFormatError, match="cut off or damaged"):
        list(read_episodes(path))


def test_a_foreign_parquet_file_is_named(tmp_path):
    """A table of something else, and a damaged file, say so."""
    pyarrow = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "e.parquet"
    for columns in ({"x": [1]}, {"record": [1]}, {"record": [{"x": 1}]}, {"record": [b"{}"]}):
        parquet.write_table(pyarrow.table(columns), path)
        with pytest.raises(
            EpisodeFormatError, match=f"no column 'record' .*, only {next(iter(columns))}"
        ):
            list(import_episodes(path))
    whole = path.read_bytes()
    for damaged in (
        whole[:-20],
        whole[:-8] + b"\xff\xff\xff\x7fPAR1",
        whole[:8] + b"\xff" * 40 + whole[48:],
    ):
        path.write_bytes(damaged)
        with pytest.raises(EpisodeFormatError, match=r"damaged|no column"):
            list(import_episodes(path))


def test_parquet_says_what_to_install(tmp_path, monkeypatch):
    """Without pyarrow the error names the pip line."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "e.parquet"
    path.write_bytes(b"PAR1")
    with pytest.raises(MissingExtraError, match=r"agentkit-evolve\[parquet\]"):
        list(import_episodes(path))


def test_many_are_read_and_written_in_little_memory(tmp_path):
    """Episodes of many megabytes pass through one or two, in JSON lines."""
    path = tmp_path / "e.jsonl.gz"
    one = episode("e", "x" * 8_000)
    tracemalloc.start()
    export_episodes(path, (replace(one, episode_id=f"e{i}") for i in range(800)))
    count = sum(1 for _ in import_episodes(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 800
    assert peak < 2_000_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_what_is_no_file_is_written_to_and_stays(form, tmp_path):
    """A pipe or a device is not replaced by a file: what reads it gets all."""
    path = tmp_path / f"pipe.{form}"
    os.mkfifo(path)
    with subprocess.Popen(["cat", str(path)], stdout=subprocess.PIPE) as cat:
        try:
            export_episodes(path, [episode("a")])
            content, _ = cat.communicate(timeout=30)
        finally:
            cat.kill()
    assert path.is_fifo()
    copy = tmp_path / f"copy.{form}"
    copy.write_bytes(content)
    assert [one.episode_id for one in import_episodes(copy)] == ["a"]


def episode_jsonl(episode_id: str, text: str = "4") -> Episode:
    """A small episode with one call."""
    call = ToolCall(call_id="1", name="add", arguments={"a": 2, "b": 2})
    result = ToolResult(call_id="1", name="add", status="ok", value=4, text="4")
    turn = Turn(message=AssistantMessage(text=text, tool_calls=(call,)), results=(result,))
    return Episode(episode_id=episode_id, request="2 + 2?", turns=(turn,), output=text)


@pytest.fixture
def half_written(tmp_path):
    """A file with two episodes and half of a third, as a crash leaves it."""
    path = tmp_path / "episodes.jsonl"
    export_episodes(path, map(episode_jsonl, "123"))
    path.write_bytes(path.read_bytes()[:-100])
    return path


def test_a_half_written_line_is_reported_with_its_number(half_written):
    """The half line is reported with file and number, and the rest is still read."""
    broken = []
    read = [one.episode_id for one in read_episodes(half_written, on_broken=broken.append)]
    assert read == ["1", "2"]
    (line,) = broken
    assert (line.path, line.line) == (half_written, 3)
    assert str(line).startswith(f"{half_written}, line 3: not JSON")


@pytest.mark.parametrize(
    "line",
    [b"{", b"[]", b"7", b"null", b'{"format": 1}', b'{"format": "x"}', b"\xff\xfe", b"[" * 100_000,
     b'{"format":1,"episode_id":"e","request":"?","usage":{},"turns":[7]}',
     b'{"format":1,"episode_id":"e","request":"?","usage":7,"turns":[]}'],
)  # fmt: skip
def test_a_line_that_is_no_episode_is_reported(tmp_path, line):
    """Whatever stands in a line, it is reported and the next one is read."""
    path = tmp_path / "episodes.jsonl"
    export_episodes(path, [episode_jsonl("2")])
    path.write_bytes(line + b"\n" + path.read_bytes())
    broken = []
    assert list(read_episodes(path, on_broken=broken.append)) == [episode_jsonl("2")]
    assert [one.line for one in broken] == [1]


def _nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "values",
    [
        (_nested(195),),
        (_nested(900),),
        ([0] * 600_000,),
        ([{}] * 140_000,) * 3,
        (10**5_000,),
        ({"a": [[1, 2]] * 300_000},),
    ],
    ids=["deep", "very deep", "many", "many together", "long number", "many lists"],
)
def test_what_no_reader_takes_is_marked_and_never_lost(values, monkeypatch):
    """Calls and results stay where a value is too much; a mark says what was left out."""
    calls = tuple(
        ToolCall(call_id=str(at), name="get", arguments={"place": at}) for at in range(len(values))
    )
    results = tuple(
        ToolResult(call_id=str(at), name="get", status="ok", value=value, text="rows")
        for at, value in enumerate(values)
    )
    turn = Turn(message=AssistantMessage(tool_calls=calls), results=results)
    whole = Episode(episode_id="e", request="?", turns=(turn,), output="done")
    monkeypatch.setenv("AGENTKIT_READ_LIMIT", "10")  # whoever reads it may not have raised it
    text = encode_episode(whole)
    monkeypatch.delenv("AGENTKIT_READ_LIMIT")
    kept = decode_episode(text)
    assert kept.calls == calls
    assert [one.text for one in kept.results] == ["rows"] * len(values)
    assert "left out of the record" in str([one.value for one in kept.results])
    assert encode_episode(kept) == text


def test_a_call_whose_arguments_are_left_out_is_not_made_again():
    """It is malformed in the record: without its arguments it would be another call."""
    call = ToolCall(call_id="1", name="wipe", arguments={"x": [0] * 600_000})
    turn = Turn(message=AssistantMessage(tool_calls=(call,)))
    kept = decode_episode(encode_episode(Episode(episode_id="e", request="?", turns=(turn,))))
    assert kept.calls[0].arguments == {}
    assert "left out of the record" in kept.calls[0].malformed


@pytest.mark.skipif(sys.platform == "win32", reason="modes and links are a matter of POSIX")
def test_a_file_keeps_its_readers_and_its_links(form, tmp_path):
    """Who could not read the old file cannot read the new one, and a link leads on to it."""
    path, link = tmp_path / f"episodes.{form}", tmp_path / f"link.{form}"
    path.touch()
    path.chmod(0o600)
    link.symlink_to(path)
    export_episodes(link, [episode("a")])
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.episode_id for one in import_episodes(path)] == ["a"]
    assert sorted(tmp_path.iterdir()) == [path, link]


@pytest.mark.parametrize("part", ["request", "started_at", "model", "episode_id", "stop_reason"])
@pytest.mark.parametrize("value", [{}, 5, None, ["a"]])
def test_a_part_that_is_no_text_makes_no_episode(part, value):
    """What a stranger's file says is read or refused; kept, it would end whoever lists it later."""
    record = {**Episode(episode_id="e1", request="Hi").to_json(), part: value}
    with pytest.raises(EpisodeFormatError):
        decode_episode(json.dumps(record))


@pytest.mark.parametrize("value", [5, None, ["a"], "a", {"a": []}])
@pytest.mark.parametrize(
    "part",
    ["verdict", "turns", "metadata", "usage", "seconds", "turns.0.results", "turns.0.message.text"]
    + ["turns.0.message.tool_calls", *(f"verdict.evidence.0.{one}" for one in ("call_id", "tool"))]
    + [f"turns.0.message.tool_calls.0.{one}" for one in ("call_id", "name", "arguments")]
    + [f"turns.0.results.0.{one}" for one in ("status", "failure", "attempts")],
)
def test_parts_of_another_type_end_no_later_work(part, value):
    """An episode that is read can be redacted, diagnosed, learned from, counted and shown."""
    call = ToolCall(call_id="1", name="pay", arguments={"x": 1})
    failure = ToolFailure(kind="tool_failed", rule="No.")
    result = ToolResult(call_id="1", name="pay", status="failed", failure=failure)
    turn = Turn(message=AssistantMessage(text="a", tool_calls=(call,)), results=(result,))
    wrong = Evidence(kind="wrong_value", message="x", turn=0, call_id="1", tool="pay")
    verdict = Verdict(passed=False, score=0.0, evidence=(wrong,))
    record = Episode(episode_id="e", request="?", turns=(turn,), verdict=verdict).to_json()
    record = json.loads(json.dumps({**record, "metadata": {"task": "t"}}))
    *steps, last = part.split(".")
    place = record
    for step in steps:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    try:
        read = decode_episode(json.dumps(record))
    except EpisodeFormatError:
        return
    library = Library([ToolDefinition.from_schema("pay", "", {"properties": {"x": {}}})])
    diagnosed = replace(read, diagnosis=diagnose(read, library, read.verdict))
    assert FailureProfile().observe(diagnosed)
    seen = Observations(library=library, episodes=(diagnosed,))
    assert list(wait_for(EvidenceProposer().propose(seen))) == []
    assert summarise([diagnosed])
    assert decode_episode(encode_episode(Redaction()(diagnosed))).episode_id == "e"


def test_kinds_of_later_versions_end_no_evaluation():
    """A kind of failure and a label that nobody knows here are no reason to give up."""
    failure = ToolFailure(kind="of_tomorrow", rule="No.")  # type: ignore[arg-type]
    assert label_of_failure(failure) is None
    label = "of_tomorrow"
    turn = Turn(message=AssistantMessage(text="a"))
    told = TurnDiagnosis(turn=0, label=label, labels=(label,))  # type: ignore[arg-type]
    diagnosis = Diagnosis(label=label, turns=(told,))  # type: ignore[arg-type]
    labels = {"task": "t", "run": "r", "attempt": "0", "ends": "true"}
    verdict = Verdict(passed=False, score=0.0)
    failed = Episode(episode_id="e", request="?", turns=(turn,), verdict=verdict, metadata=labels)
    report = summarise([decode_episode(encode_episode(replace(failed, diagnosis=diagnosis)))])
    assert report.examples == ()
