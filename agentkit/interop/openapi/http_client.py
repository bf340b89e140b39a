"""Calling an operation over HTTP: send, wait, try again, and put what came into words."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urljoin, urlsplit

from agentkit._loop_bound import LoopBound
from agentkit._version import __version__
from agentkit.errors import ModelRetry, ReadingLimitError, ToolFailed, ToolSignal, UsageError
from agentkit.interop.openapi.credentials import Credentials, Secrets
from agentkit.interop.openapi.documents import plain_json
from agentkit.interop.openapi.public_addresses import (
    NotPublicError,
    PublicTransport,
    same_origin,
)
from agentkit.interop.openapi.requests import PreparedRequest, RequestPlan, kind_of, prepare
from agentkit.reading import read_json

if TYPE_CHECKING:
    import httpx

_LONGEST_DETAIL = 600
_WORDS = ("detail", "message", "title", "error_description", "description", "reason", "msg")
_NESTED = ("detail", "errors", "error", "details", "invalid_params", "invalid-params", "violations")
_PLACES = ("field", "loc", "pointer", "name", "path", "param")
_MAX_DEPTH = 4
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ASKS_TO_WAIT = frozenset({429, 503})
_AGAIN_LATER = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses of trouble that may be gone at another try."""


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
        self._credentials = credentials
        self._policy = policy
        self._clients: LoopBound[httpx.AsyncClient] = LoopBound(
            opened=partial(_open, policy.redirect_hosts if public_only else None),
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
        secrets = self._credentials.secrets_for(plan.security, lenient=lenient)
        if not plan.is_known and not secrets.is_empty:
            raise ToolFailed(_withheld(plan.server))
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
            httpx.HTTPError: Nothing, or not all, came back.
        """
        client = self._given or await self._clients.get()
        for _ in range(self._policy.max_redirects + 1):
            async with _sent(client, request, seconds) as response:
                answer = await self._read(response, secrets)
            leads = self._redirected(request, answer)
            if leads is None:
                break
            request = leads
        return answer

    async def _read(self, response: httpx.Response, secrets: Secrets) -> HttpAnswer:
        limit = self._policy.max_response_bytes
        content = bytearray()
        async for part in response.aiter_bytes():
            content += part
            if len(content) > limit:
                raise ModelRetry(
                    f"the answer is longer than the {limit:,} bytes that are read; ask for less, "
                    "for example for fewer results or a narrower filter"
                )
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        text = _text(bytes(content), media_type, response.charset_encoding)
        return HttpAnswer(
            status=response.status_code,
            media_type=media_type,
            text=None if text is None else secrets.redacted(text),
            size=len(content),
            retry_after=_retry_after(response.headers.get("retry-after")),
            location=response.headers.get("location", ""),
        )

    def _redirected(self, request: PreparedRequest, answer: HttpAnswer) -> PreparedRequest | None:
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
        if not is_same and not (is_read and host in self._policy.redirect_hosts):
            return None
        headers = dict(request.headers) if is_same else {"Accept": request.headers["Accept"]}
        leads = replace(request, url=target, headers=headers, is_known=request.is_known and is_same)
        if answer.status in {301, 302, 303} and not is_read:
            headers.pop("Content-Type", None)
            leads = replace(leads, method="GET", content=None, parts=())
        return leads


def _open(private_hosts: Collection[str] | None) -> httpx.AsyncClient:
    """A client; unless it is None, it connects to no private hosts but these."""
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    transport = None if private_hosts is None else PublicTransport(private_hosts)
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
    import httpx

    parts: Any = {
        "method": request.method,
        "url": request.url,
        "headers": [(name.encode(), value.encode()) for name, value in request.headers.items()],
        "content": request.content,
        "files": list(request.parts) or None,
    }
    if request.is_known:
        built = client.build_request(**parts, timeout=seconds)
        sending = client.send(built, stream=True, follow_redirects=False)
    else:  # without the headers, cookies and credentials that a client of the caller's may have
        built = httpx.Request(**parts, extensions={"timeout": httpx.Timeout(seconds).as_dict()})
        sending = client.send(built, stream=True, follow_redirects=False, auth=None)
    response = await sending
    try:
        yield response
    finally:
        await response.aclose()


def _wait(plan: RequestPlan, answer: HttpAnswer, backoff: float) -> float | None:
    """Seconds until another try; None when there is none."""
    asked = answer.status in _ASKS_TO_WAIT and answer.retry_after is not None
    may_repeat = plan.repeatable or answer.status == 429 or asked
    if answer.status not in _AGAIN_LATER or not may_repeat:
        return None
    return backoff if answer.retry_after is None else answer.retry_after


def _text(content: bytes, media_type: str, charset: str | None) -> str | None:
    """The body as text; None for what is not text by its type or its bytes."""
    if media_type and kind_of(media_type) not in {"json", "text", "form"}:
        return None
    try:
        return content.decode(charset or "utf-8")
    except (UnicodeDecodeError, LookupError):
        is_binary = kind_of(media_type or "x/x") == "binary"
        return None if is_binary else content.decode("utf-8", "replace")


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
    if kind_of(answer.media_type or "application/json") == "json":
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
        case status if status in _AGAIN_LATER:
            asked = answer.retry_after
            wait = f"; the server asks to wait {asked:g} s" if asked else ""
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
        words = dict.fromkeys(_said(read_json(answer.text), 0))
    except ValueError:
        words = {}
    text = "; ".join(words) or answer.text
    return " ".join(text.split())[:_LONGEST_DETAIL]


def _said(data: Any, depth: int) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif depth <= _MAX_DEPTH and isinstance(data, list):
        for item in data[:20]:
            yield from _said(item, depth + 1)
    elif depth <= _MAX_DEPTH and isinstance(data, Mapping):
        place = next((data[key] for key in _PLACES if key in data), "") if depth else ""
        where = ".".join(map(str, place)) if isinstance(place, list) else place
        words = [data[key] for key in _WORDS if isinstance(data.get(key), str) and data[key]]
        yield from (f"{where}: {word}" if place else word for word in words)
        for key in _NESTED:
            nested = data.get(key)
            if isinstance(nested, Mapping) and not nested.keys() & {*_WORDS, *_NESTED}:
                yield from (f"{name}: {_flat(item)}" for name, item in nested.items())
            elif nested is not None and nested not in words:
                yield from _said(nested, depth + 1)


def _flat(item: Any) -> str:
    if isinstance(item, list) and all(isinstance(each, str) for each in item):
        return ", ".join(item)
    return item if isinstance(item, str) else json.dumps(item, default=str)


def _not_public(error: NotPublicError, server: str) -> str:
    return (
        f"{error}, and the API's description comes from elsewhere: such a call could reach what "
        f"only this network may. The person who runs this program can allow it with {server=}"
    )


def _withheld(server: str) -> str:
    host = urlsplit(server).netloc
    return (
        f"the API's description names {host} for this call, and credentials are for the API's own "
        "server. The person who runs this program can let them go there with "
        f"policy=CallPolicy(credential_hosts=({host!r},)), or --api-auth-host {host}"
    )
