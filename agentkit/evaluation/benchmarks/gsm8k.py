"""GSM8K as a benchmark: word problems, with or without tools to calculate with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from agentkit.evaluation.benchmarks.checked_records import RecordError, checked
from agentkit.evaluation.benchmarks.environments import EnvironmentFactory, tools_of
from agentkit.evaluation.benchmarks.expectation_forms import expectations_from_json
from agentkit.evaluation.benchmarks.problem_files import file_in, read_problems
from agentkit.evaluation.json_lines import JsonLine
from agentkit.evaluation.task import Benchmark, Task
from agentkit.messages import JsonObject

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
    problem = _problem(record, line.number, stem)
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


def _problem(record: JsonObject, number: int, stem: str) -> _Problem:
    if "question" not in record:
        return checked(_Problem, record)
    row = checked(_Upstream, record)
    _, mark, answer = row.answer.rpartition("####")
    if not mark:
        raise RecordError("answer: has no #### before the number")
    return _Problem(
        id=f"gsm8k:{stem}:{number}", query=row.question, gold=answer.strip(), category=stem
    )


def _with_tools(task: Task, offered: tuple[str, ...]) -> Task:
    return replace(task, offered=offered, instructions=f"{INSTRUCTIONS}\n{WITH_TOOLS}")
