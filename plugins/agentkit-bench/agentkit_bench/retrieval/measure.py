"""Measuring one retriever on one corpus, in this process."""

from __future__ import annotations

import gc
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import fmean

from agentkit.retrieval.cards import TokenCounter, card, estimate_tokens, schema_text
from agentkit.retrieval.retriever import Retrieval, Retriever
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.retrieval.corpus import RetrievalCorpus, RetrievalQuery
from agentkit_bench.retrieval.equipment import Equipment
from agentkit_bench.retrieval.methods import DEEP, Limits, Method
from agentkit_bench.retrieval.report import (
    FULL_AT,
    RECALL_AT,
    TOKENS_AT,
    Cost,
    MethodReport,
    Quality,
)
from agentkit_bench.retrieval.scores import percentile, recall_at, reciprocal_rank

_MEGABYTE = 2**20
_NUMBER = re.compile(r"\b\d[\d,.]*\b")
_MAX_NAMES = 500
"""Names asked as queries; an even sample of a larger catalogue."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Build:
    """What the first query of a fresh retriever cost."""

    cpu_s: float
    memory_mb: float


async def measure_method(
    method: Method,
    corpus: RetrievalCorpus,
    *,
    equipment: Equipment | None = None,
    limits: Limits | None = None,
    count_tokens: TokenCounter = estimate_tokens,
    progress: Callable[[int, int], None] | None = None,
) -> MethodReport:
    """Ask all questions and report how good, how dear and how fast the answers are.

    Each question is asked twice: within ``limits``, which gives cost and what a model would see,
    and without, which gives the ranking. Memory is that of this process, so it means something
    only when nothing else happened in it; ``measure_apart`` starts one for each method.

    Args:
        method: What to measure.
        corpus: The catalogue and the questions.
        equipment: Models, for methods that need one.
        limits: What the model may be shown; by default 32 tools, 5 in full, 1,600 tokens.
        count_tokens: Counts the tokens of a text.
        progress: Told how many of how many questions are done.
    """
    equipment = equipment or Equipment()
    shown, built = await _built(method, corpus, limits or Limits(), equipment)
    deep = method.build(DEEP, equipment)
    await deep.retrieve(corpus.queries[0].text, corpus.library)
    found: list[Retrieval] = []
    ranked: list[tuple[ToolDefinition, ...]] = []
    spent: list[float] = []
    for number, query in enumerate(corpus.queries, start=1):
        started = time.process_time()
        found.append(await shown.retrieve(query.text, corpus.library))
        spent.append((time.process_time() - started) * 1e3)
        ranked.append(_ranking(await deep.retrieve(query.text, corpus.library), corpus))
        if progress is not None:
            progress(number, len(corpus.queries))
    cost = _cost(found, ranked, spent, built, count_tokens)
    keys = [[corpus.keys[definition.name] for definition in one] for one in ranked]
    return MethodReport(
        method=method.name,
        tools=len(corpus.library),
        asked=tuple(query.query_id for query in corpus.queries),
        quality=_quality(corpus, found, keys, await _name_hit(shown, corpus)),
        cost=cost,
        by_question={depth: _recalls(corpus.queries, keys, depth) for depth in RECALL_AT},
        notes=_notes(found),
        unknown_gold=corpus.unknown_gold,
    )


async def _built(
    method: Method, corpus: RetrievalCorpus, limits: Limits, equipment: Equipment
) -> tuple[Retriever, _Build]:
    """The retriever, warm, and what warming it cost beyond a usual query."""
    gc.collect()
    before, started = resident_mb(), time.process_time()
    retriever = method.build(limits, equipment)
    await retriever.retrieve(corpus.queries[0].text, corpus.library)
    first = time.process_time() - started
    await retriever.retrieve(corpus.queries[0].text, corpus.library)
    usual = time.process_time() - started - first
    gc.collect()
    return retriever, _Build(
        cpu_s=max(first - usual, 0.0), memory_mb=max(resident_mb() - before, 0.0)
    )


def _ranking(found: Retrieval, corpus: RetrievalCorpus) -> tuple[ToolDefinition, ...]:
    """The hits, of each key the best one only."""
    best: dict[str, ToolDefinition] = {}
    for hit in found.hits:
        best.setdefault(corpus.keys[hit.definition.name], hit.definition)
    return tuple(best.values())


def _quality(
    corpus: RetrievalCorpus,
    found: Sequence[Retrieval],
    ranked: Sequence[Sequence[str]],
    name_hit: float,
) -> Quality:
    queries = corpus.queries
    offered = [[corpus.keys[tool.name] for tool in one.offered] for one in found]
    shown = [[corpus.keys[hit.definition.name] for hit in one.hits] for one in found]
    everything = sys.maxsize
    return Quality(
        recall={depth: fmean(_recalls(queries, ranked, depth)) for depth in RECALL_AT},
        full={
            depth: fmean(recall == 1 for recall in _recalls(queries, ranked, depth))
            for depth in FULL_AT
        },
        mrr=fmean(
            reciprocal_rank(query.gold, keys) for query, keys in zip(queries, ranked, strict=True)
        ),
        name_hit=name_hit,
        offered=fmean(_recalls(queries, offered, everything)),
        shown=fmean(_recalls(queries, shown, everything)),
    )


def _recalls(
    queries: Sequence[RetrievalQuery], ranked: Sequence[Sequence[str]], depth: int
) -> list[float]:
    pairs = zip(queries, ranked, strict=True)
    return [recall_at(query.gold, keys, depth) for query, keys in pairs]


async def _name_hit(retriever: Retriever, corpus: RetrievalCorpus) -> float:
    """The share of names that find a tool of that name first."""
    names = list(dict.fromkeys(corpus.names.values()))
    count = min(len(names), _MAX_NAMES)
    hits = 0
    for name in (names[at * len(names) // count] for at in range(count)):
        found = await retriever.retrieve(name, corpus.library)
        hits += bool(found.hits) and corpus.names[found.hits[0].definition.name] == name
    return hits / count


def _cost(
    found: Sequence[Retrieval],
    ranked: Sequence[Sequence[ToolDefinition]],
    spent: Sequence[float],
    built: _Build,
    count_tokens: TokenCounter,
) -> Cost:
    schema = cache(lambda definition: count_tokens(schema_text(definition)))
    line = cache(lambda definition: count_tokens(card(definition) + "\n"))
    return Cost(
        tokens=fmean(one.tokens for one in found),
        tokens_max=max(one.tokens for one in found),
        model_tokens=fmean(one.usage.prompt_tokens + one.usage.completion_tokens for one in found),
        model_requests=fmean(one.usage.requests for one in found),
        schemas=_mean_sums(ranked, schema),
        cards=_mean_sums(ranked, line),
        build_cpu_s=built.cpu_s,
        cpu_p50_ms=percentile(spent, 0.5),
        cpu_p99_ms=percentile(spent, 0.99),
        memory_mb=built.memory_mb,
        peak_mb=peak_mb(),
    )


def _mean_sums(
    ranked: Sequence[Sequence[ToolDefinition]], price: Callable[[ToolDefinition], int]
) -> dict[int, float]:
    return {depth: fmean(sum(map(price, one[:depth])) for one in ranked) for depth in TOKENS_AT}


def _notes(found: Sequence[Retrieval]) -> Mapping[str, int]:
    """How many questions met each note; notes that differ in numbers only are one."""
    notes = ({_NUMBER.sub("N", note) for note in one.notes} for one in found)
    return dict(sorted(Counter(chain.from_iterable(notes)).items()))


def resident_mb() -> float:
    """Resident memory of this process in MB; where the system does not say, the highest so far."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return peak_mb()
    import resource

    return int(status.read_text().split()[1]) * resource.getpagesize() / _MEGABYTE


def peak_mb() -> float:
    """Highest resident memory of this process so far in MB; 0 where the system does not say."""
    if sys.platform == "win32":
        return 0.0
    import resource

    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _MEGABYTE
