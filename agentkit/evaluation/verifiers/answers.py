"""Verifiers of the final answer: text, your own function, and several together."""

from __future__ import annotations

import inspect
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeAlias

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
from agentkit.tools.invocation import run_in_daemon_thread


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


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).strip().casefold())


Judgement: TypeAlias = bool | float | Verdict
"""What a function may say: passed or not, a score from 0 to 1, or a whole verdict."""


class FunctionVerifier:
    """Judges by a function.

    A function that is not ``async`` runs in a thread, so that a slow one holds up no other
    episode. A number is a score; the episode passes when it is 1.

    Args:
        function: Gets the episode; sync or async. What it raises, the verifier raises:
            ``guarded`` makes a verdict of it.
        name: The verifier's name; that of the function when left out.

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
    ) -> None:
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self._function = function

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
        if score == 1:
            return judged(self.name, (), score=score)
        message = f"{self.name} gave the score {score:g}"
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
        self._verifiers = tuple(guarded(verifier) for verifier in verifiers)
        if not self._verifiers:
            raise UsageError("all_of of no verifiers judges nothing; give it at least one")

    async def verify(self, episode: Episode) -> Verdict:
        """Ask every part."""
        verdicts = [await verifier.verify(episode) for verifier in self._verifiers]
        fault = _fault(verdicts)
        passed = all(verdict.passed for verdict in verdicts) and fault is None
        evidence = tuple(item for verdict in verdicts for item in verdict.evidence)
        return Verdict(
            passed=passed,
            score=sum(verdict.score for verdict in verdicts) / len(verdicts),
            evidence=() if passed else evidence,
            verifier=self.name,
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
