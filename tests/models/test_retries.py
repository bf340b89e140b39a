"""When a request is sent again, and how long it is waited for."""

from __future__ import annotations

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
from agentkit.models.retries import RetryPolicy
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
        ({"Retry-After": "9" * 400}, 86_400.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:50 +" + "9" * 20}, None),
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
