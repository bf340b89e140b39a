"""OpaqueToolsBench (arXiv 2602.15197): functions of BFCL whose documentation was taken away.

The data are recorded: the first attempts of two hosted models at each question with what the
functions answered, and the descriptions that ToolObserver, which asks a hosted model, made of such
attempts. Each of the 50 functions has two questions. Here a library learns from the attempts at
one of them and answers the other, and the reverse, so that nothing is scored on what it was
learned from. ToolObserver edits for each question apart; its description of one question serves
the other (``transfer``), and its own as upstream scores it (``own``), which has seen whether the
answers to this very question were right.

No function runs. A call is *valid* when the function of the original definition would take it, and
*right* when its arguments equal the gold ones under that definition, or when the same call was
recorded with the gold result.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from agentkit.episodes import Episode, Evidence, Turn, Verdict, Verifier
from agentkit.evaluation.expectations import GoldCall
from agentkit.evaluation.task import Benchmark, Task
from agentkit.evaluation.task_files import read_records
from agentkit.evaluation.verifiers.calls import MadeCalls
from agentkit.evaluation.verifiers.verdicts import judged
from agentkit.evolution import EvidenceProposer, ToolManager, evolve
from agentkit.evolution.checker import Judgement
from agentkit.library import Author, Library, open_store
from agentkit.messages import (
    AssistantMessage,
    JsonObject,
    ToolCall,
    ToolFailure,
    ToolResult,
)
from agentkit.metrics import CanonicalCall, canonical_calls
from agentkit.metrics.calls import validator_of
from agentkit.models.call_parser import parse_calls
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.validation import coerce

Opacity: TypeAlias = Literal[
    "noname_noparams", "noname_nodesc_noparams", "noname_nodesc_noparamdesc"
]
"""What was taken away beside the name: the parameters; them and the description; all words."""

LIBRARIES: Mapping[str, str] = {
    "opaque": "the definitions as they are given",
    "evidence": "learned from the first attempts at the other question",
    "evidence-later": "learned from these and from the attempts after ToolObserver's first edit",
    "observer-best": "ToolObserver's best description for the other question",
    "observer-last": "ToolObserver's last description for the other question",
    "observer-own": "ToolObserver's best description for this very question",
    "original": "the definitions as they were",
}
"""The libraries that are compared."""

MODELS = ("gpt-5", "gpt-5-mini")
"""Whose attempts were recorded."""

UNKNOWN: JsonObject = {"type": "object", "additionalProperties": True}
"""The schema of parameters that nobody documented: a model may give any."""

_PERSON = Author(kind="person", name="reviewer")
_AGREES = Judgement(agrees=True, reason="", author=Author(kind="model", name="judge"))

Half: TypeAlias = Literal[0, 1]
"""The first or the second question of each function."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """One question, and what is right.

    Attributes:
        question_id: Its id upstream.
        function: The function's original name.
        half: Whether it is the first or the second question of its function.
        request: What the user asks.
        gold: The arguments of the gold call.
        result: What the gold call returned.
    """

    question_id: str
    function: str
    half: Half
    request: str
    gold: JsonObject
    result: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Learned:
    """A library, and what learning it took.

    Attributes:
        library: The library.
        cpu_seconds: CPU time of the round.
        promoted: Proposals that passed all checks; the person who reviews accepted them.
        held: Proposals that the checks refused, or that still wait.
    """

    library: Library
    cpu_seconds: float = 0.0
    promoted: int = 0
    held: int = 0


class OpaqueTools:
    """The benchmark at one level of opacity.

    Args:
        folder: The files, as ``README`` of the data names them.
        opacity: What was taken away.

    Raises:
        DatasetError: The folder does not hold them.
    """

    def __init__(self, folder: Path, opacity: Opacity) -> None:
        self.folder, self.opacity = folder, opacity
        self.questions = tuple(_questions(folder))
        self._by_id = {one.question_id: one for one in self.questions}
        functions = dict.fromkeys(one.function for one in self.questions)
        self.names = {name: f"function_{at}" for at, name in enumerate(functions, start=1)}
        given = {row["original_name"]: row for row in _rows(folder, f"tools_{opacity}")}
        whole = {row["original_name"]: row for row in _rows(folder, "tools_original")}
        self.definitions = tuple(self._definition(given[name]) for name in functions)
        self.originals = tuple(self._definition(whole[name]) for name in functions)
        self._original = {one.name: one for one in self.originals}
        self._recorded = self._recorded_results()

    def benchmark(self, half: Half) -> Benchmark:
        """One question of each function."""
        tasks = [
            Task(
                task_id=one.question_id,
                category="executable_simple",
                request=one.request,
                offered=(self.names[one.function],),
                expects=(self._expected(one),),
            )
            for one in self.questions
            if one.half == half
        ]
        return Benchmark(
            name=f"OpaqueToolsBench, {'second' if half else 'first'} questions",
            tasks=tuple(tasks),
            definitions=self.definitions,
        )

    def attempts(self, half: Half, *, later: bool = False) -> Iterator[Episode]:
        """The recorded attempts at one question of each function.

        Args:
            half: Which question.
            later: The attempts after ToolObserver's first edit, instead of the first ones.
        """
        for model in MODELS:
            kind = "reruns" if later else "episodes"
            for row in _rows(self.folder, f"{kind}_{self.opacity}_{model}"):
                is_meant = row["method"] == "tool_observer" and row["version"] == 1
                if self._by_id[row["question"]].half == half and (is_meant or not later):
                    yield self._episode(row, model)

    async def learned(self, half: Half, *, later: bool = False) -> Learned:
        """The library after one round over the attempts at one question of each function.

        Whatever passes the checks is accepted, as by a judge and a person who agree with all of it.
        No model is asked.
        """
        episodes = [*self.attempts(half), *(self.attempts(half, later=True) if later else ())]
        manager = ToolManager(open_store("memory:"))
        manager.register(self.definitions)
        begun = time.process_time()
        report = await evolve(manager, [EvidenceProposer()], episodes=episodes)
        for outcome in report.waiting:
            manager.judge(outcome.record.proposal_id, _AGREES)
            manager.approve(outcome.record.proposal_id, person=_PERSON)
            while (await manager.advance_async(outcome.record.proposal_id))[0].has_moved:
                continue
        seconds = time.process_time() - begun
        states = [one.state for one in manager.ledger.proposals.values()]
        return Learned(
            library=manager.refresh(),
            cpu_seconds=seconds,
            promoted=states.count("active"),
            held=len(states) - states.count("active"),
        )

    def observed(self, half: Half, which: Literal["best", "last"]) -> Library:
        """The opaque definitions with the descriptions that ToolObserver made for one question."""
        texts: dict[str, str] = {}
        for row in _rows(self.folder, f"descriptions_{self.opacity}_tool_observer_gpt-5_gpt-5"):
            if self._by_id[row["question"]].half == half:
                name = self.names[row["original_name"]]
                texts[name] = row[which]["description"].replace(row["name"], name)
        return Library(
            replace(one, description=replace(one.description, summary=texts[one.name]))
            for one in self.definitions
        )

    def recovered(self, library: Library) -> tuple[int, int, int]:
        """How many parameters there are, and how many a library names, and names with their type.

        A type counts when it is the original one, or ``number`` for ``integer`` or the reverse.
        """
        names = types = total = 0
        for original in self.originals:
            found = library[original.name].definition.parameters_schema.get("properties", {})
            for name, schema in original.signature.properties.items():
                total += 1
                names += name in found
                types += name in found and _alike(found[name].get("type"), schema.get("type"))
        return total, names, types

    def _definition(self, row: JsonObject) -> ToolDefinition:
        return ToolDefinition.from_schema(
            self.names[row["original_name"]],
            row["description"] or "",
            row["parameters"] or UNKNOWN,
        )

    def _expected(self, question: Question) -> RecordedCall:
        name = self.names[question.function]
        alike = (
            call
            for call, result in self._recorded
            if call.name == name and [result] == question.result
        )
        return RecordedCall(
            gold=GoldCall(name=name, arguments=question.gold),
            original=self._original[name],
            alike=frozenset(alike),
        )

    def _recorded_results(self) -> list[tuple[CanonicalCall, Any]]:
        """The recorded calls that can be read, with what they returned."""
        found = []
        for row in _rows(self.folder, "function_call_cache"):
            for call in parse_calls(f"[{row['call']}]").calls:
                name = self.names.get(call.name)
                if name is not None and not call.malformed and "result" in row:
                    known = self._original[name]
                    read = canonical_calls([replace(call, name=name)], [known])[0]
                    found.append((read, row["result"]))
        return found

    def _episode(self, row: JsonObject, model: str) -> Episode:
        calls, results = [], []
        for at, made in enumerate(row["calls"], start=1):
            name = self.names[made["original_name"]]
            call = ToolCall(call_id=str(at), name=name, arguments=made["arguments"])
            calls.append(call)
            results.append(_result(call, made, made["name"]))
        message = AssistantMessage(tool_calls=tuple(calls))
        return Episode(
            episode_id=f"{model}:{row['version']}:{row['question']}",
            request=self._by_id[row["question"]].request,
            turns=(Turn(message=message, results=tuple(results)),),
            model=model,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordedCall:
    """One call, valid under the original definition, that equals gold or is known to return it.

    Attributes:
        gold: The gold call.
        original: The definition before its documentation was taken away.
        alike: Recorded calls that returned what the gold call returns.
    """

    gold: GoldCall
    original: ToolDefinition
    alike: frozenset[CanonicalCall] = frozenset()

    @property
    def gold_tools(self) -> tuple[str, ...]:
        """The tool of the gold call."""
        return (self.gold.name,)

    def verifier(self, definitions: Sequence[ToolDefinition]) -> Verifier:
        """What judges an episode; the original definition does, not the one that was offered."""
        return _Judge(self)

    def renamed(self, names: Mapping[str, str]) -> RecordedCall:
        """The same: the one tool of a question goes by its own name."""
        return self

    def to_json(self) -> tuple[str, Any]:
        """How it is written."""
        return "calls", [{"name": self.gold.name, "arguments": dict(self.gold.arguments)}]


class _Judge:
    name = "recorded_call"

    def __init__(self, expected: RecordedCall) -> None:
        self._expected = expected

    async def verify(self, episode: Episode) -> Verdict:
        """Whether exactly one valid call was made, and whether it is right."""
        expected = self._expected
        made = MadeCalls.of(episode)
        problem = self._invalid(made.calls)
        evidence = [] if not problem else [Evidence(kind="wrong_value", message=problem)]
        if not problem:
            gold = ToolCall(call_id="", name=expected.gold.name, arguments=expected.gold.arguments)
            read, right = canonical_calls([made.calls[0], gold], [expected.original])
            if read != right and read not in expected.alike:
                message = f"{expected.gold.arguments} is right, got {made.calls[0].arguments}"
                evidence = [Evidence(kind="wrong_value", message=message)]
        return judged(self.name, evidence, metrics={"valid": float(not problem)})

    def _invalid(self, calls: Sequence[ToolCall]) -> str:
        if len(calls) != 1:
            return f"{len(calls)} calls, where one is due"
        [call], original = calls, self._expected.original
        if call.name != original.name:
            return f"there is no function {call.name!r}"
        arguments = coerce(dict(call.arguments), original.signature.parameters)
        unknown = set(arguments) - set(original.signature.properties)
        if unknown:
            return f"got an unexpected argument {min(unknown)!r}"
        return next((one.rule for one in validator_of(original).check(arguments)), "")


def _questions(folder: Path) -> Iterator[Question]:
    seen: set[str] = set()
    for row in _rows(folder, "questions"):
        [call] = row["gold_calls"]
        yield Question(
            question_id=row["id"],
            function=call["name"],
            half=1 if call["name"] in seen else 0,
            request=row["question"],
            gold=call["arguments"],
            result=row["gold_result"],
        )
        seen.add(call["name"])


def _result(call: ToolCall, made: JsonObject, name: str) -> ToolResult:
    if "error" not in made:
        value = made["result"]
        return ToolResult(
            call_id=call.call_id, name=call.name, status="ok", value=value, text=str(value)
        )
    words = made["error"].replace(f"{name}()", f"{call.name}()")
    failure = ToolFailure(kind="retry_requested", rule=words)
    return ToolResult(
        call_id=call.call_id, name=call.name, status="failed", text=words, failure=failure
    )


def _rows(folder: Path, name: str) -> Iterable[JsonObject]:
    path = folder / f"{name}.jsonl.gz"
    if not path.is_file():
        path = folder / f"{name}.jsonl"
    return read_records(path)


def _alike(found: object, original: object) -> bool:
    numbers = {"integer", "number"}
    return found == original or {found, original} <= numbers


OPACITIES: tuple[Opacity, ...] = get_args(Opacity)
"""All levels of opacity."""
