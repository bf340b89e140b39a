"""Calling an operation over HTTP: wait, try again, and put what came into words."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentkit.errors import ModelRetry, ToolFailed
from agentkit.interop.openapi.credentials import Secrets
from agentkit.interop.openapi.plan import RequestPlan
from agentkit.interop.openapi.public_addresses import NotPublicError
from agentkit.interop.openapi.requests import PreparedRequest, prepare
from agentkit.interop.openapi.sending import (
    AGAIN_LATER,
    HttpAnswer,
    Sender,
    signal_of,
    value_of,
)

_ASKS_TO_WAIT = frozenset({429, 503})


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
        if not self.plan.is_known and not secrets.is_empty:
            raise ToolFailed(_withheld(self.plan.server))
        try:
            request = prepare(self.plan, arguments, secrets)
        except (ValueError, RecursionError) as error:  # NaN, half a surrogate pair, far too deep
            raise ModelRetry(f"the arguments can not be sent: {error}") from error
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
            except NotPublicError as error:
                raise ToolFailed(_not_public(error, self.plan.server)) from error
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
