"""Gold answers: the calls that a task is taught with, one choice among all that are right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentkit.evaluation import AllowedCalls, Benchmark, ExactCalls, GoldCall, NoCall, Task
from agentkit.evaluation.expectation_forms import expectations_to_json
from agentkit.evaluation.task import LeftOut
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall, GoldCalls
from agentkit.tools.definition import ToolDefinition
from agentkit_training.nearest_gold import nearest_gold, options_of


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
class GoldAnswers:
    """The gold answers of a benchmark.

    Attributes:
        answers: By the id of the task.
        left_out: Tasks that no single answer can be taught for, and why.
    """

    answers: Mapping[str, GoldAnswer] = field(default_factory=dict)
    left_out: tuple[LeftOut, ...] = ()


def gold_answers(benchmark: Benchmark, *, no_call: str = "") -> GoldAnswers:
    """The answer of each task that one answer solves.

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
    return GoldAnswers(answers=answers, left_out=tuple(left_out))


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
    if expected.language != "python":
        return f"gold values are source text of another language: {expected.language}"
    calls = tuple(
        first_choice(call, known[call.name], request=task.request) for call in expected.calls
    )
    if not gold.match([_as_call(call) for call in calls]).passed:
        return "the first allowed values together are not right"
    return GoldAnswer(task_id=task.task_id, calls=calls, allowed=expected.calls)


def _is_stated(value: Any, request: str) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    wanted = re.escape(str(value).lower().replace("_", " "))
    return re.search(rf"(?<!\w){wanted}(?!\w)", request.lower()) is not None


def _as_call(gold: GoldCall) -> ToolCall:
    return ToolCall(call_id="gold", name=gold.name, arguments=gold.arguments)
