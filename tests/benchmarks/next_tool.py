"""Whether the next tool of a trajectory is among the first five, by what its calls have given (docs/retrieval.md).

    python tests/benchmarks/next_tool.py nestful=FOLDER seal_tools=FOLDER [--each 6] [--wrong 0.15]

After each call of a gold trajectory the request is searched again, without and with the results in hand. Results
are the recorded ones; where a corpus has none, plain values for the fields that the tool declares.
"""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from harness import arguments, report

from agentkit.retrieval import CascadeRetriever, values_in_hand
from agentkit_bench.retrieval import load_corpus

FIRST = 5
PLAIN = {"number": 1.5, "integer": 2, "boolean": True, "array": [], "object": {}}
_FIELD = re.compile(r'"([A-Za-z_]+)"\s*:\s*("|-?\d)')


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a compressed file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def given(call: Mapping[str, Any], returns: Mapping[str, Any]) -> object:
    """What a gold call gave: recorded, clipped, or made of what the tool declares."""
    found = call.get("response")
    if isinstance(found, Mapping) and "_head" in found:
        return {name: "x" if start == '"' else 1 for name, start in _FIELD.findall(found["_head"])}
    if found is not None:
        return found
    declared = returns.get("properties", returns)
    return {
        name: PLAIN.get(part.get("type"), "abc")
        for name, part in declared.items()
        if isinstance(part, Mapping)
    }


async def measured(name: str, folder: Path, each: int, wrong: float) -> dict[str, Any]:
    """The share of steps whose tool is among the first five, without and with what is in hand."""
    tools, asked = folder / "tools.jsonl.gz", folder / "retrieval.jsonl.gz"
    corpus = load_corpus([tools], [asked])
    returns = {one["id"]: one.get("returns") or {} for one in records(tools)}
    names = {key: one for one, key in corpus.keys.items()}
    chance, seen = random.Random(0), []
    retriever = CascadeRetriever()
    plain: list[bool] = []
    typed: list[bool] = []
    for number, record in enumerate(records(folder / "queries.jsonl.gz")):
        calls = record["gold"]
        if number % each or not all(isinstance(c, dict) and c.get("tool") in names for c in calls):
            continue
        results: list[object] = []
        for call, following in itertools.pairwise(calls):
            results.append(given(call, returns[call["tool"]]))
            slots = list(values_in_hand(results))
            seen += slots[:3]
            slots = [
                replace(chance.choice(seen), name=one.name) if chance.random() < wrong else one
                for one in slots
            ]
            wanted = names[following["tool"]]
            for found, in_hand in ((plain, ()), (typed, slots)):
                hits = (
                    await retriever.retrieve_next(record["query"], corpus.library, in_hand)
                ).hits
                found.append(wanted in [hit.definition.name for hit in hits[:FIRST]])
    return {"corpus": name, "steps": len(plain), "untyped": fmean(plain), "typed": fmean(typed)}


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("corpora", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--each", type=int, default=6, help="one in so many trajectories")
    parser.add_argument(
        "--wrong", type=float, default=0.0, help="share of types that are another's"
    )
    options = parser.parse_args()
    pairs = [one.split("=", 1) for one in options.corpora]
    report(
        [asyncio.run(measured(n, Path(f), options.each, options.wrong)) for n, f in pairs], options
    )
