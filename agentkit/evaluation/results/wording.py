"""Numbers and labels as people read them."""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.records import EvaluationReport
from agentkit.metrics.intervals import Interval

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


def many(number: int, noun: str) -> str:
    """``3 attempts``, ``1 attempt``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


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
    """A price; ``unknown`` where no adapter told it."""
    if value is None:
        return "unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.3g}"


def notes(report: EvaluationReport) -> tuple[str, ...]:
    """What a reader has to know before the numbers, in sentences; empty for a sound, whole run."""
    total, told = report.total, []
    if report.planned is not None and report.finished < report.planned:
        told.append(f"Finished: {report.finished:,} of {report.planned:,} planned attempts.")
    if total.unfinished:
        told.append(f"Begun and not finished: {many(total.unfinished, 'attempt')}.")
    if total.faults:
        what = ", ".join(many(n, label_name(fault)) for fault, n in total.faults.items())
        told.append(f"In no number, because the reference or the verifier is broken: {what}.")
    if total.unjudged:
        told.append(f"In no number, because nobody judged: {many(total.unjudged, 'attempt')}.")
    if total.errors:
        told.append(f"The model failed in {many(total.errors, 'attempt')}; these count.")
    if report.mixed:
        told.append(f"Settings that are not the same in all episodes: {', '.join(report.mixed)}.")
    if report.repeated:
        told.append(
            f"In no number, because it repeats another: {many(report.repeated, 'attempt')}."
        )
    if report.strangers:
        told.append(f"In no number, because no task is named: {many(report.strangers, 'episode')}.")
    if report.undiagnosed:
        told.append(f"Judged and not diagnosed: {many(report.undiagnosed, 'episode')}.")
    return tuple(told)
