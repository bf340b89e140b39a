"""``Solutions``: what each task would be taught with, known before any policy is there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentkit.episodes import Episode, Turn
from agentkit.evaluation import (
    Benchmark,
    EvaluationSettings,
    FinalState,
    GoldCall,
    NoCall,
    NumberAnswer,
    Task,
    TextAnswer,
)
from agentkit.evaluation.task import LeftOut, UserTurn
from agentkit.evolution import mine, trajectories_of
from agentkit.evolution.lifting import ReplacedCalls
from agentkit.evolution.trajectories import Trajectory
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.tools.canonical import digest
from agentkit_bench.nestful import load_nestful
from agentkit_training.fine_tuning.examples import Prompting
from agentkit_training.tasks.arithmetic import arithmetic_episodes, solution_episodes
from agentkit_training.tasks.loading import TaskSpec, nestful_folder
from agentkit_training.toolace.difficulty import Solutions, gold_answers

DONE = "Done."
"""What is said where all calls are made and nobody knows better words."""

Steps = Sequence[Sequence[GoldCall]]


def gold_trajectories(spec: TaskSpec, benchmark: Benchmark, *, no_call: str = "") -> Solutions:
    """The trajectory of each task, as far as its source knows one.

    Args:
        spec: Where the tasks come from.
        benchmark: The tasks: those to train on.
        no_call: What to say where no call is right; tasks with such a turn are left out without it.

    Raises:
        DatasetError: A file that the tasks came from can not be read any more.

    Example:
        >>> from agentkit_training.tasks.loading import load_tasks_for_training
        >>> spec = TaskSpec(source="arithmetic", train=2)
        >>> len(gold_trajectories(spec, load_tasks_for_training(spec).train).trajectories)
        2
    """
    find = _SOURCES.get(spec.source)
    known = find(spec, benchmark) if find else {}
    episodes: dict[str, Episode] = {}
    left_out: list[LeftOut] = []
    for task in benchmark.tasks:
        found = known.get(task.task_id) or _of_calls(task, benchmark, no_call)
        if isinstance(found, Episode):
            episodes[task.task_id] = found
        else:
            left_out.append(LeftOut(where=task.task_id, reason=found))
    return Solutions(trajectories=episodes, left_out=tuple(left_out))


# What sources know of their own tasks


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


_IN_TEMPLATE = "trajectories of several turns are taught with tools_in: prompt alone"


def solutions_of(
    benchmark: Benchmark,
    spec: TaskSpec,
    *,
    no_call: str = "",
    prompting: Prompting = Prompting(),  # noqa: B008 - immutable
    settings: EvaluationSettings | None = None,
) -> Solutions:
    """The solution of every task that has one.

    A task that one answer solves is taught with that answer, any other with its gold trajectory.
    Where tools are run and ``settings`` let the policy speak after them, the words at the end are
    taught too: who learns calls alone goes on calling.

    Args:
        benchmark: The tasks to train on.
        spec: Where they come from.
        no_call: What to answer where no call is right; such tasks are left out without it.
        prompting: How tools and calls are written.
        settings: How the tasks are asked.

    Raises:
        DatasetError: A file that the tasks came from can not be read any more.

    Example:
        >>> from agentkit_training.tasks.loading import load_tasks_for_training
        >>> spec = TaskSpec(source="arithmetic", train=2)
        >>> found = solutions_of(load_tasks_for_training(spec).train, spec)
        >>> len(found.answers), len(found.trajectories), len(found.left_out)
        (0, 2, 0)
    """
    answers = gold_answers(benchmark, no_call=no_call).answers
    if prompting.tools_in == "prompt" and _speaks_after_calls(benchmark, settings):
        answers = {name: one for name, one in answers.items() if not one.calls}
    longer = tuple(task for task in benchmark.tasks if task.task_id not in answers)
    if not longer:
        return Solutions(answers=answers)
    found = gold_trajectories(spec, replace(benchmark, tasks=longer), no_call=no_call)
    if prompting.tools_in == "prompt":
        return replace(found, answers=answers)
    refused = [LeftOut(where=one, reason=_IN_TEMPLATE) for one in found.trajectories]
    return Solutions(answers=answers, left_out=(*found.left_out, *refused))


def _speaks_after_calls(benchmark: Benchmark, settings: EvaluationSettings | None) -> bool:
    """Whether calls are answered, and there is a turn left to say something then."""
    steps = None if settings is None else settings.max_steps
    return benchmark.environment is not None and steps != 1


# With composites


def shortened(gold: Mapping[str, Episode], library: Library) -> Mapping[str, Episode]:
    """Gold trajectories, written anew with the composites of a library where these fit.

    A policy that was never taught composites calls them wrongly as soon as they are offered. What
    they stand for is found by mining the trajectories: of what is mined, only programs that the
    library holds are used. Trajectories of several user turns stay as they are.

    Args:
        gold: By the id of its task, an episode with the results of its calls.
        library: That of the warm-up.
    """
    held = {digest(tool.definition.body): tool.name for tool in library if tool.definition.body}
    primitives = {one.name: one for one in library.definitions if not one.is_composite}
    corpus = trajectories_of(gold.values()).trajectories
    replaced: defaultdict[str, list[tuple[str, ReplacedCalls]]] = defaultdict(list)
    for one in mine(corpus, primitives).composites:
        if name := held.get(digest(one.definition.body)):
            for calls in one.replaces:
                replaced[calls.trajectory_id].append((name, calls))
    known = {one.trajectory_id: one for one in corpus}
    return {
        task: _shortened(episode, known[episode.episode_id], replaced[episode.episode_id])
        if replaced[episode.episode_id] and sum(not t.message.tool_calls for t in episode.turns) < 2
        else episode
        for task, episode in gold.items()
    }


def _shortened(
    episode: Episode, trajectory: Trajectory, replaced: Iterable[tuple[str, ReplacedCalls]]
) -> Episode:
    """One call a turn; a composite stands where the last of its calls stood."""
    calls: dict[int, tuple[str, Mapping[str, Any]]] = {
        at: (step.tool, trajectory.arguments(at)) for at, step in enumerate(trajectory.steps)
    }
    for name, one in replaced:
        for position in one.positions:
            del calls[position]
        calls[max(one.positions)] = (name, one.arguments)
    turns = [
        Turn(
            message=AssistantMessage(
                tool_calls=(ToolCall(call_id=str(at), name=name, arguments=dict(arguments)),)
            )
        )
        for at, (name, arguments) in sorted(calls.items())
    ]
    last = [turn for turn in episode.turns[-1:] if not turn.message.tool_calls]
    return replace(episode, turns=(*turns, *last))
