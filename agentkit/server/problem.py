"""``Problem``: why a request was not answered, in the form of OpenAI's errors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_SERVER_ERROR = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """Why a request was not answered. A value: whoever finds it hands it on to be sent.

    Attributes:
        status: The HTTP status.
        message: What happened and what to do. Clients read it, so it holds nothing of the inside.
        code: A word for programs, such as ``invalid_api_key``.
        param: The field of the request, such as ``messages[2].content``.
        retry_after: Whole seconds after which the same request may succeed.
        episode_id: The episode of the run, if one had begun.
        episode_kept: Whether the store has that episode; otherwise it is tried again.
        headers: Further headers of the answer.
    """

    status: int
    message: str
    code: str
    param: str | None = None
    retry_after: int | None = None
    episode_id: str | None = None
    episode_kept: bool = True
    headers: tuple[tuple[bytes, bytes], ...] = ()

    @property
    def type(self) -> str:
        """The family of the error, in OpenAI's words."""
        if self.status >= _SERVER_ERROR:
            return "server_error"
        return _TYPES.get(self.status, "invalid_request_error")

    def to_json(self) -> dict[str, Any]:
        """The body of the answer."""
        error: dict[str, Any] = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        if self.episode_id is not None:
            error["episode_id"] = self.episode_id
        if not self.episode_kept:
            error["episode_kept"] = False
        return {"error": error}

    def encoded(self) -> bytes:
        """The body as bytes."""
        return json.dumps(self.to_json()).encode()


def invalid(message: str, *, param: str | None = None, code: str = "invalid_value") -> Problem:
    """A request that can not be answered as it is."""
    return Problem(status=400, message=message, code=code, param=param)


def stopping(episode_id: str | None = None) -> Problem:
    """The server takes on nothing new, or has cut this run."""
    return Problem(
        status=503,
        message="the server is about to stop; another one may take the request",
        code="stopping",
        retry_after=1,
        episode_id=episode_id,
        headers=((b"connection", b"close"),),
    )


def store_unavailable(*, retry_after: float = 5.0, episode_id: str | None = None) -> Problem:
    """Without the store nothing is begun: an answer must have its episode."""
    return Problem(
        status=503,
        message="the store of episodes is not available, so no run began",
        code="store_unavailable",
        retry_after=max(1, math.ceil(retry_after)),
        episode_id=episode_id,
    )


def not_kept(episode_id: str) -> Problem:
    """The run has ended, and its answer is withheld because its episode is not kept yet."""
    return Problem(
        status=503,
        message="the run ended, but its episode could not be kept yet, so its answer is withheld; "
        "its tools may have acted, so do not send the request again",
        code="store_unavailable",
        episode_id=episode_id,
        episode_kept=False,
    )
