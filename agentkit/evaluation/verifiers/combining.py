"""Several verifiers as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentkit.episodes import Episode, Fault, Verdict, Verifier
from agentkit.errors import UsageError
from agentkit.evaluation.verifiers.guard import guarded


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
