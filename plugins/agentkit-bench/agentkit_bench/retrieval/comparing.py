"""How two methods differ on the same questions."""

from __future__ import annotations

from agentkit_bench.retrieval.report import Comparison, MethodReport
from agentkit_bench.retrieval.scores import mean_interval


def compare(report: MethodReport, against: MethodReport) -> Comparison:
    """The paired difference of recall, ``report`` minus ``against``, at each depth.

    Raises:
        ValueError: The reports are about other questions.
    """
    if report.asked != against.asked:
        raise ValueError(
            f"{report.method!r} and {against.method!r} answered other questions "
            f"({len(report.asked)} and {len(against.asked)}); compare methods on the same ones"
        )
    return Comparison(
        method=report.method,
        against=against.method,
        difference={
            depth: mean_interval(
                [one - other for one, other in zip(own, against.by_question[depth], strict=True)]
            )
            for depth, own in report.by_question.items()
        },
    )
