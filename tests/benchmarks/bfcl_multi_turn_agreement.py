"""Our verdicts on BFCL's multi-turn questions beside those of the package's own checker.

    PYTHONPATH=folder python tests/benchmarks/bfcl_multi_turn_agreement.py [--each 1] [--seed 0]

``folder`` holds ``bfcl_eval`` (``pip install --no-deps --target folder bfcl_eval==2026.3.23``) and
``mpmath``. Each question is answered with its gold calls, and with gold calls that were altered.
Theirs: the calls, as text, go through ``multi_turn_checker``, which evaluates them as Python; that
is why it runs here and nowhere else. Ours: the verifier of each user turn judges the same calls,
once run as they are, which compares the checkers alone, and once made by an agent, whose executor
checks and mends arguments and runs only what is offered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from agentkit import Agent
from agentkit.agent.types import Limits
from agentkit.episodes import Episode, Turn, Verdict
from agentkit.errors import DatasetError
from agentkit.evaluation import Benchmark, FinalState, GoldCall, Task, UserTurn
from agentkit.evaluation.task import Environment
from agentkit.evaluation.verifiers import AllOf, Scene, verifier_for
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.testing import ScriptedModel
from agentkit_bench.bfcl_multi_turn import find_files, installed_bfcl, load_bfcl_multi_turn

Turns = tuple[tuple[GoldCall, ...], ...]
"""The calls of each user turn."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """Calls with which a question is answered.

    Attributes:
        task: The question.
        kind: How the gold calls were altered; ``gold`` when they were not.
        turns: The calls.
    """

    task: Task
    kind: str
    turns: Turns


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The verdicts on one trial.

    Attributes:
        trial: The trial.
        direct: What our verifiers found first when the calls were run as they are; empty when
            every user turn passed.
        agent: The same when an agent made them.
        theirs: The kind of error that the package's checker found; empty when there is none.
        executor: What the agent's executor made of the calls; empty when it ran them as they are.
    """

    trial: Trial
    direct: str
    agent: str
    theirs: str
    executor: str = ""

    def is_same(self, way: str) -> bool:
        """Whether our verdict, reached in this way, is theirs."""
        ours: str = getattr(self, way)
        return bool(ours) == bool(self.theirs)


@dataclass(kw_only=True)
class Altering:
    """Alters gold calls, each way with a dice of its own.

    Attributes:
        benchmark: The questions.
        dice: Seeded.
        pool: All gold calls by tool, from which extra calls are taken.
    """

    benchmark: Benchmark
    dice: random.Random
    pool: dict[str, list[GoldCall]] = field(init=False)

    def __post_init__(self) -> None:
        self.pool = {}
        for task in self.benchmark.tasks:
            for call in (call for calls in gold_of(task) for call in calls):
                self.pool.setdefault(call.name, []).append(call)

    def trials(self, task: Task, each: int) -> Iterator[Trial]:
        """The gold calls, and ``each`` alterations of each kind that is possible."""
        gold = gold_of(task)
        yield Trial(task=task, kind="gold", turns=gold)
        for kind, alter in KINDS.items():
            for _ in range(each):
                turns = alter(self, task, [list(calls) for calls in gold])
                if turns is not None:
                    yield Trial(task=task, kind=kind, turns=tuple(map(tuple, turns)))

    def place(self, turns: Sequence[Sequence[GoldCall]]) -> tuple[int, int] | None:
        """A user turn and a call in it."""
        places = [(turn, at) for turn, calls in enumerate(turns) for at in range(len(calls))]
        return self.dice.choice(places) if places else None

    def another(self, value: Any) -> Any:
        """A value of the same type that is not this one."""
        match value:
            case bool():
                return not value
            case int() | float():
                return value + self.dice.choice((-2, -1, 1, 3))
            case str():
                others = [
                    v
                    for calls in self.pool.values()
                    for c in calls[:3]
                    for v in c.arguments.values()
                ]
                texts = [other for other in others if isinstance(other, str) and other != value]
                return self.dice.choice([f"{value}x", value[:-1], *texts[:20]])
            case list():
                return value[1:] if value else ["x"]
            case _:
                return {**value, "x": 1}


def drop(by: Altering, task: Task, turns: list[list[GoldCall]]) -> list[list[GoldCall]] | None:
    """Without one call."""
    if (place := by.place(turns)) is None:
        return None
    del turns[place[0]][place[1]]
    return turns


def swap(by: Altering, task: Task, turns: list[list[GoldCall]]) -> list[list[GoldCall]] | None:
    """Two neighbours of one user turn in the other order."""
    places = [(turn, at) for turn, calls in enumerate(turns) for at in range(len(calls) - 1)]
    if not places:
        return None
    turn, at = by.dice.choice(places)
    calls = turns[turn]
    calls[at], calls[at + 1] = calls[at + 1], calls[at]
    return turns


def wrong_argument(
    by: Altering, task: Task, turns: list[list[GoldCall]]
) -> list[list[GoldCall]] | None:
    """Another value, of the same type, for one argument."""
    places = [
        (turn, at, name)
        for turn, calls in enumerate(turns)
        for at, call in enumerate(calls)
        for name in call.arguments
    ]
    if not places:
        return None
    turn, at, name = by.dice.choice(places)
    call = turns[turn][at]
    value = by.another(call.arguments[name])
    turns[turn][at] = replace(call, arguments={**call.arguments, name: value})
    return turns


def extra_call(
    by: Altering, task: Task, turns: list[list[GoldCall]]
) -> list[list[GoldCall]] | None:
    """One more call, of a tool that is offered, as another question makes it."""
    turn = by.dice.randrange(len(turns))
    offered = [name for one in task.turns[: turn + 1] for name in one.offers if name in by.pool]
    if not offered:
        return None
    call = by.dice.choice(by.pool[by.dice.choice(offered)])
    turns[turn].insert(by.dice.randint(0, len(turns[turn])), call)
    return turns


def repeat(by: Altering, task: Task, turns: list[list[GoldCall]]) -> list[list[GoldCall]] | None:
    """One call twice."""
    if (place := by.place(turns)) is None:
        return None
    turn, at = place
    turns[turn].insert(at, turns[turn][at])
    return turns


def early(by: Altering, task: Task, turns: list[list[GoldCall]]) -> list[list[GoldCall]] | None:
    """The last call of a user turn already at the end of the turn before."""
    places = [turn for turn in range(1, len(turns)) if turns[turn]]
    if not places:
        return None
    turn = by.dice.choice(places)
    turns[turn - 1].append(turns[turn].pop())
    return turns


def missing_argument(
    by: Altering, task: Task, turns: list[list[GoldCall]]
) -> list[list[GoldCall]] | None:
    """Without one argument, required or not."""
    places = [
        (turn, at)
        for turn, calls in enumerate(turns)
        for at, call in enumerate(calls)
        if call.arguments
    ]
    if not places:
        return None
    turn, at = by.dice.choice(places)
    call = turns[turn][at]
    left_out = by.dice.choice(sorted(call.arguments))
    kept = {name: value for name, value in call.arguments.items() if name != left_out}
    turns[turn][at] = replace(call, arguments=kept)
    return turns


def wrong_type(
    by: Altering, task: Task, turns: list[list[GoldCall]]
) -> list[list[GoldCall]] | None:
    """One argument as text of its value, or text as a list."""
    places = [
        (turn, at, name)
        for turn, calls in enumerate(turns)
        for at, call in enumerate(calls)
        for name in call.arguments
    ]
    if not places:
        return None
    turn, at, name = by.dice.choice(places)
    call = turns[turn][at]
    value = call.arguments[name]
    changed = [value] if isinstance(value, str) else json.dumps(value)
    turns[turn][at] = replace(call, arguments={**call.arguments, name: changed})
    return turns


def held_out(by: Altering, task: Task, turns: list[list[GoldCall]]) -> list[list[GoldCall]] | None:
    """A call of a tool one user turn before it is offered."""
    places = [
        (turn, call)
        for turn, user in enumerate(task.turns)
        for later in turns[turn:]
        for call in later
        if turn and call.name in user.offers
    ]
    if not places:
        return None
    turn, call = by.dice.choice(places)
    turns[turn - 1].append(call)
    return turns


KINDS: Mapping[
    str, Callable[[Altering, Task, list[list[GoldCall]]], list[list[GoldCall]] | None]
] = {
    "drop": drop,
    "swap": swap,
    "wrong argument": wrong_argument,
    "extra call": extra_call,
    "repeat": repeat,
    "early": early,
    "missing argument": missing_argument,
    "wrong type": wrong_type,
    "held-out call": held_out,
}


def gold_of(task: Task) -> Turns:
    """The gold calls of each user turn."""
    return tuple(
        tuple(c for one in turn.expects if isinstance(one, FinalState) for c in one.calls)
        for turn in task.turns
    )


async def judged_run(
    benchmark: Benchmark, trial: Trial, answer: Answering
) -> tuple[str, Sequence[Episode]]:
    """What our verifiers find wrong first, empty when every judged user turn passes; the runs."""
    make = benchmark.environment
    if make is None:
        raise DatasetError("the benchmark has no environment")
    world, reference = make(trial.task), make(trial.task)
    offered: list[str] = []
    episodes: list[Episode] = []
    for at, (turn, calls) in enumerate(zip(trial.task.turns, trial.turns, strict=True)):
        offered += turn.offers
        episode = await answer(world, offered, turn, calls)
        verdict = await judged(turn, world, reference, episode, episodes)
        if verdict is not None and verdict.fault is not None:
            raise RuntimeError(f"{trial.task.task_id}: {verdict.evidence[0]}")
        if verdict is not None and not verdict.passed:
            return f"turn {at}: {verdict.evidence[0]}", [*episodes, episode]
        episodes.append(episode)
    return "", episodes


def executor_did(trial: Trial, episodes: Sequence[Episode]) -> str:
    """What the executor made of calls that it did not run as they are."""
    failures = {r.failure.kind for one in episodes for r in one.results if r.failure is not None}
    if "unknown_tool" in failures:
        return "did not run a tool that is not offered"
    if "invalid_arguments" in failures:
        return "did not run arguments of a wrong type"
    return "turned text into the declared type" if trial.kind == "wrong type" else ""


Answering = Callable[[Environment, Sequence[str], UserTurn, Sequence[GoldCall]], Awaitable[Episode]]


async def run_directly(
    world: Environment, offered: Sequence[str], turn: UserTurn, calls: Sequence[GoldCall]
) -> Episode:
    """The calls, run as they are."""
    tools = {tool.name: tool for tool in world.tools()}
    made = tool_calls(calls)
    results = []
    for call in made:
        status: Literal["ok", "failed"] = "ok"
        try:
            value = await tools[call.name](**call.arguments)
        except Exception as error:  # noqa: BLE001 - as upstream does
            status, value = "failed", f"Error during execution: {error}"
        results.append(ToolResult(call_id=call.call_id, name=call.name, status=status, value=value))
    said = AssistantMessage(tool_calls=made)
    return Episode(
        episode_id="1", request=turn.request, turns=(Turn(message=said, results=tuple(results)),)
    )


def tool_calls(calls: Sequence[GoldCall]) -> tuple[ToolCall, ...]:
    """The calls as a model makes them."""
    return tuple(
        ToolCall(call_id=str(at), name=call.name, arguments=call.arguments)
        for at, call in enumerate(calls)
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


async def judged(
    turn: UserTurn,
    world: Environment,
    reference: Environment,
    episode: Episode,
    earlier: Sequence[Episode],
) -> Verdict | None:
    """The verdict on a user turn; None when it is not judged."""
    scene = Scene(environment=world, reference=reference, earlier=tuple(earlier))
    parts = [verifier_for(one, scene) for one in turn.expects]
    return await AllOf(parts).verify(episode) if parts else None


@dataclass(kw_only=True)
class Theirs:
    """The verdict of the package's own checker.

    Attributes:
        checker: Its module.
        worlds: The module that keeps its instances, by name, among its globals.
        rows: The questions as upstream has them, by id.
        texts: The gold calls as upstream writes them, by id.
    """

    checker: ModuleType
    worlds: ModuleType
    rows: Mapping[str, Mapping[str, Any]]
    texts: Mapping[str, Sequence[Sequence[str]]]

    @classmethod
    def of(cls, package: Path) -> Theirs:
        """The installed package."""
        from bfcl_eval.eval_checker.multi_turn_eval import (  # type: ignore[import-not-found]
            multi_turn_checker,
            multi_turn_utils,
        )

        files = find_files(package)
        rows: dict[str, Any] = {}
        texts: dict[str, Any] = {}
        for path in sorted(files.data.glob("BFCL_v4_multi_turn_*.json")):
            rows |= {row["id"]: row for row in records(path)}
            answers = records(files.data / "possible_answer" / path.name)
            texts |= {row["id"]: row["ground_truth"] for row in answers}
        return cls(checker=multi_turn_checker, worlds=multi_turn_utils, rows=rows, texts=texts)

    def error(self, trial: Trial) -> str:
        """The kind of error that is found; empty when there is none."""
        task = trial.task.task_id
        before = set(vars(self.worlds))
        try:
            result = self.checker.multi_turn_checker(
                [[self._texts(trial, at)] if calls else [] for at, calls in enumerate(trial.turns)],
                self.texts[task],
                dict(self.rows[task]),
                trial.task.category,
                "trial",
            )
        finally:
            for name in set(vars(self.worlds)) - before:  # or the next trial would go on with them
                delattr(self.worlds, name)
        return "" if result["valid"] else str(result["error_type"])

    def _texts(self, trial: Trial, turn: int) -> list[str]:
        """Calls as upstream's text: its own for a gold call, else written out."""
        gold = gold_of(trial.task)[turn]
        own = dict(zip(map(written, gold), self.texts[trial.task.task_id][turn], strict=True))
        return [own.get(written(call), written(call)) for call in trial.turns[turn]]


def written(call: GoldCall) -> str:
    """A call as Python."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return f"{call.name}({arguments})"


def records(path: Path) -> list[Any]:
    """The lines of a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


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


def show(outcomes: Sequence[Outcome], *, details: bool) -> None:
    """The table, and what is behind the differences."""
    print("| gold calls | trials | upstream passes | same, run directly | same, by an agent |")
    print("|---|---|---|---|---|")
    for kind in ("gold", *KINDS, "all"):
        row = [one for one in outcomes if kind in {one.trial.kind, "all"}]
        passed = sum(not one.theirs for one in row)
        same = " | ".join(str(sum(one.is_same(way) for one in row)) for way in WAYS)
        print(f"| {kind} | {len(row)} | {passed} | {same} |")
    for way in WAYS:
        differences = [one for one in outcomes if not one.is_same(way)]
        print(f"\n{len(differences)} differences, {way}")
        for (reason, passes), count in Counter(map(explained, differences)).most_common():
            print(f"  {count:4} only {passes} passes; the executor {reason or 'ran all'}")
    for one in outcomes:
        if not one.is_same("direct") or (details and not one.is_same("agent")):
            show_difference(one)


WAYS = ("direct", "agent")


def explained(one: Outcome) -> tuple[str, str]:
    """What the executor did, and which side passes."""
    return one.executor, "upstream" if not one.theirs else "ours"


def show_difference(one: Outcome) -> None:
    """A trial on which the verdicts are not the same."""
    print(f"\n{one.trial.task.task_id}, {one.trial.kind}")
    for at, (calls, gold) in enumerate(zip(one.trial.turns, gold_of(one.trial.task), strict=True)):
        if calls != gold:
            print(f"  turn {at}: {[*map(written, calls)]}\n    gold: {[*map(written, gold)]}")
    for who, finding in (("direct", one.direct), ("agent", one.agent), ("theirs", one.theirs)):
        print(f"  {who}: {finding or 'passes'}")


async def compare(options: argparse.Namespace, package: Path) -> None:
    """Compare on the questions that the command line asks for."""
    benchmark = load_bfcl_multi_turn(package)
    altering = Altering(benchmark=benchmark, dice=random.Random(options.seed))
    tasks = benchmark.tasks
    if options.tasks is not None:
        tasks = tuple(altering.dice.sample(tasks, options.tasks))
    trials = (trial for task in tasks for trial in altering.trials(task, options.each))
    start = time.perf_counter()
    outcomes = [one async for one in compared(benchmark, Theirs.of(package), trials)]
    print(f"{len(tasks)} questions, seed {options.seed}, {time.perf_counter() - start:.0f} s\n")
    show(outcomes, details=options.details)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--each", type=int, default=1, help="alterations of each kind a question")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tasks", type=int, default=None, help="only so many, drawn at random")
    parser.add_argument(
        "--details", action="store_true", help="show the calls behind what the executor did, too"
    )
    options = parser.parse_args()
    package = installed_bfcl()
    if package is None:
        parser.error("bfcl_eval can not be imported; see the top of this file")
    asyncio.run(compare(options, package))


if __name__ == "__main__":
    main()
