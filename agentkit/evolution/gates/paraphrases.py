"""The paraphrase gate: what was served in these words is still served in other words."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evolution.gates.decision import GateReport, GateRules, PairedScore
from agentkit.evolution.gates.losses import losses_report
from agentkit.evolution.gates.scores import counted_pairs, held_up

NAME = "paraphrases"


def paraphrase_gate(pairs: Iterable[PairedScore], *, rules: GateRules | None = None) -> GateReport:
    """Ask whether valid paraphrases of requests are still accepted or served.

    A rule that is too strict, or a text that fits one wording, refuses other wordings of the same
    request. A request is lost when one of its paraphrases scores less than it did; paraphrases
    that the control did not serve either count for nothing.

    Args:
        pairs: One for each paraphrase, ``task`` being the request; 1 or 0 for accepted or not.
        rules: The knobs; ``lost_share`` is the largest share of requests that may be lost.

    Example:
        >>> pairs = [PairedScore(task=str(n // 3), control=1, candidate=1) for n in range(450)]
        >>> paraphrase_gate(pairs).decision, paraphrase_gate(pairs[:30]).decision
        ('pass', 'wait')
    """
    rules = rules or GateRules()
    scores = counted_pairs(pairs)
    served = [pair for pair in scores.counted if pair.control > 0]
    lost = [pair for pair in served if pair.candidate < pair.control]
    report = losses_report(
        NAME,
        lost=len({pair.task for pair in lost}),
        of=len({pair.task for pair in served}),
        what="requests",
        rules=rules,
        statistics={
            "paraphrases": len(scores.counted),
            "paraphrases_served": len(served),
            "paraphrases_lost": len(lost),
            "unusable": scores.unusable,
        },
    )
    return held_up(report, scores.problem)
