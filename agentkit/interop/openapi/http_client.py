"""Calling an operation over HTTP: send, wait, try again, and put what came into words."""

from __future__ import annotations

import asyncio
import re
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from encodings.aliases import aliases
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin, urlsplit

from agentkit._loop_bound import LoopBound
from agentkit._version import __version__
from agentkit.errors import ModelRetry, ReadingLimitError, ToolFailed, ToolSignal, UsageError
from agentkit.interop.openapi.credentials import Env, Secrets, secrets_for
from agentkit.interop.openapi.documents import plain_json
from agentkit.interop.openapi.public_addresses import (
    NotPublicError,
    PublicTransport,
    same_origin,
)
from agentkit.interop.openapi.requests import PreparedRequest, RequestPlan, is_json, prepare
from agentkit.reading import read_json

if TYPE_CHECKING:
    import httpx

_MAX_REDIRECTS = 5
_BINARY = ("image/", "audio/", "video/", "font/", "application/pdf", "application/zip")
_CHARSETS = frozenset(
    {"ascii", "latin_1", "utf_8_sig", "koi8_r", "koi8_u", "tis_620"}
    | {"utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be"}
    | {"shift_jis", "euc_jp", "iso2022_jp", "euc_kr", "gb2312", "gbk", "gb18030"}
    | {"big5", "big5hkscs", "cp932", "cp949", "cp437", "cp850", "cp852", "cp866"}
    | {f"cp{page}" for page in range(1250, 1259)}
    | {f"iso8859_{part}" for part in (*range(1, 12), *range(13, 17))}
)
"""The codecs that texts are read with, as Python calls them."""
_LONGEST_DETAIL = 600
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_AGAIN_LATER = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of trouble that may be gone at another try."""

_FREE_PIECES = 4_000
_BYTES_A_PIECE = 64
"""An answer may come in so many pieces, and in one more for so many bytes: each costs as much time
as some kilobytes."""


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
        max_response_bytes: Longest body that is read, unpacked.
        sleep: How to wait; a test passes its own.
    """

    timeout_seconds: float = 30.0
    max_retries: int = 2
    backoff_seconds: float = 0.5
    max_response_bytes: int = 2_000_000
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        if not self.timeout_seconds > 0 or self.max_response_bytes <= 0:
            raise UsageError("timeout_seconds and max_response_bytes must be positive")
        if self.max_retries < 0:
            raise UsageError("max_retries must be 0 or more")


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


class HttpClient:
    """What the tools of one API share: connections, credentials and policy.

    Args:
        client: An ``httpx.AsyncClient`` of the caller's; None opens one for each event loop.
        auth: For each security scheme the variable that holds its secret.
        policy: How calls are made.
        public_only: Whether a client of our own connects to public addresses only.
        withheld_from: The server, where the description came from elsewhere and the caller has not
            named it: it gets no credentials. Else a description could have keys sent to whom it
            likes.
    """

    def __init__(
        self,
        *,
        client: httpx.AsyncClient | None,
        auth: Mapping[str, Env],
        policy: CallPolicy,
        public_only: bool = False,
        withheld_from: str = "",
    ) -> None:
        self._given = client
        self._auth = dict(auth)
        self._policy = policy
        self._withheld_from = withheld_from
        self._clients: LoopBound[httpx.AsyncClient] = LoopBound(
            opened=partial(_open, public_only=public_only),
            closed=lambda one: one.aclose(),
            is_closed=lambda one: one.is_closed,
        )

    async def close(self) -> None:
        """Close the running loop's client; one of the caller's own is left open."""
        await self._clients.close()

    async def call(self, plan: RequestPlan, /, **arguments: Any) -> Any:
        """Call an operation.

        Returns:
            Decoded JSON, text, or an object that tells of binary content and of an empty answer.

        Raises:
            ModelRetry: The server found fault with the arguments.
            ToolFailed: The call failed for another reason.
        """
        lenient = self._given is not None  # the caller's client may prove who is calling
        secrets = secrets_for(plan.security, self._auth, lenient=lenient)
        if self._withheld_from and (lenient or not secrets.is_empty):
            raise ToolFailed(
                "the API's description comes from elsewhere than the server that it names, so "
                "credentials are not sent. The person who runs this program can let them go there "
                f"with server={self._withheld_from!r}"
            )
        try:
            request = prepare(plan, arguments, secrets)
        except (ValueError, RecursionError) as error:  # NaN, half a surrogate pair, far too deep
            raise ModelRetry(f"the arguments can not be sent: {error}") from error
        answer = await self._tried(plan, request, secrets)
        if 200 <= answer.status < 300:
            return value_of(answer)
        raise signal_of(answer, what=f"{plan.method} {plan.path}")

    async def _tried(
        self, plan: RequestPlan, request: PreparedRequest, secrets: Secrets
    ) -> HttpAnswer:
        """The answer, after as many tries as the policy allows."""
        import httpx

        deadline = time.monotonic() + self._policy.timeout_seconds
        for attempt in range(self._policy.max_retries + 1):
            left = max(deadline - time.monotonic(), 0.001)
            backoff = self._policy.backoff_seconds * 2**attempt
            answer: HttpAnswer | None = None
            failure: Exception | None = None
            try:
                async with asyncio.timeout(left):
                    answer = await self._once(request, secrets, left)
                wait = _wait(plan, answer, backoff)
            except NotPublicError as error:
                raise ToolFailed(_not_public(error, plan.server)) from error
            except httpx.InvalidURL as error:
                raise ModelRetry(f"the arguments can not be sent in a URL: {error}") from error
            except (httpx.HTTPError, TimeoutError) as error:
                failure = error
                unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                wait = backoff if plan.repeatable or unsent else None
            is_last = attempt == self._policy.max_retries
            if wait is None or is_last or time.monotonic() + wait >= deadline:
                break
            await self._policy.sleep(wait)
        if answer is not None:
            return answer
        raise self._unanswered(plan, failure, secrets) from failure

    def _unanswered(
        self, plan: RequestPlan, error: Exception | None, secrets: Secrets
    ) -> ToolFailed:
        import httpx

        host = urlsplit(plan.server).netloc
        told = secrets.redacted(f"{type(error).__name__} {error}".strip())[:200]
        done = "" if plan.repeatable else "; it may or may not have been done, so check first"
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return ToolFailed(f"{host} could not be reached ({told})")
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            seconds = self._policy.timeout_seconds
            return ToolFailed(f"{host} did not answer within {seconds:g} seconds{done}")
        return ToolFailed(f"{host} broke off ({told}){done}")

    async def _once(self, request: PreparedRequest, secrets: Secrets, seconds: float) -> HttpAnswer:
        """Send a request and read the answer, redirects on the same host followed.

        Raises:
            ModelRetry: The answer is longer than the policy allows.
            ToolFailed: It is written in a way that is not read.
            httpx.HTTPError: Nothing, or not all, came back.
        """
        client = self._given or await self._clients.get()
        for _ in range(_MAX_REDIRECTS + 1):
            async with _sent(client, request, seconds) as response:
                answer = await self._read(response, secrets)
            leads = _redirected(request, answer)
            if leads is None:
                break
            request = leads
        return answer

    async def _read(self, response: httpx.Response, secrets: Secrets) -> HttpAnswer:
        content = await _content(response, self._policy.max_response_bytes)
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


async def _content(response: httpx.Response, limit: int) -> bytes:
    """The body, unpacked no further than the limit.

    Raises:
        ModelRetry: It is longer.
        ToolFailed: It is packed in another way than asked for, damaged, or comes in crumbs.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        raise ToolFailed(
            f"the answer is compressed in a way that was not asked for: {encoding:.20}"
        )
    packed = zlib.decompressobj(47) if encoding not in {"", "identity"} else None  # gzip or zlib
    content, received, pieces = bytearray(), 0, 0
    async for part in cast("AsyncIterator[bytes]", response.stream):
        pieces, received = pieces + 1, received + len(part)
        if pieces % 100 == 0:
            await asyncio.sleep(0)  # parts that came together are handed on without a pause
        if pieces > _FREE_PIECES + received // _BYTES_A_PIECE:
            raise ToolFailed(f"the answer came in more than {pieces - 1:,} pieces of a few bytes")
        try:
            more = packed.decompress(part, limit + 1 - len(content)) if packed else part
        except zlib.error as error:
            raise ToolFailed(f"the compressed answer is damaged: {error}") from error
        content += more
        if len(content) > limit:
            raise ModelRetry(
                f"the answer is longer than the {limit:,} bytes that are read; ask for less, "
                "for example for fewer results or a narrower filter"
            )
    return bytes(content)


def _redirected(request: PreparedRequest, answer: HttpAnswer) -> PreparedRequest | None:
    """The request that a redirect on the same host asks for; None for any other answer."""
    if answer.status not in _REDIRECTS or not answer.location:
        return None
    try:
        target = urljoin(request.url, answer.location)
        if not same_origin(request.url, target):
            return None
    except ValueError:  # such as a port of six digits
        return None
    if answer.status in {301, 302, 303} and request.method not in {"GET", "HEAD"}:
        headers = {name: text for name, text in request.headers.items() if name != "Content-Type"}
        return replace(request, url=target, method="GET", headers=headers, content=None)
    return replace(request, url=target)


def _open(*, public_only: bool) -> httpx.AsyncClient:
    """A client, which may connect to public addresses only."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    transport = PublicTransport() if public_only else None
    return httpx.AsyncClient(
        transport=cast("httpx.AsyncBaseTransport | None", transport),
        # No cookie is kept: what one call is told would otherwise be sent with another's.
        cookies=CookieJar(policy=DefaultCookiePolicy(allowed_domains=[])),
        follow_redirects=False,
        headers={"User-Agent": f"agentkit/{__version__}"},
    )


@asynccontextmanager
async def _sent(
    client: httpx.AsyncClient, request: PreparedRequest, seconds: float
) -> AsyncIterator[httpx.Response]:
    headers = {**request.headers, "Accept-Encoding": "gzip, deflate"}
    built = client.build_request(
        request.method,
        request.url,
        headers=[(name.encode(), value.encode()) for name, value in headers.items()],
        content=request.content,
        timeout=seconds,
    )
    response = await client.send(built, stream=True, follow_redirects=False)
    try:
        yield response
    finally:
        await response.aclose()


def _wait(plan: RequestPlan, answer: HttpAnswer, backoff: float) -> float | None:
    """Seconds until another try; None when there is none."""
    asked = answer.status == 503 and answer.retry_after is not None
    may_repeat = plan.repeatable or answer.status == 429 or asked
    if answer.status not in _AGAIN_LATER or not may_repeat:
        return None
    return backoff if answer.retry_after is None else answer.retry_after


def _codec(charset: str | None) -> str:
    """The codec of a charset that texts are written in; UTF-8 for any other.

    Python has codecs that take quadratic time (``punycode``, ``idna``) or are none of text.
    """
    name = re.sub("[^a-z0-9]+", "_", (charset or "utf-8")[:40].lower())
    name = aliases.get(name, name)
    return name if name in _CHARSETS else "utf-8"


def _text(content: bytes, media_type: str, charset: str | None) -> str | None:
    """The body as text; None for what is not text by its type or its bytes."""
    if not is_json(media_type) and media_type.startswith(_BINARY):
        return None
    try:
        return content.decode(_codec(charset))
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace") if media_type.startswith("text/") else None


def _retry_after(given: str | None) -> float | None:
    """The seconds that a server asks to wait; dates are not read."""
    text = (given or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


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
    if is_json(answer.media_type or "application/json"):
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
    said = _detail(answer)
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
        case status if status in _AGAIN_LATER:
            asked = answer.retry_after
            wait = f"; the server asks to wait {asked:g} s" if asked else ""
            return ToolFailed(f"{told}. The server is in trouble or too busy{wait}; try later")
        case status if 300 <= status < 400:
            return ToolFailed(f"{told}. It leads elsewhere, and that is not followed")
        case _:
            return ToolFailed(told)


def _detail(answer: HttpAnswer) -> str:
    """What an error answer says, on one line."""
    if answer.text is None:
        return ""
    if "html" in answer.media_type:
        return "an HTML page"
    return " ".join(answer.text[: 4 * _LONGEST_DETAIL].split())[:_LONGEST_DETAIL]


def _not_public(error: NotPublicError, server: str) -> str:
    return (
        f"{error}, and the API's description comes from elsewhere: such a call could reach what "
        f"only this network may. The person who runs this program can allow it with {server=}"
    )
