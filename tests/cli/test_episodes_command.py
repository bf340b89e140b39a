"""``agentkit episodes``."""

import json

import pytest

from agentkit.episodes import (
    Episode,
    Evidence,
    RefineTrace,
    RetrievalTrace,
    StageReport,
    Turn,
    Verdict,
)
from agentkit.library.opening import open_store
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult, Usage


def call(name="add", **arguments):
    """A call."""
    return ToolCall(call_id="c1", name=name, arguments=arguments)


@pytest.fixture(autouse=True)
def episodes(store_url):
    """Three episodes: one passed, one failed, one not judged."""
    refused = ToolResult(
        call_id="c1",
        name="add",
        status="failed",
        failure=ToolFailure(kind="invalid_arguments", rule="a must be an integer", path="a"),
    )
    trace = RefineTrace(
        mode="adaptive",
        proposals=((call(a=1),), (call(a=2),), (call(a=2),)),
        chosen=2,
        converged=True,
    )
    stage = StageReport(stage="lexical", survivors=2, tokens=90, seconds=0.001)
    retrieval = RetrievalTrace(query="q", shortlist=("add",), offered=("add",), stages=(stage,))
    told = [
        Episode(
            episode_id="aa01",
            request="What is one and two?",
            turns=(
                Turn(
                    message=AssistantMessage(tool_calls=(call(a=2),)),
                    results=(refused,),
                    refine=trace,
                    retrieval=retrieval,
                ),
            ),
            verdict=Verdict(
                passed=False,
                evidence=(Evidence(kind="wrong_value", message="add: argument 'a': wrong value"),),
            ),
            metadata={"category": "multiple"},
            usage=Usage(requests=3, prompt_tokens=1200, completion_tokens=34),
            stop_reason="step_limit",
            started_at="2026-01-01T10:00:00.000+00:00",
        ),
        Episode(
            episode_id="aa02",
            request="And three?",
            output="six",
            session_id="s1",
            verdict=Verdict(passed=True),
            metadata={"category": "simple"},
            started_at="2026-01-01T11:00:00.000+00:00",
        ),
        Episode(episode_id="bb03", request="Hello", output="Hi", error=None),
    ]
    store = open_store(store_url)
    for episode in told:
        store.append(episode)
    store.close()


def test_the_list_is_newest_first(invoke, as_json):
    """The table shows whole ids, verdicts and the beginning of each request."""
    assert [e["episode_id"] for e in as_json("episodes", "list")] == ["bb03", "aa02", "aa01"]
    table = invoke("episodes", "list").stdout.splitlines()
    assert table[2].split()[0] == "bb03"
    assert "failed" in table[4]
    assert "1,234" in table[4]


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--verdict", "failed"], ["aa01"]),
        (["--verdict", "none"], ["bb03"]),
        (["--label", "category=simple"], ["aa02"]),
        (["--session", "s1"], ["aa02"]),
        (["--tool", "add"], ["aa01"]),
        (["--stop-reason", "step_limit"], ["aa01"]),
        (["--limit", "1"], ["bb03"]),
        (["--limit", "0"], ["bb03", "aa02", "aa01"]),
        (["--verdict", "failed", "--label", "category=simple"], []),
    ],
)
def test_filters_choose(as_json, options, ids):
    """Each filter narrows the list, and filters combine."""
    assert [e["episode_id"] for e in as_json("episodes", "list", *options)] == ids


def test_a_label_without_a_value_is_misuse(invoke):
    """--label wants KEY=VALUE."""
    result = invoke("episodes", "list", "--label", "category")
    assert result.exit_code == 2
    assert "KEY=VALUE" in result.stderr


def test_show_tells_the_whole_story(invoke):
    """Retrieval, every refinement, the failure with its rule, and the verdict are there."""
    told = invoke("episodes", "show", "aa01").stdout
    assert "stage   lexical: 2 tools left" in told
    assert "refine  adaptive: 2 rounds, two answers agreed" in told
    assert "*2: add(a=2)".replace("*2", "* 2") in told
    assert "failed (invalid_arguments at a): a must be an integer" in told
    assert "verdict   failed" in told
    assert "wrong value" in told
    assert "category=multiple" in told


@pytest.mark.parametrize(("asked", "found"), [("last", "bb03"), ("b", "bb03"), ("aa02", "aa02")])
def test_an_episode_is_found_by_id_beginning_or_last(as_json, asked, found):
    """The whole id, a beginning that fits one episode, and the word last all work."""
    assert as_json("episodes", "show", asked)["episode_id"] == found


@pytest.mark.parametrize(
    ("asked", "complaint"), [("aa", "2 ids begin so: aa02, aa01"), ("zz", "none begins so")]
)
def test_an_unclear_id_is_an_error(invoke, asked, complaint):
    """A beginning that fits several episodes or none is refused."""
    result = invoke("episodes", "show", asked)
    assert result.exit_code == 1
    assert complaint in result.stderr


def test_export_writes_json_lines(invoke, tmp_path):
    """To stdout or to a file, one whole episode a line."""
    result = invoke("episodes", "export", "--verdict", "passed")
    assert [json.loads(line)["episode_id"] for line in result.stdout.splitlines()] == ["aa02"]
    assert "1 episode written" in result.stderr
    invoke("episodes", "export", "--out", "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert [Episode.from_json(json.loads(line)).episode_id for line in lines] == [
        "bb03",
        "aa02",
        "aa01",
    ]
