"""How well retrieval finds the tools that a benchmark's gold calls need."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from agentkit.evaluation.report import RECALL_AT, RetrievalReport, mean
from agentkit.evaluation.scoring import upstream_name
from agentkit.evaluation.task import Task
from agentkit.library import Library
from agentkit.retrieval.retriever import Retrieval, Retriever


async def measure_recall(
    retriever: Retriever,
    library: Library,
    tasks: Sequence[Task],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> RetrievalReport:
    """Ask ``retriever`` for the tools of each task and compare with its gold calls.

    Args:
        retriever: What to measure.
        library: The whole catalogue.
        tasks: Questions with gold calls.
        progress: Told how many of how many are done.
    """
    started = time.perf_counter()
    found: list[Retrieval] = []
    for number, task in enumerate(tasks, start=1):
        found.append(await retriever.retrieve(task.request, library))
        if progress is not None:
            progress(number, len(tasks))
    seconds = time.perf_counter() - started
    gold = [_gold_names(task) for task in tasks]
    ranked = [[hit.definition.name for hit in one.hits] for one in found]
    offered = [[definition.name for definition in one.offered] for one in found]
    upstream = {d.name: upstream_name(d) for d in library.definitions}
    return RetrievalReport(
        questions=len(tasks),
        recall={k: _recall(gold, [names[:k] for names in ranked]) for k in RECALL_AT},
        recall_by_name={
            k: _recall(_renamed(gold, upstream), _renamed([n[:k] for n in ranked], upstream))
            for k in RECALL_AT
        },
        offered_recall=_recall(gold, offered),
        mean_offered=mean([len(names) for names in offered]),
        mean_tokens=mean([one.tokens for one in found]),
        seconds=seconds,
    )


def _gold_names(task: Task) -> list[str]:
    return list(dict.fromkeys(call.name for call in task.gold))


def _renamed(names: Sequence[Sequence[str]], upstream: dict[str, str]) -> list[list[str]]:
    return [list(dict.fromkeys(upstream.get(name, name) for name in one)) for one in names]


def _recall(gold: Sequence[Sequence[str]], found: Sequence[Sequence[str]]) -> float:
    return mean(
        [
            sum(name in names for name in wanted) / len(wanted)
            for wanted, names in zip(gold, found, strict=True)
            if wanted
        ]
    )
