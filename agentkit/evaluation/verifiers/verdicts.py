"""Turn findings into verdicts: evidence, faults, and the guard that never raises."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from agentkit.episodes import Episode, Evidence, Fault, Verdict, Verifier
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
) -> Verdict:
    """A verdict that says nothing about the agent, and why.

    Args:
        verifier: Name of the verifier.
        fault: Whether the reference or the verifier is broken.
        reason: What is wrong with it, in a sentence.
        metrics: Further numbers, by name, such as what a judge cost.
    """
    return Verdict(
        passed=False,
        evidence=(Evidence(kind=fault, message=reason),),
        verifier=verifier,
        fault=fault,
        metrics=metrics or {},
    )


def _storable(value: Any) -> Any:
    """JSON data of a reasonable size; anything else is shown as text."""
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
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"


def guarded(verifier: Verifier) -> Verifier:
    """The verifier, with its own failures as verdicts.

    One episode that a verifier cannot cope with must not end the evaluation of a thousand others.
    What the verifier raises becomes a ``checker_error`` with the exception's type and text; so
    does an answer that is no verdict. Cancellation passes through. Values in evidence that JSON can
    not hold, or that are very large, are kept as text, so that every verdict can be stored.

    Args:
        verifier: Any verifier; one that is guarded already is returned as it is.

    Example:
        >>> import asyncio
        >>> class Broken:
        ...     async def verify(self, episode):
        ...         return 1 / 0
        >>> verdict = asyncio.run(guarded(Broken()).verify(Episode(episode_id="1", request="")))
        >>> print(verdict.fault, "-", verdict.evidence[0])
        checker_error - Broken failed with ZeroDivisionError: division by zero
    """
    return verifier if isinstance(verifier, _Guarded) else _Guarded(verifier)


class _Guarded:
    """See ``guarded``."""

    def __init__(self, verifier: Verifier) -> None:
        self.name = getattr(verifier, "name", "") or type(verifier).__name__
        self._verifier = verifier

    async def verify(self, episode: Episode) -> Verdict:
        """The verdict, or why there is none."""
        try:
            return self._checked(await self._verifier.verify(episode))
        except Exception as error:  # noqa: BLE001 - whatever it is, it becomes the verdict
            reason = f"{self.name} failed with {described(error)}"
            return faulty(self.name, "checker_error", reason)

    def _checked(self, verdict: object) -> Verdict:
        problem = ""
        if not isinstance(verdict, Verdict):
            problem = f"{shown(verdict)}, which is not a Verdict"
        elif not 0 <= verdict.score <= 1:  # NaN is outside as well
            problem = f"the score {verdict.score!r}; scores are from 0 to 1"
        if problem or not isinstance(verdict, Verdict):
            return faulty(self.name, "checker_error", f"{self.name} gave {problem}")
        return replace(
            verdict,
            passed=verdict.passed and verdict.fault is None,
            evidence=tuple(
                replace(one, expected=_storable(one.expected), actual=_storable(one.actual))
                for one in verdict.evidence
            ),
            verifier=verdict.verifier or self.name,
        )


def answer_text(episode: Episode) -> str | None:
    """The final answer: text as it is, structured data as JSON; None when there is none."""
    output: Any = episode.output
    if output is None or isinstance(output, str):
        return output if output and output.strip() else None
    try:
        return json.dumps(output, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return shown(output)


def answer_turn(episode: Episode) -> int | None:
    """The turn that gave the final answer."""
    return len(episode.turns) - 1 if episode.turns else None


def without_answer(verifier: str, episode: Episode) -> Verdict:
    """The verdict about an episode that has no final answer."""
    why = f"the run ended by {episode.stop_reason!r}"
    message = f"there is no final answer to judge; {why}"
    missing = Evidence(kind="missing_answer", message=message, turn=answer_turn(episode))
    return judged(verifier, [missing])
