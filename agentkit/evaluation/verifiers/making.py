"""From what a task expects to the verifier that judges it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.episodes import Episode, Verifier
from agentkit.errors import UsageError
from agentkit.evaluation.expectations import (
    AllowedCalls,
    AnyCall,
    CustomExpectation,
    ExactCalls,
    Expectation,
    FinalState,
    NoCall,
    NumberAnswer,
    PythonTests,
    Rubric,
    TextAnswer,
)
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers.answers import TextAnswerVerifier
from agentkit.evaluation.verifiers.calls import (
    AllowedCallsVerifier,
    AnyCallVerifier,
    ExactCallsVerifier,
    NoCallVerifier,
)
from agentkit.evaluation.verifiers.numbers import NumberAnswerVerifier
from agentkit.evaluation.verifiers.python_tests import PythonTestsVerifier
from agentkit.evaluation.verifiers.rubric import RubricVerifier
from agentkit.evaluation.verifiers.state import FinalStateVerifier
from agentkit.evaluation.verifiers.verdicts import guarded
from agentkit.models.base import ChatModel
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """What a verifier may need beside the episode.

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

    Raises:
        UsageError: The expectation is of no kind that is known.

    Example:
        >>> import asyncio
        >>> episode = Episode(episode_id="1", request="6 * 12?", output="That is 72.")
        >>> verifier = verifier_for(NumberAnswer(value="72"), Scene())
        >>> asyncio.run(verifier.verify(episode)).passed
        True
    """
    make = _MAKERS.get(type(expectation))
    if isinstance(expectation, CustomExpectation):
        return guarded(expectation.verifier(scene.definitions))
    if make is None:
        known = ", ".join(kind.__name__ for kind in _MAKERS)
        message = f"{type(expectation).__name__} is no expectation; there are {known}"
        raise UsageError(message)
    return guarded(make(expectation, scene))


def _final_state(expected: FinalState, scene: Scene) -> Verifier:
    return FinalStateVerifier(expected, scene.environment, scene.reference, earlier=scene.earlier)


_MAKERS: Mapping[type, Callable[[Any, Scene], Verifier]] = {
    AllowedCalls: lambda expected, scene: AllowedCallsVerifier(expected, scene.definitions),
    ExactCalls: lambda expected, scene: ExactCallsVerifier(expected, scene.definitions),
    AnyCall: lambda _, __: AnyCallVerifier(),
    NoCall: lambda _, __: NoCallVerifier(),
    NumberAnswer: lambda expected, _: NumberAnswerVerifier(expected),
    TextAnswer: lambda expected, _: TextAnswerVerifier(expected),
    FinalState: _final_state,
    PythonTests: lambda expected, _: PythonTestsVerifier(expected),
    Rubric: lambda expected, scene: RubricVerifier(expected, scene.judge),
}
