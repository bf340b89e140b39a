"""How fast and how large the search index is, from ten thousand to a million tools (docs/benchmarks.md).

    python tests/benchmarks/index.py [--corpora FOLDER] [--tools 10000 100000] [--words-only]

A made-up tool takes its name from the words of two real tools, its description from a third and its
parameters from a fourth, so that fields are as long, and words as common, as in the real catalogues;
the questions are real. Without ``--corpora`` the few tools of ``agentkit.testing`` are recombined.
Each size runs in a process of its own, with one thread. Times are CPU milliseconds, memory is what the
process grew by while the index was made. *Insert*, *edit* and *remove* go from a library to an
up-to-date index of the changed one. Word vectors take part unless ``--words-only`` is given.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import gzip
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import psutil
from harness import arguments, cpu_ms, cpu_ms_of, percentile, report, result, worker

from agentkit import Library, ToolDefinition, open_store
from agentkit.library import LibraryChange
from agentkit.retrieval import CascadeRetriever, default_stages
from agentkit.retrieval.candidates import Candidates
from agentkit.testing import primitive_library, sample_library

CORPORA = ("bfcl", "seal_tools", "nestful", "tooluniverse")
CHANGES = 300
LARGEST_STORED = 100_000
"""Larger catalogues are not written to a file here: committing them takes minutes."""

SAMPLE_QUERIES = (
    "What is the weather in Oslo tomorrow?",
    "Add 3 and 4, then divide by the mean of the list.",
    "Sort the rows of the table by price and keep the first three",
    "send a mail to Ann",
)


def records(folder: Path, stem: str) -> Iterator[dict[str, Any]]:
    """The lines of one file of each corpus."""
    for corpus in CORPORA:
        path = folder / corpus / f"{stem}.jsonl.gz"
        if path.exists():
            with gzip.open(path, "rt", encoding="utf-8") as lines:
                yield from map(json.loads, lines)


def real(folder: Path | None, most: int) -> tuple[list[ToolDefinition], list[str]]:
    """The tools of the corpora, and an even sample of their questions."""
    if folder is None:
        tools = [*sample_library().definitions, *primitive_library().definitions]
        return tools, list(SAMPLE_QUERIES)
    queries = [record["query"] for record in records(folder, "retrieval")]
    made = (
        ToolDefinition.from_schema(record["name"], record["description"], record["parameters"])
        for record in records(folder, "tools")
    )
    return list(made), queries[:: max(1, len(queries) // most)][:most]


def recombined(
    tools: Sequence[ToolDefinition], count: int, *, seed: int = 0
) -> Iterator[ToolDefinition]:
    """``count`` made-up tools with names of their own."""
    chance, taken = random.Random(seed), set[str]()
    for place in range(count):
        first, second, described, called = chance.choices(tools, k=4)
        heads, tails = first.name.split("_"), second.name.split("_")
        name = "_".join([*heads[: (len(heads) + 1) // 2], *tails[len(tails) // 2 :]])
        name = f"{name}_{place}" if name in taken else name
        taken.add(name)
        yield renamed(described, name, called.parameters_schema)


def renamed(tool: ToolDefinition, name: str, parameters: Any = None) -> ToolDefinition:
    """A tool's words under another name, perhaps with other parameters."""
    schema = tool.parameters_schema if parameters is None else parameters
    return ToolDefinition.from_schema(name, tool.description.summary, schema)


def spread(name: str, times: Sequence[float]) -> dict[str, float]:
    """Median and 99th percentile."""
    return {f"{name} p50": percentile(times, 0.5), f"{name} p99": percentile(times, 0.99)}


def resident_mb() -> float:
    """What the process holds now."""
    gc.collect()
    return float(psutil.Process().memory_info().rss / 1e6)


Made = Callable[[], CascadeRetriever]


def indexed(retriever: CascadeRetriever, library: Library) -> None:
    """Bring the index that a retriever uses up to date."""
    _ = Candidates.of(library, retriever.channels).index


def query_times(
    retriever: CascadeRetriever, library: Library, queries: Sequence[str]
) -> dict[str, float]:
    """CPU times of the whole cascade: at first words, cards and schemas are new, then they are not."""

    async def ask_all() -> list[float]:
        return [await cpu_ms_of(partial(retriever.retrieve, one, library)) for one in queries]

    found: dict[str, float] = {}
    for name in ("query, first time ms", "query ms"):
        found |= spread(name, asyncio.run(ask_all()))
    return found


def change_times(
    retriever: CascadeRetriever, library: Library, new: Sequence[ToolDefinition]
) -> dict[str, float]:
    """CPU times from a library to the index of a changed one."""
    chance, names = random.Random(1), list(library.tools)
    times: dict[str, list[float]] = {"insert ms": [], "edit ms": [], "remove ms": []}
    for place, tool in enumerate(new):
        fresh, edited = (
            renamed(tool, f"{tool.name}_new_{place}"),
            renamed(tool, chance.choice(names)),
        )
        gone = chance.choice(names)
        for kind, step in (
            ("insert ms", partial(Library.with_tools, tools=[fresh])),
            ("edit ms", partial(Library.with_tools, tools=[edited])),
            ("remove ms", partial(Library.without, names=[gone])),
        ):
            changed: list[Library] = []
            spent = cpu_ms(lambda: changed.append(step(library)))  # noqa: B023
            library = changed[0]
            times[kind].append(spent + cpu_ms(indexed, retriever, library))
    return {key: one for name, spent in times.items() for key, one in spread(name, spent).items()}


def store_times(library: Library, retriever: Made) -> dict[str, float]:
    """Opening a file with and without a kept index."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "library.db"
        os.environ["AGENTKIT_CACHE"] = folder  # where the index is kept
        store = open_store(f"sqlite:///{path}")
        everything = LibraryChange(proposal_id="all", upserts=library.definitions)
        store.commit(everything, expected_version=0)
        store.close()
        found: dict[str, float] = {}
        for name in ("index made anew", "index kept"):
            opened, loaded = open_store(f"sqlite:///{path}"), list[Library]()
            found["load from file ms"] = cpu_ms(lambda: loaded.append(opened.load()))  # noqa: B023
            one = retriever()
            found[f"first answer, {name} ms"] = cpu_ms(
                lambda: asyncio.run(answered(one, loaded[0]))  # noqa: B023
            )
            opened.close()
        found["file MB"] = path.stat().st_size / 1e6
    return found


async def answered(retriever: CascadeRetriever, library: Library) -> None:
    """Ask once."""
    await retriever.retrieve("weather", library)


def measure(asked: argparse.Namespace) -> dict[str, float]:
    """All figures for one size."""
    tools, queries = real(asked.corpora, asked.queries)
    library, new = (
        Library(recombined(tools, asked.one)),
        list(recombined(tools, CHANGES, seed=1)),
    )

    def made() -> CascadeRetriever:
        return CascadeRetriever(
            stages=default_stages(embedder=None if asked.words_only else "auto")
        )

    retriever = made()
    indexed(retriever, Library(new))  # modules are loaded by now
    before = resident_mb()
    found = {"build s": cpu_ms(indexed, retriever, library) / 1e3}
    found["memory MB"] = resident_mb() - before
    found |= query_times(retriever, library, queries) | change_times(retriever, library, new)
    return found | (store_times(library, made) if asked.one <= LARGEST_STORED else {})


if __name__ == "__main__":
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--corpora", type=Path, help="a folder with bfcl/, seal_tools/, ...")
    parser.add_argument("--tools", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=400, help="an even sample of so many")
    parser.add_argument("--words-only", action="store_true", help="without word vectors")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        result(measure(options))
    else:
        sizes = {n: worker([sys.executable, *sys.argv, "--one", str(n)]) for n in options.tools}
        columns = {f"{n:,} tools": found for n, found in sizes.items()}
        names = dict.fromkeys(name for found in sizes.values() for name in found)
        report(
            [{"": name, **{n: one.get(name) for n, one in columns.items()}} for name in names],
            options,
        )
