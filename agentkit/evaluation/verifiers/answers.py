"""Verifiers of the final answer: text, and several verifiers together."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from agentkit.episodes import Episode, Evidence, Fault, Verdict, Verifier
from agentkit.errors import UsageError
from agentkit.evaluation.expectations import TextAnswer
from agentkit.evaluation.verifiers.verdicts import (
    answer_text,
    answer_turn,
    clipped,
    guarded,
    judged,
    shown,
    without_answer,
)


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
