"""Sending a request over HTTP: one try with its redirects, under the policy of the caller."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from agentkit._loop_bound import LoopBound
from agentkit._version import __version__
from agentkit.errors import ModelRetry, ReadingLimitError, ToolFailed, ToolSignal, UsageError
from agentkit.interop.openapi.credentials import Credentials, Secrets
from agentkit.interop.openapi.documents import plain_json
from agentkit.interop.openapi.public_addresses import same_origin
from agentkit.interop.openapi.request_bodies import kind_of
from agentkit.interop.openapi.requests import PreparedRequest
from agentkit.reading import read_json

if TYPE_CHECKING:
    import httpx


_LONGEST_DETAIL = 600
_WORDS = ("detail", "message", "title", "error_description", "description", "reason", "msg")
_NESTED = ("detail", "errors", "error", "details", "invalid_params", "invalid-params", "violations")
_PLACES = ("field", "loc", "pointer", "name", "path", "param")
_MAX_DEPTH = 4

AGAIN_LATER = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of trouble that may be gone at another try."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    """An answer, its secrets taken out.

    Attributes:
        status: The status code.
        media_type: Its ``Content-Type`` without parameters, in lower case.
        text: The body as text; None when it is not text.
        size: The length of the body in bytes.
        retry_after: Seconds that the server asks to wait; None when it does not.
        location: Where a redirect leads.
    """

    status: int
    media_type: str
    text: str | None
    size: int
    retry_after: float | None = None
    location: str = ""


def value_of(answer: HttpAnswer) -> Any:
    """The value of a success: decoded JSON, text, or a description of what is neither.

    Raises:
        ToolFailed: It holds far too many values, or is nested too deeply.
    """
    if answer.size == 0:
        return {"status": answer.status}
    if answer.text is None:
        return {
            "status": answer.status,
            "content_type": answer.media_type or "unknown",
            "bytes": answer.size,
            "note": "the content is binary and is not shown",
        }
    if kind_of(answer.media_type or "application/json") == "json" or not answer.media_type:
        try:
            return plain_json(read_json(answer.text))
        except ReadingLimitError as error:
            raise ToolFailed(f"the server's answer can not be used: {error}") from error
        except ValueError:
            return answer.text  # declared as JSON, but is not: the text is all there is
    return answer.text


def signal_of(answer: HttpAnswer, *, what: str) -> ToolSignal:
    """The signal for an answer that is no success.

    Args:
        answer: The answer.
        what: Method and path, for the words.
    """
    said = detail_of(answer)
    told = f"{what} was answered with {answer.status}" + (f": {said}" if said else "")
    match answer.status:
        case 400 | 409 | 413 | 414 | 416 | 422:
            return ModelRetry(f"{told}. Change the arguments accordingly")
        case 404 | 410:
            return ModelRetry(f"{told}. There is nothing of that name or id; look it up first")
        case 401 | 403:
            return ToolFailed(
                f"{told}. The credentials do not allow this call, and other arguments will not "
                "change that"
            )
        case status if status in AGAIN_LATER:
            wait = (
                f"; the server asks to wait {answer.retry_after:g} s" if answer.retry_after else ""
            )
            return ToolFailed(f"{told}. The server is in trouble or too busy{wait}; try later")
        case status if 300 <= status < 400:
            return ToolFailed(f"{told}. It leads elsewhere, and that is not followed")
        case _:
            return ToolFailed(told)


def detail_of(answer: HttpAnswer) -> str:
    """What an error answer says: problem details (RFC 9457), the usual JSON, or the text itself."""
    if answer.text is None:
        return ""
    if "html" in answer.media_type:
        return "an HTML page"
    try:
        data = read_json(answer.text)
    except ValueError:
        return " ".join(answer.text.split())[:_LONGEST_DETAIL]
    words = dict.fromkeys(_said(data, 0))
    text = "; ".join(words) if words else answer.text
    return " ".join(text.split())[:_LONGEST_DETAIL]


def _said(data: Any, depth: int) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif depth > _MAX_DEPTH:
        return
    elif isinstance(data, list):
        for item in data[:20]:
            yield from _said(item, depth + 1)
    elif isinstance(data, Mapping):
        yield from _said_by(data, depth)


def _said_by(data: Mapping[str, Any], depth: int) -> Iterator[str]:
    place = next((data[key] for key in _PLACES if key in data), "") if depth else ""
    prefix = f"{_place(place)}: " if place else ""
    words = [data[key] for key in _WORDS if isinstance(data.get(key), str) and data[key]]
    yield from (f"{prefix}{word}" for word in words)
    for key in _NESTED:
        nested = data.get(key)
        if isinstance(nested, Mapping) and not nested.keys() & {*_WORDS, *_NESTED}:
            yield from (f"{name}: {_flat(item)}" for name, item in nested.items())
        elif nested is not None and nested not in words:
            yield from _said(nested, depth + 1)


def _place(place: Any) -> str:
    return ".".join(map(str, place)) if isinstance(place, list) else str(place)


def _flat(item: Any) -> str:
    if isinstance(item, list) and all(isinstance(each, str) for each in item):
        return ", ".join(item)
    return item if isinstance(item, str) else json.dumps(item, default=str)


_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, kw_only=True, slots=True)
class CallPolicy:
    """How calls are made.

    Attributes:
        timeout_seconds: Longest wait for one call, further tries and waits included.
        max_retries: Further tries after 408, 429, 5xx, a broken connection or no answer. A request
            that is not safe to repeat (POST, PATCH) is only tried again after 429, and after 503
            with ``Retry-After``, which say that nothing was done.
        backoff_seconds: Wait before the second try; doubles each time. ``Retry-After`` counts
            instead, as long as the time allows.
        max_response_bytes: Longest body that is read.
        max_redirects: How many redirects are followed, on the same host only.
        redirect_hosts: Other hosts (``host`` or ``host:port``) that a GET may be redirected to. No
            credentials are sent there.
        credential_hosts: Other hosts of the API's own (``host`` or ``host:port``), which get
            credentials too where the description names them.
        sleep: How to wait; a test passes its own.
    """

    timeout_seconds: float = 30.0
    max_retries: int = 2
    backoff_seconds: float = 0.5
    max_response_bytes: int = 2_000_000
    max_redirects: int = 5
    redirect_hosts: tuple[str, ...] = ()
    credential_hosts: tuple[str, ...] = ()
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        if not self.timeout_seconds > 0 or self.max_response_bytes <= 0:
            raise UsageError("timeout_seconds and max_response_bytes must be positive")
        if self.max_retries < 0 or self.max_redirects < 0:
            raise UsageError("max_retries and max_redirects must be 0 or more")

    @property
    def longest_seconds(self) -> float:
        """When the agent may give a call up: a little after the call itself does."""
        return self.timeout_seconds + 1.0


class Sender:
    """What the tools of one API share: connections, credentials and policy.

    Args:
        client: An ``httpx.AsyncClient`` of the caller's; None opens one for each event loop.
        credentials: Where secrets come from.
        policy: How calls are made.
        public_only: Whether a client of our own connects to public addresses only, except for
            the policy's ``redirect_hosts``.
    """

    def __init__(
        self,
        *,
        client: httpx.AsyncClient | None,
        credentials: Credentials,
        policy: CallPolicy,
        public_only: bool = False,
    ) -> None:
        self._given = client
        self.credentials = credentials
        self.policy = policy
        self._clients: LoopBound[httpx.AsyncClient] = LoopBound(
            opened=partial(_open, policy.redirect_hosts if public_only else None),
            closed=_close,
            is_closed=_is_closed,
        )

    def __repr__(self) -> str:
        return f"Sender(policy={self.policy!r})"

    @property
    def has_own_client(self) -> bool:
        """Whether the caller brought the client, which may prove who is calling."""
        return self._given is not None

    async def client(self) -> httpx.AsyncClient:
        """The client of the running loop."""
        return await self._clients.get() if self._given is None else self._given

    async def close(self) -> None:
        """Close the running loop's client; one of the caller's own is left open."""
        await self._clients.close()

    async def once(
        self, request: PreparedRequest, secrets: Secrets, *, seconds: float
    ) -> HttpAnswer:
        """Send a request and read the answer, redirects on the same host followed.

        Raises:
            ModelRetry: The answer is longer than the policy allows.
            httpx.HTTPError: Nothing, or not all, came back.
        """
        client = await self.client()
        for _ in range(self.policy.max_redirects + 1):
            answer = await self._answer(client, request, secrets, seconds)
            leads = self._leads(request, answer)
            if leads is None:
                return answer
            request = leads
        return answer

    def _leads(self, request: PreparedRequest, answer: HttpAnswer) -> PreparedRequest | None:
        """The request that a redirect asks for; None where none is followed."""
        if answer.status not in _REDIRECTS or not answer.location:
            return None
        try:
            target = urljoin(request.url, answer.location)
            is_same = same_origin(request.url, target)
            host = urlsplit(target).netloc
        except ValueError:  # such as a port of six digits
            return None
        is_read = request.method in {"GET", "HEAD"}
        if not is_same and not (is_read and host in self.policy.redirect_hosts):
            return None
        headers = dict(request.headers) if is_same else {"Accept": request.headers["Accept"]}
        method, body = request.method, request.body
        if answer.status in {301, 302, 303} and not is_read:
            method, body = "GET", None
            headers.pop("Content-Type", None)
        is_known = request.is_known and is_same
        return PreparedRequest(
            method=method, url=target, headers=headers, body=body, is_known=is_known
        )

    async def _answer(
        self,
        client: httpx.AsyncClient,
        request: PreparedRequest,
        secrets: Secrets,
        seconds: float,
    ) -> HttpAnswer:
        async with _streamed(client, request, max(seconds, 0.001)) as response:
            content = await _content(response, self.policy.max_response_bytes)
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            text = _text(content, media_type, response.charset_encoding)
            return HttpAnswer(
                status=response.status_code,
                media_type=media_type,
                text=None if text is None else secrets.redacted(text),
                size=len(content),
                retry_after=_retry_after(response.headers.get("retry-after")),
                location=response.headers.get("location", ""),
            )


def _open(private_hosts: Collection[str] | None) -> httpx.AsyncClient:
    """A client; unless it is None, it connects to no private hosts but these."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    transport = None
    if private_hosts is not None:
        # A subclass of httpx's, which is loaded with the first call.
        module = import_module("agentkit.interop.openapi.public_transport")
        transport = module.PublicTransport(private_hosts)
    # No cookie is kept: what one call is told would otherwise be sent with another's.
    jar = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    return httpx.AsyncClient(
        transport=transport,
        cookies=jar,
        follow_redirects=False,
        headers={"User-Agent": f"agentkit/{__version__}"},
    )


async def _close(client: httpx.AsyncClient) -> None:
    await client.aclose()


def _is_closed(client: httpx.AsyncClient) -> bool:
    return client.is_closed


@asynccontextmanager
async def _streamed(
    client: httpx.AsyncClient, request: PreparedRequest, seconds: float
) -> AsyncIterator[httpx.Response]:
    import httpx

    body = request.body
    parts = list(body.parts) if body is not None and body.parts else None
    content = None if body is None else body.content
    headers = [(name.encode(), value.encode()) for name, value in request.headers.items()]
    if request.is_known:
        built = client.build_request(
            request.method,
            request.url,
            headers=headers,
            content=content,
            files=parts,
            timeout=seconds,
        )
        sending = client.send(built, stream=True, follow_redirects=False)
    else:  # without the headers, cookies and credentials that a client of the caller's may have
        built = httpx.Request(
            request.method,
            request.url,
            headers=headers,
            content=content,
            files=parts,
            extensions={"timeout": httpx.Timeout(seconds).as_dict()},
        )
        sending = client.send(built, stream=True, follow_redirects=False, auth=None)
    response = await sending
    try:
        yield response
    finally:
        await response.aclose()


async def _content(response: httpx.Response, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > limit:
            raise ModelRetry(
                f"the answer is longer than the {limit:,} bytes that are read; ask for less, for "
                "example for fewer results or a narrower filter"
            )
        parts.append(part)
    return b"".join(parts)


def _text(content: bytes, media_type: str, charset: str | None) -> str | None:
    """The body as text; None for what is not text by its type or its bytes."""
    if media_type and kind_of(media_type) not in {"json", "text", "form"}:
        return None
    try:
        return content.decode(charset or "utf-8")
    except (UnicodeDecodeError, LookupError):
        return (
            None if kind_of(media_type or "x/x") == "binary" else content.decode("utf-8", "replace")
        )


def _retry_after(given: str | None) -> float | None:
    """Seconds, from a number or a date (RFC 9110, section 10.2.3)."""
    if not given:
        return None
    try:
        if given.strip().isdigit():
            return float(given)
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
