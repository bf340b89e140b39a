"""Text as people read it: foreign text made safe to show, and numbers and labels in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentkit.episodes import FailureLabel
from agentkit.messages import ToolCall
from agentkit.metrics.statistics import Interval
from agentkit.tools.patterns import written_out

MOST = 400
"""Characters of a text that are shown."""

_LONGEST_READ = 20_000


def shown(text: str, limit: int = MOST) -> str:
    """A text as people may safely read it.

    Runs of white space are one blank. Characters that are invisible, or that change the order of
    those around them (controls, bidirectional marks, lone surrogates), are shown as ``U+202E``.

    Args:
        text: Any text.
        limit: Most characters; the end of a longer one is an ellipsis.
    """
    start = text[: 4 * limit]
    line = " ".join(start.split())
    line = written_out(line)
    if len(line) <= limit and len(start) == len(text):
        return line
    return f"{line[: limit - 1].rstrip()}…"


def visible(text: str) -> str:
    """A text with invisible characters written out; line breaks and tabs stay.

    What a model wrote can so neither steer a terminal nor turn around the text after it.

    Args:
        text: Any text, of any length.
    """
    return written_out(text)


def shown_value(value: Any, limit: int = MOST) -> str:
    """A value as JSON, fit to be shown; what is not JSON as Python writes it."""
    if isinstance(value, str):
        return shown(json.dumps(value[:_LONGEST_READ], ensure_ascii=False), limit)
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError, RecursionError) as error:
        text = f"a {type(value).__name__} that cannot be written ({error})"
    return shown(text, limit)


def shown_call(call: ToolCall) -> str:
    """A call as it would be written in Python: ``tool(name=value)``."""
    if call.malformed is not None:
        return shown(f"{call.name}({call.malformed[:_LONGEST_READ]})")
    arguments = (f"{name}={shown_value(value)}" for name, value in call.arguments.items())
    return shown(f"{call.name}({', '.join(arguments)})")


LABELS: Mapping[FailureLabel, str] = {
    "invalid_tool_call": "not readable as a call, or a tool that is not offered",
    "argument_mismatch": "the right tool with missing, unknown or wrong arguments",
    "state_mismatch": "the calls ran and did not change what should have changed",
    "recovery_failure": "an error was reported and not recovered from",
    "spurious_tool_call": "a call that should not have been made",
    "missing_tool_call": "a call that should have been made was not",
    "response_mismatch": "acceptable calls and a wrong final answer",
    "correct_abstention": "no call, and none was wanted",
    "pass": "nothing wrong",
    "unjudged": "nothing is known to be wrong, and nobody judged it",
    "checker_error": "the verifier failed; in no other number",
    "gold_error": "the reference is broken; in no other number",
}
"""Every label in words, the gravest first."""


def label_name(label: str) -> str:
    """A label or another fixed term as words: ``missing tool call``."""
    return label.replace("_", " ")


def whole(value: float) -> str:
    """A whole number with thousands marked."""
    return f"{value:,.0f}"


def percent(value: float) -> str:
    """A share as a percentage with one digit behind the point."""
    return f"{value:.1%}"


def interval(ends: Interval) -> str:
    """The ends of an interval: ``48.4% to 58.9%``."""
    return f"{ends.low:.1%} to {ends.high:.1%}"


def points(value: float) -> str:
    """A difference of shares in percentage points, with its sign."""
    return f"{100 * value:+.1f}"


def share(part: float, of: float) -> str:
    """A part as a whole percentage: ``30%``; a dash where there is nothing."""
    return f"{part / of:.0%}" if of else "-"


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    if value < 0.001:
        return f"{1e6 * value:.0f} µs" if value > 0 else "0 s"
    if value < 1:
        return f"{1e3 * value:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.1f} min"
    return f"{value / 3600:.1f} h"


def dollars(value: float | None) -> str:
    """A price; ``unknown`` where no adapter reported it."""
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.3g}"
