"""The wire format of a library over HTTP, version 3, and its client, with bounds on everything.

``docs/stores.md`` tells the format in words. An answer is lines of JSON (``application/x-ndjson``):
the head, which says what is newest, then the changes and the events that the client lacks.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import parse_qsl, urlsplit

from agentkit.errors import StoreError, StoreFormatError, StoreUnavailableError, UsageError
from agentkit.library.changes import change_from_json
from agentkit.library.events import ChainHead, LibraryEvent
from agentkit.library.store import AppliedChange
from agentkit.messages import JsonObject
from agentkit.reading import read_json

if TYPE_CHECKING:
    import httpx


FORMAT_VERSION = 3
"""Version of the wire format; it also stands in the path."""

PATH = f"/library/v{FORMAT_VERSION}"
LINES = "application/x-ndjson"


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The newest state of a library.

    Attributes:
        version: The newest library version; 0 for none.
        digest: Digest of the library at that version.
        events: Where the chain of events ends.
    """

    version: int
    digest: str
    events: ChainHead

    def to_json(self) -> dict[str, Any]:
        """The head as a JSON object."""
        return {
            "format": FORMAT_VERSION,
            "version": self.version,
            "library": self.digest,
            "events": {"sequence": self.events.sequence, "hash": self.events.hash},
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> Head:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is not a head, or its format is newer than ours.
        """
        try:
            form, events = _number(record["format"]), record["events"]
            if form > FORMAT_VERSION:
                words = f"this agentkit reads {FORMAT_VERSION}; upgrade agentkit-evolve"
                raise StoreFormatError(f"the server speaks format {form}, {words}")
            return cls(
                version=_number(record["version"]),
                digest=str(record["library"]),
                events=ChainHead(sequence=_number(events["sequence"]), hash=str(events["hash"])),
            )
        except (LookupError, TypeError) as error:
            words = f"({type(error).__name__}: {error}): {str(record)[:200]}"
            raise StoreFormatError(f"not the head of a library {words}") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a server answers.

    Attributes:
        head: What is newest.
        changes: What made the versions behind the one that is known.
        events: The events behind the one that is known.
    """

    head: Head
    changes: tuple[AppliedChange, ...]
    events: tuple[LibraryEvent, ...]

    @classmethod
    def of(cls, records: Iterable[JsonObject]) -> Answer:
        """The answer of these records.

        Raises:
            StoreFormatError: They are no answer.
        """
        first, *rest = (*records,) or ({},)
        changes, events = [], []
        for record in rest:
            if "sequence" in record:
                events.append(LibraryEvent.from_json(record))
            elif type(version := record.get("version")) is int:
                changes.append(AppliedChange(version=version, change=change_from_json(record)))
            else:
                raise StoreFormatError(f"not a change (its version is {version!r:.50})")
        return cls(head=Head.from_json(first), changes=tuple(changes), events=tuple(events))


def encode(record: Mapping[str, Any]) -> bytes:
    """A JSON object in one line of ASCII, which carries halves of surrogate pairs too."""
    return json.dumps(record, separators=(",", ":"), check_circular=False).encode()


def decode(line: bytes) -> JsonObject:
    """The inverse of ``encode``.

    Raises:
        StoreFormatError: The line is no JSON object.
    """
    try:
        record = read_json(line.decode(), decode=_DECODER.decode)
    except ValueError as error:
        raise StoreFormatError(f"not JSON ({error}): {line[:100]!r}") from error
    if not isinstance(record, dict):
        raise StoreFormatError(f"not a JSON object: {line[:100]!r}")
    return record


def _number(value: object) -> int:
    if type(value) is not int or value < 0:
        raise TypeError(f"{value!r:.50} is not a number of the expected kind")
    return value


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


logger = logging.getLogger(__name__)

KEY_VARIABLE = "AGENTKIT_LIBRARY_KEY"
"""Environment variable that holds the key that is shown to a library server."""

# How much is taken from a server, which may be anybody's.
LINE_BYTES = 256_000_000
"""Maximum bytes of a line: an event, or a change of ten thousand tools."""
LIBRARY_BYTES = 1_000_000_000
"""Maximum bytes of an answer."""

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 20.0
_IDLE_SECONDS = 60.0
_WORDS = 200
_BYTES_OF_A_LINE = 200
"""Memory overhead of a line beside its text; otherwise empty lines would be free."""

_OK, _TOO_MANY, _SERVER_ERROR = 200, 429, 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """The location of a library, and how it is read.

    Attributes:
        base: The URL without options; safe to show.
        is_encrypted: Whether it is https.
        timeout_seconds: Longest answer.
        signed_from: The first event that has to be signed.
    """

    base: str
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
    scheme = parts.scheme.lower()
    if scheme not in {"http", "https"} or not host or parts.fragment:
        _refuse("write http://HOST:PORT or https://HOST, perhaps with a path")
    where = (f"[{host}]" if ":" in host else host) + ("" if port is None else f":{port}")
    path = parts.path.rstrip("/").removesuffix(PATH)
    options = {"timeout": "60", "signed-from": "1"}
    options |= parse_qsl(parts.query, keep_blank_values=True)
    numbers = [one for one in options.values() if re.fullmatch(r"[0-9]{1,18}(\.[0-9]+)?", one)]
    if len(options) > 2 or len(numbers) < 2 or not (seconds := float(options["timeout"])):
        _refuse(
            "it has an option that is none of timeout and signed-from, or one that is no number; a "
            f"key goes into {KEY_VARIABLE}, never into a URL, which ends up in logs"
        )
    return Address(
        base=f"{scheme}://{where}{path}",
        is_encrypted=scheme == "https",
        timeout_seconds=seconds,
        signed_from=int(float(options["signed-from"])),
    )


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
    """Reads from one server, in one thread at a time; any thread may close it.

    Nothing is ever sent to another host: redirects are not followed.

    Args:
        address: The server.
        key: What is shown to it; empty for none.
    """

    def __init__(self, address: Address, *, key: str) -> None:
        self.address = address
        self._key = key
        self._process = os.getpid()
        self._client: httpx.Client | None = None
        self._is_closed = False

    def close(self) -> None:
        """Ask no more. A second call does nothing."""
        self._is_closed = True
        self._hang_up()

    def read(self, *, version: int, event: int) -> Answer:
        """What is newest, with the changes behind a version and the events behind one.

        Raises:
            StoreUnavailableError: The server cannot be reached, is too slow, or hung up.
            StoreFormatError: The answer is not what the protocol says.
            StoreError: The server refuses, or the connection is closed.
        """
        self._check_open()
        outcome: Future[Answer] = Future()

        def ask() -> None:
            try:
                outcome.set_result(self._read({"version": version, "event": event}))
            except Exception as error:  # noqa: BLE001 - it is the caller's
                outcome.set_exception(error)

        # A thread of its own, which is left behind however slowly bytes drip in.
        threading.Thread(target=ask, name="agentkit-library-client", daemon=True).start()
        seconds = self.address.timeout_seconds
        try:
            return outcome.result(seconds)
        except TimeoutError as error:
            self._hang_up()
            raise StoreUnavailableError(
                f"{self.address} did not answer completely within {seconds:g} s (?timeout=)"
            ) from error

    def _read(self, query: dict[str, int]) -> Answer:
        import httpx

        seconds = self.address.timeout_seconds
        timeout = httpx.Timeout(min(_READ_SECONDS, seconds), connect=_CONNECT_SECONDS)
        url = self.address.base + PATH
        with (
            self._translated(),
            self._opened().stream("GET", url, params=query, timeout=timeout) as response,
        ):
            self._check(response)
            lines = lines_of(response.iter_raw(), most=LIBRARY_BYTES, longest=LINE_BYTES)
            return Answer.of(map(decode, lines))

    def _opened(self) -> httpx.Client:
        if self._client is None or self._process != os.getpid():
            # A fork shares its parent's sockets and must neither use nor close them.
            self._process = os.getpid()
            self._client = _new_client(self.address, self._key)
        return self._client

    def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._process == os.getpid():
            client.close()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"the library at {self.address} is closed; open it again")

    def _check(self, response: httpx.Response) -> None:
        """Refuse what is not an answer of a library server."""
        if response.status_code != _OK:
            raise self._refusal(response)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != LINES:
            raise StoreFormatError(
                f"{self.address} answered with {kind[:60] or 'no type'!r} and not with {LINES}: it "
                "is not a library server, or a page to log in answered in its place"
            )
        packed = response.headers.get("content-encoding", "").strip().lower()
        if packed not in {"", "identity"}:  # a small body may unpack to very much
            raise StoreFormatError(f"the answer is packed by {packed[:40]!r}; nobody asked for it")

    def _refusal(self, response: httpx.Response) -> StoreError:
        status, where = response.status_code, self.address
        match status:
            case 401 | 403:
                client = "the key" if self._key else "a client without a key"
                words = f"(status {status}); put a valid key into {KEY_VARIABLE}"
                return StoreError(f"{where} does not let {client} in {words}")
            case 301 | 302 | 303 | 307 | 308:
                words = "and nobody follows; open that URL if it is right"
                return StoreError(f"{where} sends its clients on to another place, {words}")
            case _ if status == _TOO_MANY or status >= _SERVER_ERROR:
                words = f"(status {status}{_words(response)})"
                return StoreUnavailableError(f"{where} cannot answer now {words}")
        return StoreError(f"{where} refuses the request (status {status}{_words(response)})")

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            self._check_open()
            words = f"{type(error).__name__}: {error}"[:_WORDS]
            if "CERTIFICATE_VERIFY_FAILED" in words:
                untrusted = f"shows a certificate that this machine does not trust ({words})"
                raise StoreError(f"{self.address} {untrusted}") from error
            if isinstance(error, httpx.TransportError):
                away = f"cannot be reached, is too slow, or hung up ({words})"
                raise StoreUnavailableError(f"{self.address} {away}") from error
            raise StoreError(f"{self.address} could not be asked ({words})") from error
        except RuntimeError:  # httpx's, where the client was closed meanwhile
            self._check_open()
            raise


def _new_client(address: Address, key: str) -> httpx.Client:
    import ssl
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    if key and not address.is_encrypted:
        logger.warning("the key for %s goes over the network unencrypted; use https", address)
    headers = {"accept-encoding": "identity", "accept": LINES, "user-agent": "agentkit"}
    if key:
        headers["authorization"] = f"Bearer {key}"
    # Reading the certificates of all authorities takes 50 ms, which http does not need.
    verify = True if address.is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return httpx.Client(
        headers=headers,
        cookies=CookieJar(policy=DefaultCookiePolicy(netscape=False)),  # reads none
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
