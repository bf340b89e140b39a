"""The shadow gate: is the candidate better on the requests of real users, looked at at any time."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.evolution.gates.decision import Decision, GateReport, GateRules, PairedScore
from agentkit.evolution.gates.e_process import log_e_path
from agentkit.evolution.gates.evidence import Evidence, evidence
from agentkit.evolution.gates.scores import counted_pairs, first_of_group, held_up

NAME = "shadow"


def shadow_gate(
    pairs: Iterable[PairedScore], *, rules: GateRules | None = None, level: float | None = None
) -> GateReport:
    """Ask whether the candidate is right more often where the two differ.

    Passes when the e-process reaches ``1 / level`` with at least ``rules.least_pairs`` pairs that
    differ; fails when the mirrored one, wins and losses exchanged, reaches ``1 /
    rules.alarm_alpha`` first, or when ``rules.most_pairs`` pairs brought neither. Later pairs do
    not change what was decided, and the gate may be asked after each: a candidate that is not
    better passes with probability at most ``level``.

    Pairs of one group depend on each other, so only the first of each counts. A pair whose score is
    not finite is not counted, and holds a pass up.

    Args:
        pairs: In the order of time; a higher score is better, by however much.
        rules: The knobs.
        level: In place of ``rules.alpha``: what e-LOND gave the proposal.

    Raises:
        UsageError: The level is not above 0 and at most 1.

    Example:
        >>> better = [PairedScore(task=str(n), control=0, candidate=1) for n in range(9)]
        >>> shadow_gate(better).decision, shadow_gate(better[:5]).decision
        ('pass', 'wait')
    """
    rules = rules or GateRules()
    level = rules.alpha if level is None else level
    scores = counted_pairs(pairs)
    single = first_of_group(scores.counted)
    within = single[: rules.most_pairs]
    wins = [pair.candidate > pair.control for pair in within if pair.candidate != pair.control]
    better = evidence(log_e_path(wins), level=level, least=rules.least_pairs)
    worse = evidence(log_e_path(not won for won in wins), level=rules.alarm_alpha)
    spent = len(single) >= rules.most_pairs
    decision, reason = _decide(better, worse, level, rules, spent=spent)
    counts = f"; {sum(wins)} of {len(wins)} pairs that differ were won, of {len(within)} in all"
    report = GateReport(
        gate=NAME,
        decision=decision,
        reason=reason + counts,
        statistics={
            "pairs": len(within),
            "wins": sum(wins),
            "losses": len(wins) - sum(wins),
            "same_group": len(scores.counted) - len(single),
            "unusable": scores.unusable,
            "level": level,
            "log_e": better.log_e,
            "highest_log_e": better.highest,
            "p_value": better.p_value,
            "alarm_log_e": worse.log_e,
            "alarm_highest_log_e": worse.highest,
        },
    )
    return held_up(report, scores.problem)


def _decide(
    better: Evidence, worse: Evidence, level: float, rules: GateRules, *, spent: bool
) -> tuple[Decision, str]:
    """Whichever of the two e-processes was first."""
    if better.reached is not None and (worse.reached is None or better.reached < worse.reached):
        return "pass", (
            f"the candidate is better: e reached 1/{level:.3g} after {better.reached} pairs that "
            "differ"
        )
    if worse.reached is not None:
        return "fail", (
            f"the candidate is worse: the alarm reached 1/{rules.alarm_alpha:g} after "
            f"{worse.reached} pairs that differ"
        )
    if spent:
        return "fail", (
            f"no evidence of a gain in {rules.most_pairs} pairs (p = {better.p_value:.3g}, asked "
            f"{level:.3g}), which is not evidence that there is none"
        )
    return "wait", f"not decided yet (p = {better.p_value:.3g}, asked {level:.3g})"
