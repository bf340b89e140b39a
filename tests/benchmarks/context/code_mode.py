"""Code mode beside plain calling: requests to the model, tokens, calls and right answers.

Questions are NESTFUL's with recorded responses, and BFCL's parallel ones, whose tools answer
"done". An oracle answers with the gold calls: one by one, in one message where none needs another,
or as one program. So the rows tell what the ways cost when nothing goes wrong. With ``--local`` a
small model answers instead, one thread, and the rows also tell what it gets right.

    python tests/benchmarks/context/code_mode.py --nestful FOLDER --json docs/benchmarks/code_mode.json
    python tests/benchmarks/context/code_mode.py --nestful FOLDER --local smollm2-135m --limit 20
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness import arguments, machine, table

from agentkit import Agent, Library, Tool
from agentkit.agent import Limits
from agentkit.composites.language import is_dotted, written
from agentkit.evaluation import AllowedCalls, Scene, Task, verifier_for
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory
from agentkit.messages import ToolCall, message_to_json
from agentkit.models import ChatModel, ModelRequest
from agentkit.retrieval import estimate_tokens, schema_text
from agentkit.testing import FunctionModel
from agentkit_bench import fetch_bfcl, load_bfcl, load_nestful, nestful_benchmark

PARALLEL = ("parallel", "parallel_multiple", "live_parallel", "live_parallel_multiple")
WAYS = ("one by one", "side by side", "program")


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, the tools that it offers, and its gold calls with the flow of data."""

    task: Task
    tools: tuple[Tool, ...]
    gold: Trajectory


def nestful_questions(folder: Path) -> Iterator[Question]:
    """NESTFUL's questions whose responses were recorded."""
    known = {one.trajectory.trajectory_id: one.trajectory for one in load_nestful(folder).questions}
    benchmark = nestful_benchmark(folder, asking="executed")
    assert benchmark.environment is not None
    for task in benchmark.tasks:
        tools = tuple(benchmark.environment(task).tools())
        yield Question(task=task, tools=tools, gold=known[task.task_id])


def bfcl_questions() -> Iterator[Question]:
    """BFCL's parallel questions."""
    benchmark = load_bfcl(fetch_bfcl())
    known = {one.name: one for one in benchmark.definitions}
    for task in benchmark.tasks:
        expects = task.expects[0] if task.expects else None
        if task.category not in PARALLEL or not isinstance(expects, AllowedCalls):
            continue
        steps = tuple(
            Step(
                tool=call.name,
                sources={name: Given(value=value) for name, value in _first(call.allowed).items()},
                result="done",
            )
            for call in expects.calls
        )
        tools = tuple(
            Tool(definition=known[name], function=lambda **_: "done") for name in task.offered
        )
        gold = Trajectory(trajectory_id=task.task_id, steps=steps, request=task.request)
        yield Question(task=task, tools=tools, gold=gold)


def _first(allowed: Any) -> Any:
    """The first of the allowed values, of those in objects as well; "" means none."""
    if not isinstance(allowed, Mapping):
        return allowed
    return {name: _first(of[0]) for name, of in allowed.items() if of[0] != ""}


def messages_of(gold: Trajectory, way: str) -> Iterator[list[ToolCall]]:
    """What the oracle calls, message by message."""
    if way == "program":
        yield [ToolCall(call_id="p", name="run_program", arguments={"program": program_of(gold)})]
        return
    calls = [
        ToolCall(call_id=str(at), name=step.tool, arguments=gold.arguments(at))
        for at, step in enumerate(gold.steps)
    ]
    level: list[int] = []
    for step in gold.steps:
        uses = [source.step for source in step.sources.values() if isinstance(source, Flow)]
        uses += [one for s in step.sources.values() if isinstance(s, Given) for one in s.uses]
        level.append(1 + max((level[one] for one in uses), default=-1))
    groups = range(len(calls)) if way == "one by one" else range(max(level) + 1)
    for group in groups:
        key = range(len(calls)) if way == "one by one" else level
        yield [call for call, of in zip(calls, key, strict=True) if of == group]


def program_of(gold: Trajectory) -> str:
    """The gold calls as a program that returns what the answer needs."""
    lines, used = [], set[int]()
    for at, step in enumerate(gold.steps):
        given = ", ".join(f"{name}={_text(one)}" for name, one in step.sources.items())
        name = step.tool if is_dotted(step.tool) else written(step.tool)
        lines.append(f"x{at} = {name}({given})")
        used |= {one.step for one in step.sources.values() if isinstance(one, Flow)}
    wanted = [f"x{at}" for at in range(len(gold.steps)) if at in gold.answered or at not in used]
    return "\n".join([*lines, f"return [{', '.join(wanted)}]"])


def _text(source: Any) -> str:
    if isinstance(source, Given):
        return repr(source.value)
    path = f"x{source.step}" + "".join(f"[{part!r}]" for part in source.path)
    return f"{source.cast}({path})" if source.cast else path


class Oracle:
    """Answers with the gold calls, and estimates the tokens that go over the wire."""

    def __init__(self, gold: Trajectory, way: str) -> None:
        self._answers = messages_of(gold, way)
        self.read = self.wrote = self.asked = 0

    def __call__(self, request: ModelRequest) -> Any:
        answer = next(self._answers, "done")
        said = [json.dumps(message_to_json(one)) for one in request.messages]
        self.read += sum(map(estimate_tokens, [*map(schema_text, request.tools), *said]))
        made = answer if isinstance(answer, str) else json.dumps([one.to_json() for one in answer])
        self.wrote += estimate_tokens(made)
        self.asked += 1
        return answer


async def ask(question: Question, way: str, local: ChatModel | None) -> dict[str, float]:
    """One question, asked one way."""
    oracle = Oracle(question.gold, way)
    agent = Agent(
        local or FunctionModel(oracle),
        library=Library(question.tools),
        retriever=None,
        instructions=question.task.instructions,
        code_mode=way == "program",
        limits=Limits(max_steps=3 if local else 64, max_calls=100),
    )
    result = await agent.run(question.task.request)
    scene = Scene(definitions=tuple(tool.definition for tool in question.tools))
    verdicts = [
        await verifier_for(one, scene).verify(result.episode) for one in question.task.expects
    ]
    usage = result.usage
    done = [one for turn in result.episode.turns for _, one in turn.steps() if one]
    programs = [one for one in result.episode.results if one.name == "run_program"]
    return {
        "right": all(one.passed for one in verdicts),
        "requests": usage.requests if local else oracle.asked,
        "read": usage.prompt_tokens if local else oracle.read,
        "written": usage.completion_tokens if local else oracle.wrote,
        "calls": sum(one.status == "ok" for one in done),
        "valid programs": sum("nothing of the program was run" not in p.text for p in programs),
        "programs": len(programs),
    }


async def row(name: str, questions: Sequence[Question], way: str, local: Any) -> dict[str, Any]:
    """A row of the table."""
    found = [await ask(one, way, local) for one in questions]
    count = len(found)
    mean: Callable[[str], float] = lambda key: sum(one[key] for one in found) / count  # noqa: E731
    made = {
        "questions": name,
        "n": count,
        "way": way,
        "right": f"{sum(one['right'] for one in found)}",
        "requests": f"{mean('requests'):.2f}",
        "tokens read": f"{mean('read'):,.0f}",
        "tokens written": f"{mean('written'):,.0f}",
        "calls that succeeded": f"{mean('calls'):.2f}",
    }
    valid = f"{sum(o['valid programs'] for o in found)} of {sum(o['programs'] for o in found)}"
    return {**made, "programs that were valid": valid if way == "program" else ""}


async def main() -> None:
    """Ask all questions all ways, and print the table."""
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--nestful", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="questions of each set, evenly spread")
    parser.add_argument("--local", metavar="MODEL")
    asked = parser.parse_args()
    local = None
    if asked.local:
        from agentkit_local import LocalModel

        local = LocalModel(asked.local, threads=1, context_tokens=8192, max_tokens=256)
    rows = []
    sets = {"NESTFUL": nestful_questions(asked.nestful), "BFCL parallel": bfcl_questions()}
    for name, found in sets.items():
        questions = list(found)
        step = max(1, len(questions) // asked.limit) if asked.limit else 1
        ways = ("one by one", "program") if local else WAYS
        for way in ways:
            print(f"{name}, {way}", file=sys.stderr)
            rows.append(await row(name, questions[::step][: asked.limit], way, local))
    print(table(rows))
    print(json.dumps(machine()))
    if asked.json:
        asked.json.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
