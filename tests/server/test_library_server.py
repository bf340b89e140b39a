"""The library over HTTP as any client sees it: heads, pages, keys, limits."""

import asyncio
import json
import threading
import time

import httpx
import pytest

from agentkit import open_store
from agentkit.errors import StoreUnavailableError
from agentkit.library import LibraryChange
from agentkit.server import Keys, ServerLimits
from agentkit.server.library import create_library_app
from agentkit.tools import ToolDefinition

KEY = "sk-0123456789abcdef"
ROOT = "/library/v1"


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


def test_the_head_says_what_is_newest(get, library):
    """Version, digest and the end of the chain, with an ETag, to be asked for each time."""
    answer = get(f"{ROOT}/head")
    assert answer.json() == {
        "format": 1,
        "version": 2,
        "library": {"digest": library.load().digest, "tools": 3},
        "versions": [[1, 2]],
        "events": {"sequence": 0, "hash": ""},
    }
    assert answer.headers["cache-control"] == "public, no-cache"
    assert answer.headers["etag"].startswith('"')


def test_pages_never_change(served, library):
    """Definitions, changes and histories may be kept for ever; each form has its own ETag."""
    paths = ["/tools?version=1", "/changes?upto=2", "/history?tool=a&upto=2", "/events?upto=0"]
    with served(create_library_app(library)) as url, httpx.Client(base_url=url) as client:
        for path in paths:
            packed = client.get(ROOT + path, headers={"accept-encoding": "gzip"})
            plain = client.get(ROOT + path, headers={"accept-encoding": "identity"})
            assert packed.headers["cache-control"] == "public, max-age=31536000, immutable"
            assert packed.headers["content-type"] == "application/x-ndjson"
            assert packed.headers["vary"] == "accept-encoding"
            assert packed.headers["content-encoding"] == "gzip"
            assert packed.text == plain.text
            assert packed.headers["etag"] == plain.headers["etag"][:-1] + '-gzip"'
            known = {"if-none-match": plain.headers["etag"], "accept-encoding": "identity"}
            assert client.get(ROOT + path, headers=known).status_code == 304


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/tools?version=3", 404, "no library version 3"),
        ("/events?upto=1", 404, "no event 1"),
        ("/changes?upto=9", 404, "no library version 9"),
        ("/tools", 400, "?version="),
        ("/tools?version=-1", 400, "?version="),
        ("/tools?version=" + "9" * 30, 400, "?version="),
        ("/changes?upto=1&after=x", 400, "?after="),
        ("/history?upto=1", 400, "?tool=NAME"),
        ("/head?wait=inf", 400, "?wait="),
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
            answer = client.request(method, f"{ROOT}/head", json={})
            assert answer.status_code == 405


def test_a_key_is_asked_for(get):
    """Without it nothing is told; with keys, no shared cache may keep an answer."""
    keys = Keys({"edge": KEY})
    for path in ("/head", "/tools?version=1"):
        assert get(ROOT + path, keys=keys).status_code == 401
        allowed = get(ROOT + path, keys=keys, headers={"authorization": f"Bearer {KEY}"})
        assert allowed.status_code == 200
        assert allowed.headers["cache-control"].startswith("private, ")


def test_health_readiness_and_metrics(served, library):
    """The process lives, the store answers, and what was asked is counted by route."""
    with served(create_library_app(library)) as url, httpx.Client(base_url=url) as client:
        client.get(f"{ROOT}/head")
        client.get(f"{ROOT}/tools?version=2")
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ok"}
        text = client.get("/metrics").text
    assert 'agentkit_requests_total{route="/library/v1/tools",status="200",key=""} 1' in text
    assert "agentkit_library_version 2" in text


class Slow:
    """A store that takes its time for histories, and may be away."""

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

    def history(self, tool_name):
        self.goes_on.wait(60)
        return self.store.history(tool_name)


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

            asked = [ask("/history?tool=a&upto=2", greedy) for _ in range(2)]
            while len(app.state.runs.reading) < 2:
                await asyncio.sleep(0.01)
            refused = await ask("/history?tool=a&upto=2", greedy)
            others = [await ask(path, modest) for path in ("/head", "/tools?version=2")]
            slow.goes_on.set()
            served_late = await asyncio.gather(*asked)
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        429,
        "too_many_at_once",
    )
    assert [one.status_code for one in (*others, *served_late)] == [200] * 4


async def test_news_end_a_wait(served, library):
    """A client that waits gets the new head as soon as there is one; so do many at once."""
    app = create_library_app(library)
    with served(app) as url:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            etag = (await client.get(f"{ROOT}/head")).headers["etag"]
            known = {"if-none-match": etag}
            asked = [
                asyncio.create_task(client.get(f"{ROOT}/head?wait=25", headers=known))
                for _ in range(20)
            ]
            while len(app.state.runs.waiting) < 20:
                await asyncio.sleep(0.01)
            commit(library, "d")
            answers = await asyncio.gather(*asked)
            short = await client.get(
                f"{ROOT}/head?wait=0.05", headers={"if-none-match": answers[0].headers["etag"]}
            )
    assert {one.json()["version"] for one in answers} == {3}
    assert short.status_code == 304


def test_a_server_that_stops_lets_go_who_waits(served_alone, library):
    """SIGTERM is not held up by clients that wait for news."""
    app = create_library_app(library)
    outcomes = []

    def wait(url, etag):
        answer = httpx.get(f"{url}{ROOT}/head?wait=25", headers={"if-none-match": etag}, timeout=60)
        outcomes.append(answer.status_code)

    with served_alone(app) as url:
        etag = httpx.get(f"{url}{ROOT}/head").headers["etag"]
        waiting = threading.Thread(target=wait, args=(url, etag))
        waiting.start()
        while not len(app.state.runs.waiting):
            time.sleep(0.01)
    waiting.join()
    assert outcomes == [304]
