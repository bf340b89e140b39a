"""``guarded``: a verifier that never raises."""

from __future__ import annotations

from dataclasses import replace

from agentkit.episodes import Episode, Verdict, Verifier
from agentkit.evaluation.verifiers.verdicts import described, faulty, shown, storable


def guarded(verifier: Verifier) -> Verifier:
    """The verifier, with its own failures as verdicts.

    One episode that a verifier can not cope with must not end the evaluation of a thousand others.
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


def name_of(verifier: Verifier) -> str:
    """The verifier's ``name``, or that of its class."""
    name = getattr(verifier, "name", None)
    return name if isinstance(name, str) and name else type(verifier).__name__


class _Guarded:
    """See ``guarded``."""

    def __init__(self, verifier: Verifier) -> None:
        self.name = name_of(verifier)
        self._verifier = verifier

    async def verify(self, episode: Episode) -> Verdict:
        """The verdict, or why there is none."""
        try:
            return self._checked(await self._verifier.verify(episode))
        except Exception as error:  # noqa: BLE001 - whatever it is, it becomes the verdict
            reason = f"{self.name} failed with {described(error)}"
            return faulty(self.name, "checker_error", reason)

    def _checked(self, verdict: object) -> Verdict:
        if not isinstance(verdict, Verdict):
            reason = f"{self.name} gave {shown(verdict)}, which is not a Verdict"
            return faulty(self.name, "checker_error", reason)
        if not 0 <= verdict.score <= 1:  # NaN is outside as well
            reason = f"{self.name} gave the score {verdict.score!r}; scores are from 0 to 1"
            return faulty(self.name, "checker_error", reason)
        return replace(
            verdict,
            passed=verdict.passed and verdict.fault is None,
            evidence=tuple(map(storable, verdict.evidence)),
            verifier=verdict.verifier or self.name,
        )
