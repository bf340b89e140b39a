"""The runtime's own answers with and without what training made: the four combinations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from agentkit._waiting import wait_for
from agentkit.evaluation import Benchmark, EvaluationReport, EvaluationSettings
from agentkit.library import Library
from agentkit.models.base import ChatModel
from agentkit.models.resolve import resolve_model
from agentkit_training.export.handover import Handover
from agentkit_training.jobs.evaluate import Examination, evaluate_job


@dataclass(frozen=True, kw_only=True)
class Combination:
    """A model with a library, and how it did.

    Attributes:
        is_trained: Whether the model is the trained one.
        is_evolved: Whether the library is the evolved one.
        report: What the runtime's evaluation found.
    """

    is_trained: bool
    is_evolved: bool
    report: EvaluationReport

    @property
    def accuracy(self) -> float:
        """Share of the tasks that passed."""
        total = self.report.total
        return total.passed / max(1, total.attempts)


def combinations(
    handed: Handover,
    benchmark: Benchmark,
    settings: EvaluationSettings,
    *,
    tell: Callable[[str], None],
) -> Iterator[Combination]:
    """Ask held-out tasks through the runtime: each model with each library.

    Nothing of training is in the way: the model is llama.cpp with the handed-over adapter or
    weights, the library is the artifact, and decoding is constrained as the runtime does it.

    Args:
        handed: What training handed over.
        benchmark: Tasks that nothing was learned from.
        settings: How to ask.
        tell: Told what is asked next.
    """
    libraries = {False: None, True: None if handed.artifact is None else handed.artifact.library}
    for is_trained in (False, True):
        model = resolve_model(handed.model if is_trained else handed.base)
        try:
            for is_evolved, library in libraries.items():
                if is_evolved and library is None:
                    continue
                tell(f"{model.name}, {'evolved' if is_evolved else 'original'} library")
                report = _asked(model, benchmark, library, settings)
                yield Combination(is_trained=is_trained, is_evolved=is_evolved, report=report)
        finally:
            close_model(model)


def _asked(
    model: ChatModel, benchmark: Benchmark, library: Library | None, settings: EvaluationSettings
) -> EvaluationReport:
    asked = Examination(
        benchmark=benchmark,
        library=library,
        settings=replace(settings, tool_choice="required"),
        concurrency=1,  # one model in one process answers one request after the other
    )
    return evaluate_job(model, asked)


def close_model(model: ChatModel) -> None:
    """Free what a model holds, where it holds anything."""
    close = getattr(model, "close", None)
    closing = None if close is None else close()
    if inspect.iscoroutine(closing):  # a model with connections closes them asynchronously
        wait_for(closing)
