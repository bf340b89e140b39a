"""``AnswerStream``: the text of ``{"answer": "..."}`` while it is still being written.

A model that is held to ``call_schema`` wraps what it says to a person in JSON. A reader of the
stream should see the words and not the wrapping, and of a call nothing at all.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from agentkit.models.call_schema import ANSWER

_OPENING = re.compile(rf'\s*\{{\s*"{ANSWER}"\s*:\s*"')
_WHOLE = re.compile(
    r"""(?: [^"\\]
          | \\ ["\\/bfnrt]
          | \\u (?! [dD][89abAB]) [0-9a-fA-F]{4}
          | \\u [dD][89abAB][0-9a-fA-F]{2} \\u [dD][c-fC-F][0-9a-fA-F]{2}  # one character in two
        )*""",
    re.VERBOSE,
)


@dataclass(kw_only=True)
class AnswerStream:
    """Takes pieces of an answer as the model writes it, and gives the words in them.

    Example:
        >>> stream = AnswerStream()
        >>> [stream.add(piece) for piece in ('{"answer": "It', " is 4", ' deg."}')]
        ['It', ' is 4', ' deg.']
        >>> AnswerStream().add('{"calls": [{"name": "wait"')
        ''
    """

    _pending: str = ""
    _is_open: bool = False
    _is_closed: bool = False

    def add(self, piece: str) -> str:
        """The words that the piece makes complete; empty for the wrapping, and for calls."""
        if self._is_closed:
            return ""
        self._pending += piece
        if not self._is_open:
            opening = _OPENING.match(self._pending)
            if opening is None:
                return ""
            self._is_open, self._pending = True, self._pending[opening.end() :]
        whole = _WHOLE.match(self._pending)
        words = whole.group() if whole else ""
        self._pending = self._pending[len(words) :]
        self._is_closed = self._pending.startswith('"')
        return str(json.loads(f'"{words}"', strict=False))
