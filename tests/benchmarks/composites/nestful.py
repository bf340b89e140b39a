"""How many calls mined composites save on questions that nothing was mined from.

    python tests/benchmarks/composites/nestful.py [--data FOLDER] [--out FILE]

NESTFUL (``fetch_nestful``) is split in two halves. Composites are mined from the gold calls of
one half; in the other half they take the place of the calls that they stand for, and the
interpreter runs the shortened sequences on that half's own recorded responses. A question counts
as equal when exactly the gold calls were made, with the same arguments, and every call that is
left returned what the records say.

Three ways to split the source whose responses are recorded (ComplexFuncBench, 1,000 questions):

* ``questions``: at random, five times. The source has about ten questions of each kind, so both
  halves hold the same kinds: this is the recurring work that composites are for.
* ``tool sets``: all questions that need the same set of tools fall into one half, so that no
  combination of tools was seen before.
* ``by value``: as ``questions``, but the references of the gold calls are thrown away, and the
  flows of data are found by comparing values alone, as in episodes of a deployed agent.

The other three sources have no recorded responses; their calls are replayed on made-up ones that
hold a distinct text wherever a later call refers to (``made up``). Sources share no tool, so
composites of one source never fit another.

``inserted`` counts only the composites that the Tool Manager takes into a library, tried on the
recorded responses; composites whose recordings are longer than a bound have no worked call, and
are rejected.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean
from typing import Any

from agentkit import Library, ToolDefinition, open_store
from agentkit.evolution import Added, ToolManager
from agentkit.evolution.lifting import ExampleConfig, MinedComposite
from agentkit.evolution.mined import insert_mined
from agentkit.evolution.mining import MiningConfig, MiningResult, apply, mine, replay
from agentkit.evolution.trajectories import Flow, Given, Trajectory, find_flows, trace_flows
from agentkit_bench.nestful import Nestful, fetch_nestful, load_nestful

SEEDS = (0, 1, 2, 3, 4)
MOST = 1_000
"""Composites: more than are ever worth a tool."""

Half = Sequence[Trajectory]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One split.

    Attributes:
        split: How the halves were made.
        mined_from: Trajectories that composites were mined from.
        questions: Trajectories of the other half.
        composites: Composites mined.
        depths: Composites by depth.
        calls_before: Gold calls of the other half.
        calls_after: Calls that are left, composites counting once.
        saved: Share of calls saved.
        covered: Share of questions with at least one composite.
        used: Composites that were used at least once.
        equal: Questions whose replay made the gold calls and gave the recorded results.
        errors: What went wrong in the others.
        arguments_before: Arguments that a model writes for the gold calls.
        arguments_after: Arguments that it writes for the calls that are left.
        characters_before: Characters of results that it reads, as JSON.
        characters_after: The same for the calls that are left.
        mining_seconds: Time to find flows and to mine.
    """

    split: str
    mined_from: int
    questions: int
    composites: int
    depths: Mapping[int, int]
    calls_before: int
    calls_after: int
    saved: float
    covered: float
    used: int
    equal: int
    errors: Mapping[str, int]
    arguments_before: int
    arguments_after: int
    characters_before: int
    characters_after: int
    mining_seconds: float


def measure(
    split: str,
    first: Half,
    second: Half,
    tools: Mapping[str, ToolDefinition],
    *,
    find: bool = True,
    limit: int = MOST,
    longest: int | None = None,
) -> Row:
    """Mine from one half, replay the other.

    Args:
        split: How the halves were made.
        first: What to mine from.
        second: What to rewrite and replay.
        tools: Definitions by name.
        find: Whether to look for flows by value, beside those that are known.
        limit: Most composites.
        longest: When given, only composites that enter a library count, and worked calls are at
            most so many characters long.
    """
    start = time.perf_counter()
    if find:
        found = find_flows(first)
        first, second = found.trajectories, trace_flows(second, found.routes)
    rules = MiningConfig(limit=limit, rounds=4)
    if longest is not None:
        rules = replace(rules, examples=ExampleConfig(longest=longest))
    result = mine(first, tools, rules)
    seconds = time.perf_counter() - start
    if longest is not None:
        result = replace(result, composites=_inserted(result, tools))
    pairs = [(one, apply(one, result.composites, tools)) for one in second]
    known = {**tools, **{one.name: one.definition for one in result.composites}}
    equal, errors = asyncio.run(_replayed(pairs, known))
    before, after = (sum(len(pair[at].steps) for pair in pairs) for at in (0, 1))
    calls = Counter(step.tool for _, short in pairs for step in short.steps)
    return Row(
        split=split,
        mined_from=len(first),
        questions=len(second),
        composites=len(result.composites),
        depths=_depths(tools, result),
        calls_before=before,
        calls_after=after,
        saved=round(1 - after / before, 4),
        covered=round(mean(len(b.steps) < len(a.steps) for a, b in pairs), 4),
        used=sum(calls[one.name] > 0 for one in result.composites),
        equal=equal,
        errors=errors,
        arguments_before=sum(map(_arguments, (one for one, _ in pairs))),
        arguments_after=sum(map(_arguments, (short for _, short in pairs))),
        characters_before=sum(map(_characters, (one for one, _ in pairs))),
        characters_after=sum(map(_characters, (short for _, short in pairs))),
        mining_seconds=round(seconds, 2),
    )


def _inserted(
    result: MiningResult, tools: Mapping[str, ToolDefinition]
) -> tuple[MinedComposite, ...]:
    """The composites that the Tool Manager adds to a library of the tools."""
    store = open_store("memory:")
    ToolManager(store).register(tools.values())
    outcomes = insert_mined(store, result.composites)
    codes = Counter(getattr(one, "code", "added") for one in outcomes.values())
    print(f"{'':28} {dict(codes)}")
    return tuple(one for one in result.composites if isinstance(outcomes[one.name], Added))


async def _replayed(
    pairs: Sequence[tuple[Trajectory, Trajectory]], tools: Mapping[str, ToolDefinition]
) -> tuple[int, dict[str, int]]:
    equal, errors = 0, Counter[str]()
    for original, short in pairs:
        done = await replay(original, short, tools)
        if done.is_equal:
            equal += 1
        else:
            errors[done.error[:100] or "other calls or results"] += 1
    return equal, dict(errors)


def _depths(tools: Mapping[str, ToolDefinition], result: MiningResult) -> dict[int, int]:
    library = Library([*tools.values(), *(one.definition for one in result.composites)])
    return dict(sorted(Counter(library.dag.depths[one.name] for one in result.composites).items()))


def _arguments(trajectory: Trajectory) -> int:
    return sum(len(step.sources) for step in trajectory.steps)


def _characters(trajectory: Trajectory) -> int:
    return sum(len(json.dumps(step.result)) for step in trajectory.steps)


# --- splits ---------------------------------------------------------------------------------------


def halves(trajectories: Half, seed: int) -> tuple[list[Trajectory], list[Trajectory]]:
    """The trajectories in two halves at random."""
    mixed = sorted(trajectories, key=lambda one: one.trajectory_id)
    random.Random(seed).shuffle(mixed)
    middle = len(mixed) // 2
    return mixed[:middle], mixed[middle:]


def halves_by_tools(trajectories: Half, seed: int) -> tuple[list[Trajectory], list[Trajectory]]:
    """The same, with all trajectories that use the same set of tools in one half."""
    groups: dict[tuple[str, ...], list[Trajectory]] = {}
    for one in trajectories:
        groups.setdefault(tuple(sorted({step.tool for step in one.steps})), []).append(one)
    mixed = sorted(groups.items())
    random.Random(seed).shuffle(mixed)
    first: list[Trajectory] = []
    second: list[Trajectory] = []
    for _, group in mixed:
        (first if len(first) <= len(second) else second).extend(group)
    return first, second


def without_flows(trajectory: Trajectory) -> Trajectory:
    """The same calls, with nothing known but their values."""
    steps = tuple(
        replace(
            step,
            sources={
                n: Given(value=trajectory.value(source)) for n, source in step.sources.items()
            },
        )
        for step in trajectory.steps
    )
    return replace(trajectory, steps=steps)


def agreement(trajectories: Half) -> dict[str, Any]:
    """How many of the gold references comparing values finds again, and how many others."""
    found = find_flows([without_flows(one) for one in trajectories]).trajectories
    known = same = elsewhere = missed = more = 0
    for gold, guess in zip(trajectories, found, strict=True):
        for one, other in zip(gold.steps, guess.steps, strict=True):
            for name, source in one.sources.items():
                guessed = other.sources[name]
                if not isinstance(source, Flow):
                    more += isinstance(guessed, Flow)
                    continue
                known += 1
                same += guessed == source
                elsewhere += isinstance(guessed, Flow) and guessed != source
                missed += not isinstance(guessed, Flow)
    return {
        "references": known,
        "found_at_the_same_place": same,
        "found_at_a_place_with_the_same_value": elsewhere,
        "not_found": missed,
        "found_where_the_gold_calls_have_a_value": more,
    }


# --- corpora --------------------------------------------------------------------------------------


def nestful_rows(nestful: Nestful) -> Iterator[Row]:
    """Every split of NESTFUL."""
    tools = {definition.name: definition for definition in nestful.definitions}
    recorded = [one.trajectory for one in nestful.questions if one.is_recorded]
    made_up = [one.trajectory for one in nestful.questions if not one.is_recorded]
    for seed in SEEDS:
        yield measure("questions", *halves(recorded, seed), tools)
    for seed in SEEDS:
        yield measure("tool sets", *halves_by_tools(recorded, seed), tools)
    bare = [without_flows(one) for one in recorded]
    for seed in SEEDS:
        yield measure("by value", *halves(bare, seed), tools)
    for limit in (5, 10, 20, 40):
        first, second = halves(recorded, SEEDS[0])
        yield measure(f"questions, {limit} composites", first, second, tools, limit=limit)
    for longest in (16_000, 400_000):
        first, second = halves(recorded, SEEDS[0])
        name = f"inserted, {longest:,}"
        yield measure(name, first, second, tools, longest=longest)
    for seed in SEEDS:
        yield measure("made up", *halves(made_up, seed), tools, find=False)


# --- report ---------------------------------------------------------------------------------------


def main() -> None:
    """Measure, print a table, and write the numbers to a file when asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, help="what fetch_nestful() gives; fetched if absent")
    parser.add_argument("--out", type=Path, help="where to write the numbers, as JSON")
    options = parser.parse_args()
    nestful = load_nestful(options.data or fetch_nestful())
    recorded = [one.trajectory for one in nestful.questions if one.is_recorded]
    flows = agreement(recorded)
    print(json.dumps(flows, indent=1))
    print(
        f"{'split':28} {'mined':>5} {'left':>11} {'saved':>6} {'covered':>7} {'equal':>11} depths"
    )
    rows = []
    for row in nestful_rows(nestful):
        rows.append(row)
        print(_line(row), flush=True)
    if options.out:
        record = {"machine": _machine(), "flows": flows, "rows": [asdict(row) for row in rows]}
        options.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _line(row: Row) -> str:
    return (
        f"{row.split:28} {row.composites:5} {row.calls_before:5}>{row.calls_after:5} "
        f"{row.saved:6.1%} {row.covered:7.1%} {row.equal:5}/{row.questions:5} "
        f"{dict(row.depths)} {row.mining_seconds} s {dict(row.errors) or ''}"
    )


def _machine() -> dict[str, str]:
    return {
        "command": "python tests/benchmarks/composites/nestful.py --out docs/benchmarks/nestful.json",
        "cpu": _processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(models)} x {models[0]}" if models else platform.processor()


if __name__ == "__main__":
    main()
