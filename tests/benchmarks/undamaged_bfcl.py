"""Does evolution gain anything on definitions that lack nothing?

    python tests/benchmarks/undamaged_bfcl.py --store sqlite:///undamaged.db --feedback answers.jsonl

Tools of BFCL as they are, drawn at random from those that at least two different questions call.
The model answers half of each tool's questions; from its episodes learn the evidence proposer, and
the model itself as feedback model (from what went wrong, gold shown) and in the evolution stream
(from what went perfectly). The other half is asked with three definitions:

* fixed     as BFCL has it;
* evolved   with the first suggestion of each that every check lets pass;
* shuffled  with what was learned about another tool: its summary and its rules on use.

The split is drawn anew for each seed; answers are kept in the store, the feedback model's in the
cassette.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hidden_cases import Case, asked_tools, drawn, split
from hidden_constraints import KNOBS, SHORT, Asking, Learning, mean, rows_of, shown_interval

from agentkit import ToolDefinition, open_store
from agentkit.evaluation import Benchmark
from agentkit.evolution.proposer import Proposer
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.streams import EvolutionStream, FeedbackStream
from agentkit.models.resolve import resolve_model
from agentkit.testing import ReplayModel
from agentkit_bench import fetch_bfcl, load_bfcl

CONDITIONS = ("hidden", "evolved", "shuffled")  # nothing is hidden: the name of the first column


def whole_cases(benchmark: Benchmark, *, max_tools: int, per_tool: int, seed: int) -> list[Case]:
    """Tools that at least two questions call, with nothing hidden."""
    asked = {name: one for name, one in asked_tools(benchmark).items() if len(one[1]) > 1}
    names = sorted(asked)
    random.Random(seed).shuffle(names)
    return [
        Case(
            original=definition,
            hidden=definition,
            demands=(),
            tasks=drawn(tasks, per_tool, f"{seed}:{name}"),
        )
        for name in names[:max_tools]
        for definition, tasks in [asked[name]]
    ]


def on_other_tools(
    chosen: Sequence[Case], evolved: Mapping[str, ToolDefinition]
) -> dict[str, ToolDefinition]:
    """Each changed tool with the summary and the rules on use of the next one that changed."""
    changed = sorted(case.name for case in chosen if evolved[case.name] != case.original)
    after = dict(zip(changed, changed[1:] + changed[:1], strict=True)) if len(changed) > 1 else {}
    found = {case.name: case.original for case in chosen}
    for name, other in after.items():
        source = evolved[other].description
        words = replace(
            found[name].description, summary=source.summary, usage_rules=source.usage_rules
        )
        found[name] = replace(found[name], description=words)
    return found


async def experiment(
    chosen: Sequence[Case],
    asking: Asking,
    learning: Learning,
    proposers: Sequence[Proposer],
    seeds: int,
) -> list[dict[str, Any]]:
    """A row for each seed and held-out question."""
    fixed = {case.name: await asking.episodes(case, case.original, runs=False) for case in chosen}
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        halves = {case.name: split(case.name, case.tasks, seed) for case in chosen}
        evolved = {
            case.name: await learning.evolved(
                case.original,
                [fixed[case.name][task.task_id] for task in halves[case.name][0]],
                proposers,
            )
            for case in chosen
        }
        others = on_other_tools(chosen, evolved)
        for case in chosen:
            held_out = halves[case.name][1]
            found = {
                "hidden": fixed[case.name],
                "evolved": await asking.episodes(case, evolved[case.name], held_out, runs=False),
                "shuffled": await asking.episodes(case, others[case.name], held_out, runs=False),
            }
            has_changed = evolved[case.name] != case.original
            rows += [
                {**row, "changed": has_changed} for row in rows_of(case, held_out, found, seed)
            ]
    return rows


def told(rows: Sequence[Mapping[str, Any]], what: str) -> None:
    """One table of the differences to the definitions as they are."""
    print(f"\n{what}: {len(rows)} held-out questions over all seeds")
    for name in CONDITIONS:
        valid, right = mean(rows, f"{name}_valid"), mean(rows, f"{name}_right")
        gain = mean(rows, f"{name}_right", "hidden_right")
        label = "fixed" if name == "hidden" else name
        shown = [f"{shown_interval(one):>22}" for one in (valid, right, gain)]
        print(f"{label:<10} valid {shown[0]} right {shown[1]} gain in right {shown[2]}")


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--store", default="memory:", help="keeps the answers")
    parser.add_argument("--feedback", type=Path, required=True, metavar="CASSETTE")
    parser.add_argument("--model", default="local:smollm2-135m")
    parser.add_argument("--tools", type=int, default=40)
    parser.add_argument("--per-tool", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args()
    benchmark = load_bfcl(fetch_bfcl(Path.home() / ".cache" / "agentkit"))
    chosen = whole_cases(benchmark, max_tools=options.tools, per_tool=options.per_tool, seed=0)
    questions = sum(len(case.tasks) for case in chosen)
    print(f"{len(chosen)} tools, {questions} questions", flush=True)
    model = resolve_model(options.model)
    asking = Asking(model, open_store(options.store), options.max_tokens)
    critic, learning = ReplayModel(options.feedback, model, "auto"), Learning()
    proposers: list[Proposer] = [
        EvidenceProposer(KNOBS),
        FeedbackStream(critic, settings=SHORT, structured=True),
        EvolutionStream(critic, min_episodes=1, settings=SHORT, structured=True),
    ]
    rows = asyncio.run(experiment(chosen, asking, learning, proposers, options.seeds))
    told(rows, "all tools")
    told([row for row in rows if row["changed"]], "tools whose definition changed")
    print("\nsuggestions:", dict(learning.answers.most_common()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
