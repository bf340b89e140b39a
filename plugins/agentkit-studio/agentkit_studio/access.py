"""Who may use the studio, and what: keys and roles, a session cookie, and protection from forgery.

A browser shows a key in the form of ``/login``, or a code that works once in the address; then a
signed cookie names the user, until the key is taken away or changed. A code can only be made here,
so that no other site can sign somebody in as somebody else. Behind a proxy that knows its users,
a header names them instead.
"""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from agentkit.errors import UsageError
from agentkit.server.keys import Keys

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

Role = Literal["nobody", "viewer", "reviewer", "operator"]
"""``nobody`` stays out, ``viewer`` reads, ``reviewer`` also decides on proposals and labels
episodes, ``operator`` also pins, rolls back, decides on calls and talks to the agent."""

_MOST_WRONG, _MOST_OF_ALL, _WRONG_SECONDS = 6, 60, 60.0
"""Wrong keys that one address, and all together, may try in so many seconds. A proxy names the
address, and a program on the studio's own machine may pose as one."""

_RANK: Mapping[str, int] = {"nobody": 0, "viewer": 1, "reviewer": 2, "operator": 3}

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
"""Sent with every answer. No script or style of a page runs but those of files of the studio."""


@dataclass(frozen=True, kw_only=True, slots=True)
class User:
    """Who looks.

    Attributes:
        name: For the log of changes.
        role: What they may do.
    """

    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Whether they may do what this role may."""
        return _RANK[self.role] >= _RANK[role]


class ForbiddenError(Exception):
    """A request that its user may not make, or that did not come from a page of the studio."""


class TooManyTriesError(Exception):
    """Too many wrong keys came from one address."""


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who may do what.

    Attributes:
        keys: Keys of users by their names; None where a proxy names them.
        roles: Roles by name; everybody else has ``default_role``.
        default_role: The role of a user without an entry in ``roles``; ``nobody`` keeps them out.
        user_header: A header in which a proxy that the studio trusts names the user. Only use it
            where nobody reaches the studio but through that proxy.
        read_only: Whether nobody may change anything.
        secret: Signs cookies; the same for all processes behind one address.

    Raises:
        UsageError: Nobody could get in, or a role is unknown, or the header is none.
    """

    keys: Keys | None = None
    roles: Mapping[str, Role] = field(default_factory=dict)
    default_role: Role = "viewer"
    user_header: str = ""
    read_only: bool = False
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _codes: dict[str, str] = field(default_factory=dict, init=False, repr=False)
    _wrong: deque[tuple[float, str]] = field(
        default_factory=lambda: deque(maxlen=10_000), init=False, repr=False
    )

    def __post_init__(self) -> None:
        if self.keys is None and not self.user_header:
            raise UsageError("nobody could get in: give the studio keys, or a proxy's user_header")
        if self.user_header and not re.fullmatch(r"[\w-]+", self.user_header, re.ASCII):
            raise UsageError(f"{self.user_header!r:.100} is no name of a header, as X-User is")
        for name, role in {**self.roles, "default_role": self.default_role}.items():
            if role not in _RANK:
                raise UsageError(f"the role of {name} is {role!r}; use one of {', '.join(_RANK)}")

    def named(self, name: str) -> User:
        """The user of that name."""
        role = self.roles.get(name, self.default_role)
        if self.read_only and role != "nobody":
            role = "viewer"
        return User(name=name, role=role)

    def user_of(self, request: Request) -> User | None:
        """Who sent a request; None for a stranger."""
        if self.user_header:
            names = request.headers.getlist(self.user_header)
            name = names[0].strip(" \t")[:200] if len(names) == 1 else ""  # of two one is forged
            return self.named(name) if name else None
        name = str(request.session.get("user", ""))
        proof = "" if self.keys is None else self.keys.proof(name)
        known = proof and hmac.compare_digest(proof, str(request.session.get("proof", "")))
        return self.named(name) if known else None

    def invite(self, name: str) -> str:
        """A code with which a browser begins a session of that user, once."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = name
        return code

    def accept(self, request: Request, code: str) -> bool:
        """Begin the session that a code was made for; it is used up then."""
        name = self._codes.pop(code, None)
        return name is not None and self._begin(request, name)

    def log_in(self, request: Request, key: str) -> bool:
        """Begin a session with a key; False for one that is not known.

        Raises:
            TooManyTriesError: So many wrong keys came from this address, or from all, that it has
                to wait.
        """
        now, address = time.monotonic(), request.client.host if request.client else ""
        while self._wrong and self._wrong[0][0] < now - _WRONG_SECONDS:
            self._wrong.popleft()
        of_address = sum(one == address for _, one in self._wrong)
        if of_address >= _MOST_WRONG or len(self._wrong) >= _MOST_OF_ALL:
            raise TooManyTriesError("Too many wrong keys came from here; wait a minute.")
        holder = self.keys.holder(key) if self.keys is not None else None
        if holder is None:
            self._wrong.append((now, address))
            return False
        return self._begin(request, holder)

    def _begin(self, request: Request, name: str) -> bool:
        if self.keys is None:
            return False
        request.session.clear()
        request.session.update(user=name, proof=self.keys.proof(name))
        return True

    def csrf_token(self, request: Request, user: User | None) -> str:
        """The token that each form carries: of this session and of this user."""
        nonce = str(request.session.get("csrf", ""))
        if not nonce:
            nonce = request.session["csrf"] = secrets.token_urlsafe(24)
        whose = f"{nonce} {user.name if user else ''}"
        return hmac.new(self.secret.encode(), whose.encode(), "sha256").hexdigest()

    def check_form(self, request: Request, user: User | None, sent: str) -> None:
        """Refuse a change that was not sent by a page of the studio.

        Raises:
            ForbiddenError: The token is missing or another user's, or another site sent the
                request.
        """
        origin = request.headers.get("origin")
        if origin not in {None, "null"} and urlsplit(str(origin)).netloc != request.url.netloc:
            raise ForbiddenError("another site sent this request; open the studio itself")
        known = self.csrf_token(request, user)
        if not hmac.compare_digest(known.encode(), sent.encode()):
            raise ForbiddenError("this page is too old to act on; load it again")


class Prefix:
    """Sets the path that a proxy mounts the studio at; an ASGI middleware.

    Args:
        app: The application.
        prefix: The path, without a slash at its end.
    """

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._prefix and scope["type"] == "http":
            path = scope["path"]
            if not f"{path}/".startswith(f"{self._prefix}/"):
                path = self._prefix + path
            scope = {**scope, "root_path": self._prefix, "path": path}
        await self._app(scope, receive, send)


COOKIE = "agentkit_studio"
_LONGEST_COOKIE = 4_096
"""Bytes of a cookie that browsers keep; Python reads longer ones in quadratic time."""


class Headers:
    """Adds ``HEADERS`` to every answer, and lets the studio's own cookie in; an ASGI middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**scope, "headers": [*_with_own_cookie(scope["headers"])]}
        is_file = scope["path"].removeprefix(scope.get("root_path", "")).startswith("/static/")
        own = [(name.lower().encode(), text.encode()) for name, text in HEADERS.items()]
        own.append((b"cache-control", b"max-age=3600" if is_file else b"no-store"))

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                kept: list[Any] = [
                    pair for pair in message.get("headers", ()) if pair[0] != b"cache-control"
                ]
                message = {**message, "headers": [*kept, *own]}
            await send(message)

        await self._app(scope, receive, with_headers)


def _with_own_cookie(headers: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[bytes, bytes]]:
    start = f"{COOKIE}=".encode()
    for name, value in headers:
        if name != b"cookie":
            yield name, value
            continue
        parts = (part.strip() for part in value.split(b";"))
        own = [part for part in parts if part.startswith(start)][:1]
        if own and len(own[0]) <= _LONGEST_COOKIE:
            yield name, own[0]
