"""The library over HTTP as any client sees it: answers, keys, limits."""

import asyncio
import json
import threading

import httpx
import pytest

from agentkit import open_store
from agentkit.errors import StoreUnavailableError
from agentkit.library import Author, LibraryChange
from agentkit.library.events import EventDraft, chained
from agentkit.server import Keys, ServerLimits
from agentkit.server.library import create_library_app
from agentkit.tools import ToolDefinition

KEY = "sk-0123456789abcdef"
PATH = "/library/v3"


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
    """Version, digest and the end of the chain; then what is behind a version and an event."""
    draft = EventDraft(kind="pinned", author=Author(kind="person", name="Ada"), library_version=2)
    events = chained(None, [draft, draft], at="2026-11-21T10:00:00+00:00")
    library.commit(LibraryChange(proposal_id="told", events=events), expected_version=2)
    head = {
        "format": 3,
        "version": 2,
        "library": library.load().digest,
        "events": {"sequence": 2, "hash": events[1].hash},
    }
    with served(create_library_app(library)) as url, httpx.Client(base_url=url) as client:
        answer = client.get(PATH)
        assert answer.headers["content-type"] == "application/x-ndjson"
        assert lines(answer)[0] == head
        assert [one.get("version") for one in lines(answer)[1:]] == [1, 2, None, None]
        assert [one.get("sequence") for one in lines(answer)[1:]] == [None, None, 1, 2]
        first, change, event = lines(client.get(f"{PATH}?version=1&event=1"))
        assert first == head
        assert (change["version"], change["proposal_id"], event["sequence"]) == (2, "1", 2)
        assert lines(client.get(f"{PATH}?version=2&event=2")) == [head]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        (f"{PATH}?version=-1", 400, "?version="),
        (f"{PATH}?version={'9' * 30}", 400, "?version="),
        (f"{PATH}?event=x", 400, "?event="),
        (f"{PATH}/nothing", 404, "no such path"),
    ],
)
def test_what_is_not_there(get, path, status, words):
    """Wrong questions are told."""
    answer = get(path)
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_nobody_writes(served, library):
    """There is no method but GET."""
    with served(create_library_app(library)) as url, httpx.Client(base_url=url) as client:
        for method in ("POST", "PUT", "DELETE"):
            answer = client.request(method, PATH, json={})
            assert answer.status_code == 405


def test_a_key_is_asked_for(get):
    """Without it nothing is told, and no cache on the way keeps an answer."""
    keys = Keys({"edge": KEY})
    assert get(PATH, keys=keys).status_code == 401
    allowed = get(PATH, keys=keys, headers={"authorization": f"Bearer {KEY}"})
    assert allowed.status_code == 200
    assert allowed.headers["cache-control"] == "no-store"


def test_health_readiness_and_metrics(served, library):
    """The process lives, the store answers, and what was asked is counted by route."""
    with served(create_library_app(library)) as url, httpx.Client(base_url=url) as client:
        client.get(PATH)
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.get("/readyz").json() == {"status": "ok"}
        text = client.get("/metrics").text
    assert 'agentkit_requests_total{route="/library/v3",status="200",key=""} 1' in text
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
                return asyncio.create_task(client.get(PATH + path, headers=headers))

            asked = [ask(f"?event={number}", greedy) for number in range(2)]
            while len(app.state.runs.reading) < 2:
                await asyncio.sleep(0.01)
            refused = await ask("", greedy)
            others = [await ask(path, modest) for path in ("?version=2", "?version=2&event=1")]
            slow.goes_on.set()
            served_late = await asyncio.gather(*asked)
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        429,
        "too_many_at_once",
    )
    assert [one.status_code for one in (*others, *served_late)] == [200] * 4
