"""NESTFUL as a benchmark: sequences of calls in which later ones use what earlier ones return.

It can be asked in two ways.

*Planned*, as upstream asks: the model writes all calls at once, with references to results that
it has not seen. Here these are tool calls in one message, whose schemas take references
(``agentkit_bench.nestful_benchmark``); no tool runs. All four sources are asked.

*Executed*: the model calls, reads the result and goes on, as agents do. The source ComplexFuncBench
recorded what its calls returned, and these responses are replayed (``RecordedWorld``); the other
sources recorded nothing, so they are not asked.

Either way a right answer makes the gold calls (``DataFlow``): planned, with data that flows as
between those, executed, with the values that were recorded. Upstream's F1 scores and sequence
matches are in the verdict's metrics. Executed calls that were refused do not count, so a model may
recover; a call that is repeated counts twice.

Upstream's release names no tools for a question. Each question offers the tools of its gold answer
among others of the same source, up to ``OFFERED`` in all, chosen and ordered without regard to the
gold. Upstream's win rate, the share of plans whose execution gives the gold answer, can not be
measured: this release holds no functions to run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, Literal, TypeAlias

from agentkit.episodes import Episode, Evidence, Verdict, Verifier
from agentkit.errors import ModelRetry
from agentkit.evaluation.expectations import GoldCall
from agentkit.evaluation.task import Benchmark, Environment, LeftOut, Task
from agentkit.evaluation.task_files import gold_call_problems, task_problems
from agentkit.evaluation.verifiers.calls import (
    MadeCalls,
    gold_calls_problem,
    match_evidence,
    match_exact_calls,
)
from agentkit.evaluation.verifiers.verdicts import faulty, judged
from agentkit.evolution.trajectories import Trajectory
from agentkit.messages import JsonObject, ToolCall
from agentkit.metrics.calls import CanonicalCall, canonical_calls, validator_of
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_sentence
from agentkit.tools.tool import Tool
from agentkit.tools.validation import coerce
from agentkit_bench.data_flow import DataFlowMatch, compare_data_flow
from agentkit_bench.nestful import RELEASE, Nestful, NestfulQuestion, load_nestful

# --- calls through which data flows as through the gold ones --------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class DataFlow:
    """Calls through which data flows as through the gold ones, whatever its values (NESTFUL).

    Attributes:
        calls: The gold calls in order. Where calls are planned and not run, a reference to the
            result of an earlier one is the text ``$var2.rows[0].id$``: the second call's result,
            and where in it.
    """

    calls: tuple[GoldCall, ...]

    @property
    def gold_tools(self) -> tuple[str, ...]:
        """The tools of the gold calls."""
        return tuple(call.name for call in self.calls)

    def verifier(self, definitions: Sequence[ToolDefinition]) -> Verifier:
        """What judges an episode."""
        return DataFlowVerifier(self, definitions)

    def renamed(self, names: Mapping[str, str]) -> DataFlow:
        """The same with other names of tools."""
        calls = (replace(call, name=names.get(call.name, call.name)) for call in self.calls)
        return DataFlow(calls=tuple(calls))

    def to_json(self) -> tuple[str, Any]:
        """How it is written."""
        calls = [{"name": call.name, "arguments": dict(call.arguments)} for call in self.calls]
        return "flow", calls


class DataFlowVerifier:
    """Passes when the calls are the gold ones up to the names of results.

    Of calls that were run, those that failed are left out; of calls that were only planned, those
    that a learned rule refused. The score is the partial sequence match.

    Args:
        expected: The gold calls.
        definitions: The tools, under the names that the calls use.
    """

    name = "data_flow"

    def __init__(self, expected: DataFlow, definitions: Iterable[ToolDefinition]) -> None:
        self._expected = expected
        self._definitions = tuple(definitions)

    async def verify(self, episode: Episode) -> Verdict:
        """Compare the calls of all turns, and the answer if one is expected."""
        if problem := gold_calls_problem(self._expected.calls, self._definitions):
            return faulty(self.name, "gold_error", problem)
        made, match = self._compared(episode)
        if match.gold_problems:
            return faulty(self.name, "gold_error", "; ".join(match.gold_problems))
        evidence = list(made.placed(self._differences(made, match)))
        evidence += made.unanswered()
        metrics = {
            "full_match": float(match.is_full),
            "partial_match": match.partial,
            "function_f1": match.function_f1,
            "parameter_f1": match.parameter_f1,
        }
        score = match.partial if made.is_answer else 0.0
        return judged(self.name, evidence, score=score, metrics=metrics)

    def _compared(self, episode: Episode) -> tuple[MadeCalls, DataFlowMatch]:
        """The calls that count, and how they compare."""
        made = MadeCalls.of(episode)
        ran = [at for at, one in enumerate(made.results) if one is not None and one.status == "ok"]
        made = made.only(ran or sorted(set(range(len(made.calls))) - made.refused))
        return made, compare_data_flow(made.calls, self._expected.calls, self._definitions)

    def _differences(self, made: MadeCalls, match: DataFlowMatch) -> Iterator[Evidence]:
        for problem in match.problems:
            yield Evidence(kind="wrong_value", message=problem)
        matched_gold = {gold for gold, _ in match.pairs}
        matched_made = {call for _, call in match.pairs}
        gold = [one for at, one in enumerate(self._expected.calls) if at not in matched_gold]
        calls = [one for at, one in enumerate(made.calls) if at not in matched_made]
        left = match_exact_calls(gold, calls, self._definitions)
        found = list(match_evidence(left, calls, [one.name for one in gold], is_exact=True))
        yield from found
        if not match.is_full and not found and not match.problems:
            message = "the calls are the gold ones, but results flow between others of them"
            yield Evidence(kind="wrong_value", message=message)


# --- the two ways to ask --------------------------------------------------------------------------

NOT_RECORDED = (
    "there is no answer to these arguments; check each of them against the request and the "
    "results so far"
)


class RecordedWorld:
    """Tools that replay the responses of a trajectory.

    A call is answered when it is equal to a recorded one under the tool's schema
    (``agentkit.metrics.canonical_calls``). One that was recorded several times is answered in the
    order of the records, and from then on with the last. Any other call is told that there is no
    answer, and the model may try again.

    Args:
        trajectory: The recorded calls and responses.
        definitions: The tools that there are, recorded or not.
    """

    def __init__(self, trajectory: Trajectory, definitions: Iterable[ToolDefinition]) -> None:
        self._definitions = {definition.name: definition for definition in definitions}
        self._records: dict[CanonicalCall, list[int]] = {}
        self._trajectory = trajectory
        self._answered: set[int] = set()
        self._lock = Lock()
        for at, step in enumerate(trajectory.steps):
            key = self._key(step.tool, trajectory.arguments(at))
            self._records.setdefault(key, []).append(at)

    def tools(self) -> Sequence[Tool]:
        """The tools, bound to the records."""
        return [
            Tool(definition=definition, function=self._answering(name))
            for name, definition in self._definitions.items()
        ]

    def state(self) -> JsonObject:
        """Which recorded calls were made by now: ``{"made": {"1 find_port": true}}``."""
        steps = self._trajectory.steps
        return {"made": {f"{at + 1} {steps[at].tool}": True for at in sorted(self._answered)}}

    def _answering(self, name: str) -> Callable[..., Any]:
        def answer(**arguments: Any) -> Any:
            return self._answer(name, arguments)

        return answer

    def _answer(self, name: str, arguments: Mapping[str, Any]) -> Any:
        records = self._records.get(self._key(name, arguments))
        if records is None:
            raise ModelRetry(NOT_RECORDED)
        with self._lock:  # calls of one message run at the same time, each in a thread
            at = next((one for one in records if one not in self._answered), records[-1])
            self._answered.add(at)
        return self._trajectory.steps[at].result

    def _key(self, name: str, arguments: Mapping[str, Any]) -> CanonicalCall:
        call = ToolCall(call_id="", name=name, arguments=arguments)
        return canonical_calls([call], [self._definitions[name]])[0]


REFERENCE: JsonObject = {"type": "string", "pattern": r"^\$var[0-9]+[^$]*\$$"}
"""Schema of a reference to an earlier call's result."""

MOST_FIELDS = 40
"""Fields of a result that are told. NESTFUL's gold refers to the first 40 in 99% of all cases."""

INSTRUCTIONS = (
    "Plan the whole answer before anything is run: make all tool calls that it takes, in their "
    "order, in one message. Nothing is run while you plan. Where a call needs what an earlier one "
    "will return, write a reference in place of the value: $var1.name$ is the field `name` of "
    "what the first call returns, $var2.items[0].id$ goes into a list, $var1$ is the whole result. "
    "Calls count from 1 in the order in which you make them. The tools say which fields they "
    "return."
)

_RETURNS = "Returns: "
_FREE_TEXT = frozenset({"type", "description", "title", "default", "examples"})
_OUTSIDE = ("description", "default")
"""Keywords of a parameter that must stand beside the alternatives to be found."""


def plannable(definition: ToolDefinition, fields: Sequence[str]) -> ToolDefinition:
    """The definition of a tool for plans: its arguments may be references.

    Args:
        definition: The tool.
        fields: Dotted paths of what it returns, outer ones first; the first ``MOST_FIELDS`` are
            told, unless a usage rule tells already.

    Returns:
        The definition. One that is for plans already comes back as it is.

    Example:
        >>> wait = ToolDefinition.from_schema(
        ...     "wait", "Wait.", {"type": "object", "properties": {"days": {"type": "integer"}}}
        ... )
        >>> plannable(wait, ["until"]).signature.properties["days"]["anyOf"][0]
        {'type': 'integer'}
        >>> plannable(wait, ["until"]).text.splitlines()[-1]
        'Returns: until.'
    """
    schema = definition.parameters_schema
    properties = {name: _widened(part) for name, part in schema.get("properties", {}).items()}
    made = ToolDefinition.from_schema(
        definition.name, definition.description.summary, {**schema, "properties": properties}
    )
    learned = map(rule_sentence, definition.specification.rules)
    rules = (*definition.description.usage_rules, *learned)
    if not any(rule.startswith(_RETURNS) for rule in rules):
        told = ", ".join(fields[:MOST_FIELDS]) or "a value"
        more = " and more" if len(fields) > MOST_FIELDS else ""
        rules = (*rules, f"{_RETURNS}{told}{more}.")
    return replace(
        definition,
        signature=replace(definition.signature, parameters=made.signature.parameters),
        description=replace(
            definition.description,
            parameters=made.description.parameters,
            usage_rules=rules,
        ),
        specification=replace(definition.specification, rules=()),
    )


def _widened(schema: Any) -> Any:
    """A part of a schema that takes a reference as well."""
    if not isinstance(schema, Mapping) or _takes_any_text(schema) or _takes_references(schema):
        return schema
    inside = {key: value for key, value in schema.items() if key not in _OUTSIDE}
    if isinstance(schema.get("properties"), Mapping):
        inside["properties"] = {name: _widened(part) for name, part in schema["properties"].items()}
    if isinstance(schema.get("items"), Mapping):
        inside["items"] = _widened(schema["items"])
    if isinstance(schema.get("allOf"), list):  # where a learned rule may stand
        inside["allOf"] = [_widened(part) for part in schema["allOf"]]
    outside = {key: schema[key] for key in _OUTSIDE if key in schema}
    return {"anyOf": [inside, REFERENCE], **outside}


def _takes_any_text(schema: JsonObject) -> bool:
    declared = schema.get("type", "string")
    names = declared if isinstance(declared, list) else [declared]
    return "string" in names and set(schema) <= _FREE_TEXT


def _takes_references(schema: JsonObject) -> bool:
    alternatives = schema.get("anyOf")
    is_open = schema.keys() <= {"anyOf", *_OUTSIDE}  # what stands beside holds references as well
    return is_open and isinstance(alternatives, list) and REFERENCE in alternatives


_REFERENCE = re.compile(r'\$var\d+[^$"]*\$')


def _refers(value: Any) -> bool:
    """Whether a value holds a reference to an earlier result, such as ``$var1.id$``, anywhere."""
    return _REFERENCE.search(json.dumps(value)) is not None


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
    way: _Planned | _Executed = _Planned(nestful) if asking == "planned" else _Executed(nestful)
    known = {definition.name: definition for definition in nestful.definitions}
    tasks: list[Task] = []
    left_out: list[LeftOut] = []
    for question in nestful.questions:
        task = Task(
            task_id=question.trajectory.trajectory_id,
            category=question.category,
            request=question.trajectory.request,
            offered=_offered(question, known.values(), offered),
            expects=(DataFlow(calls=tuple(way.gold(question))),),
            instructions=way.instructions,
        )
        reason = next(task_problems(task, known), "") or _broken(question) or way.why_not(question)
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


def _broken(question: NestfulQuestion) -> str:
    """Why no answer can be equal to the gold calls: a reference leads nowhere."""
    match = compare_data_flow(question.calls, question.calls, ())
    return next((f"the gold {problem}" for problem in match.gold_problems), "")


class _Planned:
    """All calls at once."""

    instructions = INSTRUCTIONS
    world = None

    def __init__(self, nestful: Nestful) -> None:
        self._plain = {definition.name: definition for definition in nestful.definitions}
        self._fields = nestful.fields
        self.definitions: Mapping[str, ToolDefinition] = {
            definition.name: self.adapt(definition) for definition in nestful.definitions
        }

    def adapt(self, definition: ToolDefinition) -> ToolDefinition:
        """A definition that takes references."""
        return plannable(definition, self._fields.get(definition.name, ()))

    def gold(self, question: NestfulQuestion) -> Iterable[GoldCall]:
        """The gold calls, with references to results that are not there yet."""
        return question.calls

    def why_not(self, question: NestfulQuestion) -> str:
        """Why a question can not be asked so; empty when it can."""
        for call in question.calls:
            definition = self.definitions[call.name]
            flowing = [name for name, value in call.arguments.items() if _refers(value)]
            plain = gold_call_problems(call, self._plain[call.name], unknown=flowing)
            arguments = coerce(dict(call.arguments), definition.signature.parameters)
            problems = [*plain, *(one.rule for one in validator_of(definition).check(arguments))]
            if problems:
                return f"the gold call {call.name}: {problems[0]}"
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

    def why_not(self, question: NestfulQuestion) -> str:
        """Why a question can not be asked so; empty when it can."""
        if not question.is_recorded:
            return "what its calls return was not recorded"
        for call in self.gold(question):
            if _refers(call.arguments):
                return "a recorded response is cut short, and a later call needs what is missing"
            for problem in gold_call_problems(call, self.definitions[call.name]):
                return f"the gold call {call.name}: {problem}"
        return ""

    def gold(self, question: NestfulQuestion) -> Iterator[GoldCall]:
        """The gold calls, with the values that the records hold for their references."""
        trajectory = question.trajectory
        for at, step in enumerate(trajectory.steps):
            yield GoldCall(name=step.tool, arguments=trajectory.arguments(at))

    def world(self, task: Task) -> Environment:
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
