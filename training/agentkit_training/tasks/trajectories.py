"""Gold trajectories: how tasks that take several turns are solved, as episodes to act out.

``gold_answers`` knows the tasks that one answer solves. The others are solved call by call, or with
a user who speaks several times:

* a final state that gold calls lead to (the multi-turn part of BFCL, arithmetic, files of tasks):
  these calls, one a turn;
* NESTful: its recorded calls with the values that the records hold, one a turn;
* GSM8K: the calculations of its solutions, with the primitives.

What is said after the last call is seldom judged, and benchmarks do not say it. ``DONE`` is taught
there, and the answer itself where it is known: as a text or a number that the task expects, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentkit.episodes import Episode, Turn
from agentkit.evaluation import (
    Benchmark,
    FinalState,
    GoldCall,
    NoCall,
    NumberAnswer,
    Task,
    TextAnswer,
)
from agentkit.evaluation.task import LeftOut, UserTurn
from agentkit.messages import AssistantMessage, ToolCall
from agentkit_bench.nestful import load_nestful
from agentkit_training.gold import gold_answers
from agentkit_training.tasks.arithmetic import arithmetic_episodes
from agentkit_training.tasks.gsm8k import solution_episodes
from agentkit_training.tasks.loading import TaskSpec, nestful_folder

DONE = "Done."
"""What is said where all calls are made and nobody knows better words."""

Steps = Sequence[Sequence[GoldCall]]


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldTrajectories:
    """Episodes that solve tasks.

    Attributes:
        episodes: By the id of the task; their turns are those of all that the user says, and each
            thing that the user says ends with words.
        left_out: Tasks that nobody knows the solution of, and why.
    """

    episodes: Mapping[str, Episode] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def gold_trajectories(
    spec: TaskSpec, benchmark: Benchmark, *, no_call: str = ""
) -> GoldTrajectories:
    """The solution of each task, as far as its source knows it.

    Args:
        spec: Where the tasks come from.
        benchmark: The tasks: those to train on.
        no_call: What to say where no call is right; tasks with such a turn are left out without it.

    Raises:
        DatasetError: A file that the tasks came from can not be read any more.

    Example:
        >>> from agentkit_training.tasks.loading import load_tasks_for_training
        >>> spec = TaskSpec(source="arithmetic", train=2)
        >>> len(gold_trajectories(spec, load_tasks_for_training(spec).train).episodes)
        2
    """
    known = _SOURCES.get(spec.source, _of_no_source)(spec, benchmark)
    episodes: dict[str, Episode] = {}
    left_out: list[LeftOut] = []
    for task in benchmark.tasks:
        found = known.get(task.task_id) or _of_calls(task, benchmark, no_call)
        if isinstance(found, Episode):
            episodes[task.task_id] = found
        else:
            left_out.append(LeftOut(where=task.task_id, reason=found))
    return GoldTrajectories(episodes=episodes, left_out=tuple(left_out))


# What sources know of their own tasks


def _of_no_source(_: TaskSpec, __: Benchmark) -> Mapping[str, Episode]:
    return {}


def _of_arithmetic(_: TaskSpec, benchmark: Benchmark) -> Mapping[str, Episode]:
    return {one.metadata["task"]: one for one in arithmetic_episodes(benchmark)}


def _of_gsm8k(spec: TaskSpec, benchmark: Benchmark) -> Mapping[str, Episode]:
    """The solutions that the primitives reproduce, ended as the instructions ask for it.

    They stand in files of upstream's form alone.
    """
    file = Path(spec.data)
    file = file / "train.jsonl" if file.is_dir() else file
    if file.suffix != ".jsonl":
        return {}
    found = {one.episode_id: one for one in solution_episodes(file, benchmark)}
    return {name: _ended(one, f"#### {one.output}") for name, one in found.items()}


def _of_nestful(spec: TaskSpec, benchmark: Benchmark) -> Mapping[str, Episode]:
    wanted = {task.task_id: task for task in benchmark.tasks}
    found: dict[str, Episode] = {}
    for question in load_nestful(nestful_folder(spec)).questions:
        trajectory = question.trajectory
        task = wanted.get(trajectory.trajectory_id)
        if task is not None and question.is_recorded:
            steps = [
                [GoldCall(name=step.tool, arguments=trajectory.arguments(at))]
                for at, step in enumerate(trajectory.steps)
            ]
            found[task.task_id] = _episode(task, list(_turns([(steps, DONE)])))
    return found


_SOURCES: Mapping[str, Callable[[TaskSpec, Benchmark], Mapping[str, Episode]]] = {
    "arithmetic": _of_arithmetic,
    "gsm8k": _of_gsm8k,
    "nestful": _of_nestful,
}


# What tasks say themselves


def _of_calls(task: Task, benchmark: Benchmark, no_call: str) -> Episode | str:
    """The episode of a task whose every turn has gold calls, or why there is none."""
    told: list[tuple[Steps, str]] = []
    for turn in task.turns:
        steps = _steps(task, turn, benchmark, no_call)
        if isinstance(steps, str):
            return steps
        told.append((steps, _last_words(turn) if steps else no_call))
    return _episode(task, list(_turns(told)))


def _steps(task: Task, turn: UserTurn, benchmark: Benchmark, no_call: str) -> Steps | str:
    """The calls of a turn, message by message; none where no call is right."""
    for one in turn.expects:
        if isinstance(one, FinalState) and one.calls:
            return [[call] for call in one.calls]
    alone = replace(
        task, request=turn.request, expects=turn.expects or (NoCall(),), follow_ups=(), history=()
    )
    found = gold_answers(replace(benchmark, tasks=(alone,)), no_call=no_call)
    if found.left_out:
        return found.left_out[0].reason
    calls = found.answers[task.task_id].calls
    return [calls] if calls else []


def _last_words(turn: UserTurn) -> str:
    """What the answer has to hold."""
    texts = [one.text for one in turn.expects if isinstance(one, TextAnswer)]
    numbers = [one.value for one in turn.expects if isinstance(one, NumberAnswer)]
    return " ".join([*texts, *numbers]) or DONE


def _turns(told: Iterable[tuple[Steps, str]]) -> Iterator[Turn]:
    """Messages with calls, and after those of each turn the words."""
    for steps, words in told:
        for number, calls in enumerate(steps):
            made = tuple(
                ToolCall(call_id=f"{number}.{at}", name=call.name, arguments=call.arguments)
                for at, call in enumerate(calls)
            )
            yield Turn(message=AssistantMessage(tool_calls=made))
        yield Turn(message=AssistantMessage(text=words))


def _episode(task: Task, turns: Sequence[Turn]) -> Episode:
    return Episode(
        episode_id=f"gold:{task.task_id}",
        request=task.request,
        turns=tuple(turns),
        output=turns[-1].message.text,
    )


def _ended(episode: Episode, words: str) -> Episode:
    """The episode with other last words."""
    last = Turn(message=AssistantMessage(text=words))
    return replace(episode, turns=(*episode.turns[:-1], last), output=words)
