"""Whether our verdicts on BFCL's questions are those of the public checker (docs/agentkit-bench.md).

    pip install --no-deps --target FOLDER bfcl_eval==2026.3.23 mpmath
    python tests/benchmarks/bfcl_agreement.py --package FOLDER [--category NAME ...] [--limit N]
    python tests/benchmarks/bfcl_agreement.py --package FOLDER --multi-turn [--limit N] [--details]

Each question is answered rightly and wrongly, by its gold (``bfcl_answers.py``), and both checkers judge
each answer. Theirs is given decoded calls of single turns; its decoder, which evaluates model output, is
never imported, and a stand-in takes the place of its list of models, which imports every provider's
client. Multi-turn calls it evaluates as Python; that is why it runs here and nowhere else. Ours judges
these once run as they are, which compares the checkers alone, and once made by an agent, whose executor
checks and mends arguments and runs only what is offered.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import json
import random
import sys
import types
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bfcl_answers import Altering, Calls, Gold, Output, Trial, free_outputs, gold_of, outputs
from harness import arguments, report

from agentkit import Agent
from agentkit.agent.types import Limits
from agentkit.episodes import Episode, Turn
from agentkit.errors import DatasetError
from agentkit.evaluation import AllowedCalls, Benchmark, GoldCall, Task, UserTurn
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers import AllOf, Scene, verifier_for
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.metrics.allowed_values import match_allowed_values
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.bfcl import CATEGORIES, load_bfcl
from agentkit_bench.bfcl_multi_turn import find_files, installed_bfcl, load_bfcl_multi_turn

SHOWN = 5
"""How many unexplained differences of a category are printed."""

_MODELS = "bfcl_eval.constants.model_config"
_LANGUAGES = {"simple_java": "JAVA", "simple_javascript": "JAVASCRIPT"}
_EVALUATION = "bfcl_eval.eval_checker"
Decoded = Sequence[Mapping[str, Mapping[str, Any]]]
"""Calls as upstream's decoder gives them: one object each, from the name to the arguments."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A single-turn question as upstream's files have it."""

    task_id: str
    category: str
    function: Sequence[Mapping[str, Any]]
    gold: Gold = ()


@dataclass(frozen=True, kw_only=True)
class Said:
    """Upstream's verdict, None when it raised instead, and its error type or the exception."""

    valid: bool | None
    reason: str = ""


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a file of JSON lines; none where it is not there."""
    lines = path.read_text("utf-8").split("\n") if path.is_file() else []
    return [json.loads(line) for line in lines if line.strip()]


class Upstream:
    """Upstream's checker of single turns, read from the folder that holds ``bfcl_eval``."""

    def __init__(self, folder: Path) -> None:
        if not (folder / "bfcl_eval").is_dir():
            raise FileNotFoundError(f"{folder} holds no folder bfcl_eval; see this module's text")
        sys.path.insert(0, str(folder))
        try:
            models = types.ModuleType(_MODELS)
            plain = types.SimpleNamespace(underscore_to_dot=False)
            vars(models)["MODEL_CONFIG_MAPPING"] = {"agreement": plain}
            sys.modules[_MODELS] = models
            if importlib.util.find_spec("filelock") is None:
                sys.modules["filelock"] = types.ModuleType("filelock")
                vars(sys.modules["filelock"])["FileLock"] = None
            checker = importlib.import_module(f"{_EVALUATION}.ast_eval.ast_checker")
            self._checker = checker.ast_checker
            self._utils = importlib.import_module("bfcl_eval.utils")
            readers = {
                "simple_java": "java_type_converter",
                "simple_javascript": "js_type_converter",
            }
            self._readers = {
                category: getattr(
                    importlib.import_module(f"{_EVALUATION}.ast_eval.type_convertor.{name}"), name
                )
                for category, name in readers.items()
            }
            self._languages = importlib.import_module("bfcl_eval.constants.enums").Language
        finally:
            sys.path.remove(str(folder))

    def judge(self, question: Question, decoded: Decoded | None) -> Said:
        """The verdict on the calls of one answer; None: they could not be decoded."""
        calls = None if decoded is None else list(decoded)
        if "relevance" in question.category:
            called = calls is not None and not self._utils.is_empty_output(calls)
            return Said(valid=called != ("irrelevance" in question.category))
        if calls is None or not self._utils.is_function_calling_format_output(calls):
            return Said(valid=False, reason="ast_decoder")
        language = self._languages[_LANGUAGES.get(question.category, "PYTHON")]
        asked = (list(question.function), calls, list(question.gold), language)
        try:
            said = self._checker(*asked, question.category, "agreement")
        except Exception as error:  # noqa: BLE001 - whatever it raises is what is counted
            return Said(valid=None, reason=f"{type(error).__name__}: {error}")
        return Said(valid=bool(said["valid"]), reason=str(said.get("error_type", "")))

    def read(self, category: str, text: str, schema: Mapping[str, Any]) -> Any:
        """The value that upstream reads in a source text of its Java or JavaScript category."""
        item = schema["items"]["type"] if "items" in schema else None
        return self._readers[category](text, schema["type"], item)


@dataclass(kw_only=True)
class Agreement:
    """How one category compares; ``classes`` are the differences by reason."""

    category: str
    items: int = 0
    outputs: int = 0
    passed: int = 0
    unsayable: int = 0
    gold_passed: int = 0
    upstream_gold: int = 0
    differing: int = 0
    disagreeing: set[str] = field(default_factory=set)
    classes: Counter[str] = field(default_factory=Counter)
    unexplained: list[tuple[str, Output, Said]] = field(default_factory=list)

    def row(self) -> dict[str, Any]:
        """For the table."""
        agreeing = self.items - len(self.disagreeing)
        return {
            "category": self.category,
            "questions": self.items,
            "answers": self.outputs,
            "right": self.passed,
            "same on all answers": f"{agreeing / max(self.items, 1):.2%}",
            "same answers": f"{1 - self.differing / max(self.outputs, 1):.3%}",
            "gold passes ours": self.gold_passed,
            "theirs": self.upstream_gold,
            "no source text": self.unsayable,
            "differences": "; ".join(f"{n} {reason}" for reason, n in self.classes.most_common()),
        }


class Comparison:
    """Both checkers over the single-turn questions of the package in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "bfcl_eval" / "data"
        self.upstream = Upstream(folder)
        benchmark = load_bfcl(self.data)
        self._tasks = {task.task_id: task for task in benchmark.tasks}
        self._known = {one.name: one for one in benchmark.definitions}

    def category(self, category: str, limit: int | None = None) -> Agreement:
        """Compare on every question of a category, or on the first so many."""
        agreement, name = Agreement(category=category), f"BFCL_v4_{category}.json"
        answers = records(self.data / "possible_answer" / name)
        gold = {row["id"]: row["ground_truth"] for row in answers}
        for row in records(self.data / name)[:limit]:
            question = Question(
                task_id=row["id"],
                category=category,
                function=row["function"],
                gold=gold.get(row["id"], ()),
            )
            agreement.items += 1
            asyncio.run(self._question(question, agreement))
        return agreement

    async def _question(self, question: Question, agreement: Agreement) -> None:
        task = self._tasks[question.task_id]
        names = dict(zip([one["name"] for one in question.function], task.offered, strict=False))
        language = _LANGUAGES.get(question.category, "PYTHON").lower()
        made = (
            outputs(question.gold, question.function, language)
            if question.gold
            else free_outputs(question.function)
        )
        ours_gold = theirs_gold = False
        for output in made:
            if not self._can_be_said(question, output):
                agreement.unsayable += 1
                continue
            ours = await self._ours(task, named_calls(output.calls, names))
            source = output.calls if output.source is None else output.source
            said = self.upstream.judge(question, decoded(source))
            agreement.outputs += 1
            agreement.passed += ours
            if output.kind.startswith("gold:"):
                ours_gold |= ours
                theirs_gold |= bool(said.valid)
            if said.valid is not ours:
                self._differ(question, task, output, names, said, agreement)
        agreement.gold_passed += ours_gold
        agreement.upstream_gold += theirs_gold

    async def _ours(self, task: Task, calls: Sequence[ToolCall]) -> bool:
        """Our verdict, by the verifiers that ``agentkit eval`` judges episodes with."""
        turn = Turn(message=AssistantMessage(tool_calls=tuple(calls)))
        episode = Episode(episode_id="1", request=task.request, turns=(turn,))
        scene = Scene(definitions=tuple(self._definitions(task)))
        verdicts = [await verifier_for(one, scene).verify(episode) for one in task.expects]
        broken = [verdict for verdict in verdicts if verdict.fault == "checker_error"]
        if broken:
            raise RuntimeError(f"{task.task_id}: {broken[0].evidence[0]}")
        return all(verdict.passed for verdict in verdicts)

    def _definitions(self, task: Task) -> list[ToolDefinition]:
        return [self._known[name] for name in task.offered]

    def _can_be_said(self, question: Question, output: Output) -> bool:
        """Whether upstream reads the source text of JSON values as just these values."""
        if output.calls is None or output.source is None:
            return True
        schemas = {one["name"]: one["parameters"]["properties"] for one in question.function}
        for (name, given), (_, texts) in zip(output.calls, output.source, strict=True):
            for argument, value in given.items():
                schema = schemas.get(name, {}).get(argument)
                if isinstance(value, str) or schema is None:
                    continue
                found = self.upstream.read(question.category, texts[argument], schema)
                if found not in (value, texts[argument]):
                    return False
        return True

    def _differ(
        self,
        question: Question,
        task: Task,
        output: Output,
        names: Mapping[str, str],
        said: Said,
        agreement: Agreement,
    ) -> None:
        """Count a difference under its reason; answers that no JSON call holds count apart."""
        reason = self._reason(question, task, output, names, said)
        agreement.classes[reason] += 1
        if said.valid is not None and output.is_json:
            agreement.disagreeing.add(question.task_id)
            agreement.differing += 1
        if reason.startswith("unexplained"):
            agreement.unexplained.append((question.task_id, output, said))

    def _reason(
        self, question: Question, task: Task, output: Output, names: Mapping[str, str], said: Said
    ) -> str:
        if said.valid is None:
            return f"upstream raises: {said.reason.split(':')[0]}"
        if said.reason.startswith("parallel"):
            made = named_calls(output.calls or (), names)
            allowed = [one for one in task.expects if isinstance(one, AllowedCalls)]
            language = next((one.language for one in allowed), None)
            matched = match_allowed_values(
                made, task.gold, self._definitions(task), language=language
            )
            ordered = tuple((output.calls or ())[at] for _, at in matched.pairs)
            if matched.passed and self.upstream.judge(question, decoded(ordered)).valid:
                return "upstream takes the first call that fits"
        if output.calls is None:
            return "arguments that cannot be read count as a call where none is expected"
        if not output.is_json:
            return "a tuple, which no JSON call holds"
        options = (
            one for call in task.gold for allowed in call.allowed.values() for one in allowed
        )
        members = (member for one in options if isinstance(one, dict) for member in one.values())
        if any(isinstance(member, str) for member in members):
            return "gold has one text where a list of options is due"
        return f"unexplained: {output.kind}"


def named_calls(calls: Calls | None, names: Mapping[str, str]) -> list[ToolCall]:
    """Calls as our runtime holds them; names are those of the catalogue."""
    if calls is None:
        return [ToolCall(call_id="0", name=next(iter(names.values()), "x"), malformed="{")]
    return [
        ToolCall(call_id=str(at), name=names.get(name, name), arguments=given)
        for at, (name, given) in enumerate(calls)
    ]


def decoded(calls: Calls | None) -> Decoded | None:
    """Calls as upstream's decoder gives them."""
    return None if calls is None else [{name: given} for name, given in calls]


# --- multi-turn --------------------------------------------------------------------------------

Answering = Callable[[Environment, Sequence[str], UserTurn, Sequence[GoldCall]], Awaitable[Episode]]
WAYS = ("direct", "agent")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What is wrong with a trial, or nothing: run directly, by an agent, and by upstream's checker.

    ``executor`` is what the agent's executor made of calls that it did not run as they are.
    """

    trial: Trial
    direct: str
    agent: str
    theirs: str
    executor: str = ""

    def is_same(self, way: str) -> bool:
        """Whether our verdict, reached in this way, is theirs."""
        return bool(getattr(self, way)) == bool(self.theirs)


class Theirs:
    """The package's own checker of multi-turn questions."""

    def __init__(self, package: Path) -> None:
        folder = f"{_EVALUATION}.multi_turn_eval"
        self._checker = importlib.import_module(f"{folder}.multi_turn_checker")
        self._worlds = importlib.import_module(f"{folder}.multi_turn_utils")
        self._rows: dict[str, Any] = {}
        self._texts: dict[str, Sequence[Sequence[str]]] = {}
        data = find_files(package).data
        for path in sorted(data.glob("BFCL_v4_multi_turn_*.json")):
            self._rows |= {row["id"]: row for row in records(path)}
            answers = records(data / "possible_answer" / path.name)
            self._texts |= {row["id"]: row["ground_truth"] for row in answers}

    def error(self, trial: Trial) -> str:
        """The kind of error that is found; empty when there is none."""
        task, before = trial.task.task_id, set(vars(self._worlds))
        said = [[self._said(trial, at)] if calls else [] for at, calls in enumerate(trial.turns)]
        try:
            result = self._checker.multi_turn_checker(
                said, self._texts[task], dict(self._rows[task]), trial.task.category, "trial"
            )
        finally:
            for name in set(vars(self._worlds)) - before:  # or the next trial would go on with them
                delattr(self._worlds, name)
        return "" if result["valid"] else str(result["error_type"])

    def _said(self, trial: Trial, turn: int) -> list[str]:
        """Calls as upstream's text: its own for a gold call, else written out."""
        gold, texts = gold_of(trial.task)[turn], self._texts[trial.task.task_id][turn]
        own = dict(zip(map(written, gold), texts, strict=True))
        return [own.get(written(call), written(call)) for call in trial.turns[turn]]


def written(call: GoldCall) -> str:
    """A call as Python."""
    given = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return f"{call.name}({given})"


async def compared(
    benchmark: Benchmark, theirs: Theirs, trials: Iterable[Trial]
) -> AsyncIterator[Outcome]:
    """The verdicts on each trial."""
    for trial in trials:
        direct, _ = await judged_run(benchmark, trial, run_directly)
        agent, episodes = await judged_run(benchmark, trial, run_agent)
        yield Outcome(
            trial=trial,
            direct=direct,
            agent=agent,
            theirs=theirs.error(trial),
            executor=executor_did(trial, episodes),
        )


async def judged_run(
    benchmark: Benchmark, trial: Trial, answer: Answering
) -> tuple[str, Sequence[Episode]]:
    """What our verifiers find wrong first, empty when every judged user turn passes; the runs."""
    if benchmark.environment is None:
        raise DatasetError("the benchmark has no environment")
    world, reference = benchmark.environment(trial.task), benchmark.environment(trial.task)
    offered: list[str] = []
    episodes: list[Episode] = []
    for at, (turn, calls) in enumerate(zip(trial.task.turns, trial.turns, strict=True)):
        offered += turn.offers
        episodes.append(await answer(world, offered, turn, calls))
        scene = Scene(environment=world, reference=reference, earlier=tuple(episodes[:-1]))
        parts = [verifier_for(one, scene) for one in turn.expects]
        if not parts:
            continue
        verdict = await AllOf(parts).verify(episodes[-1])
        if verdict.fault is not None:
            raise RuntimeError(f"{trial.task.task_id}: {verdict.evidence[0]}")
        if not verdict.passed:
            return f"turn {at}: {verdict.evidence[0]}", episodes
    return "", episodes


def executor_did(trial: Trial, episodes: Sequence[Episode]) -> str:
    """What the executor made of calls that it did not run as they are."""
    failures = {r.failure.kind for one in episodes for r in one.results if r.failure is not None}
    if "unknown_tool" in failures:
        return "did not run a tool that is not offered"
    if "invalid_arguments" in failures:
        return "did not run arguments of a wrong type"
    return "turned text into the declared type" if trial.kind == "wrong type" else ""


def tool_calls(calls: Sequence[GoldCall]) -> tuple[ToolCall, ...]:
    """The calls as a model makes them."""
    return tuple(
        ToolCall(call_id=str(at), name=call.name, arguments=call.arguments)
        for at, call in enumerate(calls)
    )


async def run_directly(
    world: Environment, offered: Sequence[str], turn: UserTurn, calls: Sequence[GoldCall]
) -> Episode:
    """The calls, run as they are."""
    tools, results = {tool.name: tool for tool in world.tools()}, []
    for call in tool_calls(calls):
        status: Literal["ok", "failed"] = "ok"
        try:
            value = await tools[call.name](**call.arguments)
        except Exception as error:  # noqa: BLE001 - as upstream does
            status, value = "failed", f"Error during execution: {error}"
        results.append(ToolResult(call_id=call.call_id, name=call.name, status=status, value=value))
    said = AssistantMessage(tool_calls=tool_calls(calls))
    return Episode(
        episode_id="1", request=turn.request, turns=(Turn(message=said, results=tuple(results)),)
    )


async def run_agent(
    world: Environment, offered: Sequence[str], turn: UserTurn, calls: Sequence[GoldCall]
) -> Episode:
    """The run in which an agent makes these calls in one step, and then says that it is done."""
    tools = {tool.name: tool for tool in world.tools()}
    agent = Agent(
        ScriptedModel([tool_calls(calls), "Done."] if calls else ["Done."]),
        library=Library([tools[name] for name in offered]),
        retriever=None,
        limits=Limits(max_steps=21, max_calls=1_000),
    )
    return (await agent.run(turn.request)).episode


def kinds_of(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """The table, one row for each way of altering gold."""
    rows = []
    for kind in (*dict.fromkeys(one.trial.kind for one in outcomes), "all"):
        found = [one for one in outcomes if kind in {one.trial.kind, "all"}]
        passing = sum(not one.theirs for one in found)
        same = {f"same, {way}": sum(one.is_same(way) for one in found) for way in WAYS}
        rows.append({"gold calls": kind, "trials": len(found), "theirs passes": passing, **same})
    return rows


def show_differences(outcomes: Sequence[Outcome], *, details: bool) -> None:
    """What is behind the differences."""
    for way in WAYS:
        differing = [one for one in outcomes if not one.is_same(way)]
        reasons = Counter(one.executor or "ran all" for one in differing)
        print(f"\n{len(differing)} differences, {way}; the executor: {dict(reasons)}")
        for one in differing if details or way == "direct" else ():
            print(f"  {one.trial.task.task_id}, {one.trial.kind}: {one.trial.turns}")
            print(f"    direct {one.direct!r}, agent {one.agent!r}, theirs {one.theirs!r}")


async def multi_turn(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Compare on all multi-turn questions, or on some drawn at random."""
    sys.path.insert(0, str(options.package))
    package = installed_bfcl()
    if package is None:
        raise SystemExit("bfcl_eval cannot be imported; see the top of this file")
    benchmark = load_bfcl_multi_turn(package)
    altering = Altering(benchmark.tasks, random.Random(options.seed))
    tasks = benchmark.tasks
    if options.limit is not None:
        tasks = tuple(altering.dice.sample(tasks, options.limit))
    trials = (trial for task in tasks for trial in altering.trials(task))
    outcomes = [one async for one in compared(benchmark, Theirs(package), trials)]
    show_differences(outcomes, details=options.details)
    return kinds_of(outcomes)


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--package", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--category", action="append", choices=list(CATEGORIES))
    parser.add_argument("--limit", type=int, help="only so many questions (of each category)")
    parser.add_argument("--multi-turn", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--details", action="store_true", help="show all differing conversations")
    asked = parser.parse_args()
    if asked.multi_turn:
        report(asyncio.run(multi_turn(asked)), asked)
    else:
        comparison = Comparison(asked.package)
        compared_categories = [
            comparison.category(one, asked.limit) for one in asked.category or CATEGORIES
        ]
        for agreement in compared_categories:
            for task_id, output, said in agreement.unexplained[:SHOWN]:
                print(f"{task_id} {output.kind}: upstream {said}, {output.calls!r:.300}")
        report([one.row() for one in compared_categories], asked)
