"""When a request is sent again, and how long it is waited for."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import (
    ModelConnectionError,
    ModelError,
    ModelResponseError,
    ModelStatusError,
    ModelTimeoutError,
    UsageError,
)
from agentkit.models.retries import IdleTimeout, RetryPolicy
from agentkit.models.status import Endpoint, retry_after_seconds, status_error

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def status(code: int, retry_after: float | None = None) -> ModelStatusError:
    """An error status."""
    return ModelStatusError("", status=code, body="", retry_after=retry_after)


@pytest.mark.parametrize(
    ("error", "allowed"),
    [
        (status(429), True),
        (status(529), True),
        (status(501), False),
        (status(400), False),
        (status(404), False),
        (ModelConnectionError(), True),
        (ModelTimeoutError(), True),
        (ModelResponseError(), False),
        (ModelError(), False),
    ],
)
def test_which_failures_are_tried_again(error, allowed) -> None:
    """Only failures that another attempt can mend, and only as often as allowed."""
    policy = RetryPolicy(attempts=2)
    assert policy.allows_another(error, 1) is allowed
    assert policy.allows_another(error, 2) is False


@given(
    st.integers(1, 2000),
    st.floats(0, 1, exclude_max=True),
    st.floats(0, 1),
)
def test_backoff_is_bounded(failures: int, draw: float, jitter: float) -> None:
    """No wait is longer than the cap, or shorter than what jitter leaves of it."""
    policy = RetryPolicy(jitter=jitter, random=lambda: draw)
    longest = min(8.0, 0.5 * 2.0 ** min(failures - 1, 10))
    assert longest * (1 - jitter) <= policy.delay(failures) <= longest


@pytest.mark.parametrize("options", [{"attempts": 0}, {"jitter": 1.5}, {"jitter": -0.1}])
def test_policies_that_make_no_sense(options) -> None:
    """A policy without attempts, or with a jitter beyond the wait, is refused."""
    with pytest.raises(UsageError, match="RetryPolicy needs"):
        RetryPolicy(**options)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"RETRY-AFTER": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        ({"Retry-After": "7", "Retry-After-Ms": "250"}, 0.25),
        ({"Retry-After": "in a while"}, None),
        ({"Retry-After": "-5"}, None),
    ],
)
def test_retry_after(headers, seconds) -> None:
    """Seconds, milliseconds or an HTTP date, in any case; nonsense counts as nothing."""
    assert retry_after_seconds(headers, lambda: NOW) == seconds


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"error": {"message": "slow down"}}', ": slow down."),
        (b'{"error": "slow down"}', ": slow down."),
        (b'{"message": "slow down"}', ": slow down."),
        (b'{"detail": [{"msg": "x"}]}', ': [{"msg": "x"}].'),
        (b'[{"error": {"message": "slow down"}}]', ": slow down."),
        (b"<html>slow down</html>", ": '<html>slow down</html>'."),
        (b"", " for model 'm'. "),
        (b"\xff", "�"),
    ],
)
def test_the_servers_own_words(body, said) -> None:
    """Wherever a server puts its message, it is in ours."""
    endpoint = Endpoint(place="http://x", model="m", key_source="")
    error = status_error(endpoint, status=429, headers={}, body=body)
    assert said in str(error)
    assert str(error).startswith("http://x answered 429 for model 'm'")


SECONDS = 4.0


class Skipping(selectors.DefaultSelector):
    """Does not wait: it moves the clock on by as much as there is to wait."""

    now = 0.0

    def select(self, timeout: float | None = None):
        """Nothing but the clock makes progress here."""
        assert timeout is not None, "everything waits, and for nothing"
        self.now += timeout
        return super().select(0)


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes at once; it counts its timers."""

    def __init__(self) -> None:
        self.clock = Skipping()
        self.timers = 0
        super().__init__(self.clock)

    def time(self) -> float:
        """Seconds that have passed."""
        return self.clock.now

    def call_at(self, *args: Any, **options: Any) -> asyncio.TimerHandle:
        """Count it."""
        self.timers += 1
        return super().call_at(*args, **options)


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns that waits in no real time."""
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(main)


async def by_patience(waits: list[tuple[float, float]], log: list[object]) -> None:
    """Work for a while, then wait for something, and so on; all with one timeout."""
    with IdleTimeout(SECONDS) as timeout:
        for work, seconds in waits:
            await asyncio.sleep(work)
            try:
                log.append(await timeout.wait(asyncio.sleep(seconds, seconds)))
            except TimeoutError:
                log.append("too late")


async def by_timeout(waits: list[tuple[float, float]], log: list[object]) -> None:
    """The same with asyncio's own timeout around each wait."""
    for work, seconds in waits:
        await asyncio.sleep(work)
        try:
            async with asyncio.timeout(SECONDS):
                log.append(await asyncio.sleep(seconds, seconds))
        except TimeoutError:
            log.append("too late")


async def observed(doing: Any, waits: list[tuple[float, float]], cancelled: float) -> list[object]:
    """What happens, and when it ends, if the caller cancels after so many seconds."""
    log: list[object] = []
    task = asyncio.create_task(doing(waits, log))
    asyncio.get_running_loop().call_later(cancelled, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        log.append("cancelled")
    return [*log, task.cancelling(), asyncio.get_running_loop().time()]


halves = st.integers(0, 20).map(lambda n: n / 2)  # binary fractions: sums are exact
steps = st.lists(st.tuples(halves, halves.map(lambda n: n + 0.25)), max_size=12)


@given(steps, halves.map(lambda n: 4 * n + 0.125))
def test_each_wait_ends_as_in_a_timeout_of_its_own(waits, cancelled) -> None:
    """Values, lateness, the caller's cancel and the time of it all are the same."""
    expected = run(observed(by_timeout, waits, cancelled))
    assert run(observed(by_patience, waits, cancelled)) == expected


def test_a_timer_looks_once_in_a_window_and_not_once_a_wait() -> None:
    """A thousand waits that last ten windows take some ten timers beside those they wait by."""

    async def hear() -> int:
        loop = asyncio.get_running_loop()
        with IdleTimeout(SECONDS) as timeout:
            for _ in range(1000):
                await timeout.wait(asyncio.sleep(SECONDS / 100))
        return loop.timers - 1000

    assert 1 <= run(hear()) <= 12


def test_a_timeout_around_it_is_told_apart() -> None:
    """An earlier deadline of the caller's ends the wait as that deadline does."""

    async def inside() -> tuple[bool, float]:
        try:
            async with asyncio.timeout(1) as outer:
                with IdleTimeout(SECONDS) as timeout:
                    await timeout.wait(asyncio.sleep(9))
        except TimeoutError:
            return outer.expired(), asyncio.get_running_loop().time()
        raise AssertionError

    assert run(inside()) == (True, 1.0)


def test_what_will_not_be_cancelled_may_still_answer() -> None:
    """An answer out of a cancelled wait counts, and leaves no cancel behind."""

    async def stubborn() -> str:
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            return "after all"
        raise AssertionError

    async def hear() -> tuple[str, int]:
        with IdleTimeout(SECONDS) as timeout:
            heard = await timeout.wait(stubborn())
        task = asyncio.current_task()
        assert task is not None
        await asyncio.sleep(1)
        return heard, task.cancelling()

    assert run(hear()) == ("after all", 0)


def test_waits_may_be_those_of_several_tasks() -> None:
    """A stream may be handed on: the task that waits is the one that is told."""

    async def hear() -> list[object]:
        with IdleTimeout(SECONDS) as timeout:
            first = await asyncio.create_task(timeout.wait(asyncio.sleep(1, "heard")))
            late = asyncio.create_task(timeout.wait(asyncio.sleep(9)))
            done, _ = await asyncio.wait([late])
            return [first, *(type(task.exception()) for task in done)]

    assert run(hear()) == ["heard", TimeoutError]
