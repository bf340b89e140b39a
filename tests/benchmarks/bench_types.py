"""What types are worth to retrieval, and what wrong types cost.

    python tests/benchmarks/bench_types.py CORPUS_FOLDER... [--split dev|test|all] [--by id|name]
        [--ranker lexical|description] [--max-calls N] [--out FILE]

A corpus is a folder with ``tools.jsonl[.gz]``, ``retrieval.jsonl[.gz]`` and ``queries.jsonl[.gz]``,
where ``gold`` lists calls with ``tool`` and ``arguments`` (or ``allowed`` values). Each gold call
becomes a sub-goal: the whole request as its intent, and one input for each argument. ``values``
takes the type of the argument's value, bound, as from a caller; ``declared`` takes the type that
the gold tool declares or suggests, and that of the first field of its result, as from a planner
that is right. Then 0% or 15% of the slots get the type of a slot of another call. Arguments that
refer to earlier results have no value and are left out.

Recall is that of the gold tool of each call among the first k, averaged by request.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from agentkit.library import Library
from agentkit.retrieval import IndexConfig, Lexical, Signature, SignatureChannel, SubGoal, Survivors
from agentkit.retrieval.stages.description import Description
from agentkit.retrieval.survivors import Stage
from agentkit.tools.types.fit import TypedSlot, parts_of, signature_types, slot_of_value
from agentkit_bench.retrieval import RetrievalCorpus, load_corpus

DEPTH = 100
"""How deep rankings are read; deeper than 32, since tools of one name may count as one."""

AT = (5, 32)
WRONG = (0.0, 0.15)
FILTERS: dict[str, Signature | None] = {
    "untyped": None,
    "soft": Signature(),
    "hard": Signature(mode="hard"),
    "hard, back-off": Signature(mode="hard", back_off=32),
}


@dataclass(frozen=True, kw_only=True)
class Call:
    """One gold call of a request.

    Attributes:
        request: The text.
        request_id: Its id.
        tool: The gold tool, by its name in the library.
        arguments: What it is called with.
    """

    request: str
    request_id: str
    tool: str
    arguments: dict[str, Any]


def main() -> None:
    """Print one table for each corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--split", choices=("dev", "test", "all"), default="test")
    parser.add_argument("--by", choices=("id", "name"), default="id")
    parser.add_argument("--ranker", choices=("lexical", "description"), default="lexical")
    parser.add_argument("--max-calls", type=int, default=0, metavar="N")
    parser.add_argument("--out", type=Path, metavar="FILE")
    options = parser.parse_args()
    reports = []
    for folder in options.folders:
        corpus = load_corpus(
            [file_of(folder, "tools")], [file_of(folder, "retrieval")], by=options.by
        )
        calls = list(gold_calls(folder, corpus, options.split))
        if options.max_calls:
            calls = random.Random(7).sample(calls, min(options.max_calls, len(calls)))
        ranker = Lexical(keep=DEPTH) if options.ranker == "lexical" else Description(keep=DEPTH)
        report = {
            "corpus": folder.name,
            "split": options.split,
            "by": options.by,
            "ranker": options.ranker,
            "calls": len(calls),
            "requests": len({call.request_id for call in calls}),
            **statistics_of(corpus.library),
            "rows": asyncio.run(compared(corpus, calls, ranker)),
        }
        show(report)
        reports.append(report)
    if options.out:
        options.out.write_text(json.dumps(reports, indent=1) + "\n", encoding="utf-8")


def file_of(folder: Path, stem: str) -> Path:
    """The file of that stem, compressed or not."""
    return next(path for path in sorted(folder.glob(f"{stem}.jsonl*")))


def gold_calls(folder: Path, corpus: RetrievalCorpus, split: str) -> Iterator[Call]:
    """The gold calls of the requests of a split."""
    asked = {query.query_id: query for query in corpus.queries}
    by_id = {
        key: name
        for name, key in load_corpus(
            [file_of(folder, "tools")], [file_of(folder, "retrieval")], by="id"
        ).keys.items()
    }
    path = file_of(folder, "queries")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            query = asked.get(str(record["id"]))
            if query is None or split not in {"all", query.split}:
                continue
            for gold in record["gold"] if isinstance(record["gold"], list) else ():
                if isinstance(gold, dict) and gold.get("tool") in by_id:
                    yield Call(
                        request=query.text,
                        request_id=query.query_id,
                        tool=by_id[gold["tool"]],
                        arguments=dict(arguments_of(gold)),
                    )


def arguments_of(gold: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Arguments with a value: the first allowed one, and none that refers to a result."""
    if "allowed" in gold:
        for name, values in gold["allowed"].items():
            if values and values[0] != "":
                yield name, values[0]
        return
    for name, value in (gold.get("arguments") or {}).items():
        text = value if isinstance(value, str) else ""
        if not (text.startswith("$") and text.endswith("$")) and "API_call_" not in text:
            yield name, value


def goal_of(call: Call, library: Library, source: str) -> SubGoal:
    """The sub-goal of a gold call."""
    if source == "values":
        slots = tuple(slot_of_value(value) for value in call.arguments.values())
        return SubGoal(intent=call.request, inputs=slots)
    types = signature_types(library[call.tool].definition)
    known = [types.inputs[name] for name in call.arguments if name in types.inputs]
    inputs = tuple(TypedSlot(type=one.likely(0.8), confidence=0.9) for one in known)
    parts = parts_of(types.output.declared) if not types.output.declared.is_any else []
    result = parts[0].likely(0.8) if parts else types.output.declared
    output = None if result.is_any else TypedSlot(type=result, confidence=0.9)
    return SubGoal(intent=call.request, inputs=inputs, output=output)


def with_wrong_types(goals: Sequence[SubGoal], share: float) -> list[SubGoal]:
    """The goals, with a share of the slots typed like a slot of any goal."""
    chance = random.Random(1)
    pool = [slot for goal in goals for slot in goal.inputs]

    def maybe(slot: TypedSlot) -> TypedSlot:
        if chance.random() >= share:
            return slot
        other = chance.choice(pool)
        return replace(slot, type=other.type, confidence=other.confidence)

    return [
        replace(
            goal,
            inputs=tuple(maybe(slot) for slot in goal.inputs),
            output=None if goal.output is None else maybe(goal.output),
        )
        for goal in goals
    ]


async def compared(
    corpus: RetrievalCorpus, calls: Sequence[Call], ranker: Lexical | Description
) -> list[dict[str, Any]]:
    """One row for each source of types, share of wrong ones, and filter."""
    rows = []
    for source in ("values", "declared"):
        goals = [goal_of(call, corpus.library, source) for call in calls]
        for share in WRONG:
            wrong = with_wrong_types(goals, share)
            for name, stage in FILTERS.items():
                row = await measured(corpus, calls, wrong, stage, ranker)
                rows.append({"types": source, "wrong": share, "filter": name, **row})
    return rows


async def measured(
    corpus: RetrievalCorpus,
    calls: Sequence[Call],
    goals: Sequence[SubGoal],
    stage: Signature | None,
    ranker: Lexical | Description,
) -> dict[str, float]:
    """Recall by request, and the share of tools that the filter drops."""
    stages: list[Stage] = [ranker] if stage is None else [stage, ranker]
    channels = [channel for one in stages for channel in getattr(one, "channels", ())]
    start = Survivors.of(corpus.library, channels)
    found: dict[int, dict[str, list[bool]]] = {k: defaultdict(list) for k in AT}
    dropped = []
    for call, goal in zip(calls, goals, strict=True):
        survivors = start if stage is None else await stage(call.request, goal, start)
        dropped.append(1 - len(survivors) / len(start))
        ranked = await ranker(call.request, goal, survivors)
        keys = list(dict.fromkeys(corpus.keys[hit.definition.name] for hit in ranked.hits))
        for k in AT:
            found[k][call.request_id].append(corpus.keys[call.tool] in keys[:k])
    recall = {f"recall@{k}": fmean(fmean(one) for one in found[k].values()) for k in AT}
    return {**recall, "dropped": fmean(dropped)}


def statistics_of(library: Library) -> dict[str, float]:
    """What a catalogue declares, and what its words let us guess."""
    channel = SignatureChannel()
    index = library.derived(IndexConfig(channels=(channel,)))
    kinds = {kind for _, table in index.data(channel) for kind in table.kinds}
    types = [signature_types(definition) for definition in library.definitions]
    inputs = [one for each in types for one in each.inputs.values()]
    return {
        "tools": len(library),
        "declared outputs": fmean(not one.output.declared.is_any for one in types),
        "parameters": len(inputs),
        "undeclared parameters": fmean(one.declared.is_any for one in inputs),
        "parameters that are texts": fmean(one.declared.bases == {"string"} for one in inputs),
        "parameters with a likely meaning": fmean(
            bool(one.declared.meanings or (one.meanings and one.meanings[0].confidence >= 0.5))
            for one in inputs
        ),
        "signatures told apart": len(kinds),
    }


def show(report: dict[str, Any]) -> None:
    """The table of one corpus, in Markdown."""
    facts = {key: value for key, value in report.items() if key != "rows"}
    print(
        "\n"
        + ", ".join(
            f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in facts.items()
        )
    )
    print(
        "\n| types | wrong | filter | recall@5 | recall@32 | dropped |\n|---|---|---|---|---|---|"
    )
    for row in report["rows"]:
        print(
            f"| {row['types']} | {row['wrong']:.0%} | {row['filter']} | {row['recall@5']:.3f} "
            f"| {row['recall@32']:.3f} | {row['dropped']:.1%} |"
        )


if __name__ == "__main__":
    main()
