"""How much of what worked is lost: shared by the gates that ask for nothing to be broken."""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.evolution.gates.decision import Decision, GateReport, GateRules
from agentkit.metrics.intervals import wilson_interval


def losses_report(
    gate: str,
    *,
    lost: int,
    of: int,
    what: str,
    rules: GateRules,
    statistics: Mapping[str, float] | None = None,
) -> GateReport:
    """Compare a share of losses with ``rules.lost_share``.

    The interval is Wilson's (1927), such that its upper end is exceeded in a share ``rules.alpha``
    of cases. Passes when all of it lies at or below the limit, fails when all of it lies above, and
    waits for more cases otherwise: that nothing was lost in five cases shows nothing.

    Args:
        gate: Name of the gate.
        lost: Cases that worked and no longer do.
        of: Cases that worked.
        what: What a case is, in the plural.
        rules: The knobs.
        statistics: Further numbers for the report.
    """
    share = wilson_interval(lost, of, level=1 - 2 * rules.alpha)
    decision: Decision = "wait"
    if share.high <= rules.lost_share:
        decision = "pass"
    elif share.low > rules.lost_share:
        decision = "fail"
    limit = f"{rules.lost_share:.1%} may be lost"
    reasons = {
        "pass": f"at most {share.high:.1%} of {what} are lost, and {limit}",
        "fail": f"at least {share.low:.1%} of {what} are lost, and only {limit}",
        "wait": (
            f"between {share.low:.1%} and {share.high:.1%} of {what} are lost, and {limit}: "
            "bring more of them"
        ),
    }
    return GateReport(
        gate=gate,
        decision=decision,
        reason=f"{reasons[decision]}; {lost} of {of}",
        statistics={
            "lost": lost,
            "of": of,
            "lost_share": lost / of if of else 0.0,
            "low": share.low,
            "high": share.high,
            "limit": rules.lost_share,
            **(statistics or {}),
        },
    )
