"""Episodes in the browser: found, read as a timeline, judged, made into tasks."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from agentkit import Agent, tool
from agentkit.cli.main import main
from agentkit.episodes.labels import with_late_verdicts
from agentkit.evaluation.task_files import task_from_json
from agentkit.evolution import ToolManager
from agentkit.messages import ToolCall, ToolResult
from agentkit.testing import ScriptedModel
from agentkit.tools.rules import OneOf


@pytest.fixture
def judge(post):
    """Says of an episode that it was wrong."""

    def send(client, one, **form):
        return post(client, f"/episodes/{one.episode_id}/verdict", verdict="failed", **form)

    return send


def newest(store):
    """The last episode."""
    return next(iter(store.select()))


def test_episodes_are_listed_the_newest_first(studio, store):
    """With tool, version, tokens and time."""
    page = studio("vera").get("/episodes").text
    ids = [one.episode_id for one in store.select()]
    places = [page.index(one) for one in ids]
    assert places == sorted(places)
    assert "loan_offer" in page


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"tool": "loan_offer"}, 24),
        ({"tool": "nobody"}, 0),
        ({"label": "user=u3"}, 1),
        ({"version": "1"}, 24),
        ({"version": "9"}, 0),
        ({"verdict": "refused"}, 12),
        ({"verdict": "passed"}, 0),
        ({"text": "LOAN"}, 24),
        ({"text": "car"}, 0),
        ({"text": "periods=36"}, 6),
        ({"wrong": "argument_mismatch"}, 12),
        ({"wrong": "spurious_tool_call"}, 0),
        ({"session": "s"}, 0),
    ],
)
def test_filters_find(studio, query, count):
    """Each alone; nothing found says so."""
    page = studio().get("/episodes", params=query).text
    assert page.count("data-item") == count
    assert ("No episode matches." in page) == (count == 0)


def test_a_version_that_is_none_is_refused(studio):
    """It is not read as any version."""
    assert studio().get("/episodes", params={"version": "x"}).status_code == 400


def test_pages_follow_each_other(studio, store):
    """Every episode is on one page, and on one alone."""
    one = newest(store)
    for number in range(60):
        store.append(replace(one, episode_id=f"{one.episode_id[:12]}zz{number:06}"))
    client = studio()
    first = client.get("/episodes").text
    after = first.partition("/episodes?after=")[2].partition('"')[0]
    second = client.get("/episodes", params={"after": after}).text
    assert (first.count("data-item"), second.count("data-item")) == (50, 34)


def test_a_failed_call_is_marked_where_it_happened(studio, store):
    """With what the diagnosis says, as text."""
    failed = next(one for one in store.select() if one.results[0].status == "failed")
    page = studio().get(f"/episodes/{failed.episode_id}").text
    assert 'class="failed"' in page
    assert "What went wrong: argument mismatch" in page
    assert "periods must be one of 24, 36, 48" in page
    assert "<script>alert" not in page
    assert "⟨U+202E⟩" in page


def test_a_huge_result_does_not_make_a_huge_page(studio, store):
    """10 MB of a tool's words are cut."""
    one = newest(store)
    turn = one.turns[0]
    huge = ToolResult(call_id="1", name="loan_offer", status="ok", text="x" * 10_000_000)
    turns = (replace(turn, results=(huge,)), *one.turns[1:])
    store.append(replace(one, episode_id="ffffffffffffffff", turns=turns))
    answer = studio().get("/episodes/ffffffffffffffff")
    assert answer.status_code == 200
    assert len(answer.content) < 100_000


def test_a_verdict_by_hand_is_learned_from(studio, store, post, judge):
    """It stands beside the episode, with the person's name."""
    one = newest(store)
    client = studio("rita")
    page = judge(client, one, reason="36 was not asked for").text
    assert "the next round learns from it" in page
    judged = with_late_verdicts(store.select())
    [verdict] = [e.verdict for e in judged if e.episode_id == one.episode_id]
    assert not verdict.passed
    assert verdict.evidence[0].message == "36 was not asked for"
    assert verdict.details["person"] == "rita"
    assert post(client, f"/episodes/{one.episode_id}/verdict").status_code == 400
    assert judge(studio("vera"), one, reason="no").status_code == 403


@pytest.mark.parametrize(
    ("form", "kind", "expected"),
    [
        ({"kind": "wrong_value", "parameter": "periods", "expected": "48"}, "wrong_value", 48),
        (
            {"kind": "missing_argument", "parameter": "note", "expected": "48"},
            "missing_argument",
            48,
        ),
        ({"kind": "wrong_tool", "expected": "sell_car"}, "wrong_tool", "sell_car"),
        ({"kind": "unexpected_argument", "parameter": "periods"}, "unexpected_argument", None),
        ({"kind": "unexpected_call"}, "unexpected_call", None),
        ({"kind": "wrong_answer"}, "wrong_answer", None),
    ],
)
def test_what_was_wrong_is_said_exactly(studio, store, form, kind, expected, judge):
    """As evidence of a verifier, from which proposers and diagnosis learn; the page shows it."""
    one = newest(store)
    call = "" if kind == "wrong_answer" else one.calls[0].call_id
    page = judge(studio("rita"), one, call=call, **form).text
    assert "What went wrong" in page
    assert "by rita" in page
    [verdict] = [
        e.verdict
        for e in with_late_verdicts(store.select())
        if e == replace(one, verdict=e.verdict)
    ]
    [evidence] = verdict.evidence
    assert (evidence.kind, evidence.expected, evidence.call_id) == (kind, expected, call)
    assert evidence.tool == ("" if not call else expected if kind == "wrong_tool" else "loan_offer")


def test_two_corrections_by_hand_become_a_rule_in_the_next_round(studio, store, tmp_path, judge):
    """Also where the tool took the calls, and where the round reads only what is new."""

    def evolve():
        command = ["evolve", "--store", f"sqlite:///{tmp_path / 'library.db'}"]
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
        return ToolManager(store).ledger.proposals.values()

    @tool(effects=["reads"])
    def lease(months: int) -> int:
        """What a car costs a month.

        Args:
            months: Number of months.
        """
        return 9000 // months

    for months in (30, 12):
        call = ToolCall(call_id="1", name="lease", arguments={"months": months})
        Agent(ScriptedModel([[call], "Done."]), tools=[lease], store=store).run_sync("A car?")
    assert [one.tool_name for one in evolve()] == ["loan_offer"]
    leases = [one for one in store.select() if one.calls[0].name == "lease"]
    words = "months must be one of 24, 36, 48"
    for one, right in zip(leases, ("24", "36"), strict=True):
        form = {"kind": "wrong_value", "call": "1", "parameter": "months", "expected": right}
        judge(studio("rita"), one, reason=words, **form)
    [_, found] = evolve()
    assert found.candidate.specification.rules == (OneOf(parameter="months", values=(24, 36, 48)),)
    assert "People say so" in studio().get(f"/inbox/{found.proposal_id}").text


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "<b>"},
        {"kind": "wrong_value", "parameter": "periods", "expected": "48"},
        {"kind": "wrong_value", "call": "1", "expected": "48"},
        {"kind": "wrong_value", "call": "1", "parameter": "periods"},
        {
            "kind": "wrong_value",
            "call": "[" * 5_000,
            "parameter": "periods",
            "expected": "[" * 5_000,
        },
    ],
)
def test_half_of_a_verdict_is_refused(studio, store, form, judge):
    """It says what is missing, and nothing is kept."""
    count = len(list(store.select()))
    assert judge(studio("rita"), newest(store), **form).status_code == 400
    assert len(list(store.select())) == count


def test_later_verdicts_are_found(studio, store, judge):
    """The list filters by what was said last."""
    client = studio("rita")
    one = newest(store)
    judge(client, one, reason="no")
    page = client.get("/episodes", params={"verdict": "failed"}).text
    assert page.count("data-item") == 1
    assert one.episode_id in page


def test_an_episode_becomes_a_task(studio, store, judge):
    """In the form that ``agentkit eval`` reads, corrected by what was said of it."""
    good = next(one for one in store.select() if one.results[0].status == "ok")
    client = studio("rita")

    def task():
        record = json.loads(client.get(f"/episodes/{good.episode_id}/task").text)
        return task_from_json(record)

    assert task().request == good.request
    assert task().offered == ("loan_offer",)
    [expected] = task().expects
    assert expected.calls[0].arguments == {
        "amount": 9000,
        "periods": good.calls[0].arguments["periods"],
    }
    judge(client, good, kind="wrong_value", call="1", parameter="periods", expected="48")
    [expected] = task().expects
    assert expected.calls[0].arguments == {"amount": 9000, "periods": 48}


def test_a_task_keeps_what_was_said_before(studio, talks, store):
    """A request in the middle of a conversation is nothing without it."""
    agent = talks(None, "")
    for text in ("one", "two", "three"):
        agent.run_sync(text, session_id="s")
    second = next(one for one in store.select() if one.request == "two")
    record = json.loads(studio().get(f"/episodes/{second.episode_id}/task").text)
    assert [message["text"] for message in record["history"]] == ["one", "You said: one"]


def test_it_is_asked_what_would_happen_now(studio, talks, store, act, proposal_id, post):
    """With the newest library, and no call is run; nobody learns from it."""
    client = studio()
    talks(None, "").run_sync("sell C-1")
    one = newest(store)
    address = f"/episodes/{one.episode_id}/replay"
    page = post(client, address, version="", model="other").text
    assert "What would happen, library version" in page
    assert "nothing is run" in page
    again = newest(store)
    assert again.metadata["view_of"] == one.episode_id
    assert [result.status for result in again.results] == ["deferred"]
    assert again.model == "other"
    assert client.get("/calls").text.count("sell_car") == 1  # that of the run itself
    other = next(e for e in store.select() if e.results and e.results[0].status == "ok")
    page = client.get(f"/episodes/{other.episode_id}", params={"replay": again.episode_id}).text
    assert "What would happen, library version" not in page  # it is not of that episode
    assert post(studio("rita"), address, version="", model="other").status_code == 403
    assert post(client, address, version="x", model="other").status_code == 400


def test_an_unknown_episode_is_told(studio):
    """And markup in its name is text."""
    answer = studio().get("/episodes/<b>")
    assert answer.status_code == 404
    assert "<b>" not in answer.text.partition("<main")[2]


@pytest.mark.parametrize("odd", ["a/b", "", 'x"; y\r\nz', "\u202eabc", "../up", "a/task"])
def test_any_id_has_a_page_and_a_task(studio, store, odd):
    """Ids of imported episodes are a stranger's: they break no list, no address and no header."""
    store.append(replace(newest(store), episode_id=odd, started_at="\u202e2026-11-27T10:00"))
    client = studio("olga")
    page = client.get("/episodes")
    assert page.status_code == 200
    assert "\u202e" not in page.text.replace("loan", "")
    address = re.findall(r'class="hit" href="([^"]+)"', page.text)[0]
    assert "Make a task of it" in client.get(address).text
    task = client.get(f"{address}/task")
    assert task.status_code == 200
    assert json.loads(task.text).get("id", "") == odd
    assert task.headers["content-disposition"].count('"') == 2


def test_a_part_of_an_address_that_says_nothing_is_not_found(studio):
    """Nobody wrote it."""
    assert studio("olga").get("/episodes/~x").status_code == 404


def test_an_episode_without_an_answer_makes_no_task(studio, store):
    """An empty text is in every answer, so that the task would always pass."""
    one = newest(store)
    store.append(replace(one, episode_id="nothing", turns=(), output=None))
    answer = studio("olga").get("/episodes/nothing/task")
    assert answer.status_code == 400
    assert "nothing is expected" in answer.text
