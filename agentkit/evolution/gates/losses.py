"""How much of what worked is lost: shared by the gates that ask for nothing to be broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentkit.evolution.gates.betting import log_money_path
from agentkit.evolution.gates.decision import Decision, GateReport, GateRules
from agentkit.evolution.gates.evidence import evidence
from agentkit.evolution.gates.exact import exact_interval
from agentkit.metrics.intervals import Interval

_NONE = 1e-6
"""A limit below one in a million is taken for none at all."""


def losses_report(
    gate: str,
    lost: Sequence[bool],
    *,
    what: str,
    rules: GateRules,
    once: bool,
    statistics: Mapping[str, float],
) -> GateReport:
    """Compare a share of losses with ``rules.lost_share``.

    Asked at any time, two e-processes decide (see ``betting``), whichever is first: that at most so
    many are lost, or that more are. Asked once about cases whose number was fixed beforehand, the
    exact interval decides (``exact_interval``), which needs half as many: all of it at or below the
    limit, or all above. Either way each error has a probability of at most ``rules.alpha``, and few
    cases show nothing: none lost of five is no pass.

    Args:
        gate: Name of the gate.
        lost: For each case that worked, in the order of time, whether it no longer does.
        what: What a case is, in the plural.
        rules: The knobs.
        once: Whether this is the only look.
        statistics: Further numbers for the report.
    """
    share = exact_interval(sum(lost), len(lost), alpha=rules.alpha)
    decision = _once(share, rules) if once else _at_any_time(lost, rules)
    seen = f"{sum(lost)} of {len(lost)} {what} are lost, and {rules.lost_share:.1%} may be"
    reasons = {
        "pass": "no more are lost than may be",
        "fail": "more are lost than may be",
        "wait": "whether too many are lost is open: bring more of them",
    }
    return GateReport(
        gate=gate,
        decision=decision,
        reason=f"{reasons[decision]}; {seen} (so {share.low:.1%} to {share.high:.1%})",
        statistics={
            "lost": sum(lost),
            "of": len(lost),
            "lost_share": sum(lost) / len(lost) if lost else 0.0,
            "low": share.low,
            "high": share.high,
            "limit": rules.lost_share,
            **statistics,
        },
    )


def _once(share: Interval, rules: GateRules) -> Decision:
    if share.high <= rules.lost_share:
        return "pass"
    return "fail" if share.low > rules.lost_share else "wait"


def _at_any_time(lost: Sequence[bool], rules: GateRules) -> Decision:
    limit = rules.lost_share
    if (
        limit < _NONE
    ):  # one loss is then one too many, and no number of cases shows that there is none
        return "fail" if any(lost) else "wait"
    more = evidence(log_money_path(map(float, lost), bound=limit, low=0), level=rules.alpha)
    kept = (-float(one) for one in lost)
    fewer = evidence(log_money_path(kept, bound=-limit, high=0), level=rules.alpha)
    if fewer.reached is not None and (more.reached is None or fewer.reached < more.reached):
        return "pass"
    return "wait" if more.reached is None else "fail"
