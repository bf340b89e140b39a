"""What do the texts of tools with hidden demands change, before anything is trained?

Run: ``python tests/benchmarks/hidden_texts.py [--world swapped] [--per-tool 3] [--model URL]``
Asks the test questions of the hidden-constraint family with each of the texts of ``library_of``: as
they are, with the right demand (as a sentence, as a learned rule, in the parameter's own text), and
with the demand of another tool. A call is accepted when the executor takes it, and right when it is
the gold call.

``--model`` names a model as ``agentkit`` does; a local one is held to the grammar of calls. With
``--policy`` the model is what training samples from, which writes freely: a small model that was
never taught the form of a call is at 0 there, whatever the texts say.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from agentkit import Episode, open_store
from agentkit.evaluation import Benchmark, episodes_of_run, evaluate
from agentkit.models.base import ChatModel, ModelSettings
from agentkit.models.resolve import resolve_model
from agentkit_training import PolicyModel, load_policy
from agentkit_training.tasks.hidden_constraints.family import hidden_constraints, settings_for
from agentkit_training.tasks.hidden_constraints.hidden_tool import WORLDS, World
from agentkit_training.tasks.hidden_constraints.repairs import Repair, library_of


@dataclass(frozen=True, kw_only=True)
class Row:
    """What came of the questions with one kind of texts."""

    texts: str
    questions: int
    accepted: int
    right: int
    right_by_kind: dict[str, int]


async def row_of(benchmark: Benchmark, model: ChatModel, texts: Repair, world: World) -> Row:
    """Ask all questions with one kind of texts."""
    store = open_store("memory:")
    settings = replace(settings_for(), settings=ModelSettings(temperature=0.0, max_tokens=96))
    await evaluate(
        benchmark,
        model=model,
        store=store,
        run="hidden",
        library=library_of(texts, world),
        settings=settings,
        concurrency=len(benchmark.tasks) if isinstance(model, PolicyModel) else 1,
    )
    episodes = list(episodes_of_run(store, "hidden"))
    kinds = sorted({task.category for task in benchmark.tasks})
    return Row(
        texts=texts,
        questions=len(episodes),
        accepted=sum(any(one.status == "ok" for one in e.results) for e in episodes),
        right=sum(map(is_right, episodes)),
        right_by_kind={
            kind: sum(is_right(e) for e in episodes if e.metadata["category"] == kind)
            for kind in kinds
        },
    )


def is_right(episode: Episode) -> bool:
    """Whether the verdict passed."""
    return episode.verdict is not None and episode.verdict.passed


async def measured(
    benchmark: Benchmark, model: ChatModel, every: Sequence[Repair], world: World
) -> list[Row]:
    """A row for each kind of texts, told as it comes."""
    rows = []
    for texts in every:
        row = await row_of(benchmark, model, texts, world)
        share = f"accepted {row.accepted:3}, right {row.right:3} of {row.questions}"
        print(f"{texts:<15} {share}  {row.right_by_kind}", flush=True)
        rows.append(row)
    return rows


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--world", choices=WORLDS, default="first")
    parser.add_argument("--per-tool", type=int, default=3)
    parser.add_argument("--distractors", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", default="local:smollm2-135m")
    parser.add_argument("--policy", help="weights for load_policy, instead of --model")
    parser.add_argument("--texts", nargs="+", choices=get_args(Repair), default=get_args(Repair))
    parser.add_argument("--out", type=Path, help="write the rows here as JSON")
    options = parser.parse_args()
    parts = hidden_constraints(
        options.world, seed=options.seed, test=options.per_tool, distractors=options.distractors
    )
    model: ChatModel = (
        PolicyModel(load_policy(options.policy)) if options.policy else resolve_model(options.model)
    )
    rows = asyncio.run(measured(parts.test, model, options.texts, options.world))
    if options.out:
        options.out.write_text(json.dumps([vars(row) for row in rows], indent=1))


if __name__ == "__main__":
    main()
