"""The library over HTTP as any client sees it: answers, keys, limits."""

import asyncio
import json
import threading

import httpx
import pytest

from agentkit import open_store
from agentkit.errors import StoreUnavailableError
from agentkit.library import LibraryChange
from agentkit.server import Keys, ServerLimits
from agentkit.server.library import create_library_app
from agentkit.tools import ToolDefinition

KEY = "sk-0123456789abcdef"
ROOT = "/library/v2"


def commit(store, *names):
    """One version that brings these tools."""
    version = len(store.versions())
    tools = tuple(ToolDefinition(name=name) for name in names)
    change = LibraryChange(proposal_id=str(version), upserts=tools)
    return store.commit(change, expected_version=version)


@pytest.fixture
def library():
    """A store with two versions."""
    store = open_store("memory:")
    commit(store, "a", "b")
    commit(store, "c")
    return store


@pytest.fixture
def get(served, library):
    """Asks a server of that library."""

    def ask(path, *, headers=None, store=None, **options):
        app = create_library_app(store or library, **options)
        with served(app) as url, httpx.Client(base_url=url, headers=headers) as client:
            return client.get(path)

    return ask


def lines(answer):
    """The lines of an answer."""
    return [json.loads(line) for line in answer.text.splitlines()]


def test_the_first_line_says_what_is_newest(served, library):
    """Version, digest and the end of the chain, with an ETag; then the definitions, or changes."""
    head = {
        "format": 2,
        "version": 2,
        "library": {"digest": library.load().digest, "tools": 3},
        "versions": [1, 2],
        "events": {"sequence": 0, "hash": ""},
    }
    with served(create_library_app(library)) as url, httpx.Client(base_url=url) as client:
        answer = client.get(f"{ROOT}/library")
        assert answer.headers["cache-control"] == "public, no-cache"
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert lines(answer)[0] == head
        assert [one["definition"]["name"] for one in lines(answer)[1:]] == ["a", "b", "c"]
        first, change = lines(client.get(f"{ROOT}/library?since=1"))
        assert first == head | {"since": 1}
        assert (change["version"], change["proposal_id"]) == (2, "1")
        old = lines(client.get(f"{ROOT}/library?version=1"))
        assert (old[0]["version"], len(old)) == (1, 3)
        assert [one["version"] for one in lines(client.get(f"{ROOT}/changes?after=1"))] == [2]
        assert lines(client.get(f"{ROOT}/events")) == []
        known = {"if-none-match": answer.headers["etag"]}
        assert client.get(f"{ROOT}/library?since=2", headers=known).status_code == 304
        commit(library, "d")
        assert client.get(f"{ROOT}/library?since=2", headers=known).status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/library?version=3", 404, "no library version 3"),
        ("/library?version=-1", 400, "?version="),
        ("/library?version=" + "9" * 30, 400, "?version="),
        ("/library?since=x", 400, "?since="),
        ("/changes?after=x", 400, "?after="),
        ("/nothing", 404, "no such path"),
    ],
)
def test_what_is_not_there(get, path, status, words):
    """Nothing is promised about what is still to come, and wrong questions are told."""
    answer = get(ROOT + path)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_nobody_writes(served, library):
    """There is no method but GET."""
    with served(create_library_app(library)) as url, httpx.Client(base_url=url) as client:
        for method in ("POST", "PUT", "DELETE"):
            answer = client.request(method, f"{ROOT}/library", json={})
            assert answer.status_code == 405


def test_a_key_is_asked_for(get):
    """Without it nothing is told; with keys, no shared cache may keep an answer."""
    keys = Keys({"edge": KEY})
    for path in ("/library", "/library?version=1"):
        assert get(ROOT + path, keys=keys).status_code == 401
        allowed = get(ROOT + path, keys=keys, headers={"authorization": f"Bearer {KEY}"})
        assert allowed.status_code == 200
        assert allowed.headers["cache-control"].startswith("private, ")


def test_health_readiness_and_metrics(served, library):
    """The process lives, the store answers, and what was asked is counted by route."""
    with served(create_library_app(library)) as url, httpx.Client(base_url=url) as client:
        client.get(f"{ROOT}/library")
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ok"}
        text = client.get("/metrics").text
    assert 'agentkit_requests_total{route="/library/v2/library",status="200",key=""} 1' in text
    assert "agentkit_library_version 2" in text


class Slow:
    """A store that takes its time for changes, and may be away."""

    def __init__(self, store):
        self.store = store
        self.goes_on = threading.Event()
        self.is_away = False

    def __getattr__(self, name):
        return getattr(self.store, name)

    def load(self, version=None):
        if self.is_away:
            raise StoreUnavailableError("the disk is gone")
        return self.store.load(version)

    def changes(self, *, after=0):
        self.goes_on.wait(60)
        return self.store.changes(after=after)


async def test_a_slow_store_holds_up_nobody(served, library):
    """Reads take threads and places; a client with all of its own gets no more, others do."""
    slow = Slow(library)
    keys = Keys({"greedy": KEY, "modest": KEY[::-1]})
    app = create_library_app(slow, keys=keys, limits=ServerLimits(max_concurrent=8))
    greedy, modest = ({"authorization": f"Bearer {one}"} for one in (KEY, KEY[::-1]))
    with served(app) as url:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:

            def ask(path, headers):
                return asyncio.create_task(client.get(ROOT + path, headers=headers))

            asked = [ask("/changes", greedy) for _ in range(2)]
            while len(app.state.runs.reading) < 2:
                await asyncio.sleep(0.01)
            refused = await ask("/changes", greedy)
            others = [await ask(path, modest) for path in ("/library", "/library?version=2")]
            slow.goes_on.set()
            served_late = await asyncio.gather(*asked)
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        429,
        "too_many_at_once",
    )
    assert [one.status_code for one in (*others, *served_late)] == [200] * 4
