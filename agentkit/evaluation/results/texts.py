"""Foreign text made fit to be shown: cut to a length, on one line, without invisible characters."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from agentkit.messages import ToolCall

MOST = 400
"""Characters of a text that are shown."""

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_LONGEST_READ = 20_000


def shown(text: str, limit: int = MOST) -> str:
    """A text as people may safely read it.

    Runs of white space are one blank. Characters that nobody sees, or that change the order of
    those around them (controls, bidirectional marks, lone surrogates), stand as ``U+202E``.

    Args:
        text: Any text.
        limit: Most characters; the end of a longer one is an ellipsis.
    """
    start = text[: 4 * limit]
    line = " ".join(start.split())
    line = line if line.isprintable() else "".join(map(_seen, line))
    if len(line) <= limit and len(start) == len(text):
        return line
    return f"{line[: limit - 1].rstrip()}…"


def visible(text: str) -> str:
    """A text with the characters that nobody sees written out; line breaks and tabs stay.

    What a model wrote can so neither steer a terminal nor turn around the text after it.

    Args:
        text: Any text, of any length.
    """
    if text.isprintable():
        return text
    return "".join(one if one in "\n\t" else _seen(one) for one in text)


def _seen(character: str) -> str:
    if unicodedata.category(character) in _UNSEEN and character != "\u200d":  # joins emoji
        return f"⟨U+{ord(character):04X}⟩"
    return character


def shown_value(value: Any, limit: int = MOST) -> str:
    """A value as JSON, fit to be shown; what is not JSON as Python writes it."""
    if isinstance(value, str):
        return shown(json.dumps(value[:_LONGEST_READ], ensure_ascii=False), limit)
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError) as error:
        text = f"a {type(value).__name__} that can not be written ({error})"
    return shown(text, limit)


def shown_call(call: ToolCall, limit: int = MOST) -> str:
    """A call as it would be written in Python: ``tool(name=value)``."""
    if call.malformed is not None:
        return shown(f"{call.name}({call.malformed[:_LONGEST_READ]})", limit)
    arguments = (f"{name}={shown_value(value, limit)}" for name, value in call.arguments.items())
    return shown(f"{call.name}({', '.join(arguments)})", limit)
