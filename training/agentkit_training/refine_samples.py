"""Self-refine samples: the policy's own first answer, a request to refine it, the gold answer.

ToolACE-R, section 3.2: ``{<q, T>, A_1, r, A}``. A sample is an ordinary task, whose question and
first answer are its history and whose request is the refine prompt. So it is asked, judged and
estimated as any other, and its prompt is the one that the runtime's refinement has.

Where we differ from the paper, on purpose:

* The runtime refines calls alone, so that a first answer without calls makes no sample.
* Where a question allows several values and the first answer has right ones, the gold answer keeps
  them. What is right already is to be repeated, which is how the policy learns to stop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentkit.agent.refine import REFINE_PROMPT
from agentkit.evaluation import Benchmark, Task
from agentkit.evaluation.task import LeftOut
from agentkit.messages import AssistantMessage, ToolCall, UserMessage
from agentkit.models import render_calls
from agentkit_training.difficulty import TaskDifficulty, catalogued
from agentkit_training.gold import GoldAnswer, nearest_calls

SUFFIX = "#refine"
"""What the id of a sample has after that of its task."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RefineSamples:
    """Self-refine samples.

    Attributes:
        benchmark: The samples as tasks.
        answers: Their gold answers, by the samples' ids.
        unchanged: Ids of the samples whose first answer is the gold answer (A_1 = A); they are
            kept, so that the policy learns when nothing is to be changed.
        left_out: Tasks without a sample, and why.
    """

    benchmark: Benchmark
    answers: Mapping[str, GoldAnswer] = field(default_factory=dict)
    unchanged: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def refine_samples(
    benchmark: Benchmark,
    answers: Mapping[str, GoldAnswer],
    first: Iterable[TaskDifficulty],
    *,
    prompt: str = REFINE_PROMPT,
) -> RefineSamples:
    """Make a self-refine sample of each task that has a gold answer and a first answer.

    Args:
        benchmark: The tasks.
        answers: Their gold answers.
        first: What the policy answered: of each task the first attempt is taken. Attempts at
            temperature 0 give the answers that the runtime will ask to refine.
        prompt: The request to refine; that of the runtime.
    """
    known = {one.name: one for one in benchmark.definitions}
    tried = {one.task_id: one for one in first}
    tasks: list[Task] = []
    taught: dict[str, GoldAnswer] = {}
    unchanged: list[str] = []
    left_out: list[LeftOut] = []
    for task in benchmark.tasks:
        attempt = tried.get(task.task_id)
        if attempt is None or task.task_id not in answers:
            continue
        calls = attempt.attempts[0]
        if not calls:
            reason = "the first answer has no calls to refine"
            left_out.append(LeftOut(where=task.task_id, reason=reason))
            continue
        sample = refine_task(task, calls, prompt=prompt)
        gold = answers[task.task_id]
        nearest = nearest_calls(gold, catalogued(calls, attempt.names), known)
        tasks.append(sample)
        taught[sample.task_id] = replace(gold, task_id=sample.task_id, calls=nearest)
        unchanged += [sample.task_id] * (attempt.shortfalls[0] == 0)
    return RefineSamples(
        benchmark=replace(benchmark, tasks=tuple(tasks)),
        answers=taught,
        unchanged=tuple(unchanged),
        left_out=tuple(left_out),
    )


def refine_task(task: Task, first: Sequence[ToolCall], *, prompt: str = REFINE_PROMPT) -> Task:
    """The task of refining a first answer; what is right stays what it was.

    The first answer is shown as the runtime shows it: as text, since its calls were never run.

    Args:
        task: The task.
        first: The calls of the first answer, as they were written.
        prompt: The request to refine.
    """
    said = (UserMessage(text=task.request), AssistantMessage(text=render_calls(first)))
    return replace(
        task,
        task_id=f"{task.task_id}{SUFFIX}",
        history=(*task.history, *said),
        request=prompt,
    )
