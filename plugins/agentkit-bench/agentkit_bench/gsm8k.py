"""GSM8K: word problems whose solutions write every calculation as ``<<48/2=24>>``.

Upstream (openai/grade-school-math, MIT) is JSON lines of a question and an answer that ends in
``#### 72``. Here a solution becomes what an agent with arithmetic tools would have done: each
calculation is read by the parser of the composite language, each operator is a call of a tool,
and a number that an earlier calculation stated is the result of that calculation. The episodes
have the form of any other, so that composites can be mined from them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Literal

from agentkit.composites.parser import parse_expression
from agentkit.composites.syntax import OPERATORS
from agentkit.episodes import Episode, Turn, Verdict
from agentkit.errors import CompositeError, DatasetError, ToolSignal, UsageError
from agentkit.evaluation.environments import EnvironmentFactory, tools_of
from agentkit.evaluation.expectations import RecordError, checked, expectations_from_json
from agentkit.evaluation.task import Benchmark, Task
from agentkit.evaluation.task_files import JsonLine, read_json_lines
from agentkit.library.library import Library
from agentkit.messages import AssistantMessage, JsonObject, ToolCall, ToolResult
from agentkit.tools.invocation import UnserialisableError, encode_result
from agentkit.tools.tool import Tool
from agentkit_bench.problem_files import file_in, read_problems

FILES = ("test.jsonl", "problems.jsonl.gz", "train.jsonl")
"""What is looked for in a folder, in this order."""

INSTRUCTIONS = (
    "Solve the problem. Work it out step by step. End with one line that holds only #### and the "
    "number, in digits and without a unit, such as: #### 42"
)
WITH_TOOLS = "Do the calculations with the tools."


def gsm8k_benchmark(path: Path, *, environment: EnvironmentFactory | None = None) -> Benchmark:
    """The problems, each with the number that its answer has to end in.

    Upstream (openai/grade-school-math, MIT) is no package, so a path has to be given.

    Args:
        path: JSON lines as upstream has them (``question``, ``answer``), or the same problems with
            the fields ``id``, ``query``, ``gold`` and ``category``; or the folder of such a file.
        environment: Brings tools to calculate with, see ``with_tools``. None asks without tools.

    Returns:
        The problems; the category is the name of the file (``test``, ``train``), or the one that
        the row names. Rows that are no problem are left out with the reason.

    Raises:
        DatasetError: There is no such file, or no row in it is a problem of GSM8K.
        UsageError: The environment does not take a problem.
    """
    file = file_in(path, FILES, "give a file of GSM8K")
    tasks, left_out = read_problems(
        file, lambda record, line: _task(record, line, file.name.partition(".")[0]), "GSM8K"
    )
    if environment is None:
        return Benchmark(name="GSM8K", tasks=tasks, left_out=left_out)
    definitions = tuple(tool.definition for tool in tools_of(environment, tasks[0]))
    offered = tuple(definition.name for definition in definitions)
    return Benchmark(
        name="GSM8K with tools",
        tasks=tuple(_with_tools(task, offered) for task in tasks),
        definitions=definitions,
        environment=environment,
        left_out=left_out,
    )


@dataclass(frozen=True, kw_only=True)
class _Upstream:
    question: str
    answer: str


@dataclass(frozen=True, kw_only=True)
class _Problem:
    id: str
    query: str
    gold: str
    category: str


def _task(record: JsonObject, line: JsonLine, stem: str) -> Task:
    if "question" in record:
        row = checked(_Upstream, record)
        _, mark, answer = row.answer.rpartition("####")
        if not mark:
            raise RecordError("answer: has no #### before the number")
        name = f"gsm8k:{stem}:{line.number}"
        problem = _Problem(id=name, query=row.question, gold=answer.strip(), category=stem)
    else:
        problem = checked(_Problem, record)
    if not problem.query.strip():
        raise RecordError("the question is empty")
    return Task(
        task_id=problem.id,
        category=problem.category,
        request=problem.query,
        offered=(),
        expects=expectations_from_json({"number": problem.gold}, "the answer"),
        instructions=INSTRUCTIONS,
    )


def _with_tools(task: Task, offered: tuple[str, ...]) -> Task:
    return replace(task, offered=offered, instructions=f"{INSTRUCTIONS}\n{WITH_TOOLS}")


OPERATOR_TOOLS: Mapping[str, str] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floor_div",
}
"""The tool that stands for each operator; its first two parameters are the operands."""

ReplayOutcome = Literal[
    "reproduced",  # the last result is the answer
    "no_calculation",  # the solution calculates nothing, so there is nothing to call
    "unreadable",  # a calculation is more than numbers, operators and brackets
    "tool_failed",  # a tool refused its arguments
    "disagrees",  # a calculation gives another value than the solution states
    "incomplete",  # every calculation holds, yet the last result is not the answer
]

_CALCULATION = re.compile(r"<<([^<>]*)=([^<>=]*)>>")
_ANSWER = re.compile(r"^####\s*(\S+)\s*\Z", re.MULTILINE)
_TOLERANCE = Fraction(1, 10**9)


@dataclass(frozen=True, kw_only=True, slots=True)
class Calculation:
    """One calculation of a solution.

    Attributes:
        expression: What is calculated, such as ``(20/100)*50``.
        stated: What the solution says that it gives.
    """

    expression: str
    stated: str

    def __str__(self) -> str:
        return f"<<{self.expression}={self.stated}>>"


@dataclass(frozen=True, kw_only=True, slots=True)
class WordProblem:
    """One problem of GSM8K.

    Attributes:
        problem_id: Its file and line, for upstream has no ids.
        question: The problem in words.
        calculations: Those of the solution, in order.
        answer: The number to find, as written.
    """

    problem_id: str
    question: str
    calculations: tuple[Calculation, ...]
    answer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SolutionReplay:
    """What came of doing a solution's calculations with tools.

    Attributes:
        problem: The problem.
        outcome: How it ended.
        detail: What was wrong, in words; empty when the answer was reproduced.
        calls: The calls that were made, in order.
        results: Their results, in the same order.
    """

    problem: WordProblem
    outcome: ReplayOutcome
    detail: str = ""
    calls: tuple[ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()


def load_gsm8k(path: Path) -> tuple[WordProblem, ...]:
    """Read a file of GSM8K.

    Args:
        path: JSON lines as upstream has them, such as its ``test.jsonl``.

    Raises:
        DatasetError: A line is no object with a question and an answer, or the answer does not
            end in a number.
    """
    problems = []
    for line in read_json_lines(path):
        try:
            problems.append(_problem(line, path.stem))
        except (RecordError, _UnreadableError) as error:
            raise DatasetError(
                f"{path.name}, line {line.number}: {error}; expected an object with question and "
                "answer, and a number after #### at the end of the answer"
            ) from error
    return tuple(problems)


def replay_solution(problem: WordProblem, library: Library) -> SolutionReplay:
    """Do a solution's calculations with tools.

    Args:
        problem: The problem.
        library: Holds the tools of ``OPERATOR_TOOLS``, bound to sync functions.

    Raises:
        ToolNotFoundError: The library lacks one of them.
        UsageError: One of them does not take two arguments, or does not run here.
    """
    work = _Work(tools={op: _Operation.of(library[name]) for op, name in OPERATOR_TOOLS.items()})
    outcome, detail = _done(problem, work)
    return SolutionReplay(
        problem=problem,
        outcome=outcome,
        detail=detail,
        calls=tuple(work.calls),
        results=tuple(work.results),
    )


def gsm8k_episodes(problems: Iterable[WordProblem], library: Library) -> Iterator[Episode]:
    """The solutions that tools alone reproduce, as successful episodes with one call a turn.

    Args:
        problems: Where the solutions come from; those with another outcome are left out.
        library: Holds the tools of ``OPERATOR_TOOLS``, bound to sync functions.

    Raises:
        ToolNotFoundError: The library lacks one of them.
        UsageError: One of them does not take two arguments, or does not run here.
    """
    for problem in problems:
        replay = replay_solution(problem, library)
        if replay.outcome == "reproduced":
            yield _episode(replay, library)


class _UnreadableError(ValueError):
    """Something in a solution stands for no number and no tool."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Operation:
    """A tool that takes two numbers."""

    tool: Tool
    first: str
    second: str

    @classmethod
    def of(cls, tool: Tool) -> _Operation:
        names = tuple(tool.definition.signature.properties)
        if len(names) != 2 or not tool.is_bound or tool.is_async:
            raise UsageError(
                f"the tool {tool.name!r} stands for an operator, so it must take two numbers and "
                f"be bound to a sync function; it takes {', '.join(names) or 'nothing'}"
            )
        return cls(tool=tool, first=names[0], second=names[1])


@dataclass(kw_only=True)
class _Work:
    """The calls made so far.

    Attributes:
        tools: By operator.
        stated: For each calculation done, the value stated and what came out.
    """

    tools: Mapping[str, _Operation]
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)
    stated: list[tuple[Fraction, float]] = field(default_factory=list)

    def value(self, expression: ast.expr) -> float:
        """The value of an expression; every operator in it is one call."""
        match expression:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                exact = Fraction(str(number))  # where it was stated, the result that it stands for
                earlier = [result for stated, result in self.stated if stated == exact]
                return earlier[-1] if earlier else number
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return -number
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.value(operand)
            case ast.BinOp(op=op, left=left, right=right) if OPERATORS[type(op)] in self.tools:
                operation = self.tools[OPERATORS[type(op)]]
                return self._call(operation, self.value(left), self.value(right))
            case _:
                raise _UnreadableError(f"no tool stands for {type(expression).__name__}")

    def _call(self, operation: _Operation, left: float, right: float) -> float:
        tool, call_id = operation.tool, f"call_{len(self.calls) + 1}"
        arguments = {operation.first: left, operation.second: right}
        value, text = encode_result(tool(**arguments))
        self.calls.append(ToolCall(call_id=call_id, name=tool.name, arguments=arguments))
        self.results.append(
            ToolResult(call_id=call_id, name=tool.name, status="ok", value=value, text=text)
        )
        result: float = value
        return result


def _done(problem: WordProblem, work: _Work) -> tuple[ReplayOutcome, str]:
    for calculation in problem.calculations:
        fault = _fault(calculation, work)
        if fault is not None:
            outcome, why = fault
            return outcome, f"{calculation}: {why}"
    if not work.calls:
        return "no_calculation", "the solution is in words alone"
    last = work.stated[-1][1]
    if not _is_near(last, _number(problem.answer)):
        return "incomplete", f"the last result is {last}, the answer {problem.answer}"
    return "reproduced", ""


def _fault(calculation: Calculation, work: _Work) -> tuple[ReplayOutcome, str] | None:
    """Do one calculation; what is wrong with it, or None."""
    try:
        stated = _number(calculation.stated)
        found = work.value(parse_expression(calculation.expression.strip(), ()))
    except CompositeError as error:
        return "unreadable", error.problems[0].message
    except _UnreadableError as error:
        return "unreadable", str(error)
    except (ToolSignal, UnserialisableError) as refused:
        return "tool_failed", str(refused)
    if not _is_near(found, stated):
        return "disagrees", f"the tools give {found}"
    work.stated.append((stated, found))
    return None


def _is_near(value: float, wanted: Fraction) -> bool:
    """Whether two numbers are equal up to the rounding of binary floats."""
    return abs(Fraction(value) - wanted) <= _TOLERANCE * max(Fraction(1), abs(wanted))


def _number(text: str) -> Fraction:
    """A number as people write it: ``2,125``, ``75.00``, ``.5``, ``3/4``."""
    try:
        return Fraction(text.strip().replace(",", ""))
    except (ValueError, ZeroDivisionError) as error:
        raise _UnreadableError(f"{text!r} is no number") from error


def _problem(line: JsonLine, stem: str) -> WordProblem:
    row = checked(_Upstream, line.read())
    answer = _ANSWER.search(row.answer)
    if answer is None:
        raise RecordError("the answer has no line with ####")
    _number(answer[1])
    return WordProblem(
        problem_id=f"{stem}:{line.number}",
        question=row.question,
        calculations=tuple(
            Calculation(expression=expression, stated=stated)
            for expression, stated in _CALCULATION.findall(row.answer)
        ),
        answer=answer[1],
    )


def _episode(replay: SolutionReplay, library: Library) -> Episode:
    problem = replay.problem
    turns = [
        Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
        for call, result in zip(replay.calls, replay.results, strict=True)
    ]
    return Episode(
        episode_id=f"gsm8k:{problem.problem_id}",
        request=problem.question,
        turns=(*turns, Turn(message=AssistantMessage(text=problem.answer))),
        output=problem.answer,
        library_version=library.version,
        library_digest=library.digest,
        verdict=Verdict(passed=True, score=1.0),
        metadata={"benchmark": "gsm8k"},
    )
