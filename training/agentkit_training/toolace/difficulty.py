"""Gold answers: the calls that a task is taught with, one choice among all that are right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import fmean
from typing import Any

from agentkit.episodes import Episode
from agentkit.evaluation import (
    AllowedCalls,
    Benchmark,
    EvaluationSettings,
    ExactCalls,
    GoldCall,
    NoCall,
    Task,
)
from agentkit.evaluation.expectations import expectations_to_json
from agentkit.evaluation.task import LeftOut
from agentkit.library import Library
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics import AllowedCall, GoldCalls
from agentkit.tools.definition import ToolDefinition
from agentkit_training.rewards.tooldna_metrics import texts_agree
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.policy_model import PolicyModel
from agentkit_training.rollout.samples import Rollout
from agentkit_training.toolace.overlap import call_similarity, difficulty, optimal_assignment


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldAnswer:
    """The answer A of a training sample (ToolACE-R, section 3.2).

    Attributes:
        task_id: The task.
        calls: The calls, in the names of the benchmark's catalogue; empty where none is right.
        text: What is said where no call is right.
        allowed: All that is right, where values may be chosen; ``calls`` is one choice of it.
    """

    task_id: str
    calls: tuple[GoldCall, ...] = ()
    text: str = ""
    allowed: tuple[AllowedCall, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Solutions:
    """How tasks are solved, as far as anybody knows.

    Attributes:
        answers: By the id of the task, where one answer is what is taught.
        trajectories: By the id of the task, where it takes several turns.
        left_out: Tasks that nothing is taught of, and why.
    """

    answers: Mapping[str, GoldAnswer] = field(default_factory=dict)
    trajectories: Mapping[str, Episode] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def gold_answers(benchmark: Benchmark, *, no_call: str = "") -> Solutions:
    """The answer of each task that one answer solves: what ToolACE-R's rounds train on.

    Of several allowed values the first is taken. An argument that may be left out is given when
    the question states its value, and is left out otherwise.

    Args:
        benchmark: The tasks.
        no_call: What to say where no call is right; such tasks are left out without it.

    Example:
        >>> from agentkit.evaluation import AllowedCalls, Benchmark, Task
        >>> book = ToolDefinition.from_schema(
        ...     "book", "Book.", {"properties": {"day": {"type": "string"}, "seats": {}}}
        ... )
        >>> gold = AllowedCall(name="book", allowed={"day": ["Monday", "Mon"], "seats": [2, ""]})
        >>> expects = (AllowedCalls(calls=(gold,)),)
        >>> task = Task(task_id="1", category="", request="Monday?", offered=(), expects=expects)
        >>> benchmark = Benchmark(name="", tasks=(task,), definitions=(book,))
        >>> gold_answers(benchmark).answers["1"].calls
        (GoldCall(name='book', arguments={'day': 'Monday'}),)
    """
    known = {one.name: one for one in benchmark.definitions}
    answers: dict[str, GoldAnswer] = {}
    left_out: list[LeftOut] = []
    for task in benchmark.tasks:
        found = _answer(task, known, no_call)
        if isinstance(found, GoldAnswer):
            answers[task.task_id] = found
        else:
            left_out.append(LeftOut(where=task.task_id, reason=found))
    return Solutions(answers=answers, left_out=tuple(left_out))


def counted(left_out: Iterable[LeftOut]) -> Mapping[str, int]:
    """How often each reason occurs, up to its colon; the most frequent first.

    Example:
        >>> counted([LeftOut(where="1", reason="too long: 900 tokens")])
        {'too long': 1}
    """
    return dict(Counter(one.reason.partition(":")[0] for one in left_out).most_common())


def nearest_calls(
    gold: GoldAnswer, calls: Sequence[ToolCall], definitions: Mapping[str, ToolDefinition]
) -> tuple[GoldCall, ...]:
    """Of all right answers, the one that is nearest to what a model called.

    The paper has one reference for each question. Where several values are allowed, a model that
    chose another right one must not be told that the question is difficult for it.

    Args:
        gold: The right answers.
        calls: What the model called, in the names of the catalogue.
        definitions: The catalogue, by name.
    """
    if not gold.allowed:
        return gold.calls
    return nearest_gold(AllowedCalls(calls=gold.allowed), calls, definitions, plain=gold.calls)


def first_choice(gold: AllowedCall, definition: ToolDefinition, *, request: str = "") -> GoldCall:
    """The gold call with the first allowed value of each argument.

    Args:
        gold: All that is right.
        definition: Of the tool.
        request: The question. An argument that may be left out is given when it states its value.
    """
    required = definition.signature.required
    arguments: dict[str, Any] = {}
    for name, allowed in gold.allowed.items():
        values = options_of(allowed)
        is_free = "" in allowed and name not in required
        if is_free and not (values and _is_stated(values[0], request)):
            continue
        arguments[name] = values[0] if values else ""
    return GoldCall(name=gold.name, arguments=arguments)


def _answer(task: Task, known: Mapping[str, ToolDefinition], no_call: str) -> GoldAnswer | str:
    """The gold answer, or why there is none."""
    if task.follow_ups:
        return "the user speaks several times"
    expected = [e for e in task.expects if isinstance(e, AllowedCalls | ExactCalls | NoCall)]
    if len(expected) != 1:
        keys = sorted({key for one in task.expects for key in expectations_to_json([one])})
        return f"no calls to teach: the task expects {', '.join(keys) or 'nothing'}"
    (one,) = expected
    match one:
        case NoCall():
            if not no_call:
                return "no call is right, and there are no words to teach"
            return GoldAnswer(task_id=task.task_id, text=no_call)
        case ExactCalls():
            return GoldAnswer(task_id=task.task_id, calls=one.calls)
        case AllowedCalls():
            return _from_allowed(task, one, known)


def _from_allowed(
    task: Task, expected: AllowedCalls, known: Mapping[str, ToolDefinition]
) -> GoldAnswer | str:
    offered = [known[call.name] for call in expected.calls if call.name in known]
    gold = GoldCalls(expected.calls, offered, language=expected.language)
    if gold.problems:
        return f"no call can match the gold calls: {gold.problems[0]}"
    if expected.language is not None:
        return f"gold values are source text of another language: {expected.language.name}"
    calls = tuple(
        first_choice(call, known[call.name], request=task.request) for call in expected.calls
    )
    made = [ToolCall(call_id="gold", name=one.name, arguments=one.arguments) for one in calls]
    if not gold.match(made).passed:
        return "the first allowed values together are not right"
    return GoldAnswer(task_id=task.task_id, calls=calls, allowed=expected.calls)


def _is_stated(value: Any, request: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    wanted = re.escape(str(value).lower().replace("_", " "))
    return re.search(rf"(?<!\w){wanted}(?!\w)", request.lower()) is not None


def nearest_gold(
    expected: AllowedCalls,
    calls: Sequence[ToolCall],
    known: Mapping[str, ToolDefinition],
    *,
    plain: Sequence[GoldCall],
    corrects_optional: bool = False,
) -> tuple[GoldCall, ...]:
    """Each gold call with the values of the call that it is matched with, wherever these are right.

    Calls and gold calls are matched so that their similarities add up to the most, so that the
    order of parallel calls does not matter.

    Args:
        expected: All that is right.
        calls: What was called, in the names of ``known``.
        known: The tools by name.
        plain: The choice where a call is wrong, or was not made: one for each gold call.
        corrects_optional: Whether an argument that need not be there, and has a wrong value, is
            there with a right one (its name is right, which ToolDNA counts), or is left out, which
            is nearer where a wrong value counts twice (ToolACE-R, Eq. 2).

    Raises:
        UsageError: A gold call names no known tool, or lists no values for an argument.
    """

    def wrong_in(gold: AllowedCall, call: ToolCall) -> frozenset[str]:
        """The arguments of a call that gold does not allow, or misses."""
        definitions = [known[gold.name]] if gold.name in known else []
        found = GoldCalls([gold], definitions, language=expected.language).match([call])
        return frozenset(m.argument for one in found.unmatched for m in one.mismatches)

    chosen = [
        [_towards(first, one, call, wrong_in, mends=corrects_optional) for call in calls]
        for first, one in zip(plain, expected.calls, strict=True)
    ]
    weights = [
        [call_similarity(one, call, known) for one, call in zip(row, calls, strict=True)]
        for row in chosen
    ]
    nearest = list(plain)
    for row, column in optimal_assignment(weights) if calls else ():
        nearest[row] = chosen[row][column]
    return tuple(nearest)


def options_of(allowed: Any) -> list[Any]:
    """The values that an argument may have; ``""`` says that it may be left out, and is none.

    Example:
        >>> options_of(["Monday", "Mon", ""]), options_of("Monday")
        (['Monday', 'Mon'], ['Monday'])
    """
    listed = allowed if isinstance(allowed, list | tuple) else [allowed]
    return [concrete(one) for one in listed if one != ""]


def concrete(allowed: Any) -> Any:
    """A value that an allowed one describes: in an object, the first option of each key."""
    if isinstance(allowed, Mapping):
        listed = {k: v if isinstance(v, list | tuple) else [v] for k, v in allowed.items()}
        options = {key: [one for one in value if one != ""] for key, value in listed.items()}
        return {
            key: options[key][0] if options[key] else ""
            for key, value in listed.items()
            if options[key] and "" not in value
        }
    if isinstance(allowed, list | tuple):
        return [concrete(one) for one in allowed]
    return allowed


def _towards(
    plain: GoldCall,
    allowed: AllowedCall,
    call: ToolCall,
    wrong_in: Callable[[AllowedCall, ToolCall], frozenset[str]],
    *,
    mends: bool,
) -> GoldCall:
    """The gold call with the values of ``call`` wherever these are allowed."""
    if call.name != allowed.name or call.malformed is not None:
        return plain
    wrong = wrong_in(allowed, call)
    arguments: dict[str, Any] = {}
    for name, values in allowed.allowed.items():
        own = _only(plain.arguments, name)
        if name not in wrong:
            own = _only(call.arguments, name)
        elif name in call.arguments and (own or mends):
            options = options_of(values) or [""]
            own = {name: _agreeing(options, call.arguments[name], own.get(name, options[0]))}
        arguments.update(own)
    return replace(plain, arguments=arguments)


def _agreeing(values: Sequence[Any], given: Any, first: Any) -> Any:
    """A text that says what the given one does, though not to the letter; else the first choice."""
    if isinstance(given, str):
        for value in values:
            if isinstance(value, str) and texts_agree(given, value):
                return value
    return first


def _only(arguments: JsonObject, name: str) -> JsonObject:
    return {name: arguments[name]} if name in arguments else {}


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskDifficulty:
    """How difficult one task is.

    Attributes:
        task_id: The task.
        difficulty: D, from 0 (each attempt is right) to 1 (none has anything of the answer).
        attempts: The calls of each attempt, as they were written.
        shortfalls: One minus the overlap of each attempt with the reference; D is their mean.
        names: The catalogue's names of tools that are offered under another one, by that name.
    """

    task_id: str
    difficulty: float
    attempts: tuple[tuple[ToolCall, ...], ...]
    shortfalls: tuple[float, ...]
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Difficulties:
    """How difficult tasks are.

    Attributes:
        tasks: In the order of the benchmark.
        left_out: Tasks that no attempt could be made at, and why.
    """

    tasks: tuple[TaskDifficulty, ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    def __add__(self, other: Difficulties) -> Difficulties:
        return Difficulties(tasks=self.tasks + other.tasks, left_out=self.left_out + other.left_out)


async def estimate_difficulty(
    model: PolicyModel,
    benchmark: Benchmark,
    answers: Mapping[str, GoldAnswer],
    *,
    library: Library | None = None,
    attempts: int = 8,
    temperature: float = 1.0,
    seed: int = 0,
    settings: EvaluationSettings | None = None,
) -> Difficulties:
    """Estimate D for each task that has a gold answer.

    Args:
        model: The policy.
        benchmark: The tasks; those of self-refine samples as well, see ``refine_samples``.
        answers: Their gold answers; tasks without one are passed over.
        library: What the tools are called and described as, see ``collect``.
        attempts: Samples of each task (k; 8 in the paper, where 1 costs 10% of the difficult
            samples that are worth learning from).
        temperature: Of sampling.
        seed: Of the first attempt.
        settings: How to ask.
    """
    tasks = tuple(task for task in benchmark.tasks if task.task_id in answers)
    if not tasks:
        return Difficulties()
    rollouts = await collect(
        model,
        replace(benchmark, tasks=tasks),
        library=library,
        attempts=attempts,
        temperature=temperature,
        seed=seed,
        settings=replace(settings or EvaluationSettings(), max_steps=1),
    )
    return difficulties(rollouts, answers, benchmark.definitions)


def difficulties(
    rollouts: Iterable[Rollout],
    answers: Mapping[str, GoldAnswer],
    definitions: Iterable[ToolDefinition],
) -> Difficulties:
    """D of each task, from attempts that were made already.

    Args:
        rollouts: The attempts at a task together, as ``collect`` gives them.
        answers: Gold answers by task; a rollout of a task without one is passed over.
        definitions: The benchmark's catalogue.
    """
    known = {one.name: one for one in definitions}
    tasks: list[TaskDifficulty] = []
    left_out: list[LeftOut] = []
    for task_id, group in groupby(rollouts, key=lambda one: one.task_id):
        if task_id not in answers:
            continue
        made = list(group)
        sound = [one for one in made if not one.fault and one.episodes]
        if sound:
            tasks.append(_estimate(sound, answers[task_id], known))
        else:
            reason = f"could not be asked: {made[0].fault}"
            left_out.append(LeftOut(where=task_id, reason=reason))
    return Difficulties(tasks=tuple(tasks), left_out=tuple(left_out))


def first_calls(rollout: Rollout) -> tuple[ToolCall, ...]:
    """What a rollout called in its first turn."""
    turns = rollout.episodes[0].turns
    return turns[0].message.tool_calls if turns else ()


def catalogued(calls: Iterable[ToolCall], names: Mapping[str, str]) -> list[ToolCall]:
    """Calls in the names of the catalogue.

    Args:
        calls: As they were written.
        names: The catalogue's names of tools that are offered under another one.
    """
    return [replace(call, name=names.get(call.name, call.name)) for call in calls]


def _estimate(
    rollouts: Sequence[Rollout], gold: GoldAnswer, known: Mapping[str, ToolDefinition]
) -> TaskDifficulty:
    names = rollouts[0].episodes[0].library_names
    shortfalls = []
    for one in rollouts:
        calls = catalogued(first_calls(one), names)
        reference = nearest_calls(gold, calls, known)
        shortfalls.append(difficulty([calls], reference, known))
    return TaskDifficulty(
        task_id=rollouts[0].task_id,
        difficulty=min(1.0, max(0.0, fmean(shortfalls))),
        attempts=tuple(first_calls(one) for one in rollouts),
        shortfalls=tuple(shortfalls),
        names=dict(names),
    )
