"""What stands before a library over HTTP: keys, and a page that says that it lives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

Scope: TypeAlias = MutableMapping[str, Any]
App: TypeAlias = Callable[[Scope, Any, Any], Awaitable[None]]

KeyHolder: TypeAlias = Callable[[str], str | None]
"""The name of whoever holds a key; None for a key that is none."""

HEALTH_PATH = "/healthz"


class Guard:
    """An ASGI application around another one, which lets in whoever holds a key.

    Args:
        app: What answers.
        holder: Knows the keys; None lets everybody in.
    """

    def __init__(self, app: App, holder: KeyHolder | None = None) -> None:
        self._app = app
        self._holder = holder

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Answer a request for the health, refuse one without a key, and hand on the others."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == HEALTH_PATH:
            await _answer(send, 200, b'{"status":"ok"}')
        elif self._lets_in(scope):
            await self._app(scope, receive, send)
        else:
            body = b'{"error":"no valid key; send the header Authorization: Bearer KEY"}'
            await _answer(send, 401, body, (b"www-authenticate", b"Bearer"))

    def _lets_in(self, scope: Scope) -> bool:
        if self._holder is None:
            return True
        given = [text for name, text in scope["headers"] if name == b"authorization"]
        scheme, _, key = (given[0] if len(given) == 1 else b"").decode("latin-1").partition(" ")
        return scheme.lower() == "bearer" and self._holder(key.strip()) is not None


async def _answer(send: Any, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    kind = (b"content-type", b"application/json")
    size = (b"content-length", str(len(body)).encode())
    start = {"type": "http.response.start", "status": status, "headers": [kind, size, *headers]}
    await send(start)
    await send({"type": "http.response.body", "body": body})
