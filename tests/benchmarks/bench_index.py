"""How fast and how large the search index is, from ten thousand to a million tools.

The catalogues are made up from real tools, see ``synthetic_catalogue.py``; the questions are real.

    python tests/benchmarks/bench_index.py [--corpora FOLDER] [--tools 10000 100000] [--out FILE]

Each size runs in a process of its own. Times are CPU milliseconds of that process with one thread,
memory is what the process grew by while the index was made (the definitions were there before),
and beside it the bytes of the index's arrays. Word vectors take part where the extra ``vectors`` is
installed, unless ``--words-only`` is given. *Insert*, *edit* and *remove* are the time from a
library to an up-to-date index of the changed one. *Through a store* adds writing to a SQLite file
and loading from it. Without ``--corpora`` the few tools of ``agentkit.testing`` are recombined.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from synthetic_catalogue import real_queries, real_tools, recombined

from agentkit import Library, ToolDefinition, __version__, open_store
from agentkit.library import LibraryChange
from agentkit.retrieval import CascadeRetriever, LexicalChannel, ToolIndex, default_stages
from agentkit.retrieval.candidates import Candidates

CHANGES = 300
LARGEST_STORED = 100_000
"""Larger catalogues are not written to a file here: committing them takes minutes."""


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU milliseconds of a call."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e3


def spread(times: Sequence[float], name: str) -> dict[str, float]:
    """Median and 99th percentile."""
    ordered = sorted(times)
    return {
        f"{name} p50": ordered[len(ordered) // 2],
        f"{name} p99": ordered[int(len(ordered) * 0.99)],
    }


def array_bytes(value: object) -> int:
    """The bytes of all arrays in a record, at any depth."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, tuple | list):
        return sum(map(array_bytes, value))
    if is_dataclass(value):
        return sum(array_bytes(getattr(value, one.name)) for one in fields(value))
    return 0


def memory_of(index: ToolIndex) -> dict[str, float]:
    """Megabytes of arrays, all together and by channel."""
    segments = [part.segment for part in index.parts]
    sizes = {"names": sum(array_bytes(segment.names) for segment in segments)}
    for place, channel in enumerate(index.channels):
        data = [segment.data[place] for segment in segments]
        sizes[type(channel).__name__] = array_bytes(data)
    named = {f"arrays MB: {name}": size / 1e6 for name, size in sizes.items()}
    return {"arrays MB": sum(sizes.values()) / 1e6} | named


def resident_mb() -> float:
    """What the process holds now."""
    gc.collect()
    return psutil.Process().memory_info().rss / 1e6


def retriever_of(*, words_only: bool) -> CascadeRetriever:
    """The default retriever, or the one of an installation without word vectors."""
    return CascadeRetriever(stages=default_stages(embedder=None if words_only else "auto"))


def index_of(retriever: CascadeRetriever, library: Library) -> ToolIndex:
    """The index that a retriever uses."""
    return Candidates.of(library, retriever.channels).index


def query_times(
    retriever: CascadeRetriever, library: Library, queries: Sequence[str]
) -> dict[str, float]:
    """CPU times of the whole cascade, by stage, and of scoring and choosing by words alone.

    Each question is asked twice: the first time words, cards and schemas are looked at that were
    not seen before; the stages are those of the second time.
    """
    words = LexicalChannel()
    index = index_of(retriever, library)

    def lexical(query: str) -> None:
        index.top(words.scores(index, words.query(query)), 32)

    async def ask_all(whole: list[float], stages: dict[str, list[float]]) -> None:
        for query in queries:
            started = time.process_time()
            found = await retriever.retrieve(query, library)
            whole.append((time.process_time() - started) * 1e3)
            for report in found.stages:
                stages.setdefault(report.stage, []).append(report.cpu_seconds * 1e3)

    figures: dict[str, float] = {}
    for name in ("query, first time ms", "query ms"):
        whole: list[float] = []
        stages: dict[str, list[float]] = {}
        asyncio.run(ask_all(whole, stages))
        figures |= spread(whole, name)
    figures |= spread([cpu_ms(partial(lexical, query)) for query in queries], "words alone ms")
    for name, times in stages.items():
        figures |= spread(times, f"stage {name} ms")
    return figures


def changes(library: Library, new: Sequence[ToolDefinition]) -> Iterator[tuple[str, Any]]:
    """Inserts, edits and removals in turns, each as a step from library to library."""
    chance = random.Random(1)
    names = list(library.tools)
    for place, tool in enumerate(new):
        fresh = ToolDefinition.from_schema(
            f"{tool.name}_new_{place}", tool.description.summary, tool.parameters_schema
        )
        yield "insert", partial(Library.with_tools, tools=[fresh])
        name = chance.choice(names)
        edited = ToolDefinition.from_schema(name, tool.description.summary, tool.parameters_schema)
        yield "edit", partial(Library.with_tools, tools=[edited])
        yield "remove", partial(Library.without, names=[chance.choice(names)])


def change_times(
    retriever: CascadeRetriever, library: Library, new: Sequence[ToolDefinition]
) -> dict[str, float]:
    """CPU times from a library to the index of a changed one."""
    times: dict[str, list[float]] = {}
    for kind, step in changes(library, new):
        started = time.process_time()
        library = step(library)
        changed = time.process_time()
        index_of(retriever, library)
        done = time.process_time()
        times.setdefault(f"{kind} visible ms", []).append((done - started) * 1e3)
        times.setdefault(f"{kind}: library alone ms", []).append((changed - started) * 1e3)
    figures: dict[str, float] = {}
    for name, spent in times.items():
        figures |= spread(spent, name)
    return figures


async def answer(retriever: CascadeRetriever, library: Library) -> None:
    """Ask once; the result stays here, as ``asyncio.run`` would print it twice."""
    await retriever.retrieve("weather", library)


def store_times(
    library: Library, new: Sequence[ToolDefinition], *, words_only: bool
) -> dict[str, float]:
    """Opening a file with and without a kept index, and inserts that go through the file."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'library.db'}"
        store = open_store(url)
        everything = LibraryChange(proposal_id="all", upserts=library.definitions)
        figures = {
            "store: first commit ms": cpu_ms(lambda: store.commit(everything, expected_version=0))
        }
        store.close()
        for name in ("without a kept index", "with a kept index"):
            opened = open_store(url)
            loaded: list[Library] = []
            figures[f"reopen {name}: load ms"] = cpu_ms(lambda: loaded.append(opened.load()))  # noqa: B023
            figures[f"reopen {name}: first answer ms"] = cpu_ms(
                lambda: asyncio.run(answer(retriever_of(words_only=words_only), loaded[0]))  # noqa: B023
            )
            opened.close()
        figures["file MB"] = (Path(folder) / "library.db").stat().st_size / 1e6
        figures |= _through_a_store(url, retriever_of(words_only=words_only), new)
    return figures


def _through_a_store(
    url: str, retriever: CascadeRetriever, new: Sequence[ToolDefinition]
) -> dict[str, float]:
    store = open_store(url)
    index_of(retriever, store.load())
    commits, loads = [], []
    for place, tool in enumerate(new):
        fresh = ToolDefinition.from_schema(
            f"{tool.name}_kept_{place}", tool.description.summary, tool.parameters_schema
        )
        change = LibraryChange(proposal_id=f"new {place}", upserts=(fresh,))
        version = store.load().version
        commits.append(cpu_ms(lambda: store.commit(change, expected_version=version)))  # noqa: B023
        loads.append(cpu_ms(lambda: index_of(retriever, store.load())))
    store.close()
    return spread(commits, "store: commit ms") | spread(loads, "store: load and index ms")


def measure(arguments: argparse.Namespace) -> dict[str, float]:
    """All figures for one size."""
    count, corpora = arguments.one, arguments.corpora
    real = real_tools(corpora)
    library = Library(recombined(real, count))
    asked = real_queries(corpora, arguments.queries)
    new = list(recombined(real, CHANGES, seed=1))
    retriever = retriever_of(words_only=arguments.words_only)
    index_of(retriever, Library(new))  # modules are loaded by now
    before = resident_mb()
    figures = {"build ms per thousand": cpu_ms(lambda: index_of(retriever, library)) / count * 1e3}
    figures["memory MB"] = resident_mb() - before
    figures |= memory_of(index_of(retriever, library))
    figures |= query_times(retriever, library, asked)
    figures |= change_times(retriever, library, new)
    if count <= LARGEST_STORED:
        figures |= store_times(library, new, words_only=arguments.words_only)
    return figures


def measured_apart(count: int, arguments: argparse.Namespace) -> dict[str, float]:
    """``measure`` in a process of its own, with one thread."""
    command = [sys.executable, __file__, "--one", str(count), "--queries", str(arguments.queries)]
    if arguments.corpora:
        command += ["--corpora", str(arguments.corpora)]
    if arguments.words_only:
        command += ["--words-only"]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | threads
    )
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def table(rows: dict[int, dict[str, float]]) -> str:
    """A Markdown table with one column a size."""
    names = dict.fromkeys(name for figures in rows.values() for name in figures)
    lines = ["| | " + " | ".join(f"{count:,} tools" for count in rows) + " |"]
    lines.append("|---|" + "---:|" * len(rows))
    for name in names:
        cells = (f"{figures[name]:,.2f}" if name in figures else "" for figures in rows.values())
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure the sizes that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpora", type=Path, help="a folder with bfcl/, seal_tools/, ...")
    parser.add_argument("--tools", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=500, help="an even sample of so many")
    parser.add_argument("--words-only", action="store_true", help="without word vectors")
    parser.add_argument("--out", type=Path, help="also write the figures as JSON")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments)))
        return
    rows = {count: measured_apart(count, arguments) for count in arguments.tools}
    print(table(rows))
    if arguments.out:
        record = {
            "agentkit": __version__,
            "python": platform.python_version(),
            "machine": platform.machine(),
            "corpora": arguments.corpora is not None,
            "tools": rows,
        }
        arguments.out.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
