"""The ways in which a verifier's findings become a verdict."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agentkit.episodes import Evidence, Fault, Verdict
from agentkit.messages import JsonObject

_LONGEST = 2_000
_MARGIN = 100


def judged(
    verifier: str,
    evidence: Iterable[Evidence],
    *,
    score: float | None = None,
    metrics: Mapping[str, float] | None = None,
    details: JsonObject | None = None,
) -> Verdict:
    """A verdict that passes when nothing was found wrong.

    Args:
        verifier: Name of the verifier.
        evidence: All that is wrong.
        score: How well; 1 or 0 as it passed when left out.
        metrics: Further numbers, by name.
        details: Anything else to keep, as JSON data.
    """
    found = tuple(evidence)
    return Verdict(
        passed=not found,
        score=float(not found) if score is None else score,
        evidence=found,
        verifier=verifier,
        metrics=metrics or {},
        details=details or {},
    )


def faulty(
    verifier: str,
    fault: Fault,
    reason: str,
    *,
    metrics: Mapping[str, float] | None = None,
    details: JsonObject | None = None,
) -> Verdict:
    """A verdict that says nothing about the agent, and why.

    Args:
        verifier: Name of the verifier.
        fault: Whether the reference or the verifier is broken.
        reason: What is wrong with it, in a sentence.
        metrics: Further numbers, by name, such as what a judge cost.
        details: Anything else to keep, as JSON data.
    """
    return Verdict(
        passed=False,
        evidence=(Evidence(kind=fault, message=reason),),
        verifier=verifier,
        fault=fault,
        metrics=metrics or {},
        details=details or {},
    )


def storable(evidence: Evidence) -> Evidence:
    """Evidence whose values are JSON data of a reasonable size: others are shown as text."""
    expected, actual = _storable(evidence.expected), _storable(evidence.actual)
    if expected is evidence.expected and actual is evidence.actual:
        return evidence
    return replace(evidence, expected=expected, actual=actual)


def _storable(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return value if len(value) <= _LONGEST + _MARGIN else clipped(value)
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return shown(value)
    return value if len(text) <= _LONGEST else clipped(text)


def clipped(text: str, longest: int = _LONGEST) -> str:
    """A text that is short enough to stand in a report."""
    if len(text) <= longest:
        return text
    return f"{text[:longest]}… ({len(text)} characters in all)"


def described(error: BaseException) -> str:
    """An exception's type and text, for evidence."""
    return clipped(f"{type(error).__name__}: {error}".rstrip(": "))


def shown(value: Any) -> str:
    """A value as it can stand in a sentence, however large or odd it is."""
    try:
        return clipped(repr(value), 200)
    except Exception as error:  # noqa: BLE001 - a broken __repr__ or an integer too long to print
        return f"<{type(value).__name__} that can not be shown: {type(error).__name__}>"
