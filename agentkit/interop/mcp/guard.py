"""``Guard``: what stands before a library over HTTP. Keys, sessions, and a liveness page."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from agentkit.errors import ReadingLimitError
from agentkit.reading import check_values, read_json

if TYPE_CHECKING:
    from starlette.responses import JSONResponse

_MOST_BOUND = 100_000
"""Sessions of which is known whose key began them."""
_LONGEST_GREETING = 16_384
"""Bytes of the request that begins a session, which keeps what its client says of itself."""
_MOST_VALUES = 100_000
"""Values of a request; a million take half a second of everybody's time to read."""
_HEALTH_PATH = "/healthz"
HOLDER = "agentkit.key_holder"
"""Under this name the scope of a request says whose key it came with."""

App: TypeAlias = Callable[[MutableMapping[str, Any], Any, Any], Awaitable[None]]

KeyHolder: TypeAlias = Callable[[str], str | None]
"""The name of a key's holder; None for an unknown key."""


class Guard:
    """The HTTP layer before a library: keys, their sessions and a liveness page.

    Args:
        app: The ASGI application; it answers clients that hold a key.
        holder: Knows the keys; None lets everybody in.
        open_sessions: The ids of the sessions that are open.
        share: How many of these one key may have.
    """

    def __init__(
        self,
        app: App,
        holder: KeyHolder | None = None,
        *,
        open_sessions: Collection[str],
        share: int,
    ) -> None:
        self._app = app
        self._holder = holder
        self._open = open_sessions
        self._share = share
        self._begun: OrderedDict[bytes, str] = OrderedDict()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Answer a request for the health, refuse one without a key, and hand on the others.

        Those that are handed on say whose key they came with.
        """
        app: Any = self._app
        if scope["type"] == "http":
            app = self._answer(scope)
            if app is None:
                app, send = self._handing_on(scope, send)
        await app(scope, receive, send)

    def _answer(self, scope: MutableMapping[str, Any]) -> JSONResponse | None:
        """Health, or why a request is refused; None for one to hand on."""
        from starlette.responses import JSONResponse

        if scope["path"] == _HEALTH_PATH:
            return JSONResponse({"status": "ok"})
        if self._holder is None:
            return None
        name = scope[HOLDER] = self._name(scope, self._holder)
        if name is None:
            error = "no valid key; send the header Authorization: Bearer KEY"
            return JSONResponse({"error": error}, 401, {"WWW-Authenticate": "Bearer"})
        sessions = _sessions_in(scope)
        if any(self._begun.get(one, name) != name for one in sessions):
            return JSONResponse({"error": "no such session of this key"}, 404)
        if not sessions and self._has_its_share(name):
            error = "this key has half of all sessions that may be open; end some"
            return JSONResponse({"error": error}, 503)
        return None

    def _handing_on(self, scope: MutableMapping[str, Any], send: Any) -> tuple[App, Any]:
        """What answers a request, and how."""
        from mcp.server.transport_security import (
            DEFAULT_MAX_REQUEST_BODY_SIZE,
            RequestBodyLimitMiddleware,
        )

        headers = scope["headers"]  # nothing is kept that a stream could be resumed from
        scope["headers"] = [one for one in headers if one[0].lower() != b"last-event-id"]
        if self._holder is not None:
            send = self._noting(scope[HOLDER], send)
        app: Any = self._app
        if scope["method"] == "POST":
            app = RequestBodyLimitMiddleware(self._hand_whole, DEFAULT_MAX_REQUEST_BODY_SIZE)
        return app, send

    async def _hand_whole(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Hand on a request whose body was read whole, unless it holds too much.

        One that was cut off has nobody to answer, and would be a traceback in the log.
        """
        from starlette.responses import JSONResponse

        waiting = [await receive()]
        if waiting[0].get("more_body", True):
            return

        async def receive_again() -> Any:
            return waiting.pop() if waiting else await receive()

        app: Any = self._app
        if why := _too_much(waiting[0].get("body", b""), begins=not _sessions_in(scope)):
            app = JSONResponse({"error": why}, 413)
        await app(scope, receive_again, send)

    def _has_its_share(self, name: str) -> bool:
        held = sum(self._begun.get(one.encode()) == name for one in self._open)
        return held >= max(self._share, 1)

    def _noting(self, name: str, send: Any) -> Any:
        """Sends, and notes the session that an answer begins as the key's."""

        async def noting(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                for session in _sessions_in(message):
                    self._begun.setdefault(session, name)
                while len(self._begun) > _MOST_BOUND:
                    self._begun.popitem(last=False)
            await send(message)

        return noting

    @staticmethod
    def _name(scope: MutableMapping[str, Any], holder: KeyHolder) -> str | None:
        """The name of the holder of a request's key; None without a valid one."""
        headers = [text for name, text in scope["headers"] if name == b"authorization"]
        scheme, _, key = (headers[0] if len(headers) == 1 else b"").decode("latin-1").partition(" ")
        return holder(key.strip()) if scheme.lower() == "bearer" else None


def _sessions_in(message: Mapping[str, Any]) -> list[bytes]:
    """The sessions that the headers of a request or an answer name."""
    headers = message.get("headers", ())
    return [bytes(text) for name, text in headers if bytes(name).lower() == b"mcp-session-id"]


def _too_much(body: bytes, *, begins: bool) -> str:
    """Why a body is not handed on; empty when it is.

    Args:
        body: The request.
        begins: Whether it may begin a session.
    """
    try:
        check_values(body, most=_MOST_VALUES)
    except ReadingLimitError:
        return f"the request holds more than {_MOST_VALUES:,} values"
    is_long = begins and len(body) > _LONGEST_GREETING and _is_greeting(body)
    return "the request is too long" if is_long else ""


def _is_greeting(body: bytes) -> bool:
    """Whether a body begins a session."""
    try:
        said = read_json(body)
    except ValueError:  # the official library says so
        return False
    messages = said if isinstance(said, list) else [said]
    return any(isinstance(one, dict) and one.get("method") == "initialize" for one in messages)
