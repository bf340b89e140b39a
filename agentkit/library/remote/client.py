"""Reading the resources of a library server over HTTP, with bounds on everything."""

from __future__ import annotations

import logging
import math
import os
import re
import socket
import threading
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qsl, urlsplit

from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError, UsageError
from agentkit.library.changes import definition_from_json
from agentkit.library.events import LibraryEvent
from agentkit.library.remote.wire import (
    CHANGES_PATH,
    EVENTS_PATH,
    LIBRARY_PATH,
    LINES,
    ROOT,
    Head,
    applied_from_json,
    decode,
)
from agentkit.library.store import AppliedChange
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

KEY_VARIABLE = "AGENTKIT_LIBRARY_KEY"
"""Environment variable that holds the key that is shown to a library server."""

# How much is taken from a server, which may be anybody's.
LINE_BYTES = 256_000_000
"""Maximum bytes of a line: a definition, an event, or a change of ten thousand tools."""
LIBRARY_BYTES = 1_000_000_000
"""Maximum bytes of an answer."""

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 20.0
_IDLE_SECONDS = 60.0
_WORDS = 200
_ETAG = re.compile(r"[!#-~]{1,200}")
_BYTES_OF_A_LINE = 200
"""Memory overhead of a line beside its text; otherwise empty lines would be free."""

_OK, _NOT_MODIFIED, _TOO_MANY, _SERVER_ERROR = 200, 304, 429, 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """The location of a library, and how it is read.

    Attributes:
        base: The URL without options; safe to show.
        host: Host and port.
        is_encrypted: Whether it is https.
        timeout_seconds: Longest answer, such as a page of definitions.
        signed_from: The first event that has to be signed.
    """

    base: str
    host: str
    is_encrypted: bool
    timeout_seconds: float = 60.0
    signed_from: int = 1

    def __str__(self) -> str:
        return self.base


def read_address(url: str) -> Address:
    """Take the URL of a library apart.

    Example:
        >>> address = read_address("https://tools.example/team-a?timeout=5")
        >>> print(address, address.timeout_seconds)
        https://tools.example/team-a 5.0

    Raises:
        UsageError: The URL is none of a library, or holds a key or a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        _refuse("it cannot be taken apart; write http://HOST:PORT or https://HOST")
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        _refuse(f"there is a name or password before its host; put a key into {KEY_VARIABLE}")
    if parts.scheme.lower() not in {"http", "https"} or not host or parts.fragment:
        _refuse("write http://HOST:PORT or https://HOST, perhaps with a path")
    shown = f"[{host}]" if ":" in host else host
    where = shown if port is None else f"{shown}:{port}"
    path = parts.path.rstrip("/").removesuffix(ROOT)
    address = Address(
        base=f"{parts.scheme.lower()}://{where}{path}",
        host=where,
        is_encrypted=parts.scheme.lower() == "https",
    )
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        match name:
            case "timeout" if _is_seconds(value):
                address = replace(address, timeout_seconds=float(value))
            case "signed-from" if re.fullmatch("[0-9]{1,18}", value):
                address = replace(address, signed_from=int(value))
            case _:
                _refuse(
                    "it has an option that is none of timeout and signed-from, or one whose "
                    f"value is not usable; a key goes into {KEY_VARIABLE}, never into a URL, which "
                    "ends up in logs and lists of processes"
                )
    return address


def _is_seconds(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


def _refuse(why: str) -> NoReturn:
    """Never repeats the URL: what is wrong with it may be that it holds a secret."""
    raise UsageError(f"the URL of the library is not usable: {why}")


def lines_of(pieces: Iterable[bytes], *, most: int, longest: int) -> Iterator[bytes]:
    r"""The lines of a body.

    Args:
        pieces: The body.
        most: Bytes of the whole.
        longest: Bytes of one line.

    Raises:
        StoreFormatError: There is more than that, or the last line has no end.

    Example:
        >>> list(lines_of([b"a\nb", b"c\n"], most=1_000, longest=5))
        [b'a', b'bc']
    """
    size, open_line = 0, bytearray()
    for piece in pieces:
        size += len(piece) + _BYTES_OF_A_LINE * piece.count(b"\n")
        if size > most:
            raise StoreFormatError(
                f"the answer has more than {most:,} bytes; nothing of it is used"
            )
        *whole, rest = piece.split(b"\n")
        for part in whole:
            open_line += part
            _check_length(open_line, longest)
            yield bytes(open_line)
            open_line.clear()
        open_line += rest
        _check_length(open_line, longest)
    if open_line:
        raise StoreFormatError("the answer breaks off in the middle of a line")


def _check_length(line: bytearray, longest: int) -> None:
    if len(line) > longest:
        raise StoreFormatError(f"a line of the answer has more than {longest:,} bytes")


class LibraryClient:
    """Reads the resources of one server, in one thread at a time; any thread may close it.

    Nothing is ever sent to another host: redirects are not followed.

    Args:
        address: The server.
        key: What is shown to it; empty for none.
    """

    def __init__(self, address: Address, *, key: str) -> None:
        self.address = address
        self._key = key
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._client: httpx.Client | None = None
        self._sockets: list[socket.socket] = []
        self.is_closed = False

    def close(self) -> None:
        """Break off what is under way, and ask no more. A second call does nothing."""
        self.is_closed = True
        self._cut()
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    # Resources.

    def library(self, *, since: int = 0, etag: str = "") -> Answer | None:
        """The newest library: whole, or the changes since a version if the server sends those.

        Args:
            since: The version that is known.
            etag: Names what is known; None is returned where that is the newest.

        Raises:
            StoreUnavailableError: The server cannot be reached, is too slow, or hung up.
            StoreFormatError: The answer is not what the protocol says.
            StoreError: The server refuses, or the connection is closed.
        """
        with self._get(LIBRARY_PATH, {"since": since}, etag=etag) as response:
            if response is None:
                return None
            return _answer(response, self._records(response))

    def at(self, version: int) -> Answer:
        """The library at a version."""
        with self._get(LIBRARY_PATH, {"version": version}) as response:
            assert response is not None  # no ETag was given
            return _answer(response, self._records(response))

    def changes(self, *, after: int) -> Generator[AppliedChange, None, None]:
        """The changes that made the versions behind ``after``, without events, lazily."""
        with self._get(CHANGES_PATH, {"after": after}) as response:
            assert response is not None
            yield from _in_order(self._records(response), after)

    def events(self, *, after: int) -> list[LibraryEvent]:
        """The events behind ``after``."""
        found: list[LibraryEvent] = []
        with self._get(EVENTS_PATH, {"after": after}) as response:
            assert response is not None
            for record in self._records(response):
                event = LibraryEvent.from_json(record)
                if event.sequence != after + len(found) + 1:
                    raise StoreFormatError(
                        f"event {event.sequence} stands where event {after + len(found) + 1} was "
                        "expected"
                    )
                found.append(event)
        return found

    def _records(self, response: httpx.Response) -> Iterator[JsonObject]:
        lines = lines_of(response.iter_raw(), most=LIBRARY_BYTES, longest=LINE_BYTES)
        return map(decode, lines)

    # The connection.

    @contextmanager
    def _get(
        self,
        path: str,
        query: Mapping[str, str | int],
        *,
        etag: str = "",
    ) -> Iterator[httpx.Response | None]:
        """A good answer, while it is being read; None where it is what ``etag`` names."""
        import httpx

        headers = {"if-none-match": f'"{etag}"'} if etag else {}
        seconds = self.address.timeout_seconds
        with self._translated(), self._cut_after(seconds):
            client = self._opened()
            with client.stream(
                "GET",
                self.address.base + path,
                params=dict(query),
                headers=headers,
                timeout=httpx.Timeout(min(_READ_SECONDS, seconds), connect=_CONNECT_SECONDS),
                extensions={"trace": self._notice},
            ) as response:
                if response.status_code == _NOT_MODIFIED and etag:
                    yield None
                    return
                self._check(response)
                yield response

    def _opened(self) -> httpx.Client:
        self._check_open()
        with self._lock:
            if self._client is None or self._process != os.getpid():
                # A fork shares its parent's sockets and must neither use nor close them.
                self._process, self._sockets = os.getpid(), []
                self._client = _new_client(self.address, self._key)
            return self._client

    def _check_open(self) -> None:
        if self.is_closed:
            raise StoreError(f"the library at {self.address} is closed; open it again")

    def _check(self, response: httpx.Response) -> None:
        """Refuse what is not an answer of a library server."""
        if response.status_code != _OK:
            raise self._refusal(response)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != LINES:
            raise StoreFormatError(
                f"{self.address} answered with {kind[:60] or 'no type'!r} and not with {LINES}: "
                "this is not a library server, or something in between answered in its place, such "
                "as a page to log in"
            )
        packed = response.headers.get("content-encoding", "").strip().lower()
        if packed not in {"", "identity"}:  # a small body may unpack to very much
            raise StoreFormatError(f"the answer is packed by {packed[:40]!r}; nobody asked for it")

    def _refusal(self, response: httpx.Response) -> StoreError:
        status, where = response.status_code, self.address
        match status:
            case 401 | 403:
                client = "the key" if self._key else "a client without a key"
                return StoreError(
                    f"{where} does not let {client} in (status {status}); put a valid key into "
                    f"{KEY_VARIABLE}"
                )
            case 301 | 302 | 303 | 307 | 308:
                return StoreError(
                    f"{where} sends its clients on to another place, and nobody follows: neither "
                    "key nor trust were meant for it. Open that URL if it is right"
                )
            case _ if status == _TOO_MANY or status >= _SERVER_ERROR:
                return StoreUnavailableError(
                    f"{where} cannot answer now (status {status}{_words(response)})"
                )
        return StoreError(f"{where} refuses the request (status {status}{_words(response)})")

    @contextmanager
    def _cut_after(self, seconds: float) -> Iterator[None]:
        """Break the connection when the time is over, however slowly bytes drip in."""
        until = time.monotonic() + seconds
        guillotine = threading.Timer(seconds, self._cut)
        guillotine.daemon = True
        guillotine.start()
        try:
            yield
        except Exception as error:  # what was cut off in its middle may look damaged
            if time.monotonic() > until and not self.is_closed:
                raise StoreUnavailableError(
                    f"{self.address} did not answer completely within "
                    f"{self.address.timeout_seconds:g} s (?timeout=)"
                ) from error
            raise
        finally:
            guillotine.cancel()

    def _cut(self) -> None:
        with self._lock:
            broken, self._sockets = self._sockets, []
        for one in broken:
            with suppress(OSError):  # it is closed already
                # Not the method of an SSL socket, which would free what another thread reads with.
                socket.socket.shutdown(one, socket.SHUT_RDWR)

    def _notice(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the socket, to break it off from another thread (httpx's ``trace``)."""
        if event.endswith((".connect_tcp.complete", ".start_tls.complete")):
            found = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._sockets = [one for one in self._sockets if one.fileno() >= 0]
                if found is not None:
                    self._sockets.append(found)
            if self.is_closed:
                self._cut()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            self._check_open()
            words = f"{type(error).__name__}: {error}"[:_WORDS]
            if "CERTIFICATE_VERIFY_FAILED" in words:
                raise StoreError(
                    f"{self.address} does not show a certificate that this machine trusts "
                    f"({words}); nothing was sent to it"
                ) from error
            if isinstance(error, httpx.TransportError):
                raise StoreUnavailableError(
                    f"{self.address} cannot be reached, is too slow, or hung up ({words})"
                ) from error
            raise StoreError(f"{self.address} could not be asked ({words})") from error


def _new_client(address: Address, key: str) -> httpx.Client:
    import ssl

    import httpx

    if key and not address.is_encrypted:
        logger.warning("the key for %s goes over the network unencrypted; use https", address)
    headers = {
        "accept-encoding": "identity",
        "accept": LINES,
        "cache-control": "no-cache",
        "user-agent": "agentkit",
    }
    if key:
        headers["authorization"] = f"Bearer {key}"
    # Reading the certificates of all authorities takes 50 ms, which http does not need.
    verify = True if address.is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.Client(
        headers=headers,
        verify=verify,
        follow_redirects=False,
        limits=httpx.Limits(max_connections=4, keepalive_expiry=_IDLE_SECONDS),
    )


def _words(response: httpx.Response) -> str:
    """The server's message about its error, if it is one of ours."""
    if response.headers.get("content-type", "").partition(";")[0] != "application/json":
        return ""
    try:
        text = b"".join(lines_of(chain(response.iter_raw(), [b"\n"]), most=10_000, longest=10_000))
        message = decode(text)["error"]["message"]
    except (StoreFormatError, KeyError, TypeError):
        return ""  # the status says enough
    return f": {message[:_WORDS]!r}" if isinstance(message, str) else ""


def _etag(header: str) -> str:
    """The ETag, without what a proxy that compressed the answer wrote before it."""
    found = header.removeprefix("W/").strip('"')
    return found if _ETAG.fullmatch(found) else ""  # it is sent back as it is


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """A library as a server gives it: whole, or by what changed.

    Attributes:
        head: What is newest.
        etag: Names it.
        tools: The definitions in order; None where changes came.
        changes: What made the versions since the one that is known.
    """

    head: Head
    etag: str
    tools: Sequence[ToolDefinition] | None = None
    changes: Sequence[AppliedChange] = ()


def _answer(response: httpx.Response, records: Iterator[JsonObject]) -> Answer:
    record = next(records, {})
    head, since = Head.from_json(record), record.get("since")
    etag = _etag(response.headers.get("etag", ""))
    if type(since) is int:
        return Answer(head=head, etag=etag, changes=tuple(_in_order(records, since)))
    found: list[ToolDefinition] = []
    for record in records:
        found.append(definition_from_json(record))
        if len(found) > head.tools:
            raise StoreFormatError(
                f"library version {head.version} brings more than the {head.tools:,} tools that "
                "it has"
            )
    return Answer(head=head, etag=etag, tools=found)


def _in_order(records: Iterator[JsonObject], after: int) -> Iterator[AppliedChange]:
    for record in records:
        applied = applied_from_json(record)
        if applied.version <= after:
            raise StoreFormatError(f"a change of version {applied.version} was not asked for")
        after = applied.version
        yield applied
