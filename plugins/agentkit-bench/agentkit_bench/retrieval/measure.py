"""Measuring one retriever on one corpus, here or in a process of its own, and comparing two."""

from __future__ import annotations

import gc
import math
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from statistics import NormalDist, fmean, variance
from typing import Any

from agentkit._waiting import wait_for
from agentkit.errors import AgentKitError, DatasetError, UsageError
from agentkit.metrics.statistics import Interval
from agentkit.retrieval.retriever import Retrieval, Retriever
from agentkit_bench.retrieval.corpus import CorpusFiles, RetrievalCorpus, RetrievalQuery
from agentkit_bench.retrieval.methods import DEEP, Equipment, Limits, Method, find_method

RECALL_AT = (1, 5, 10, 32)
FULL_AT = (5, 10, 32)

_MEGABYTE = 2**20
_NUMBER = re.compile(r"\b\d[\d,.]*\b")
_MAX_NAMES = 500
"""Names asked as queries; an even sample of a larger catalogue."""

_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodReport:
    """One method on one corpus.

    Attributes:
        method: Its name.
        tools: How many tools the catalogue holds.
        asked: Ids of the questions, in order.
        figures: Means over the questions, by name. ``recall@k`` is the share of the gold tools
            among the first k, ``full@k`` the share of questions with all gold tools among them,
            ``mrr`` the mean of one divided by the rank of the first gold tool, ``name_hit@1`` the
            share of tool names that find their tool first, ``offered_recall`` and ``shown_recall``
            recall among the tools given in full, and shown at all, within the budget. ``tokens``
            (``tokens_max``) are those of what is shown, ``model_tokens`` and ``model_requests``
            what the stages spent on a language model. ``build_cpu_s`` is what the first query cost
            beyond a usual one, ``cpu_p50_ms`` and ``cpu_p99_ms`` what a query costs, ``memory_mb``
            what the retriever added to a process that held the library.
        by_question: Recall of each question, by depth, for paired comparisons.
        notes: Fall-backs that the stages reported, with how many questions each met.
        unknown_gold: Gold tools that are in none of the files, and so can not be found.
    """

    method: str
    tools: int
    asked: tuple[str, ...]
    figures: Mapping[str, float]
    by_question: Mapping[int, Sequence[float]] = field(default_factory=dict)
    notes: Mapping[str, int] = field(default_factory=dict)
    unknown_gold: int = 0

    def to_json(self) -> dict[str, Any]:
        """One flat object with keys such as ``recall@5`` and ``cpu_p99_ms``."""
        return {
            "method": self.method,
            "tools": self.tools,
            "questions": len(self.asked),
            "unknown_gold": self.unknown_gold,
            **{name: round(value, 4) for name, value in self.figures.items()},
            "notes": dict(self.notes),
        }


async def measure_method(
    method: Method,
    corpus: RetrievalCorpus,
    *,
    equipment: Equipment | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MethodReport:
    """Ask all questions and report how good, how dear and how fast the answers are.

    Each question is asked twice: within the limits of an agent (32 tools, 5 in full, 1,600 tokens),
    which gives cost and what a model would see, and without, which gives the ranking. Memory is
    that of this process, so it means something only when nothing else happened in it;
    ``measure_apart`` starts one for each method.

    Args:
        method: What to measure.
        corpus: The catalogue and the questions.
        equipment: Models, for methods that need one.
        progress: Told how many of how many questions are done.
    """
    equipment = equipment or Equipment()
    shown, built = await _built(method, corpus, equipment)
    deep = method.build(DEEP, equipment)
    await deep.retrieve(corpus.queries[0].text, corpus.library)
    found: list[Retrieval] = []
    ranked: list[list[str]] = []
    spent: list[float] = []
    for number, query in enumerate(corpus.queries, start=1):
        started = time.process_time()
        found.append(await shown.retrieve(query.text, corpus.library))
        spent.append((time.process_time() - started) * 1e3)
        ranked.append(ranked_keys(await deep.retrieve(query.text, corpus.library), corpus))
        if progress is not None:
            progress(number, len(corpus.queries))
    recalls = {depth: _recalls(corpus.queries, ranked, depth) for depth in RECALL_AT}
    return MethodReport(
        method=method.name,
        tools=len(corpus.library),
        asked=tuple(query.query_id for query in corpus.queries),
        figures={
            **_quality(corpus, found, ranked, recalls),
            "name_hit@1": await _name_hit(shown, corpus),
            **_cost(found, spent),
            **built,
        },
        by_question=recalls,
        notes=_notes(found),
        unknown_gold=corpus.unknown_gold,
    )


async def _built(
    method: Method, corpus: RetrievalCorpus, equipment: Equipment
) -> tuple[Retriever, dict[str, float]]:
    """The retriever, warm, and what warming it cost beyond a usual query."""
    gc.collect()
    before, started = resident_mb(), time.process_time()
    retriever = method.build(Limits(), equipment)
    await retriever.retrieve(corpus.queries[0].text, corpus.library)
    first = time.process_time() - started
    await retriever.retrieve(corpus.queries[0].text, corpus.library)
    usual = time.process_time() - started - first
    gc.collect()
    added = max(resident_mb() - before, 0.0)
    return retriever, {"build_cpu_s": max(first - usual, 0.0), "memory_mb": added}


def ranked_keys(found: Retrieval, corpus: RetrievalCorpus) -> list[str]:
    """What the hits count as, best first, each once."""
    return list(dict.fromkeys(corpus.keys[hit.definition.name] for hit in found.hits))


def _quality(
    corpus: RetrievalCorpus,
    found: Sequence[Retrieval],
    ranked: Sequence[Sequence[str]],
    recalls: Mapping[int, Sequence[float]],
) -> dict[str, float]:
    queries = corpus.queries
    offered = [[corpus.keys[tool.name] for tool in one.offered] for one in found]
    shown = [ranked_keys(one, corpus) for one in found]
    ranks = zip(queries, ranked, strict=True)
    return {
        **{f"recall@{depth}": fmean(recall) for depth, recall in recalls.items()},
        **{f"full@{depth}": fmean(one == 1 for one in recalls[depth]) for depth in FULL_AT},
        "mrr": fmean(reciprocal_rank(query.gold, keys) for query, keys in ranks),
        "offered_recall": fmean(_recalls(queries, offered, sys.maxsize)),
        "shown_recall": fmean(_recalls(queries, shown, sys.maxsize)),
    }


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


def _cost(found: Sequence[Retrieval], spent: Sequence[float]) -> dict[str, float]:
    used = [one.usage for one in found]
    return {
        "tokens": fmean(one.tokens for one in found),
        "tokens_max": max(one.tokens for one in found),
        "model_tokens": fmean(one.prompt_tokens + one.completion_tokens for one in used),
        "model_requests": fmean(one.requests for one in used),
        "cpu_p50_ms": percentile(spent, 0.5),
        "cpu_p99_ms": percentile(spent, 0.99),
    }


def _notes(found: Sequence[Retrieval]) -> Mapping[str, int]:
    """How many questions met each note; notes that differ in numbers only are one."""
    notes = ({_NUMBER.sub("N", note) for note in one.notes} for one in found)
    return dict(sorted(Counter(chain.from_iterable(notes)).items()))


def resident_mb() -> float:
    """Resident memory of this process in MB; 0 where the system does not say."""
    status = Path("/proc/self/statm")
    if not status.exists():
        return 0.0
    import resource

    return int(status.read_text().split()[1]) * resource.getpagesize() / _MEGABYTE


# --- figures --------------------------------------------------------------------------------------


def recall_at(gold: AbstractSet[str], ranked: Sequence[str], depth: int) -> float:
    """The share of ``gold`` among the first ``depth``; 0 when no gold is known.

    Example:
        >>> recall_at({"a", "b"}, ["c", "a", "b"], 2)
        0.5
    """
    return len(gold & set(ranked[:depth])) / len(gold) if gold else 0.0


def reciprocal_rank(gold: AbstractSet[str], ranked: Sequence[str]) -> float:
    """1 divided by the rank of the first right tool, from 1; 0 when none was found."""
    return next((1 / rank for rank, key in enumerate(ranked, start=1) if key in gold), 0.0)


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` of ``values`` lie; the highest for a share of 1.

    Example:
        >>> percentile([3.0, 1.0, 2.0, 4.0], 0.5), percentile([1.0], 0.99)
        (3.0, 1.0)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def mean_interval(values: Sequence[float], *, level: float = 0.95) -> Interval:
    """The mean of independent values with its normal interval, as a Student t is one at this size.

    For differences of the same questions under two methods this is the paired interval.

    Args:
        values: One figure a question; with fewer than two the interval is the mean itself.
        level: The share of such intervals that hold the true mean.

    Example:
        >>> interval = mean_interval([0.0, 1.0, 1.0, 1.0] * 100)
        >>> round(interval.low, 3), interval.value, round(interval.high, 3)
        (0.708, 0.75, 0.792)
    """
    mean = fmean(values) if values else 0.0
    if len(values) < 2:
        return Interval(value=mean, low=mean, high=mean, level=level)
    reach = NormalDist().inv_cdf((1 + level) / 2) * math.sqrt(variance(values) / len(values))
    return Interval(value=mean, low=mean - reach, high=mean + reach, level=level)


def compare(report: MethodReport, against: MethodReport) -> dict[int, Interval]:
    """The paired difference of recall, ``report`` minus ``against``, by depth.

    Raises:
        ValueError: The reports are about other questions.
    """
    if report.asked != against.asked:
        raise ValueError(
            f"{report.method!r} and {against.method!r} answered other questions "
            f"({len(report.asked)} and {len(against.asked)}); compare methods on the same ones"
        )
    return {
        depth: mean_interval(
            [one - other for one, other in zip(own, against.by_question[depth], strict=True)]
        )
        for depth, own in report.by_question.items()
    }


# --- a process of its own -------------------------------------------------------------------------


def measure_apart(
    method: str,
    files: CorpusFiles,
    equipment: Equipment | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> MethodReport:
    """Measure one method in a fresh process.

    A script that calls this needs the usual ``if __name__ == "__main__":``, as the new process
    imports it.

    Args:
        method: Its name in ``METHODS``.
        files: The corpus; the process reads it itself.
        equipment: Names of models, for methods that need one; the process opens them itself.
        progress: Told, in that process, how many of how many questions are done; it travels there
            by pickle.

    Raises:
        DatasetError: The files do not hold a corpus.
        UsageError: There is no such method, or it lacks what it needs.
        ChildProcessError: The process ended without an answer, as when memory ran out.
    """
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(_measure, method, files, equipment, progress).result()
        except BrokenProcessPool as error:
            raise ChildProcessError(
                f"the process that measured {method!r} ended without an answer; most often memory "
                "ran out"
            ) from error


def _measure(
    method: str,
    files: CorpusFiles,
    equipment: Equipment | None,
    progress: Callable[[int, int], None] | None,
) -> MethodReport:
    os.environ.update(_ONE_THREAD)  # before numpy or torch are loaded
    try:
        found = find_method(method)
        measured = measure_method(found, files.load(), equipment=equipment, progress=progress)
        return wait_for(measured)
    except (DatasetError, UsageError):
        raise
    except AgentKitError as error:  # those with more than a message do not travel
        raise UsageError(str(error)) from error
