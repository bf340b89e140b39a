"""Servers of the official library for our client, and the official client for our server."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from mcp.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import CallToolResult, ListToolsResult

SERVERS = Path(__file__).parent / "servers"
OBJECT: dict[str, Any] = {"type": "object", "properties": {}}


class FakeServer:
    """An official server whose listing and answers a test writes down as JSON.

    Attributes:
        records: What ``tools/list`` answers.
        answers: What ``tools/call`` answers, by tool; a callable gets the arguments.
        calls: What was called.
        page: Tools on one page; None for all.
        listings: How often it was asked for its tools.
    """

    def __init__(self, *records: dict[str, Any], page: int | None = None) -> None:
        self.records = list(records)
        self.answers: dict[str, Any] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.page = page
        self.listings = 0
        self._bus = InMemorySubscriptionBus()
        self._session: Any = None
        self.server: Server[Any] = Server(
            "fake",
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    async def _list(self, context: Any, params: Any) -> ListToolsResult:
        self._session = context.session
        self.listings += 1
        start = int(params.cursor) if params and params.cursor else 0
        end = len(self.records) if self.page is None else start + self.page
        following = str(end) if end < len(self.records) else None
        shown = self.records[start:end]
        return ListToolsResult.model_validate({"tools": shown, "nextCursor": following})

    async def _call(self, context: Any, params: Any) -> CallToolResult:
        self.calls.append((params.name, params.arguments or {}))
        for _ in range(
            (params.arguments or {}).get("times", 1) if params.name == "announce" else 0
        ):
            await self._bus.publish(ToolsListChanged())
            await context.session.send_tool_list_changed()
        answer = self.answers.get(params.name, {"content": [{"type": "text", "text": "done"}]})
        answer = answer(params.arguments) if callable(answer) else answer
        return CallToolResult.model_validate(answer)


def entry(name: str = "add", description: str = "Add numbers.", **parts: Any) -> dict[str, Any]:
    """An entry of ``tools/list``."""
    return {"name": name, "description": description, "inputSchema": OBJECT, **parts}


@pytest.fixture(name="entry")
def _entry():
    """Makes an entry of ``tools/list``."""
    return entry


@pytest.fixture
def fake():
    """Makes an official server that answers what it is told."""
    return FakeServer


@pytest.fixture
def eventually():
    """Waits until something holds that another thread sees to."""

    def wait(holds: Callable[[], bool], seconds: float = 20.0) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, "it did not come about"
            time.sleep(0.01)

    return wait


@pytest.fixture
def listening():
    """Serves an ASGI application on loopback; gives its address and a way to stop it."""
    stopping: list[Callable[[], None]] = []

    def serve(app: Any, port: int = 0) -> tuple[str, Callable[[], None]]:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", port))
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)

        def stop() -> None:
            server.should_exit = True
            thread.join()
            with contextlib.suppress(OSError):
                sock.close()

        stopping.append(stop)
        return f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", stop

    yield serve
    for stop in stopping:
        stop()
