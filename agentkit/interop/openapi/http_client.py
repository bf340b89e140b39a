"""Calling an operation over HTTP: send, wait, try again, and put what came into words."""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from agentkit._loop_bound import LoopBound
from agentkit._pacing import pace
from agentkit._version import __version__
from agentkit.errors import ModelRetry, ReadingLimitError, ToolFailed, ToolSignal, UsageError
from agentkit.interop.openapi.documents import plain_json
from agentkit.interop.openapi.public_addresses import (
    NotPublicError,
    public_transport,
    same_origin,
)
from agentkit.interop.openapi.requests import (
    Env,
    PreparedRequest,
    RequestPlan,
    Secrets,
    is_json,
    prepare,
    secrets_for,
)
from agentkit.reading import check_values, read_json

if TYPE_CHECKING:
    import httpx

_MAX_REDIRECTS = 5
_BINARY = ("image/", "audio/", "video/", "font/", "application/pdf", "application/zip")
_LONGEST_CONTENT_TYPE = 1_000

_LONGEST_DETAIL = 600
_AGAIN_LATER = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of trouble that may be gone at another try."""

_MOST_VALUES = 100_000
"""Values of an answer. More take seconds to decode, check and keep, and no model reads them."""

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
        if not self.timeout_seconds > 0 or self.max_response_bytes <= 0 or self.max_retries < 0:
            raise UsageError(
                "timeout_seconds and max_response_bytes must be positive, max_retries 0 or more"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    """An answer, its secrets taken out.

    Attributes:
        status: The status code.
        media_type: Its ``Content-Type`` without parameters, in lower case.
        text: The body as text; None when it is not text.
        size: The length of the body in bytes.
        retry_after: Seconds that the server asks to wait; None when it does not.
    """

    status: int
    media_type: str
    text: str | None
    size: int
    retry_after: float | None = None


class HttpClient:
    """State shared by the tools of one API: connections, credentials and policy.

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
            Decoded JSON, text, or an object that describes binary content or an empty answer.

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
            raise ModelRetry(f"the arguments cannot be sent: {error}") from error
        answer = await self._tried(plan, request, secrets)
        if 200 <= answer.status < 300:
            return value_of(answer)
        raise signal_of(answer, what=f"{plan.method} {plan.path}")

    async def _tried(
        self, plan: RequestPlan, request: PreparedRequest, secrets: Secrets
    ) -> HttpAnswer:
        """The answer, after as many tries as the policy allows."""
        import httpx

        policy = self._policy
        deadline = time.monotonic() + policy.timeout_seconds
        answer: HttpAnswer | None = None
        for attempt in range(policy.max_retries + 1):
            answer, failure = None, None
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), 0.001)):
                    answer = await self._once(request, secrets)
            except NotPublicError as error:
                raise ToolFailed(
                    f"{error}, and the API's description comes from elsewhere: such a call could "
                    "reach what only this network may. The person who runs this program can allow "
                    f"it with server={plan.server!r}"
                ) from error
            except httpx.InvalidURL as error:
                raise ModelRetry(f"the arguments cannot be sent in a URL: {error}") from error
            except (httpx.HTTPError, TimeoutError) as error:
                failure = error
            wait = policy.backoff_seconds * 2**attempt
            if answer is not None and answer.retry_after is not None:
                wait = answer.retry_after
            is_late = time.monotonic() + wait >= deadline
            if is_late or attempt == policy.max_retries or not _may_repeat(plan, answer, failure):
                break
            await policy.sleep(wait)
        if answer is None:
            raise self._unanswered(plan, failure, secrets) from failure
        return answer

    def _unanswered(
        self, plan: RequestPlan, error: Exception | None, secrets: Secrets
    ) -> ToolFailed:
        import httpx

        host = urlsplit(plan.server).netloc
        reason = secrets.redacted(f"{type(error).__name__} {error}".strip())[:200]
        done = "" if plan.repeatable else "; it may or may not have been done, so check first"
        if isinstance(error, _unsent()):
            return ToolFailed(f"{host} could not be reached ({reason})")
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            seconds = self._policy.timeout_seconds
            return ToolFailed(f"{host} did not answer within {seconds:g} seconds{done}")
        return ToolFailed(f"{host} broke off ({reason}){done}")

    async def _once(self, request: PreparedRequest, secrets: Secrets) -> HttpAnswer:
        """Send a request and read the answer, redirects on the same host followed.

        Raises:
            ModelRetry: The answer is longer than the policy allows.
            ToolFailed: It is written in a way that is not read.
            httpx.HTTPError: Nothing, or not all, came back.
        """
        client = self._given or await self._clients.get()
        sent = client.build_request(
            request.method,
            request.url,
            headers=[(name.encode(), value.encode()) for name, value in request.headers.items()],
            content=request.content,
            timeout=self._policy.timeout_seconds,
        )
        for _ in range(_MAX_REDIRECTS + 1):
            response = await client.send(sent, stream=True, follow_redirects=False)
            try:
                content = await _content(response, self._policy.max_response_bytes)
            finally:
                await response.aclose()
            leads = response.next_request
            if leads is None or not same_origin(str(sent.url), str(leads.url)):
                break
            sent = leads
        declared = response.headers.get("content-type", "")[:_LONGEST_CONTENT_TYPE]
        media_type = declared.partition(";")[0].strip().lower()
        text = _text(content, media_type)
        return HttpAnswer(
            status=response.status_code,
            media_type=secrets.redacted_name(media_type),
            text=None if text is None else secrets.redacted(text),
            size=len(content),
            retry_after=_retry_after(response.headers.get("retry-after")),
        )


def _unsent() -> tuple[type[Exception], ...]:
    """Errors after which a server knows nothing of a request."""
    import httpx

    return httpx.ConnectError, httpx.ConnectTimeout


async def _content(response: httpx.Response, limit: int) -> bytes:
    """The body, unpacked no further than the limit.

    Raises:
        ModelRetry: It is longer.
        ToolFailed: It is packed in another way than asked for, damaged, or comes in crumbs.
    """
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
        name = encoding if encoding in {"br", "zstd", "compress"} else "an unknown one"
        raise ToolFailed(f"the answer is compressed in a way that was not asked for: {name}")
    packed = zlib.decompressobj(47) if encoding not in {"", "identity"} else None  # gzip or zlib
    content, received, pieces = bytearray(), 0, 0
    async for part in cast("AsyncIterator[bytes]", response.stream):
        pieces, received = pieces + 1, received + len(part)
        if pieces % 100 == 0:
            await asyncio.sleep(0)  # parts that came together are passed on without a pause
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


def _open(*, public_only: bool) -> httpx.AsyncClient:
    """A client, which may connect to public addresses only."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    client = httpx.AsyncClient(
        transport=public_transport() if public_only else None,
        # No cookie is kept: one call's cookies would otherwise be sent with another's. They are not
        # read either, which can take quadratic time.
        cookies=CookieJar(policy=DefaultCookiePolicy(netscape=False)),
        headers={"User-Agent": f"agentkit/{__version__}"},
    )
    pace(client._transport, *client._mounts.values())  # noqa: SLF001 - of its proxies
    return client


def _may_repeat(plan: RequestPlan, answer: HttpAnswer | None, failure: Exception | None) -> bool:
    """Whether another try may do better, and does nothing twice."""
    if answer is None:
        return plan.repeatable or isinstance(failure, _unsent())
    retry_requested = answer.status == 503 and answer.retry_after is not None
    is_safe = plan.repeatable or answer.status == 429 or retry_requested
    return answer.status in _AGAIN_LATER and is_safe


def _text(content: bytes, media_type: str) -> str | None:
    """The body as text in UTF-8; None for what is not text by its type or its bytes."""
    if not is_json(media_type) and media_type.startswith(_BINARY):
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace") if media_type.startswith("text/") else None


def _retry_after(value: str | None) -> float | None:
    """The seconds that a server asks to wait; dates are not read."""
    text = (value or "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def value_of(answer: HttpAnswer) -> Any:
    """The value of a success: decoded JSON, text, or a description of what is neither.

    Raises:
        ModelRetry: It holds far too many values.
        ToolFailed: It is nested too deeply.
    """
    if answer.size == 0:
        return {"status": answer.status}
    if answer.text is None:
        kind = answer.media_type or "unknown"
        note = "the content is binary and is not shown"
        return {"status": answer.status, "content_type": kind, "bytes": answer.size, "note": note}
    if is_json(answer.media_type or "application/json"):
        _check_few_values(answer.text)
        try:
            return plain_json(read_json(answer.text))
        except ReadingLimitError as error:
            raise ToolFailed(f"the server's answer cannot be used: {error}") from error
        except ValueError:
            return answer.text  # declared as JSON, but is not: the text is all there is
    return answer.text


def _check_few_values(text: str) -> None:
    try:
        check_values(text, most=_MOST_VALUES)
    except ReadingLimitError as error:
        raise ModelRetry(
            f"the answer holds more than the {_MOST_VALUES:,} values that are read; ask for less, "
            "for example for fewer results or a narrower filter"
        ) from error


_RETRIED: Mapping[int, str] = {
    **dict.fromkeys((400, 409, 413, 414, 416, 422), "Change the arguments accordingly"),
    **dict.fromkeys((404, 410), "There is nothing of that name or id; look it up first"),
}
_REFUSED = "The credentials do not allow this call, and other arguments will not change that"
_FAILED: Mapping[int, str] = {
    **dict.fromkeys((401, 403), _REFUSED),
    **dict.fromkeys(range(300, 400), "It leads elsewhere, and that is not followed"),
    **dict.fromkeys(_AGAIN_LATER, "The server is in trouble or too busy{wait}; try later"),
}
"""What a model is told of statuses, where it may try again and where not."""


def signal_of(answer: HttpAnswer, *, what: str) -> ToolSignal:
    """The signal for an answer that is not a success.

    Args:
        answer: The answer.
        what: Method and path, for the words.
    """
    detail = " ".join((answer.text or "")[: 4 * _LONGEST_DETAIL].split())[:_LONGEST_DETAIL]
    detail = "an HTML page" if "html" in answer.media_type else detail
    message = f"{what} was answered with {answer.status}" + (f": {detail}" if detail else "")
    if advice := _RETRIED.get(answer.status):
        return ModelRetry(f"{message}. {advice}")
    seconds = answer.retry_after
    wait = f"; the server asks to wait {seconds:g} s" if seconds else ""
    advice = _FAILED.get(answer.status, "").format(wait=wait)
    return ToolFailed(f"{message}. {advice}" if advice else message)
