"""``call_before``: was the other tool called, and does the value come from what it returned?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from agentkit.tools.error_messages import path_text, value_text
from agentkit.tools.rules.records import CallBefore

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_LONGEST = 200_000
_MOST_PARTS = 200

Given = tuple[tuple[str | int, ...], Any]
"""A value of the arguments with its path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EarlierCall:
    """A call that succeeded earlier in the conversation.

    Attributes:
        name: The tool.
        text: Its result as text.
    """

    name: str
    text: str


def missing_call(
    rule: CallBefore, given: Iterable[Given], earlier: Sequence[EarlierCall]
) -> tuple[str, tuple[str | int, ...]] | None:
    """What is missing before a call, as a sentence and a path; None when nothing is.

    A value comes from a result when it is found in its text, with upper and lower case alike:
    models shorten and change what they read, and a refusal needs a reason.

    Args:
        rule: The rule.
        given: The values of the rule's parameter, if it has one and the call gives it.
        earlier: The calls that succeeded before.
    """
    texts = [call.text for call in earlier if call.name == rule.tool]
    if not texts:
        where = (rule.parameter,) if rule.parameter else ()
        return f"call {rule.tool} first; it has not been called with success yet", where
    for path, value in given:
        for part in islice(_parts(value), _MOST_PARTS):
            if not any(_is_in(part, text) for text in texts):
                sentence = f"`{path_text(path)}` must come from the result of {rule.tool}"
                return f"{sentence}, got {value_text(part)}, which no result of it holds", path
    return None


def _parts(value: Any) -> Iterator[Any]:
    """The texts and numbers inside a value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def _is_in(part: str | float, text: str) -> bool:
    if len(text) > _LONGEST:  # then it is not worth the search
        return True
    if isinstance(part, str):
        wanted, where = part.strip().casefold(), text.casefold()
        return wanted in where or json.dumps(wanted)[1:-1] in where
    return any(float(number[0]) == part for number in _NUMBER.finditer(text))
