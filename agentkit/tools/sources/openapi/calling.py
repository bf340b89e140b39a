"""Calling an operation over HTTP: send, follow, wait, try again, and put what came into words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from agentkit._loop_bound import LoopBound
from agentkit._version import __version__
from agentkit.errors import ModelRetry, ToolFailed, UsageError
from agentkit.tools.sources.openapi.answers import AGAIN_LATER, HttpAnswer, signal_of, value_of
from agentkit.tools.sources.openapi.credentials import Credentials, Secrets
from agentkit.tools.sources.openapi.plan import RequestPlan
from agentkit.tools.sources.openapi.public_addresses import refuse_private
from agentkit.tools.sources.openapi.request_bodies import kind_of
from agentkit.tools.sources.openapi.requests import PreparedRequest, prepare

if TYPE_CHECKING:
    import httpx

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_ASKS_TO_WAIT = frozenset({429, 503})


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
        sleep: How to wait; a test passes its own.
    """

    timeout_seconds: float = 30.0
    max_retries: int = 2
    backoff_seconds: float = 0.5
    max_response_bytes: int = 2_000_000
    max_redirects: int = 5
    redirect_hosts: tuple[str, ...] = ()
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
    """

    def __init__(
        self,
        *,
        client: httpx.AsyncClient | None,
        credentials: Credentials,
        policy: CallPolicy,
    ) -> None:
        self._given = client
        self.credentials = credentials
        self.policy = policy
        self._clients: LoopBound[httpx.AsyncClient] = LoopBound(
            opened=_open, closed=_close, is_closed=_is_closed
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
        url, headers, method = request.url, dict(request.headers), request.method
        body = request.body
        for _ in range(self.policy.max_redirects + 1):
            built = client.build_request(
                method,
                url,
                headers=[(name.encode(), value.encode()) for name, value in headers.items()],
                content=None if body is None else body.content,
                files=None if body is None or not body.parts else list(body.parts),
                timeout=max(seconds, 0.001),
            )
            answer = await self._answer(client, built, secrets)
            leads = self._leads(url, method, answer)
            if leads is None:
                return answer
            url, is_same = leads
            if not is_same:
                headers = {"Accept": headers["Accept"]}
            if answer.status in {301, 302, 303} and method not in {"GET", "HEAD"}:
                method, body = "GET", None
                headers.pop("Content-Type", None)
        return answer

    def _leads(self, url: str, method: str, answer: HttpAnswer) -> tuple[str, bool] | None:
        """Where a redirect is followed to, and whether credentials may travel there."""
        if answer.status not in _REDIRECTS or not answer.location:
            return None
        try:
            target = urljoin(url, answer.location)
            if _same_origin(url, target):
                return target, True
            host = urlsplit(target).netloc
        except ValueError:  # such as a port of six digits
            return None
        allowed = method in {"GET", "HEAD"} and host in self.policy.redirect_hosts
        return (target, False) if allowed else None

    async def _answer(
        self, client: httpx.AsyncClient, request: httpx.Request, secrets: Secrets
    ) -> HttpAnswer:
        async with _streamed(client, request) as response:
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


@dataclass(frozen=True, kw_only=True)
class OperationCaller:
    """The function of an operation's tool.

    Attributes:
        plan: How a call becomes a request.
        sender: What it is sent through.
    """

    plan: RequestPlan
    sender: Sender

    async def __call__(self, /, **arguments: Any) -> Any:
        """Call the operation.

        Returns:
            Decoded JSON, text, or an object that tells of binary content and of an empty answer.

        Raises:
            ModelRetry: The server found fault with the arguments.
            ToolFailed: The call failed for another reason.
        """
        secrets = self.sender.credentials.secrets_for(
            self.plan.security, lenient=self.sender.has_own_client
        )
        try:
            request = prepare(self.plan, arguments, secrets)
        except (ValueError, RecursionError) as error:  # NaN, half a surrogate pair, far too deep
            raise ModelRetry(f"the arguments can not be sent: {error}") from error
        if self.plan.public_only and not self.sender.has_own_client:
            await refuse_private(self.plan.server)
        answer = await self._tried(request, secrets)
        if 200 <= answer.status < 300:
            return value_of(answer)
        raise signal_of(answer, what=f"{self.plan.method} {self.plan.path}")

    async def _tried(self, request: PreparedRequest, secrets: Secrets) -> HttpAnswer:
        import httpx

        policy = self.sender.policy
        deadline = time.monotonic() + policy.timeout_seconds
        attempt = 0
        while True:
            left = deadline - time.monotonic()
            backoff = policy.backoff_seconds * 2**attempt
            wait: float | None = None
            answer: HttpAnswer | None = None
            failure: httpx.HTTPError | TimeoutError | None = None
            try:
                async with asyncio.timeout(max(left, 0.001)):
                    answer = await self.sender.once(request, secrets, seconds=left)
                wait = self._wait(answer, backoff)
            except httpx.InvalidURL as error:
                raise ModelRetry(f"the arguments can not be sent in a URL: {error}") from error
            except (httpx.HTTPError, TimeoutError) as error:
                failure = error
                wait = backoff if self._may_repeat(error) else None
            attempt += 1
            late = wait is None or time.monotonic() + wait >= deadline
            if attempt > policy.max_retries or late or wait is None:
                if answer is not None:
                    return answer
                raise self._unanswered(failure, secrets) from failure
            await policy.sleep(wait)

    def _wait(self, answer: HttpAnswer, backoff: float) -> float | None:
        """Seconds until another try; None when there is none."""
        if answer.status not in AGAIN_LATER:
            return None
        asked = answer.status in _ASKS_TO_WAIT and answer.retry_after is not None
        if not (self.plan.repeatable or answer.status == 429 or asked):
            return None
        return answer.retry_after if answer.retry_after is not None else backoff

    def _may_repeat(self, error: Exception) -> bool:
        import httpx

        return self.plan.repeatable or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)

    def _unanswered(self, error: Exception | None, secrets: Secrets) -> ToolFailed:
        import httpx

        host = urlsplit(self.plan.server).netloc
        told = f"{type(error).__name__} {error}".strip()
        done = "" if self.plan.repeatable else "; it may or may not have been done, so check first"
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            return ToolFailed(f"{host} could not be reached ({secrets.redacted(told)[:200]})")
        if isinstance(error, TimeoutError | httpx.TimeoutException):
            seconds = self.sender.policy.timeout_seconds
            return ToolFailed(f"{host} did not answer within {seconds:g} seconds{done}")
        return ToolFailed(f"{host} broke off ({secrets.redacted(told)[:200]}){done}")


def _open() -> httpx.AsyncClient:
    from http.cookiejar import CookieJar, DefaultCookiePolicy

    import httpx

    # No cookie is kept: what one call is told would otherwise be sent with another's.
    jar = CookieJar(policy=DefaultCookiePolicy(allowed_domains=[]))
    return httpx.AsyncClient(
        cookies=jar, follow_redirects=False, headers={"User-Agent": f"agentkit/{__version__}"}
    )


async def _close(client: httpx.AsyncClient) -> None:
    await client.aclose()


def _is_closed(client: httpx.AsyncClient) -> bool:
    return client.is_closed


@asynccontextmanager
async def _streamed(
    client: httpx.AsyncClient, request: httpx.Request
) -> AsyncIterator[httpx.Response]:
    response = await client.send(request, stream=True, follow_redirects=False)
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


def _same_origin(left: str, right: str) -> bool:
    """Whether credentials may travel on: scheme, host and port are equal, or only became secure."""
    one, other = urlsplit(left), urlsplit(right)
    if one.hostname != other.hostname:
        return False
    if (one.scheme, one.port) == ("http", None) and (other.scheme, other.port) == ("https", None):
        return True
    ports: Mapping[str, int] = {"http": 80, "https": 443}
    return one.scheme == other.scheme and (one.port or ports.get(one.scheme)) == (
        other.port or ports.get(other.scheme)
    )
