"""NESTFUL as a benchmark: sequences of calls in which later ones use what earlier ones return.

It can be asked in two ways.

*Planned*, as upstream asks: the model writes all calls at once, with references to results that
it has not seen. Here these are tool calls in one message, whose schemas take references
(``agentkit.evaluation.benchmarks.planning``); no tool runs. All four sources are asked.

*Executed*: the model calls, reads the result and goes on, as agents do. The source ComplexFuncBench
recorded what its calls returned, and these responses are replayed (``RecordedWorld``); the other
sources recorded nothing, so they are not asked.

Either way a right answer makes the gold calls, with data that flows as between those
(``DataFlow``); upstream's F1 scores and sequence matches are in the verdict's metrics. Executed
calls that were refused do not count, so a model may recover; a call that is repeated counts twice.

Upstream's release names no tools for a question. Each question offers the tools of its gold answer
among others of the same source, up to ``OFFERED`` in all, chosen and ordered without regard to the
gold. Upstream's win rate, the share of plans whose execution gives the gold answer, can not be
measured: this release holds no functions to run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from agentkit.evaluation.benchmarks.planning import INSTRUCTIONS, plannable
from agentkit.evaluation.benchmarks.recorded_world import RecordedWorld
from agentkit.evaluation.benchmarks.references import refers
from agentkit.evaluation.benchmarks.task_checks import (
    gold_call_problems,
    task_problems,
    validator_of,
)
from agentkit.evaluation.expectations import DataFlow, GoldCall
from agentkit.evaluation.nestful import RELEASE, Nestful, NestfulQuestion, load_nestful
from agentkit.evaluation.task import Benchmark, Environment, LeftOut, Task
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import ToolDefinition

OFFERED = 8
"""Tools that a question offers, unless its gold answer needs more."""

Asking: TypeAlias = Literal["planned", "executed"]


def nestful_benchmark(
    folder: Path, *, asking: Asking = "planned", offered: int = OFFERED
) -> Benchmark:
    """The questions, asked in one of two ways.

    Args:
        folder: What ``load_nestful`` takes.
        asking: ``planned``: all calls at once, with references. ``executed``: call by call, on
            recorded responses.
        offered: Tools that a question offers, unless its gold answer needs more.

    Returns:
        The questions; the category is the source. Those whose gold answer breaks the schema of a
        tool are left out, since no valid call is right there; so are, when executed, those without
        recorded responses, and those whose recorded responses are cut short where a later call
        needs them.

    Raises:
        DatasetError: The folder does not hold NESTFUL.
    """
    nestful = load_nestful(folder)
    way: _Way = _Planned(nestful) if asking == "planned" else _Executed(nestful)
    known = {definition.name: definition for definition in nestful.definitions}
    tasks: list[Task] = []
    left_out: list[LeftOut] = []
    for question in nestful.questions:
        task = Task(
            task_id=question.trajectory.trajectory_id,
            category=question.category,
            request=question.trajectory.request,
            offered=_offered(question, known.values(), offered),
            expects=(DataFlow(calls=question.calls),),
            instructions=way.instructions,
        )
        reason = next(task_problems(task, known), "") or way.why_not(question)
        if reason:
            left_out.append(LeftOut(where=task.task_id, reason=reason))
        else:
            tasks.append(task)
    return Benchmark(
        name=f"NESTFUL {RELEASE} {asking}",
        tasks=tuple(tasks),
        definitions=tuple(way.definitions.values()),
        environment=way.world,
        left_out=tuple(left_out),
        adapt=way.adapt,
    )


class _Way(Protocol):
    """A way of asking."""

    instructions: str
    definitions: Mapping[str, ToolDefinition]

    def why_not(self, question: NestfulQuestion) -> str:
        """Why a question can not be asked so; empty when it can."""
        ...

    @property
    def world(self) -> Callable[[Task], Environment] | None:
        """Makes the world that calls run in; None where they do not run."""
        ...

    @property
    def adapt(self) -> Callable[[ToolDefinition], ToolDefinition] | None:
        """Changes definitions so that they can be offered; None where they can as they are."""
        ...


class _Planned:
    """All calls at once."""

    instructions = INSTRUCTIONS
    world = None

    def __init__(self, nestful: Nestful) -> None:
        self._plain = {definition.name: definition for definition in nestful.definitions}
        self._fields = nestful.fields
        self.adapt = self._plannable
        self.definitions: Mapping[str, ToolDefinition] = {
            definition.name: self._plannable(definition) for definition in nestful.definitions
        }

    def _plannable(self, definition: ToolDefinition) -> ToolDefinition:
        return plannable(definition, self._fields.get(definition.name, ()))

    def why_not(self, question: NestfulQuestion) -> str:
        for call in question.calls:
            definition = self.definitions[call.name]
            arguments = coerce(dict(call.arguments), definition.signature.parameters, fill="none")
            if problems := validator_of(definition).check(arguments):
                plain = gold_call_problems(call, self._plain[call.name])  # says it more simply
                return f"the gold call {call.name}: {next(plain, problems[0].rule)}"
        return ""


class _Executed:
    """Call by call, on recorded responses."""

    instructions = ""
    adapt = None

    def __init__(self, nestful: Nestful) -> None:
        self.definitions: Mapping[str, ToolDefinition] = {
            definition.name: definition for definition in nestful.definitions
        }
        self._questions = {one.trajectory.trajectory_id: one for one in nestful.questions}
        self.world = self._world

    def why_not(self, question: NestfulQuestion) -> str:
        if not question.is_recorded:
            return "what its calls return was not recorded"
        for call in self._gold(question):
            if refers(call.arguments):
                return "a recorded response is cut short, and a later call needs what is missing"
            for problem in gold_call_problems(call, self.definitions[call.name]):
                return f"the gold call {call.name}: {problem}"
        return ""

    def _gold(self, question: NestfulQuestion) -> Iterator[GoldCall]:
        """The gold calls, with the values that the records hold for their references."""
        trajectory = question.trajectory
        for at, step in enumerate(trajectory.steps):
            yield GoldCall(name=step.tool, arguments=trajectory.arguments(at))

    def _world(self, task: Task) -> Environment:
        """The records of the question, behind the tools that it offers."""
        trajectory = self._questions[task.task_id].trajectory
        return RecordedWorld(trajectory, [self.definitions[name] for name in task.offered])


def _offered(
    question: NestfulQuestion, tools: Iterable[ToolDefinition], most: int
) -> tuple[str, ...]:
    """The tools of the gold answer and others of its source; always the same for one question."""
    question_id = question.trajectory.trajectory_id
    gold = {call.name for call in question.calls}
    others = [one.name for one in tools if question.category in one.description.tags]
    rest = sorted(set(others) - gold, key=_shuffled(question_id))
    chosen = [*gold, *rest[: max(0, most - len(gold))]]
    return tuple(sorted(chosen, key=_shuffled(f"{question_id} order")))


def _shuffled(salt: str) -> Callable[[str], bytes]:
    return lambda name: hashlib.sha256(f"{salt} {name}".encode()).digest()
