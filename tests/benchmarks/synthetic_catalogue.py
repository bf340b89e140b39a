"""Catalogues of any size, recombined from real tools.

A made-up tool takes its name from the words of two real tools, its description from a third and
its parameters from a fourth, all drawn at random with a fixed seed. So fields are as long, and
words as common, as in the real catalogues. What does not grow is the vocabulary: beyond a hundred
thousand tools real catalogues would have more rare words and shorter lists for each, so that times
measured here are rather too long than too short.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agentkit import ToolDefinition
from agentkit.testing import primitive_library, sample_library

CORPORA = ("bfcl", "seal_tools", "nestful", "tooluniverse")

SAMPLE_QUERIES = (
    "What is the weather in Oslo tomorrow?",
    "Add 3 and 4, then divide by the mean of the list.",
    "How many days are between two dates?",
    "Sort the rows of the table by price and keep the first three",
    "send a mail to Ann",
    "",
)


def real_tools(folder: Path | None) -> list[ToolDefinition]:
    """The tools of the corpora in ``folder``; without one those of ``agentkit.testing``."""
    if folder is None:
        return [*sample_library().definitions, *primitive_library().definitions]
    return [
        ToolDefinition.from_schema(record["name"], record["description"], record["parameters"])
        for corpus in CORPORA
        for record in _records(folder / corpus, "tools")
    ]


def real_queries(folder: Path | None, most: int) -> list[str]:
    """An even sample of the questions of the corpora; without a folder a few of our own."""
    if folder is None:
        return list(SAMPLE_QUERIES)
    queries = [
        record["query"] for corpus in CORPORA for record in _records(folder / corpus, "retrieval")
    ]
    return queries[:: max(1, len(queries) // most)][:most]


def recombined(
    tools: Sequence[ToolDefinition], count: int, *, seed: int = 0
) -> Iterator[ToolDefinition]:
    """``count`` made-up tools with names of their own."""
    chance = random.Random(seed)
    taken: set[str] = set()
    for place in range(count):
        first, second, described, called = chance.choices(tools, k=4)
        name = _crossed(first.name, second.name)
        if name in taken:
            name = f"{name}_{place}"
        taken.add(name)
        yield ToolDefinition.from_schema(
            name, described.description.summary, called.parameters_schema
        )


def _crossed(first: str, second: str) -> str:
    """The first half of one name and the second half of another, cut between words."""
    heads, tails = first.split("_"), second.split("_")
    return "_".join([*heads[: (len(heads) + 1) // 2], *tails[len(tails) // 2 :]])


def _records(folder: Path, stem: str) -> Iterator[dict[str, Any]]:
    path = folder / f"{stem}.jsonl.gz"
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)
