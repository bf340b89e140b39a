"""Verifiers of the final answer: text, pattern, schema, your own function, and combinations."""

from __future__ import annotations

import inspect
import json
import re
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

from agentkit.episodes import Episode, Evidence, Fault, Verdict, Verifier
from agentkit.errors import UsageError
from agentkit.evaluation.expectations import TextAnswer
from agentkit.evaluation.verifiers.verdicts import (
    answer_text,
    answer_turn,
    clipped,
    faulty,
    guarded,
    judged,
    shown,
    without_answer,
)
from agentkit.messages import JsonObject
from agentkit.tools.error_messages import problems_of
from agentkit.tools.invocation import run_in_daemon_thread
from agentkit.tools.schema_validator import UncheckableError, schema_errors
from agentkit.tools.sources.dialects import schema_fault


class TextAnswerVerifier:
    """Passes when the final answer is the expected text, or holds it.

    Case and surrounding space do not count, nor whether an accented letter is written as one
    character or as two (Unicode NFC). Letters of another script that look alike are different.

    Args:
        expected: The text.
    """

    name = "text_answer"

    def __init__(self, expected: TextAnswer) -> None:
        self._expected = expected

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the final answer with the text."""
        if problem := _gold_problem(self._expected.text, self._expected.match):
            return faulty(self.name, "gold_error", problem)
        answer = answer_text(episode)
        if answer is None:
            return without_answer(self.name, episode)
        wanted, given = _plain(self._expected.text), _plain(answer)
        holds = self._expected.match == "contains"
        if wanted in given if holds else wanted == given:
            return judged(self.name, ())
        relation = "does not contain" if holds else "is not"
        wrong = Evidence(
            kind="wrong_answer",
            message=f"the answer {shown(answer)} {relation} {shown(self._expected.text)}",
            turn=answer_turn(episode),
            expected=self._expected.text,
            actual=clipped(answer),
        )
        return judged(self.name, [wrong])


def _gold_problem(text: object, match: object) -> str:
    if not isinstance(text, str) or not text.strip():
        return f"the expected text is {shown(text)}, which no answer can be held against"
    if match not in ("equal", "contains"):
        return f"the match is {shown(match)}, expected 'equal' or 'contains'"
    return ""


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).strip().casefold())


_MOST_PROBLEMS = 20


class PatternVerifier:
    """Passes when a regular expression is found in the final answer.

    The pattern is the author's own and is applied as it is: Python's ``re`` has no time limit, so
    do not repeat a group that itself repeats.

    Args:
        pattern: The pattern, for ``re.search``; anchor it to match the whole answer.

    Raises:
        UsageError: It is no regular expression.
    """

    name = "pattern"

    def __init__(self, pattern: str) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise UsageError(f"{pattern!r} is no regular expression: {error}") from error

    async def verify(self, episode: Episode) -> Verdict:
        """Search the final answer."""
        answer = answer_text(episode)
        if answer is None:
            return without_answer(self.name, episode)
        if self._pattern.search(answer):
            return judged(self.name, ())
        finding = Evidence(
            kind="wrong_answer",
            message=f"the answer does not hold {self._pattern.pattern!r}",
            turn=answer_turn(episode),
            expected=self._pattern.pattern,
            actual=clipped(answer),
        )
        return judged(self.name, [finding])


class SchemaVerifier:
    """Passes when the final answer fits a JSON Schema (2020-12).

    Structured output is taken as it is, text is read as JSON. Nothing is fetched for a ``$ref``.

    Args:
        schema: The schema.

    Raises:
        UsageError: It is no schema.
    """

    name = "schema"

    def __init__(self, schema: JsonObject) -> None:
        if fault := schema_fault(dict(schema)):
            raise UsageError(f"not a JSON Schema, {fault}")
        self._schema = dict(schema)

    async def verify(self, episode: Episode) -> Verdict:
        """Check the final answer against the schema."""
        output: Any = episode.output
        turn = answer_turn(episode)
        if answer_text(episode) is None:
            return without_answer(self.name, episode)
        if isinstance(output, str):
            try:
                output = json.loads(output)
            except (ValueError, RecursionError) as error:
                message = f"the answer is not JSON: {error}"
                finding = Evidence(kind="wrong_answer", message=message, turn=turn)
                return judged(self.name, [finding])
        try:
            errors = schema_errors(output, self._schema, limit=_MOST_PROBLEMS)
        except UncheckableError as error:
            message = f"the answer can not be checked: {error}"
            return judged(self.name, [Evidence(kind="wrong_answer", message=message, turn=turn)])
        return judged(
            self.name,
            [
                Evidence(
                    kind="wrong_answer",
                    message=f"the answer does not fit: {clipped(one.rule)}",
                    turn=turn,
                    parameter=one.path_text,
                )
                for one in problems_of(errors, owner="a field", noun="field", whole="answer")
            ],
        )


Judgement: TypeAlias = bool | float | Verdict
"""What a function may say: passed or not, a score from 0 to 1, or a whole verdict."""


class FunctionVerifier:
    """Judges by a function.

    A function that is not ``async`` runs in a thread, so that a slow one holds up no other
    episode. A number is a score; the episode passes when it is at least ``passes_at``.

    Args:
        function: Gets the episode; sync or async. What it raises, the verifier raises:
            ``guarded`` makes a verdict of it.
        name: The verifier's name; that of the function when left out.
        passes_at: The score that passes.

    Example:
        >>> import asyncio
        >>> short = FunctionVerifier(lambda episode: len(episode.output) < 20, name="short")
        >>> episode = Episode(episode_id="1", request="6 * 12?", output="72")
        >>> asyncio.run(short.verify(episode)).passed
        True
    """

    def __init__(
        self,
        function: Callable[[Episode], Judgement | Awaitable[Judgement]],
        *,
        name: str = "",
        passes_at: float = 1.0,
    ) -> None:
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self._function = function
        self._passes_at = passes_at

    async def verify(self, episode: Episode) -> Verdict:
        """What the function says."""
        if inspect.iscoroutinefunction(self._function):
            judgement = await self._function(episode)
        else:
            judgement = await run_in_daemon_thread(lambda: self._function(episode))
            if inspect.isawaitable(judgement):
                judgement = await judgement
        return self._verdict(judgement, episode)

    def _verdict(self, judgement: object, episode: Episode) -> Verdict:
        if isinstance(judgement, Verdict):
            return judgement
        if not isinstance(judgement, bool | int | float) or not 0 <= judgement <= 1:
            reason = (
                f"{self.name} gave {shown(judgement)}; return True or False, a score from 0 to 1, "
                "or a Verdict"
            )
            return faulty(self.name, "checker_error", reason)
        score = float(judgement)
        if score >= self._passes_at:
            return judged(self.name, (), score=score)
        message = f"{self.name} gave the score {score:g}, and {self._passes_at:g} passes"
        finding = Evidence(kind="other", message=message, turn=answer_turn(episode))
        return judged(self.name, [finding], score=score)


class AllOf:
    """Passes when every verifier passes; the score is the mean of their scores.

    When the verdict of one has a fault, that of the whole has it, also where another verifier has
    found the agent wrong. To count such an episode only when it fails would make a broken
    reference lower the statistics that it is to be kept out of.

    Args:
        verifiers: The parts, asked one after the other; what one of them raises is its verdict.

    Raises:
        UsageError: There is no part.
    """

    name = "all_of"

    def __init__(self, verifiers: Iterable[Verifier]) -> None:
        self._verifiers = _parts(verifiers, self.name)

    async def verify(self, episode: Episode) -> Verdict:
        """Ask every part."""
        verdicts = [await verifier.verify(episode) for verifier in self._verifiers]
        score = sum(verdict.score for verdict in verdicts) / len(verdicts)
        passed = all(verdict.passed for verdict in verdicts)
        return _combined(self.name, verdicts, passed=passed, score=score)


class AnyOf:
    """Passes when one of the verifiers passes; the score is the best of their scores.

    A fault of one part is a fault of the whole, as in ``AllOf``. What was found wrong is reported
    when no part passes.

    Args:
        verifiers: The parts, asked one after the other; what one of them raises is its verdict.

    Raises:
        UsageError: There is no part.
    """

    name = "any_of"

    def __init__(self, verifiers: Iterable[Verifier]) -> None:
        self._verifiers = _parts(verifiers, self.name)

    async def verify(self, episode: Episode) -> Verdict:
        """Ask every part."""
        verdicts = [await verifier.verify(episode) for verifier in self._verifiers]
        score = max(verdict.score for verdict in verdicts)
        passed = any(verdict.passed for verdict in verdicts)
        return _combined(self.name, verdicts, passed=passed, score=score)


def _parts(verifiers: Iterable[Verifier], name: str) -> tuple[Verifier, ...]:
    parts = tuple(guarded(verifier) for verifier in verifiers)
    if not parts:
        raise UsageError(f"{name} of no verifiers judges nothing; give it at least one")
    return parts


def _combined(name: str, verdicts: Sequence[Verdict], *, passed: bool, score: float) -> Verdict:
    fault = _fault(verdicts)
    evidence = tuple(item for verdict in verdicts for item in verdict.evidence)
    return Verdict(
        passed=passed and fault is None,
        score=score,
        evidence=() if passed and fault is None else evidence,
        verifier=name,
        fault=fault,
        metrics=_metrics(verdicts),
        details={"parts": [verdict.to_json() for verdict in verdicts]},
    )


def _fault(verdicts: Sequence[Verdict]) -> Fault | None:
    """A broken reference first: it can be mended once for all runs."""
    faults = {verdict.fault for verdict in verdicts}
    if "gold_error" in faults:
        return "gold_error"
    return "checker_error" if "checker_error" in faults else None


def _metrics(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """The numbers of all parts; one that several parts have is told apart by their place."""
    names = [name for verdict in verdicts for name in verdict.metrics]
    return {
        name if names.count(name) == 1 else f"{name}.{at}": value
        for at, verdict in enumerate(verdicts)
        for name, value in verdict.metrics.items()
    }
