"""The paraphrase gate: what was served in these words is still served in other words."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evolution.gates.decision import GateReport, GateRules, PairedScore
from agentkit.evolution.gates.losses import losses_report
from agentkit.evolution.gates.scores import counted_pairs, held_up

NAME = "paraphrases"


def paraphrase_gate(
    pairs: Iterable[PairedScore], *, rules: GateRules | None = None, once: bool = False
) -> GateReport:
    """Ask whether valid paraphrases of requests are still accepted or served.

    A rule that is too strict, or a text that fits one wording, refuses other wordings of the same
    request. A request is lost when one of its paraphrases scores less than it did; paraphrases
    that the control did not serve either count for nothing.

    Args:
        pairs: One for each paraphrase, ``task`` being the request; 1 or 0 for accepted or not.
        rules: The knobs; ``lost_share`` is the largest share of requests that may be lost.
        once: Whether the requests are a fixed set that is looked at once; it needs fewer.

    Example:
        >>> pairs = [PairedScore(task=str(n // 3), control=1, candidate=1) for n in range(450)]
        >>> paraphrase_gate(pairs, once=True).decision, paraphrase_gate(pairs).decision
        ('pass', 'wait')
    """
    rules = rules or GateRules()
    scores = counted_pairs(pairs)
    requests: dict[str, list[bool]] = {}
    for pair in scores.counted:
        if pair.control > 0:
            requests.setdefault(pair.task, []).append(pair.candidate < pair.control)
    report = losses_report(
        NAME,
        [any(lost) for lost in requests.values()],
        what="requests",
        rules=rules,
        once=once,
        statistics={
            "paraphrases": len(scores.counted),
            "paraphrases_served": sum(map(len, requests.values())),
            "paraphrases_lost": sum(map(sum, requests.values())),
            "unusable": scores.unusable,
        },
    )
    return held_up(report, scores.problem)
