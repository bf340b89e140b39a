"""Build the verifier for what a task expects."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from agentkit.episodes import Episode, Verdict, Verifier
from agentkit.errors import UsageError
from agentkit.evaluation.expectations import (
    AllowedCalls,
    AnyCall,
    ExactCalls,
    Expectation,
    FinalState,
    NoCall,
    NumberAnswer,
    Rubric,
    TextAnswer,
)
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers.answers import (
    NumberAnswerVerifier,
    RubricVerifier,
    TextAnswerVerifier,
)
from agentkit.evaluation.verifiers.calls import (
    AllowedCallsVerifier,
    AnyCallVerifier,
    ExactCallsVerifier,
    NoCallVerifier,
)
from agentkit.evaluation.verifiers.state import FinalStateVerifier
from agentkit.evaluation.verifiers.verdicts import guarded
from agentkit.models.base import ChatModel
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """Context a verifier may need beside the episode.

    Attributes:
        definitions: The tools, under the names that the episode's calls use.
        environment: The agent's world.
        reference: A fresh twin of it, in which gold calls are run. It lives as long as the
            attempt, so that those of the second user turn continue where the first ended.
        earlier: The episodes of the attempt's earlier user turns, oldest first.
        judge: The model that judges a ``Rubric``.
    """

    definitions: tuple[ToolDefinition, ...] = ()
    environment: Environment | None = None
    reference: Environment | None = None
    earlier: tuple[Episode, ...] = ()
    judge: ChatModel | None = None


def verifier_for(expectation: Expectation, scene: Scene) -> Verifier:
    """The verifier that judges an expectation; it never raises (``guarded``).

    Args:
        expectation: What a right answer is.
        scene: What there is to judge with. Where something is lacking, such as an environment for
            a ``FinalState``, every verdict says so and has the fault ``checker_error``.

    Example:
        >>> import asyncio
        >>> episode = Episode(episode_id="1", request="6 * 12?", output="That is 72.")
        >>> verifier = verifier_for(NumberAnswer(value="72"), Scene())
        >>> asyncio.run(verifier.verify(episode)).passed
        True
    """
    return guarded(_verifier(expectation, scene))


def _verifier(  # noqa: PLR0911 - a case for each kind
    expected: Expectation, scene: Scene
) -> Verifier:
    match expected:
        case AllowedCalls():
            return AllowedCallsVerifier(expected, scene.definitions)
        case ExactCalls():
            return ExactCallsVerifier(expected, scene.definitions)
        case AnyCall():
            return AnyCallVerifier()
        case NoCall():
            return NoCallVerifier()
        case NumberAnswer():
            return NumberAnswerVerifier(expected)
        case TextAnswer():
            return TextAnswerVerifier(expected)
        case FinalState():
            worlds = (scene.environment, scene.reference)
            return FinalStateVerifier(expected, *worlds, earlier=scene.earlier)
        case Rubric():
            return RubricVerifier(expected, scene.judge)
        case _:
            return expected.verifier(scene.definitions)


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
        faults = sorted({one.fault for one in verdicts if one.fault is not None}, reverse=True)
        passed = all(verdict.passed for verdict in verdicts)  # none with a fault has
        evidence = tuple(item for verdict in verdicts for item in verdict.evidence)
        return Verdict(
            passed=passed,
            score=sum(verdict.score for verdict in verdicts) / len(verdicts),
            evidence=() if passed else evidence,
            verifier=self.name,
            # gold_error before checker_error: a broken reference can be fixed once for all runs
            fault=faults[0] if faults else None,
            # a metric that several parts have gets its place as a suffix
            metrics=_metrics(verdicts),
            details={"parts": [verdict.to_json() for verdict in verdicts]},
        )


def _metrics(verdicts: Iterable[Verdict]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for at, verdict in enumerate(verdicts):
        for name, value in verdict.metrics.items():
            metrics[f"{name}.{at}" if name in metrics else name] = value
    return metrics
