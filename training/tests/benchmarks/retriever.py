"""What retrieval gains by vectors that learned half of the requests, asked with the other half.

    python training/tests/benchmarks/retriever.py bfcl=FOLDER seal_tools=FOLDER nestful=FOLDER

A folder holds tools.jsonl(.gz) and retrieval.jsonl(.gz). Requests that differ in digits alone are
in the same half. Takes the packages agentkit-training, agentkit-bench and wordllama.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from agentkit import Library
from agentkit.retrieval import CascadeRetriever, StaticEmbedder, default_stages
from agentkit.tools.definition import Example
from agentkit_bench.retrieval.corpus import RetrievalCorpus, RetrievalQuery, load_corpus
from agentkit_training import Request, train_retriever

AT = (5, 32)
MOST_EXAMPLES = 32


def main() -> None:
    """Print a table: a row for each corpus and way to learn."""
    folders = {name: Path(folder) for name, folder in (one.split("=") for one in sys.argv[1:])}
    print("| corpus | asked | default | examples | vectors | bystanders | CPU s |")
    print("|---|---|---|---|---|---|---|")
    for name, folder in folders.items():
        by = "name" if name == "bfcl" else "id"
        corpus = load_corpus(
            sorted(folder.glob("tools.jsonl*")), sorted(folder.glob("retrieval.jsonl*")), by=by
        )
        print(f"| {name} | {row(corpus)} |", flush=True)


def row(corpus: RetrievalCorpus) -> str:
    """The figures of one corpus, as cells."""
    learned = [one for one in corpus.queries if is_learned(one)]
    asked = [one for one in corpus.queries if not is_learned(one)]
    names: dict[str, set[str]] = {}
    for name, key in corpus.keys.items():
        names.setdefault(key, set()).add(name)
    began = time.process_time()
    report = train_retriever(
        corpus.library,
        [
            Request(text=one.text, tools=frozenset().union(*(names[key] for key in one.gold)))
            for one in learned
            if one.gold
        ],
    )
    seconds = time.process_time() - began
    embedder = StaticEmbedder(trained=report.vectors)
    before = recall(corpus, corpus.library, asked, StaticEmbedder())
    by_examples = recall(corpus, with_examples(corpus, learned), asked, StaticEmbedder())
    after = recall(corpus, corpus.library, asked, embedder)
    taught = frozenset().union(*(one.gold for one in learned))
    others = [at for at, one in enumerate(asked) if not one.gold & taught]
    lost = 100 * fmean([after[at][0] - before[at][0] for at in others] or [0.0])
    return " | ".join(
        (
            f"{len(asked):,}",
            *map(shown, (before, by_examples, after)),
            f"{lost:+.1f} ({len(others)})",
            f"{seconds:.0f}",
        )
    )


def is_learned(query: RetrievalQuery) -> bool:
    """Half of the requests, by a hash of their text without digits."""
    text = "0" + "".join(one for one in query.text if not one.isdigit())
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 1


def with_examples(corpus: RetrievalCorpus, learned: Sequence[RetrievalQuery]) -> Library:
    """The library whose tools have what was asked of them as examples."""
    texts: dict[str, list[str]] = {}
    for one in learned:
        for key in one.gold:
            texts.setdefault(key, []).append(one.text)
    return Library(
        replace(
            one,
            examples=tuple(
                Example(arguments={}, query=text)
                for text in texts.get(corpus.keys[one.name], [])[-MOST_EXAMPLES:]
            ),
        )
        for one in corpus.library.definitions
    )


def recall(
    corpus: RetrievalCorpus,
    library: Library,
    asked: Sequence[RetrievalQuery],
    embedder: StaticEmbedder,
) -> list[tuple[float, ...]]:
    """Recall at 5 and 32 of each request."""
    return asyncio.run(_recall(corpus.keys, library, asked, embedder))


async def _recall(
    keys: Mapping[str, str],
    library: Library,
    asked: Sequence[RetrievalQuery],
    embedder: StaticEmbedder,
) -> list[tuple[float, ...]]:
    stages = default_stages(64, embedder=embedder)
    retriever = CascadeRetriever(stages=stages, shortlist=64, offer=1, token_budget=10**7)
    found = []
    for one in asked:
        hits = (await retriever.retrieve(one.text, library)).hits
        order = list(dict.fromkeys(keys[hit.definition.name] for hit in hits))
        total = len(one.gold) + one.unknown_gold
        found.append(tuple(len(one.gold & {*order[:at]}) / total for at in AT))
    return found


def shown(shares: Sequence[tuple[float, ...]]) -> str:
    """The means of both depths."""
    return " / ".join(f"{fmean(column):.3f}" for column in zip(*shares, strict=True))


if __name__ == "__main__":
    main()
