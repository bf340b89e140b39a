"""``POST /v1/feedback``: who may say what of which answer, and what is kept of it."""

from __future__ import annotations

import asyncio
import json

import pytest

from agentkit import Episode, Library
from agentkit.episodes import Verdict
from agentkit.episodes.labels import with_late_verdicts
from agentkit.evolution.learning import feedback_on
from agentkit.evolution.observers import judged
from agentkit.evolution.proposers.observed import observed

KEY = "sk-0123456789abcdef"
OTHER_KEY = "sk-fedcba9876543210"
URL = "/v1/feedback"


@pytest.fixture
def answered(make_app, talk, body):
    """An application that has answered one request of the key ``shop``, and the episode's id."""

    async def answer(keys=None, text='call add {"a": 1, "b": 2}'):
        app = make_app(keys=keys)
        async with talk(app, KEY) as client:
            done = await client.post("/v1/chat/completions", json=body(text))
        return app, done.json()["agentkit"]["episode_id"]

    return answer


async def test_a_thumb_is_the_latest_verdict(answered, talk, store, keys):
    """What a user says takes the place of the episode's own verdict, with where it came from."""
    app, episode_id = await answered(keys)
    async with talk(app, KEY) as client:
        said = {"response_id": f"chatcmpl-{episode_id}", "thumbs": "down", "reason": "Too dear."}
        told = (await client.post(URL, json=said)).json()
    assert told == {
        "object": "feedback",
        "id": told["id"],
        "episode_id": episode_id,
        "passed": False,
    }
    [episode] = with_late_verdicts(store.select())
    assert (episode.episode_id, episode.verdict.verifier) == (episode_id, "feedback")
    assert episode.verdict.details == {"source": "a user, key 'shop'", "reason": "Too dear."}


async def test_a_corrected_call_is_evidence_for_proposers(answered, talk, store, make_app):
    """Each argument that differs is what a verifier would have found; a user vouches for none."""
    app, episode_id = await answered()
    call = {"name": "add", "arguments": {"a": 1, "b": 3}}
    async with talk(app) as client:
        await client.post(URL, json={"episode_id": episode_id, "corrected_call": call})
    [episode] = with_late_verdicts(store.select())
    [found] = episode.verdict.evidence
    assert (found.kind, found.tool, found.parameter) == ("wrong_value", "add", "b")
    assert (found.expected, found.actual) == (3, 2)
    library: Library = store.load()
    assert (episode_id, 3) not in observed([episode], library)["add"].right["b"]


async def test_the_same_said_twice_is_one_record(answered, talk, store):
    """A retry adds nothing, also at the same time; a change of mind does."""
    app, episode_id = await answered()
    down = {"episode_id": episode_id, "thumbs": "down"}
    async with talk(app) as client:
        both = await asyncio.gather(*(client.post(URL, json=down) for _ in range(2)))
        await client.post(URL, json={"episode_id": episode_id, "thumbs": "up"})
        await client.post(URL, json=down)
    assert both[0].json() == both[1].json()
    assert [one.verdict.passed for one in feedback_on(store, episode_id)] == [False, True, False]


async def test_unknown_and_foreign_ids_are_refused_in_the_same_words(answered, talk, store, keys):
    """Nobody learns from the answer whether another key was given an episode of that id."""
    app, episode_id = await answered(keys)
    beside = judged(store.get(episode_id), Verdict(passed=True))
    store.append(beside)
    store.append(Episode(episode_id="of-nobody", request="Hi"))
    bodies = set()
    for key, asked in (
        (OTHER_KEY, episode_id),
        (OTHER_KEY, "0" * 24),
        (KEY, beside.episode_id),
        (KEY, "of-nobody"),
    ):
        async with talk(app, key) as client:
            answer = await client.post(URL, json={"episode_id": asked, "thumbs": "up"})
        assert answer.status_code == 404
        bodies.add(answer.text)
    assert len(bodies) == 1
    assert list(feedback_on(store, episode_id)) == []
    async with talk(app) as client:
        asked = {"episode_id": episode_id, "thumbs": "up"}
        assert (await client.post(URL, json=asked)).status_code == 401


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"thumbs": "up"}, "give episode_id or response_id"),
        ({"episode_id": "a", "response_id": "b", "thumbs": "up"}, "one of them"),
        ({"episode_id": "a"}, "give thumbs, rating or corrected_call"),
        ({"episode_id": "a", "thumbs": "up", "rating": 1}, "not thumbs and rating"),
        ({"episode_id": "a", "rating": 2}, "rating"),
        ({"episode_id": "a", "thumbs": "up", "mood": "good"}, "mood"),
        ({"episode_id": "a", "thumbs": "down", "reason": "x" * 2001}, "reason"),
        ({"episode_id": "a", "corrected_call": {"name": "b", "arguments": [1]}}, "arguments"),
        ({"episode_id": "a", "thumbs": "up", "corrected_call": {"name": "b"}}, "was not good"),
    ],
)
async def test_what_says_nothing_clear_is_refused(answered, talk, said, told):
    """Status 400 with the field; nothing is guessed."""
    app, _ = await answered()
    async with talk(app) as client:
        answer = await client.post(URL, json=said)
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"{", 400),
        (b'{"episode_id": "a", "thumbs": "down", "reason": "\\ud800"}', 400),
        (b'{"episode_id": "a", "corrected_call": {"name": "b", "arguments": {"c": NaN}}}', 400),
        (b'{"episode_id": "a", "corrected_call": ' + b'{"a":' * 5_000 + b"1" + b"}" * 5_001, 400),
        (json.dumps({"episode_id": "a", "reason": "x" * 70_000}).encode(), 413),
    ],
)
async def test_bodies_that_can_not_be_kept(answered, talk, sent, status):
    """Whatever is sent, the answer is a problem in our form, and nothing is kept."""
    app, _ = await answered()
    async with talk(app) as client:
        answer = await client.post(URL, content=sent, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
