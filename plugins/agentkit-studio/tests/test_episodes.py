"""Episodes in the browser: found, read as a timeline, judged, made into tasks."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentkit.episodes.labels import with_late_verdicts
from agentkit.evaluation.task_files import task_from_json
from agentkit.messages import ToolResult


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
        ({"session": "s"}, 0),
    ],
)
def test_filters_find(studio, query, count):
    """Each alone; nothing found says so."""
    page = studio().get("/episodes", params=query).text
    assert page.count("data-item") == count
    assert ("No episode matches." in page) == (count == 0)


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


def test_a_verdict_by_hand_is_learned_from(studio, csrf, store):
    """It stands beside the episode, with the person's name."""
    one = newest(store)
    client = studio("rita")
    form = {"csrf": csrf(client), "verdict": "failed", "reason": "36 was not asked for"}
    page = client.post(f"/episodes/{one.episode_id}/verdict", data=form).text
    assert "the next round learns from it" in page
    judged = with_late_verdicts(store.select())
    [verdict] = [e.verdict for e in judged if e.episode_id == one.episode_id]
    assert not verdict.passed
    assert verdict.evidence[0].message == "36 was not asked for"
    assert verdict.details["person"] == "rita"
    refused = client.post(f"/episodes/{one.episode_id}/verdict", data={"csrf": csrf(client)})
    assert refused.status_code == 400
    watching = studio("vera").post(f"/episodes/{one.episode_id}/verdict", data=form)
    assert watching.status_code == 403


def test_an_episode_becomes_a_task(studio, store):
    """In the form that ``agentkit eval`` reads."""
    good = next(one for one in store.select() if one.results[0].status == "ok")
    answer = studio().get(f"/episodes/{good.episode_id}/task")
    record = json.loads(answer.text)
    assert record["expects"]["calls"][0]["name"] == "loan_offer"
    assert task_from_json(record, all_tools=["loan_offer"]).request == good.request


def test_an_unknown_episode_is_told(studio):
    """And markup in its name is text."""
    answer = studio().get("/episodes/<b>")
    assert answer.status_code == 404
    assert "<b>" not in answer.text.partition("<main")[2]
