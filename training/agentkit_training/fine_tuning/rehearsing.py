"""Rehearsals: solutions acted out before they are taught, with no policy and no tokens.

The runtime's own agent asks each task in the task's own world, and a model that knows the solution
answers. So it shows which solutions fail, before weights are loaded and where nothing else runs the
calls.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TypeVar

from agentkit.episodes import Episode
from agentkit.evaluation import AllowedCalls, Benchmark, EvaluationSettings, ExactCalls, Task
from agentkit.evaluation.task import LeftOut, UserTurn
from agentkit.library import Library
from agentkit.messages import AssistantMessage, FailureKind, ToolCall, ToolResult, Usage
from agentkit.models import render_calls
from agentkit.models.base import ModelRequest, ModelResponse
from agentkit_training.fine_tuning.solutions import Solutions
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.samples import Rollout
from agentkit_training.toolace.difficulty import GoldAnswer

T = TypeVar("T")

_SIGNALS: frozenset[FailureKind] = frozenset({"tool_failed", "retry_requested"})
"""Failures in which a tool spoke to the model on purpose, with ToolFailed or ModelRetry."""


async def rehearsed(
    solutions: Solutions,
    benchmark: Benchmark,
    *,
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
) -> Solutions:
    """The solutions that hold when they are acted out; the others are left out with the reason.

    Of a single answer only its calls are looked at: what the task expects beside them, such as
    words, is not what is taught. A trajectory has to solve its task. Where no world runs the tools
    there is nothing to act out, and everything holds.

    Args:
        solutions: What is to be taught.
        benchmark: The tasks.
        library: What the tools are called and described as, see ``collect``.
        settings: How the tasks are asked; those of the rollouts.
    """
    if benchmark.environment is None:
        return solutions
    stage = _Stage(benchmark, library, settings)
    tried = {name: await stage.failing(one) for name, one in solutions.answers.items()}
    for name, episode in solutions.trajectories.items():
        tried[name] = await stage.unsolved(name, episode)
    left_out = {name: why for name, why in tried.items() if why}
    return Solutions(
        answers=_without(solutions.answers, left_out),
        trajectories=_without(solutions.trajectories, left_out),
        left_out=(
            *solutions.left_out,
            *(LeftOut(where=name, reason=why) for name, why in left_out.items()),
        ),
    )


def as_recited(settings: EvaluationSettings | None) -> EvaluationSettings:
    """How tasks are asked where a known answer is given: as ever, and nothing is refined.

    Args:
        settings: How the tasks are asked; None for the defaults.
    """
    return replace(settings or EvaluationSettings(), refine="none")


def why_untaught(task: Task, done: Rollout) -> str:
    """Why a trajectory that was acted out is not taught; empty when it is.

    It is not when its task's verifiers say no, and when one of its calls fails, see
    ``failed_call``.
    """
    if failed := failed_call(task, done):
        return failed
    if done.fault:
        return f"could not be acted out: {done.fault}"
    return "" if done.passed else f"the gold trajectory does not solve the task: {_why_not(done)}"


def failed_call(task: Task, done: Rollout) -> str:
    """The first call that failed where nothing expects it to, with its error; empty for none.

    A call that raises or is refused teaches nothing but the mistake. An error that a tool returns
    as its value is no failure. Neither is ``ToolFailed`` or ``ModelRetry`` where the task expects
    more than calls, such as a state or words: the expectation says that the refusal belongs there.
    """
    for told, episode in zip(task.turns, done.episodes, strict=False):
        for turn in episode.turns:
            for call, result in zip(turn.message.tool_calls, turn.results, strict=False):
                if result.failure is not None and not _belongs(result, told):
                    error = result.failure.rule
                    return f"a gold call fails: {render_calls([call])[1:-1]}: {error}"
    return ""


def _belongs(result: ToolResult, told: UserTurn) -> bool:
    """Whether a failed result is part of a right solution, as far as what is expected says it."""
    is_signal = result.failure is not None and result.failure.kind in _SIGNALS
    return is_signal and any(not isinstance(one, AllowedCalls | ExactCalls) for one in told.expects)


def _why_not(done: Rollout) -> str:
    """What a trajectory lacked, in words."""
    last = done.episodes[-1]
    if last.stop_reason == "error":  # such as results that fill the window
        return last.error or "it ended with an error"
    if last.stop_reason != "finished":
        return f"it ended with {last.stop_reason} (max_steps of the section asking may be too low)"
    told = [
        one.message
        for episode in done.episodes
        if episode.verdict is not None and not episode.verdict.passed
        for one in episode.verdict.evidence
    ]
    return next(iter(told), "no verifier says why")


class _Stage:
    """Where solutions are acted out.

    Args:
        benchmark: The tasks.
        library: What the tools are called and described as.
        settings: How the tasks are asked.
    """

    def __init__(
        self, benchmark: Benchmark, library: Library | None, settings: EvaluationSettings | None
    ) -> None:
        self.tasks = {task.task_id: task for task in benchmark.tasks}
        self._benchmark = benchmark
        self._library = library
        self._settings = as_recited(settings)
        self._upstream = {
            one.name: one.origin.original_name
            for one in benchmark.definitions
            if one.origin.original_name
        }

    async def failing(self, gold: GoldAnswer) -> str:
        """Why a single answer is not taught; empty when it is."""
        if not gold.calls:
            return ""
        calls = tuple(
            ToolCall(call_id=str(number), name=call.name, arguments=call.arguments)
            for number, call in enumerate(gold.calls, start=1)
        )
        answer = AssistantMessage(text=gold.text, tool_calls=calls)
        done = await self._acted(gold.task_id, _Knowing([answer], self._upstream))
        return failed_call(self.tasks[gold.task_id], done)

    async def unsolved(self, name: str, episode: Episode) -> str:
        """Why a trajectory is not taught; empty when it is."""
        done = await self._acted(name, _Knowing(turn.message for turn in episode.turns))
        return why_untaught(self.tasks[name], done)

    async def _acted(self, name: str, model: _Knowing) -> Rollout:
        (done,) = await collect(
            model,
            replace(self._benchmark, tasks=(self.tasks[name],)),
            library=self._library,
            attempts=1,
            temperature=0,
            settings=self._settings,
        )
        return done


class _Knowing:
    """Answers with what it was told to, one after the other, and then with nothing.

    Args:
        answers: One for each time it is asked.
        upstream: The names under which tools may be offered, by those of the catalogue.
    """

    name = "gold"

    def __init__(
        self,
        answers: Iterable[AssistantMessage],
        upstream: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._answers = iter(answers)
        self._upstream = upstream

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """The next answer."""
        offered = {one.name for one in request.tools}
        said = next(self._answers, AssistantMessage())
        calls = tuple(
            call if call.name in offered else self._renamed(call) for call in said.tool_calls
        )
        return ModelResponse(
            message=replace(said, tool_calls=calls),
            usage=Usage(requests=1),
            finish_reason="tool_calls" if calls else "stop",
        )

    def expect(self, runs: int) -> None:
        """Nothing waits here, so that it does not matter how many runs are under way."""

    def forget(self) -> None:
        """Nothing is remembered."""

    def _renamed(self, call: ToolCall) -> ToolCall:
        return replace(call, name=self._upstream.get(call.name, call.name))


def _without(found: Mapping[str, T], left_out: Container[str]) -> dict[str, T]:
    return {name: one for name, one in found.items() if name not in left_out}
