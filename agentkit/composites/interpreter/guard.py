"""``Guard``: the signal by which an operation refuses, before it is known where it stands."""

from __future__ import annotations

from agentkit.composites.problems import RunCode


class Guard(Exception):  # noqa: N818 - a signal inside the interpreter, never seen by callers
    """An operation that Python would carry out and the interpreter does not.

    Attributes:
        code: Why.
        message: The same in words.
    """

    def __init__(self, code: RunCode, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)
