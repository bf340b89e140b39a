"""``agentkit episodes``."""

from dataclasses import replace

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
from agentkit.evolution.learning import UserFeedback, keep_feedback
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
        (["--limit", "1"], ["bb03"]),
        (["--limit", "0"], ["bb03", "aa02", "aa01"]),
        (["--verdict", "failed", "--label", "category=simple"], []),
    ],
)
def test_filters_choose(as_json, options, ids):
    """Each filter narrows the list, and filters combine."""
    assert [e["episode_id"] for e in as_json("episodes", "list", *options)] == ids


def test_records_that_no_user_saw_are_marked(invoke, as_json, store_url):
    """A shadow run and a later judgement are listed as such, and neither is the last episode."""
    store = open_store(store_url)
    for number, labels in enumerate(({"shadow_of": "bb03"}, {"view_of": "bb03"})):
        store.append(Episode(episode_id=f"cc{number}", request="Hello", metadata=labels))
    store.close()
    view, shadow, seen, *_ = invoke("episodes", "list").stdout.splitlines()[2:]
    assert "finished (view)" in view
    assert "finished (shadow)" in shadow
    assert "(" not in seen
    assert as_json("episodes", "show", "last")["episode_id"] == "bb03"
    assert as_json("episodes", "show", "cc0")["metadata"] == {"shadow_of": "bb03"}


def test_show_tells_the_whole_story(invoke):
    """Retrieval, every refinement, the failure with its rule, and the verdict are there."""
    told = invoke("episodes", "show", "aa01").stdout
    assert "refine  adaptive: 2 rounds, two answers agreed" in told
    assert "*2: add(a=2)".replace("*2", "* 2") in told
    assert "failed (invalid_arguments at a): a must be an integer" in told
    assert "verdict   failed" in told
    assert "wrong value" in told
    assert "category=multiple" in told


def test_foreign_text_can_not_steer_the_terminal(invoke, store_url):
    """Controls and marks that turn text around stand as their code points; lines stay lines."""
    hostile = Episode(
        episode_id="ca01",
        request="1 + 1 \x1b[2J",
        output="2\n\x1b]0;title\x07",
        metadata={"task": "sum\u202e"},
    )
    store = open_store(store_url)
    store.append(hostile)
    store.close()
    told = invoke("episodes", "show", "ca01").stdout
    assert "request   1 + 1 ⟨U+001B⟩[2J\n" in told
    assert "output    2\n          ⟨U+001B⟩]0;title⟨U+0007⟩\n" in told
    for text in (told, invoke("episodes", "list").stdout):
        assert not {"\x1b", "\u202e"} & set(text)


@pytest.mark.parametrize(("asked", "found"), [("last", "bb03"), ("b", "bb03"), ("aa02", "aa02")])
def test_an_episode_is_found_by_id_beginning_or_last(as_json, asked, found):
    """The whole id, a beginning that fits one episode, and the word last all work."""
    assert as_json("episodes", "show", asked)["episode_id"] == found


def test_feedback_stands_below_the_episode(invoke, as_json, store_url):
    """What a user said is shown with the call that was expected."""
    said = UserFeedback(rating=0.0, reason="Too dear.", corrected_tool="add", sender="shop")
    store = open_store(store_url)
    keep_feedback(store, store.get("aa02"), replace(said, corrected_arguments={"a": 3}))
    store.close()
    told = invoke("episodes", "show", "aa02").stdout
    assert "feedback: not good; a user, key 'shop'; Too dear.; expected add {\"a\": 3}" in told
    assert len(as_json("episodes", "show", "aa02")["feedback"]) == 1
