"""How well, how cheaply and how fast the default retriever finds tools on a corpus.

A corpus is a folder with ``tools.jsonl[.gz]`` (``id``, ``name``, ``description``, ``parameters``)
and ``retrieval.jsonl[.gz]`` (``query``, ``gold_tools``: ids). Tools of one name count as one.

    python tests/benchmarks/bench_retrieval.py CORPUS_FOLDER... [--max-queries N] [--out FILE]

Quality is that of the ranking alone (``recall@k``, and ``full@k``: the share of queries with all
gold tools among the first k), and of what the model really gets within the budget (``offered``,
``shown``). Tokens are the estimate of four bytes each. Times are CPU milliseconds of one process.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import platform
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agentkit import Library, ToolDefinition, __version__
from agentkit.retrieval import (
    CascadeRetriever,
    Retrieval,
    card,
    estimate_tokens,
    schema_text,
)

DEPTH = 100
"""How deep rankings are read; deeper than 32, since tools of one name collapse into one."""

UNLIMITED = 10**9


@dataclass(frozen=True, kw_only=True)
class Question:
    """A request and the names of the tools that answer it."""

    text: str
    gold: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A library and the questions asked of it."""

    name: str
    library: Library
    questions: list[Question]


@dataclass(frozen=True, kw_only=True)
class Row:
    """The figures of one corpus."""

    corpus: str
    tools: int
    questions: int
    quality: dict[str, float] = field(default_factory=dict)
    tokens: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)


def read_jsonl(folder: Path, stem: str) -> Iterator[dict[str, Any]]:
    """The records of ``stem.jsonl`` or ``stem.jsonl.gz``."""
    for path, opener in (
        (folder / f"{stem}.jsonl.gz", gzip.open),
        (folder / f"{stem}.jsonl", open),
    ):
        if path.exists():
            with opener(path, "rt", encoding="utf-8") as lines:
                yield from (json.loads(line) for line in lines if line.strip())
            return
    raise SystemExit(f"{folder} holds no {stem}.jsonl or {stem}.jsonl.gz")


def load(folder: Path, max_questions: int | None) -> Corpus:
    """Read a corpus; each further tool of the same name gets one ``~`` more after its name."""
    seen: Counter[str] = Counter()
    definitions, names = [], {}
    for tool in read_jsonl(folder, "tools"):
        names[tool["id"]] = tool["name"]
        unique = tool["name"] + "~" * seen[tool["name"]]
        seen[tool["name"]] += 1
        definitions.append(
            ToolDefinition.from_schema(unique, tool["description"], tool["parameters"])
        )
    questions = [
        Question(text=entry["query"], gold=frozenset(names[gold] for gold in entry["gold_tools"]))
        for entry in read_jsonl(folder, "retrieval")
    ]
    if max_questions is not None:
        questions = questions[:: max(1, len(questions) // max_questions)][:max_questions]
    return Corpus(name=folder.name, library=Library(definitions), questions=questions)


async def retrieve_all(
    corpus: Corpus, retriever: CascadeRetriever
) -> tuple[list[Retrieval], list[float], float]:
    """All retrievals, the CPU ms of each, and the CPU ms that the first query paid on top."""
    started = time.process_time()
    await retriever.retrieve("warm up", corpus.library)
    building = (time.process_time() - started) * 1e3
    found, spent = [], []
    for question in corpus.questions:
        started = time.process_time()
        found.append(await retriever.retrieve(question.text, corpus.library))
        spent.append((time.process_time() - started) * 1e3)
    return found, spent, building


def distinct(names: Sequence[str]) -> list[str]:
    """Names without the marks that told duplicates apart, each once."""
    return list(dict.fromkeys(name.rstrip("~") for name in names))


def recall(gold: frozenset[str], names: Sequence[str]) -> float:
    """The share of ``gold`` among ``names``."""
    return len(gold & set(names)) / len(gold)


def ranking_quality(corpus: Corpus, rankings: list[Retrieval]) -> dict[str, float]:
    """``recall@k`` and ``full@k`` of the ranking alone."""
    ranked = [distinct([hit.definition.name for hit in found.hits]) for found in rankings]
    pairs = list(zip(corpus.questions, ranked, strict=True))
    figures = {}
    for depth in (1, 5, 32):
        recalls = [recall(question.gold, names[:depth]) for question, names in pairs]
        figures[f"recall@{depth}"] = statistics.fmean(recalls)
        figures[f"full@{depth}"] = statistics.fmean(value == 1 for value in recalls)
    return figures


def budget_quality(corpus: Corpus, found: list[Retrieval]) -> dict[str, float]:
    """Recall among the tools given in full, and among those shown at all."""
    pairs = list(zip(corpus.questions, found, strict=True))
    offered = [recall(q.gold, distinct([d.name for d in r.offered])) for q, r in pairs]
    shown = [recall(q.gold, distinct([hit.definition.name for hit in r.hits])) for q, r in pairs]
    return {
        "offered": statistics.fmean(offered),
        "shown": statistics.fmean(shown),
        "tools_offered": statistics.fmean(len(r.offered) for r in found),
        "tools_shown": statistics.fmean(len(r.hits) for r in found),
    }


def token_figures(rankings: list[Retrieval], found: list[Retrieval]) -> dict[str, float]:
    """Mean tokens of 32 cards, of 5 and 32 full schemas, and of what was really shown."""
    tops = [[hit.definition for hit in ranking.hits[:32]] for ranking in rankings]
    return {
        "cards@32": statistics.fmean(
            sum(estimate_tokens(card(tool) + "\n") for tool in top) for top in tops
        ),
        "schemas@5": statistics.fmean(
            sum(estimate_tokens(schema_text(tool)) for tool in top[:5]) for top in tops
        ),
        "schemas@32": statistics.fmean(
            sum(estimate_tokens(schema_text(tool)) for tool in top) for top in tops
        ),
        "shown_mean": statistics.fmean(retrieval.tokens for retrieval in found),
        "shown_max": max(retrieval.tokens for retrieval in found),
    }


def measure(corpus: Corpus) -> Row:
    """All figures of one corpus."""
    deep = CascadeRetriever(shortlist=DEPTH, offer=1, token_budget=UNLIMITED)
    rankings, _, _ = asyncio.run(retrieve_all(corpus, deep))
    found, spent, building = asyncio.run(retrieve_all(corpus, CascadeRetriever()))
    spent.sort()
    return Row(
        corpus=corpus.name,
        tools=len(corpus.library),
        questions=len(corpus.questions),
        quality=ranking_quality(corpus, rankings) | budget_quality(corpus, found),
        tokens=token_figures(rankings, found),
        cpu={
            "first_query_ms": building,
            "query_p50_ms": statistics.median(spent),
            "query_p99_ms": spent[int(len(spent) * 0.99)],
        },
    )


def table(rows: list[Row]) -> str:
    """A Markdown table with one column a corpus."""
    lines = ["| | " + " | ".join(row.corpus for row in rows) + " |", "|---|" + "---|" * len(rows)]
    lines += [
        f"| {name} | " + " | ".join(f"{getattr(row, name):,}" for row in rows) + " |"
        for name in ("tools", "questions")
    ]
    for group, digits in (("quality", 3), ("tokens", 0), ("cpu", 2)):
        for name in getattr(rows[0], group):
            values = [f"{getattr(row, group)[name]:,.{digits}f}" for row in rows]
            lines.append(f"| {group}: {name} | " + " | ".join(values) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure the corpora named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", type=Path, help="folders with tools and retrieval")
    parser.add_argument("--max-queries", type=int, help="an even sample of this many questions")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    arguments = parser.parse_args()
    rows = [measure(load(folder, arguments.max_queries)) for folder in arguments.corpora]
    print(table(rows))
    if arguments.out:
        record = {
            "agentkit": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "rows": [asdict(row) for row in rows],
        }
        arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
