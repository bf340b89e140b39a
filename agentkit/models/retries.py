"""Retries of model requests: when, how long an attempt may take, and the wait between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

from agentkit.errors import (
    ModelConnectionError,
    ModelError,
    ModelStatusError,
    ModelTimeoutError,
    UsageError,
)

RETRIED_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that say "not now" rather than "not like this"; 529 is Anthropic's "overloaded"."""

Answer = TypeVar("Answer")

Attempt: TypeAlias = Callable[[ModelError, int, float], None]
"""Called before a request is sent again: its error, failures so far, seconds to wait."""

RETRYING: ContextVar[Attempt | None] = ContextVar("retrying", default=None)
"""The retry callback of this context, such as the span of the request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RetryPolicy:
    """Exponential backoff with jitter, unless the server says how long to wait.

    Sent again are requests that met one of ``RETRIED_STATUSES``, could not connect, lost the
    connection or ran out of time. An answer that breaks the protocol, and a request that the
    server understood and refused (400, 401, 403, 404, ...), are never sent again.

    Attributes:
        attempts: Most requests in all; 1 switches retries off.
        base_seconds: Wait after the first failure; it doubles after each further one.
        cap_seconds: Longest such wait.
        jitter: Part of the wait, from 0 to 1, that is drawn at random, so that clients which
            failed together do not come back together.
        retry_after_cap_seconds: Longest wait that a server's Retry-After header is granted.
        sleep: Waits; give your own in tests.
        random: Draws from [0, 1); give your own in tests.

    Example:
        >>> policy = RetryPolicy(jitter=0)
        >>> [policy.delay(failures) for failures in (1, 2, 3)]
        [0.5, 1.0, 2.0]
    """

    attempts: int = 3
    base_seconds: float = 0.5
    cap_seconds: float = 8.0
    jitter: float = 0.5
    retry_after_cap_seconds: float = 60.0
    sleep: Callable[[float], Awaitable[object]] = field(
        default=asyncio.sleep, repr=False, compare=False
    )
    random: Callable[[], float] = field(default=random.random, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.attempts < 1 or not 0 <= self.jitter <= 1:
            raise UsageError(
                f"RetryPolicy needs attempts >= 1 and jitter between 0 and 1, got "
                f"attempts={self.attempts}, jitter={self.jitter}"
            )

    def allows_another(self, error: ModelError, failures: int) -> bool:
        """Whether to send the request again after so many failures, of which this is the last."""
        if failures >= self.attempts:
            return False
        if isinstance(error, ModelStatusError):
            return error.status in RETRIED_STATUSES
        return isinstance(error, ModelConnectionError | ModelTimeoutError)

    def delay(self, failures: int, error: ModelError | None = None) -> float:
        """Seconds to wait after so many failures, of which ``error`` is the last."""
        if isinstance(error, ModelStatusError) and error.retry_after is not None:
            return min(error.retry_after, self.retry_after_cap_seconds)
        longest = min(self.cap_seconds, self.base_seconds * 2.0 ** min(failures - 1, 64))
        return longest * (1 - self.jitter * self.random())


DEFAULT_RETRY = RetryPolicy()
"""Three attempts, about half a second and a second apart."""


async def with_retries(policy: RetryPolicy, attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """Return ``attempt``'s result, retrying as often as the policy allows.

    Raises:
        ModelError: The last failure; a note says how many attempts were made.
    """
    failures = 0
    while True:
        try:
            return await attempt()
        except ModelError as error:
            failures += 1
            delay = delay_or_raise(policy, error, failures)
        await policy.sleep(delay)  # outside the handler, so that nothing keeps the failure alive


def delay_or_raise(policy: RetryPolicy, error: ModelError, failures: int) -> float:
    """Seconds to wait before the next attempt; raises ``error`` when there is none."""
    if policy.allows_another(error, failures):
        delay = policy.delay(failures, error)
        on_retry = RETRYING.get()
        if on_retry is not None:
            on_retry(error, failures, delay)
        return delay
    if failures > 1:
        error.add_note(f"gave up after {failures} attempts")
    raise error


async def stream_with_retries(
    policy: RetryPolicy, attempt: Callable[[], AsyncGenerator[Answer, None]]
) -> AsyncGenerator[Answer, None]:
    """Yield from ``attempt``, retrying only as long as nothing was yielded.

    Raises:
        ModelError: The last failure, or the first after something was yielded.
    """
    failures, has_begun = 0, False
    while True:
        try:
            async with aclosing(attempt()) as pieces:
                async for piece in pieces:
                    has_begun = True
                    yield piece
                return
        except ModelError as error:
            if has_begun:
                raise
            failures += 1
            delay = delay_or_raise(policy, error, failures)
        await policy.sleep(delay)


@dataclass(frozen=True, slots=True)
class IdleTimeout:
    """Waits for one thing after another, for each of them so many seconds at most.

    Time between waits does not count.

    Attributes:
        seconds: Longest wait.

    Example:
        >>> asyncio.run(IdleTimeout(0.05).wait(asyncio.sleep(0.01, "a word")))
        'a word'
    """

    seconds: float

    async def wait(self, awaited: Awaitable[Answer]) -> Answer:
        """The result of ``awaited``.

        Raises:
            TimeoutError: It took too long and was cancelled.
        """
        async with asyncio.timeout(self.seconds):
            return await awaited
