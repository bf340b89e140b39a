"""A SQLite store, the library server in front of it, and clients that read from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from support.app_stage import AppStage

from agentkit import ToolDefinition, open_store
from agentkit.library import LibraryChange, Store
from agentkit.library.events import Author, EventDraft, Signer, chained
from agentkit.library.remote import RemoteStore
from agentkit.server.library import create_library_app
from agentkit.tools.definition import Description

Alter = Callable[[str, dict[str, list[str]], list[dict[str, Any]]], list[dict[str, Any]]]
"""Changes the records of an answer, given its path and query."""


@pytest.fixture(autouse=True)
def _own_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key of the user is looked at."""
    for name in ("AGENTKIT_LIBRARY_KEY", "AGENTKIT_AUDIT_KEY", "AGENTKIT_AUDIT_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def stage() -> Iterator[AppStage]:
    """A server for the tests of one module."""
    with AppStage() as stage:
        yield stage


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """What is served."""
    store = open_store(tmp_path / "library.db")
    yield store
    store.close()


@pytest.fixture
def serve(stage: AppStage) -> Iterator[Callable[..., str]]:
    """Serves a store until the test is over; gives the URL."""
    with ExitStack() as shown:

        def show(store: Store, *, alter: Alter | None = None, **options: Any) -> str:
            shown.close()  # one at a time
            app = create_library_app(store, **options)
            if alter is not None:
                app.add_middleware(Between, alter=alter)
            return shown.enter_context(stage.showing(app))

        yield show


@pytest.fixture
def open_remote() -> Iterator[Callable[..., RemoteStore]]:
    """Opens clients, and closes them when the test is over."""
    with ExitStack() as opened:

        def open_one(url: str, **options: Any) -> RemoteStore:
            store = RemoteStore(url, **options)
            opened.callback(store.close)
            return store

        yield open_one


class Between:
    """ASGI middleware that alters what the server says, as somebody on the way might."""

    def __init__(self, app: Any, alter: Alter) -> None:
        self._app, self._alter = app, alter

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/library"):
            await self._app(scope, receive, send)
            return
        sent: list[Any] = []

        async def keep(message: Any) -> None:
            sent.append(message)

        plain = [pair for pair in scope["headers"] if pair[0] != b"if-none-match"]
        await self._app({**scope, "headers": plain}, receive, keep)
        start, *parts = sent
        if start["status"] != 200:
            for message in sent:
                await send(message)
            return
        body = b"".join(part.get("body", b"") for part in parts)
        headers = dict(start["headers"])
        records = [json.loads(line) for line in body.splitlines()]
        query = parse_qs(scope["query_string"].decode())
        lines = [json.dumps(one) for one in self._alter(scope["path"], query, records)]
        body = "".join(f"{line}\n" for line in lines).encode()
        headers.pop(b"etag", b"")
        headers[b"content-length"] = str(len(body)).encode()
        await send({**start, "headers": list(headers.items())})
        await send({"type": "http.response.body", "body": body})


def tool(name: str, summary: str = "") -> ToolDefinition:
    """A definition."""
    return ToolDefinition(name=name, description=Description(summary=summary))


def put(
    store: Store, *tools: ToolDefinition, remove: tuple[str, ...] = (), signer: Signer | None = None
) -> int:
    """Commit definitions with the event that tells of them, as the Tool Manager does."""
    version = len(store.versions())
    facts: Mapping[str, Any] = {
        "tools": {one.name: one.digest for one in tools},
        **({"removed": list(remove)} if remove else {}),
    }
    draft = EventDraft(
        kind="written",
        author=Author(kind="person", name="Ada"),
        library_version=version + 1,
        facts=facts,
    )
    last = next(reversed(store.events()), None)
    events = chained(last, [draft], at="2026-11-21T10:00:00+00:00", signer=signer)
    change = LibraryChange(
        proposal_id=f"p{version + 1}", upserts=tools, removals=remove, author="Ada", events=events
    )
    return store.commit(change, expected_version=version)


@pytest.fixture(name="put")
def put_fixture() -> Callable[..., int]:
    """Commits definitions with the event that tells of them."""
    return put


@pytest.fixture(name="tool")
def tool_fixture() -> Callable[..., ToolDefinition]:
    """Makes a definition."""
    return tool
