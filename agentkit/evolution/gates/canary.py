"""The canary gate: sessions of two arms, is the candidate no worse, and the alarm if it is.

Sessions are not paired: each is served by one definition. They are put into *blocks* in the order
of time, each closed as soon as it holds a session of either arm; the value of a block is the mean
score of its candidates less that of its controls. Which sessions share a block depends on the arms
and not on the scores, so the mean of a block, given all before it, is the true difference, and
betting on it (see ``betting``) gives two e-processes:

* *no worse*, against the null hypothesis that the candidate is worse by ``margin`` or more;
* *alarm*, against the null hypothesis that it is not worse by more than ``alarm_margin``.

Traffic that grows harder for both arms does not harm, since a block compares neighbours in time.
Turner, Ly and Grünwald (2024, "Generic E-variables for exact sequential k-sample tests that allow
for optional stopping", *Journal of Statistical Planning and Inference* 230) have e-values for two
streams of coins; ours take scores between 0 and 1 and a margin as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from agentkit.evolution.gates.betting import log_money_path
from agentkit.evolution.gates.decision import Arm, ArmScore, Decision, GateReport, GateRules
from agentkit.evolution.gates.evidence import Evidence, evidence
from agentkit.evolution.gates.scores import counted_arms, held_up

NAME = "canary"


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Neighbouring sessions, some of either arm.

    Attributes:
        control: Their scores with the definition as it is.
        candidate: With the one that is proposed.
    """

    control: tuple[float, ...]
    candidate: tuple[float, ...]

    @property
    def gain(self) -> float:
        """Mean score of the candidates less that of the controls."""
        return fmean(self.candidate) - fmean(self.control)


def blocks(scores: Iterable[ArmScore]) -> Iterator[Block]:
    """Divide sessions in the order of time; those of an unfinished block are left over.

    Example:
        >>> arms = ["control", "control", "candidate", "candidate", "control"]
        >>> zipped = zip(arms, [1, 0, 1, 0, 1], strict=True)
        >>> found = blocks(ArmScore(session="", arm=arm, score=score) for arm, score in zipped)
        >>> [block.gain for block in found]
        [0.5, -1.0]
    """
    block: dict[Arm, list[float]] = {}
    for one in scores:
        block.setdefault(one.arm, []).append(one.score)
        if len(block) == 2:
            yield Block(control=tuple(block["control"]), candidate=tuple(block["candidate"]))
            block = {}


def canary_gate(scores: Iterable[ArmScore], *, rules: GateRules | None = None) -> GateReport:
    """Ask whether the candidate, serving a share of the sessions, is no worse than the control.

    Passes when *no worse* reaches ``1 / rules.alpha`` and each arm served ``rules.least_sessions``;
    fails when the alarm reaches ``1 / rules.alarm_alpha`` first, or when ``rules.most_sessions`` of
    the candidate brought neither. May be asked after every session: a candidate that is not worse
    rings the alarm with probability at most ``alarm_alpha``.

    Args:
        scores: In the order of time, of the first of each session; a score outside 0 to 1 is not
            counted, and holds a pass up, though not the alarm.
        rules: The knobs.

    Example:
        >>> worse = [ArmScore(session=str(n), arm="control", score=1) for n in range(20)]
        >>> worse[1::2] = [ArmScore(session=f"c{n}", arm="candidate", score=0) for n in range(10)]
        >>> canary_gate(worse).decision
        'fail'
    """
    rules = rules or GateRules()
    given = counted_arms(scores)
    within = _within(given.counted, rules)
    served = {arm: [one.score for one in within if one.arm == arm] for arm in _ARMS}
    sessions = {arm: len(served[arm]) for arm in _ARMS}
    found = list(blocks(within))
    no_worse = evidence(
        log_money_path([block.gain for block in found], bound=-rules.margin),
        level=rules.alpha,
        least=_enough(found, rules.least_sessions),
    )
    alarm = evidence(
        log_money_path([-block.gain for block in found], bound=rules.alarm_margin),
        level=rules.alarm_alpha,
    )
    decision, reason = _decide(no_worse, alarm, sessions, rules)
    means = {arm: fmean(served[arm]) if served[arm] else 0.0 for arm in _ARMS}
    counts = ", ".join(f"{sessions[arm]} {arm} sessions at {means[arm]:.3f}" for arm in _ARMS)
    report = GateReport(
        gate=NAME,
        decision=decision,
        reason=f"{reason}; {counts}",
        statistics={
            "control_sessions": sessions["control"],
            "candidate_sessions": sessions["candidate"],
            "control_mean": means["control"],
            "candidate_mean": means["candidate"],
            "blocks": len(found),
            "unusable": given.unusable,
            "no_worse_log_e": no_worse.log_e,
            "no_worse_p_value": no_worse.p_value,
            "alarm_log_e": alarm.log_e,
            "alarm_p_value": alarm.p_value,
            "margin": rules.margin,
            "alarm_margin": rules.alarm_margin,
        },
    )
    return held_up(report, given.problem)


_ARMS: tuple[Arm, Arm] = ("control", "candidate")


def _within(scores: tuple[ArmScore, ...], rules: GateRules) -> tuple[ArmScore, ...]:
    """What came before the candidate had served the most sessions that are asked for."""
    served = 0
    for place, one in enumerate(scores):
        served += one.arm == "candidate"
        if served > rules.most_sessions:
            return scores[:place]
    return scores


def _enough(found: Sequence[Block], least: int) -> int:
    """The block with which each arm has served so many sessions; one that never comes if none."""
    control, candidate = 0, 0
    for place, block in enumerate(found, start=1):
        control, candidate = control + len(block.control), candidate + len(block.candidate)
        if min(control, candidate) >= least:
            return place
    return len(found) + 1


def _decide(
    no_worse: Evidence, alarm: Evidence, sessions: dict[Arm, int], rules: GateRules
) -> tuple[Decision, str]:
    """Whichever of the two e-processes was first."""
    first = no_worse.reached is not None and (
        alarm.reached is None or no_worse.reached < alarm.reached
    )
    if alarm.reached is not None and not first:
        return "fail", (
            f"alarm: the candidate is worse by more than {rules.alarm_margin:g} (reached 1/"
            f"{rules.alarm_alpha:g} at block {alarm.reached})"
        )
    if first:
        return "pass", (
            f"the candidate is worse by less than {rules.margin:g}, if at all (reached 1/"
            f"{rules.alpha:g} at block {no_worse.reached})"
        )
    if sessions["candidate"] >= rules.most_sessions:
        return "fail", (
            f"{rules.most_sessions} sessions did not show that it is worse by less than "
            f"{rules.margin:g} (p = {no_worse.p_value:.3g})"
        )
    return "wait", (
        f"not decided yet (no worse: p = {no_worse.p_value:.3g}, alarm: p = {alarm.p_value:.3g})"
    )
