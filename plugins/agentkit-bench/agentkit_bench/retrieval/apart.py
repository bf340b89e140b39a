"""Measuring each method in a process of its own, one thread each, so that memory is its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agentkit._waiting import wait_for
from agentkit.errors import AgentKitError, DatasetError, UsageError
from agentkit_bench.retrieval.corpus import Identity, RetrievalCorpus, Split, load_corpus
from agentkit_bench.retrieval.equipment import Equipment
from agentkit_bench.retrieval.measure import measure_method
from agentkit_bench.retrieval.methods import find_method
from agentkit_bench.retrieval.report import MethodReport

_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusFiles:
    """Where a corpus lies, and which part of it is asked.

    Attributes:
        tools: Files of tools; together they are one catalogue.
        queries: Files of questions.
        by: Whether tools of one name count as one.
        split: Which questions.
        max_queries: An even sample of this many questions; None asks all.
    """

    tools: tuple[str, ...]
    queries: tuple[str, ...]
    by: Identity = "id"
    split: Split = "all"
    max_queries: int | None = None

    def load(self) -> RetrievalCorpus:
        """Read it.

        Raises:
            DatasetError: The files hold something else, or no question of the split.
        """
        corpus = load_corpus(
            [Path(path) for path in self.tools], [Path(path) for path in self.queries], by=self.by
        )
        chosen = corpus.of_split(self.split)
        if not chosen.queries:
            raise DatasetError(
                f"none of the {len(corpus.queries)} questions is of the split {self.split!r}"
            )
        return chosen if self.max_queries is None else chosen.sample(self.max_queries)


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
