"""Whether retrieval improves with use: requests of one split are lived, those of the other asked.

    python tests/benchmarks/learning.py --corpus nestful=FOLDER [--corpus ...] [--by-name NAME]

A folder holds ``tools.jsonl.gz``, ``retrieval.jsonl.gz`` (questions with their gold tools) and
``queries.jsonl.gz`` (the same questions with their gold calls). Each question of the dev split
becomes an episode in which the gold calls were made, with a verdict that passed;
``ToolManager.learn`` learns from a growing share of them, and the default retriever is asked all
questions of the test split (docs/proposers.md). ``--by-name`` counts tools of one name as one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from harness import arguments, report

from agentkit import Episode, Library
from agentkit.episodes import Turn, Verdict
from agentkit.evolution import ToolManager
from agentkit.library.memory import MemoryStore
from agentkit.messages import AssistantMessage, JsonObject, ToolCall, ToolResult
from agentkit.tools.definition import ToolDefinition
from agentkit_bench import TypedDagRetriever
from agentkit_bench.retrieval.corpus import RetrievalCorpus, load_corpus
from agentkit_bench.retrieval.lines import read_lines
from agentkit_bench.retrieval.scores import recall_at

SHARES, DEPTHS = (0.0, 0.25, 0.5, 1.0), (5, 10, 32)
STAND_INS = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}


def measured(name: str, folder: Path, by: Any) -> Iterator[dict[str, Any]]:
    """The figures after each share of the dev split."""
    corpus = load_corpus([folder / "tools.jsonl.gz"], [folder / "retrieval.jsonl.gz"], by=by)
    asked = corpus.of_split("test")
    lived = list(episodes_of(corpus.of_split("dev"), folder))
    for share in SHARES:
        count = round(share * len(lived))
        manager = ToolManager(MemoryStore())
        manager.register(corpus.library.definitions)
        manager.learn([lived[at * len(lived) // count] for at in range(count)])  # evenly
        ranked, spent = asyncio.run(rankings(asked, manager.library))
        pairs = [(query.gold, found) for query, found in zip(asked.queries, ranked, strict=True)]
        yield {
            "corpus": name,
            "lived": count,
            "examples": sum(len(one.examples) for one in manager.library.definitions),
            "asked": len(pairs),
            **{f"@{at}": fmean(recall_at(*pair, at) for pair in pairs) for at in DEPTHS},
            "all in 10": fmean(recall_at(*pair, 10) == 1 for pair in pairs),
            "query ms": median(spent) * 1e3,
        }


async def rankings(
    corpus: RetrievalCorpus, library: Library
) -> tuple[list[list[str]], list[float]]:
    """For each question the keys of the tools found, best first, and the CPU seconds it took."""
    retriever = TypedDagRetriever(shortlist=100, offer=1, token_budget=10**9)
    await retriever.retrieve(corpus.queries[0].text, library)  # makes the index
    ranked, spent = [], []
    for query in corpus.queries:
        began = time.process_time()
        found = await retriever.retrieve(query.text, library)
        spent.append(time.process_time() - began)
        ranked.append(list(dict.fromkeys(corpus.keys[hit.definition.name] for hit in found.hits)))
    return ranked, spent


def episodes_of(corpus: RetrievalCorpus, folder: Path) -> Iterator[Episode]:
    """The questions as episodes in which the gold calls were made; those without any are left out."""
    ids = (str(line.record["id"]) for line in read_lines(folder / "tools.jsonl.gz"))
    tools = dict(zip(ids, corpus.library.definitions, strict=True))
    records = {
        str(line.record["id"]): line.record for line in read_lines(folder / "queries.jsonl.gz")
    }
    for query in corpus.queries:
        gold = records.get(query.query_id, {}).get("gold") or []
        flat = [call for entry in gold for call in (entry if isinstance(entry, list) else [entry])]
        made = [
            ToolCall(
                call_id=str(at),
                name=tools[call["tool"]].name,
                arguments=arguments_of(call, tools[call["tool"]]),
            )
            for at, call in enumerate(flat)
            if call.get("tool") in tools
        ]
        if made:
            yield episode_of(query.query_id, query.text, made)


def episode_of(number: str, request: str, calls: Sequence[ToolCall]) -> Episode:
    """One run, all calls in one turn; what they gave is not in the files."""
    results = tuple(
        ToolResult(call_id=call.call_id, name=call.name, status="ok", value="done")
        for call in calls
    )
    turn = Turn(message=AssistantMessage(tool_calls=tuple(calls)), results=results)
    return Episode(episode_id=number, request=request, turns=(turn,), verdict=Verdict(passed=True))


def arguments_of(call: JsonObject, tool: ToolDefinition) -> JsonObject:
    """The arguments of a gold call; a reference to an earlier result becomes a value that fits."""
    if "allowed" in call:
        chosen = {name: values[0] for name, values in call["allowed"].items() if values}
        return {name: value for name, value in chosen.items() if value != ""}

    def value_of(name: str, value: Any) -> Any:
        if not (isinstance(value, str) and value.startswith(("$var", "API_call_"))):
            return value
        schema = tool.signature.properties.get(name, {})
        kinds = schema.get("type", "string")
        kind = kinds[0] if isinstance(kinds, list) else kinds
        return schema["enum"][0] if schema.get("enum") else STAND_INS.get(kind, "value")

    return {name: value_of(name, value) for name, value in call["arguments"].items()}


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--by-name", action="append", default=[], metavar="NAME")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for entry in options.corpus:
        corpus_name, _, place = entry.partition("=")
        by_key = "name" if corpus_name in options.by_name else "id"
        rows += measured(corpus_name, Path(place), by_key)
    report(rows, options)
