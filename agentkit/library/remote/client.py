"""Reading the resources of a library server over HTTP, with bounds on everything."""

from __future__ import annotations

import hashlib
import logging
import math
import os
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qsl, urlsplit

from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError, UsageError
from agentkit.library.events import LibraryEvent
from agentkit.library.remote.wire import (
    CHANGES_PATH,
    EVENTS_PATH,
    HEAD_PATH,
    HISTORY_PATH,
    JSON,
    LINES,
    ROOT,
    TOOLS_PATH,
    ChangeOutline,
    Head,
    decode,
    definition_from_json,
    revision_from_json,
)
from agentkit.library.store import AppliedChange, ToolRevision
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import httpx

logger = logging.getLogger(__name__)

KEY_VARIABLE = "AGENTKIT_LIBRARY_KEY"
"""Environment variable that holds the key that is shown to a library server."""

NO_CACHE = "none"
"""As ``?cache=none``: keep nothing on disk."""

# How much is taken from a server, which may be anybody's.
HEAD_BYTES = 1_000_000
PAGE_BYTES = 256_000_000
"""Of a page, which holds whole changes; one change may bring ten thousand tools."""
LINE_BYTES = 32_000_000
"""Of a line: a definition or an event."""
LIBRARY_BYTES = 1_000_000_000
"""Of all pages that are read in a row."""

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 20.0
_IDLE_SECONDS = 60.0
_WORDS = 200
_ETAG = re.compile(r"[!#-~]{1,200}")
_OK, _NOT_MODIFIED, _TOO_MANY, _SERVER_ERROR = 200, 304, 429, 500

_BYTES_OF_A_LINE = 40
"""What a line takes in memory beside its text; without counting that, empty ones would be free."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """Where a library is, and how it is read.

    Attributes:
        base: The URL without options; safe to show.
        host: Host and port.
        is_encrypted: Whether it is https.
        cache: Folder for the cache; None for the user's own, ``NO_CACHE`` for none.
        timeout_seconds: Longest answer, such as a page of definitions.
        signed_from: The first event that has to be signed.
    """

    base: str
    host: str
    is_encrypted: bool
    cache: str | None = None
    timeout_seconds: float = 60.0
    signed_from: int = 1

    def __str__(self) -> str:
        return self.base

    def cache_folder(self, caches: Path) -> Path | None:
        """The folder of the cache; None for none.

        Args:
            caches: Where agentkit keeps caches of this user.
        """
        if self.cache == NO_CACHE:
            return None
        if self.cache is not None:
            return Path(self.cache).expanduser()
        name, digest = re.sub("[^A-Za-z0-9.-]+", "_", self.host), hashlib.sha256(self.base.encode())
        return caches / "libraries" / f"{name}-{digest.hexdigest()[:12]}"


def read_address(url: str) -> Address:
    """Take the URL of a library apart.

    Example:
        >>> address = read_address("https://tools.example/team-a?cache=none")
        >>> print(address, address.cache)
        https://tools.example/team-a none

    Raises:
        UsageError: The URL is none of a library, or holds a key or a password.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        _refuse("it can not be taken apart; write http://HOST:PORT or https://HOST")
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
            case "cache" if value:
                address = replace(address, cache=value)
            case "timeout" if _is_seconds(value):
                address = replace(address, timeout_seconds=float(value))
            case "signed-from" if re.fullmatch("[0-9]{1,18}", value):
                address = replace(address, signed_from=int(value))
            case _:
                _refuse(
                    "it has an option that is none of cache, timeout and signed-from, or one whose "
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
        >>> list(lines_of([b"a\nb", b"c\n"], most=10, longest=5))
        [b'a', b'bc']
    """
    size, open_line = 0, bytearray()
    for piece in pieces:
        size += len(piece)
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

    def head(self, *, etag: str = "") -> tuple[Head, str] | None:
        """What is newest, with its ETag; None where it is what ``etag`` names.

        Args:
            etag: Names what is known already.

        Raises:
            StoreUnavailableError: The server can not be reached, is too slow, or hung up.
            StoreFormatError: The answer is not what the protocol says.
            StoreError: The server refuses, or the connection is closed.
        """
        with self._get(HEAD_PATH, {}, etag=etag) as response:
            if response is None:
                return None
            lines = b"".join(self._lines(response, HEAD_PATH))
            return Head.from_json(decode(lines)), _etag(response.headers.get("etag", ""))

    def tools(self, version: int, *, most: int) -> list[ToolDefinition]:
        """The definitions of a snapshot, in its order.

        Args:
            version: Of the library.
            most: How many there are to be.
        """
        found: list[ToolDefinition] = []
        for record in self._records(TOOLS_PATH, {"version": version}):
            found.append(definition_from_json(record))
            if len(found) > most:
                raise StoreFormatError(
                    f"library version {version} brings more than the {most:,} tools that it has"
                )
        return found

    def changes(self, *, after: int, upto: int) -> Iterator[AppliedChange]:
        """The changes that made the versions behind ``after``, without events."""
        records = self._records(CHANGES_PATH, {"upto": upto}, after=after)
        for record in records:
            outline = ChangeOutline.from_json(record)
            if not after < outline.version <= upto:
                raise StoreFormatError(f"a change of version {outline.version} was not asked for")
            after = outline.version
            upserts = tuple(
                definition_from_json(one) for one in islice(records, len(outline.upserts))
            )
            if tuple((one.name, one.digest) for one in upserts) != outline.upserts:
                raise StoreFormatError(f"the change of version {after} lacks what it lists")
            yield AppliedChange(version=after, change=replace(outline.change, upserts=upserts))

    def events(self, *, after: int, upto: int) -> Sequence[LibraryEvent]:
        """The events behind ``after``, up to ``upto``."""
        records = self._records(EVENTS_PATH, {"upto": upto}, after=after)
        found = []
        for place, record in enumerate(records, start=after + 1):
            event = LibraryEvent.from_json(record)
            if event.sequence != place or place > upto:
                raise StoreFormatError(
                    f"event {event.sequence} stands where event {place} was expected"
                )
            found.append(event)
        if len(found) != max(upto - after, 0):
            raise StoreFormatError(f"events {after + len(found) + 1} to {upto} are missing")
        return found

    def history(self, tool_name: str, *, upto: int) -> Sequence[ToolRevision]:
        """The revisions of one tool, ascending."""
        query: dict[str, str | int] = {"tool": tool_name, "upto": upto}
        found = [revision_from_json(one) for one in self._records(HISTORY_PATH, query)]
        versions = [one.version for one in found]
        if versions != sorted(set(versions)) or any(one > upto for one in versions):
            raise StoreFormatError(f"the revisions of {tool_name!r} are in no order")
        names = {one.definition.name for one in found if one.definition is not None}
        if names - {tool_name}:
            raise StoreFormatError(f"the history of {tool_name!r} tells of another tool")
        return found

    def _records(
        self, path: str, query: Mapping[str, str | int], *, after: int = 0
    ) -> Iterator[JsonObject]:
        """The records of all pages, a page at a time; the connection is free in between.

        A page is held as it came: JSON takes up to fifty times its length once it is read.
        """
        room = LIBRARY_BYTES
        following: int | None = after
        while following is not None:
            page: list[bytes] = []
            after = following
            with self._get(path, {**query, "after": after}) as response:
                assert response is not None  # no ETag was given
                for line in self._lines(response, path):
                    page.append(line)
                    room -= len(line) + _BYTES_OF_A_LINE
                    if room < 0:
                        raise StoreFormatError(f"the library has more than {LIBRARY_BYTES:,} bytes")
            last = decode(page.pop()) if page else {}
            if last.keys() != {"end"}:
                raise StoreFormatError("the answer breaks off: its last line is missing")
            following = _following(last, after)
            for record in map(decode, page):
                if record.keys() == {"end"}:
                    raise StoreFormatError("the answer goes on behind its last line")
                yield record

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
                self._check(response, path)
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

    def _lines(self, response: httpx.Response, path: str) -> Iterator[bytes]:
        if path == HEAD_PATH:  # one object, without the end of a line
            yield from lines_of(_ended(response), most=HEAD_BYTES, longest=HEAD_BYTES)
        else:
            yield from lines_of(response.iter_raw(), most=PAGE_BYTES, longest=LINE_BYTES)

    def _check(self, response: httpx.Response, path: str) -> None:
        """Refuse what is no answer of a library server."""
        if response.status_code != _OK:
            raise self._refusal(response)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        wanted = JSON if path == HEAD_PATH else LINES
        if kind != wanted:
            raise StoreFormatError(
                f"{self.address} answered with {kind[:60] or 'no type'!r} and not with {wanted}: "
                "this is no library server, or something in between answered in its place, such "
                "as a page to log in"
            )
        packed = response.headers.get("content-encoding", "").strip().lower()
        if packed not in {"", "identity"}:  # a small body may unpack to very much
            raise StoreFormatError(f"the answer is packed by {packed[:40]!r}; nobody asked for it")

    def _refusal(self, response: httpx.Response) -> StoreError:
        status, where = response.status_code, self.address
        match status:
            case 401 | 403:
                given = "the key" if self._key else "a client without a key"
                return StoreError(
                    f"{where} does not let {given} in (status {status}); put a valid key into "
                    f"{KEY_VARIABLE}"
                )
            case 301 | 302 | 303 | 307 | 308:
                return StoreError(
                    f"{where} sends its clients on to another place, and nobody follows: neither "
                    "key nor trust were meant for it. Open that URL if it is right"
                )
            case 404:
                return StoreError(
                    f"there is no library at {where} (status 404{_words(response)}); "
                    "agentkit.server.library.create_library_app serves one"
                )
            case _ if status == _TOO_MANY or status >= _SERVER_ERROR:
                return StoreUnavailableError(
                    f"{where} can not answer now (status {status}{_words(response)})"
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
                    f"{self.address} can not be reached, is too slow, or hung up ({words})"
                ) from error
            raise StoreError(f"{self.address} could not be asked ({words})") from error


def _new_client(address: Address, key: str) -> httpx.Client:
    import ssl

    import httpx

    if key and not address.is_encrypted:
        logger.warning("the key for %s goes over the network unencrypted; use https", address)
    headers = {
        "accept-encoding": "identity",
        "accept": f"{JSON}, {LINES}",
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


def _ended(response: httpx.Response) -> Iterator[bytes]:
    yield from response.iter_raw()
    yield b"\n"


def _words(response: httpx.Response) -> str:
    """What a server says about its error, as far as it is one of ours."""
    if response.headers.get("content-type", "").partition(";")[0] != JSON:
        return ""
    try:
        text = b"".join(lines_of(_ended(response), most=10_000, longest=10_000))
        message = decode(text)["error"]["message"]
    except (StoreFormatError, KeyError, TypeError):
        return ""  # the status says enough
    return f": {message[:_WORDS]!r}" if isinstance(message, str) else ""


def _etag(header: str) -> str:
    """The ETag, without what a proxy that compressed the answer wrote before it."""
    found = header.removeprefix("W/").strip('"')
    return found if _ETAG.fullmatch(found) else ""  # it is sent back as it is


def _following(record: JsonObject, after: int) -> int | None:
    """Where the next page begins; a server can not send a client in circles."""
    following = record["end"].get("next") if isinstance(record["end"], dict) else after
    if following is None:
        return None
    if type(following) is not int or following <= after:
        raise StoreFormatError(f"a page behind {after} says that the next is behind {following!r}")
    return following
