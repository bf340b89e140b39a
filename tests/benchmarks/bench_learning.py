"""Whether retrieval improves with use: requests of one split are lived, those of the other asked.

    python tests/benchmarks/bench_learning.py --corpus nestful=FOLDER [--corpus ...] [--json FILE]

A folder holds ``tools.jsonl.gz``, ``retrieval.jsonl.gz`` (questions with their gold tools) and
``queries.jsonl.gz`` (the same questions with their gold calls). Each question of the dev split
becomes an episode in which the gold calls were made, with a verdict that passed;
``ToolManager.learn`` learns from a growing share of them, and the default retriever is asked all
questions of the test split. Nothing is tuned here. ``--by-name`` counts tools of one name as one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from agentkit import Episode, Library
from agentkit.episodes import Turn, Verdict
from agentkit.evolution import LearnReport, ToolManager
from agentkit.library.memory import MemoryStore
from agentkit.messages import AssistantMessage, JsonObject, ToolCall, ToolResult
from agentkit.tools.definition import ToolDefinition
from agentkit_bench import TypedDagRetriever
from agentkit_bench.retrieval.corpus import RetrievalCorpus, load_corpus
from agentkit_bench.retrieval.lines import read_lines
from agentkit_bench.retrieval.scores import recall_at

SHARES = (0.0, 0.25, 0.5, 1.0)
DEPTHS = (5, 10, 32)


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """Figures of one corpus after learning from a share of the dev split."""

    corpus: str
    lived: int
    examples: int
    asked: int
    known: float  # share of the gold tools asked for that have an example
    recall: Mapping[int, float]
    full_at_10: float
    learn_cpu_s: float
    query_cpu_ms: float
    bytes_an_example: float


def main() -> None:
    """Print one table, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", action="append", required=True, metavar="NAME=FOLDER")
    parser.add_argument("--by-name", action="append", default=[], metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    rows = []
    print("corpus       lived examples  known    @5   @10   @32 full@10  learn s  query ms  bytes")
    for entry in options.corpus:
        name, _, folder = entry.partition("=")
        for row in measured(name, Path(folder), by_name=name in options.by_name):
            rows.append(row)
            print(line(row), flush=True)
    if options.json:
        records = [asdict(row) for row in rows]
        options.json.write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")


def line(row: Row) -> str:
    """One row of the table."""
    recall = " ".join(f"{row.recall[depth]:5.3f}" for depth in DEPTHS)
    return (
        f"{row.corpus:12} {row.lived:5} {row.examples:8} {row.known:6.1%} {recall} "
        f"{row.full_at_10:7.3f} {row.learn_cpu_s:8.2f} {row.query_cpu_ms:9.2f} "
        f"{row.bytes_an_example:6.0f}"
    )


def measured(name: str, folder: Path, *, by_name: bool) -> Iterator[Row]:
    """The figures after each share of the dev split."""
    corpus = load_corpus(
        [folder / "tools.jsonl.gz"],
        [folder / "retrieval.jsonl.gz"],
        by="name" if by_name else "id",
    )
    asked = corpus.of_split("test")
    lived = list(episodes_of(corpus.of_split("dev"), folder))
    for share in SHARES:
        count = round(share * len(lived))
        taken = [lived[at * len(lived) // count] for at in range(count)]  # evenly over the file
        started = time.process_time()
        library, report = learned(corpus.library, taken)
        seconds = time.process_time() - started
        yield figures(name, asked, library, report, len(taken), seconds)


def learned(library: Library, episodes: Sequence[Episode]) -> tuple[Library, LearnReport]:
    """The library after learning."""
    manager = ToolManager(MemoryStore())
    manager.register(library.definitions)
    report = manager.learn(episodes)
    return manager.library, report


def figures(
    name: str,
    corpus: RetrievalCorpus,
    library: Library,
    report: LearnReport,
    lived: int,
    seconds: float,
) -> Row:
    """Ask every question of ``corpus``."""
    ranked, spent = asyncio.run(rankings(corpus, library))
    gold = [query.gold for query in corpus.queries]
    known = {corpus.keys[one.name] for one in library.definitions if one.examples}
    examples = [one for new in report.added.values() for one in new]
    written = [len(json.dumps([one.query, one.arguments, one.result])) for one in examples]
    pairs = list(zip(gold, ranked, strict=True))
    return Row(
        corpus=name,
        lived=lived,
        examples=len(examples),
        asked=len(gold),
        known=fmean(len(one & known) / len(one) if one else 0.0 for one in gold),
        recall={at: fmean(recall_at(one, found, at) for one, found in pairs) for at in DEPTHS},
        full_at_10=fmean(recall_at(one, found, 10) == 1 for one, found in pairs),
        learn_cpu_s=seconds,
        query_cpu_ms=median(spent) * 1e3,
        bytes_an_example=fmean(written) if written else 0.0,
    )


async def rankings(
    corpus: RetrievalCorpus, library: Library
) -> tuple[list[list[str]], list[float]]:
    """For each question the keys of the tools found, best first, and the CPU seconds it took."""
    retriever = TypedDagRetriever(shortlist=100, offer=1, token_budget=10**9)
    await retriever.retrieve(corpus.queries[0].text, library)  # makes the index
    ranked, spent = [], []
    for query in corpus.queries:
        started = time.process_time()
        found = await retriever.retrieve(query.text, library)
        spent.append(time.process_time() - started)
        keys = (corpus.keys[hit.definition.name] for hit in found.hits)
        ranked.append(list(dict.fromkeys(keys)))
    return ranked, spent


def episodes_of(corpus: RetrievalCorpus, folder: Path) -> Iterator[Episode]:
    """The questions as episodes in which the gold calls were made; those without any are left out."""
    names = {key: name for name, key in ids_of(corpus, folder).items()}
    calls = {
        str(line.record["id"]): line.record for line in read_lines(folder / "queries.jsonl.gz")
    }
    for query in corpus.queries:
        gold = calls.get(query.query_id, {}).get("gold") or []
        flat = [call for entry in gold for call in (entry if isinstance(entry, list) else [entry])]
        made = [
            (
                names[call["tool"]],
                arguments_of(call, corpus.library[names[call["tool"]]].definition),
            )
            for call in flat
            if call.get("tool") in names
        ]
        if made:
            yield episode_of(query.query_id, query.text, made)


def ids_of(corpus: RetrievalCorpus, folder: Path) -> dict[str, str]:
    """The id in the file of each tool of the library, which keeps the order of the file."""
    ids = (str(line.record["id"]) for line in read_lines(folder / "tools.jsonl.gz"))
    return dict(zip((one.name for one in corpus.library.definitions), ids, strict=True))


def episode_of(number: str, request: str, made: Sequence[tuple[str, JsonObject]]) -> Episode:
    """One run, all calls in one turn; what they gave is not in the files."""
    calls = tuple(
        ToolCall(call_id=str(at), name=name, arguments=arguments)
        for at, (name, arguments) in enumerate(made)
    )
    results = tuple(
        ToolResult(call_id=call.call_id, name=call.name, status="ok", value="done")
        for call in calls
    )
    turn = Turn(message=AssistantMessage(tool_calls=calls), results=results)
    return Episode(episode_id=number, request=request, turns=(turn,), verdict=Verdict(passed=True))


def arguments_of(call: JsonObject, tool: ToolDefinition) -> JsonObject:
    """The arguments of a gold call; a reference to an earlier result becomes a value that fits."""
    if "allowed" in call:
        chosen = {name: values[0] for name, values in call["allowed"].items() if values}
        return {name: value for name, value in chosen.items() if value != ""}
    return {
        name: stand_in(tool.signature.properties.get(name, {})) if is_reference(value) else value
        for name, value in call["arguments"].items()
    }


def is_reference(value: Any) -> bool:
    """Whether a value stands for the result of an earlier call."""
    return isinstance(value, str) and (value.startswith(("$var", "API_call_")))


def stand_in(schema: JsonObject) -> Any:
    """Some value of the type that a schema names."""
    values = {"integer": 1, "number": 1.0, "boolean": True, "array": [], "object": {}}
    kinds = schema.get("type", "string")
    kind = kinds[0] if isinstance(kinds, list) else kinds
    return schema["enum"][0] if schema.get("enum") else values.get(kind, "value")


if __name__ == "__main__":
    main()
