"""The gates: what the numbers must say before a suggested change goes one step further.

A gate is a pure function: scores in, a ``GateReport`` out. The same scores give the same report, so
that a decision can be looked at again at any later time. ``gate_statistics`` holds the numbers
behind them, ``compare`` takes the scores out of stored episodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import ClassVar, Literal, TypeAlias, get_args

from agentkit.errors import StoreFormatError, UsageError
from agentkit.evolution.gate_statistics import (
    Evidence,
    evidence,
    log_e_path,
    log_money_path,
)
from agentkit.messages import JsonObject
from agentkit.metrics.statistics import (
    Interval,
    Observation,
    bootstrap_interval,
    wilson_interval,
)
from agentkit.records import Record

# --- What goes into a gate and what comes out of it -----------------------------------------------


Decision = Literal[
    "pass",  # the numbers allow the next step
    "wait",  # they say nothing yet: more of them are needed
    "fail",  # they speak against it, or so many said nothing that waiting on is no use
]

Arm = Literal["control", "candidate"]
"""``control`` uses the definition as it is, ``candidate`` the one that is proposed."""

MOST_NAMED = 20
"""Tasks gained, and tasks lost, that a report names; their number is among its statistics."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GateReport(Record):
    """What a gate says.

    Attributes:
        gate: Name of the gate.
        decision: Whether to go on, to wait or to stop.
        reason: Why, in a sentence with the numbers.
        statistics: The numbers, by name. All are finite; e-values stand as their logarithm.
        gained: Names of the first ``MOST_NAMED`` tasks that the candidate did better, by name.
        lost: Of those that it did worse.
    """

    _OPTIONAL: ClassVar = ("statistics", "gained", "lost")

    gate: str
    decision: Decision
    reason: str
    statistics: Mapping[str, float] = field(default_factory=dict)
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.decision not in get_args(Decision):
            raise UsageError(
                f"a gate decides {', '.join(get_args(Decision))}, not {self.decision!r}"
            )
        for name, value in self.statistics.items():
            if not math.isfinite(value):
                raise UsageError(f"{name} of the gate {self.gate!r} is {value}; it must be finite")

    @classmethod
    def from_json(cls, record: JsonObject) -> GateReport:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no report of a gate.
        """
        try:
            numbers = record.get("statistics", {})
            return cls(
                gate=_text(record["gate"]),
                decision=record["decision"],
                reason=_text(record["reason"]),
                statistics={name: float(value) for name, value in numbers.items()},
                gained=tuple(map(_text, record.get("gained", ()))),
                lost=tuple(map(_text, record.get("lost", ()))),
            )
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            TypeError,
            UsageError,
            ValueError,
        ) as error:
            raise StoreFormatError(
                f"not a GateReport ({type(error).__name__}: {error}): {str(record)[:200]}"
            ) from error


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r}")
    return value


_LARGEST = 1e15  # beyond it sums lose whole numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedScore:
    """One task done with both definitions.

    Attributes:
        task: What was done.
        control: Score of the definition as it is: 1 or 0 for right or not, or a number between;
            for a gate of costs the tokens or seconds.
        candidate: Score of the one that is proposed.
        group: What several pairs have in common that makes them depend on each other, such as a
            conversation; empty for a pair that stands alone.

    Raises:
        UsageError: A score is not finite, or beyond 1e15.
    """

    task: str
    control: float
    candidate: float
    group: str = ""

    def __post_init__(self) -> None:
        if not abs(self.control) <= _LARGEST >= abs(self.candidate):
            raise UsageError(
                f"task {self.task!r} scored {self.control} and {self.candidate}; scores are finite "
                "numbers: fix the verifier"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmScore:
    """How one session went, with one of the two definitions.

    Attributes:
        session: The session; each counts once.
        arm: Which definition served it.
        score: From 0 to 1.

    Raises:
        UsageError: It is not.
    """

    session: str
    arm: Arm
    score: float

    def __post_init__(self) -> None:
        if not 0 <= self.score <= 1:
            raise UsageError(
                f"session {self.session!r} scored {self.score}, not from 0 to 1: fix the verifier"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedSelection:
    """Tools chosen for one request with both definitions.

    Attributes:
        task: Id of the request.
        control: Names chosen with the definition as it is.
        candidate: Names chosen with the changed one.
        accepted: Whether the candidate's answer was found right; its choice is then no loss.
    """

    task: str
    control: tuple[str, ...]
    candidate: tuple[str, ...]
    accepted: bool = False


MAX_PAIRS = 2_000
"""Pairs, equal ones included, after which the shadow gate gives up."""

MAX_SESSIONS = 5_000
"""Sessions of the candidate after which the canary gives up."""

LOST_SHARE = 0.02
"""Largest share of other tools' requests that may be lost."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GateConfig:
    """The knobs of the gates. What each changes is measured in ``docs/gates.md``.

    Attributes:
        alpha: How often a gate may let a candidate pass that is not better (offline, shadow), or
            that is worse by ``margin`` (canary), and how often an alarm may ring for one that is
            not worse. In the shadow gate the level that e-LOND gives a proposal takes its place.
            Smaller needs more pairs.
        margin: By how much of the score a candidate may be worse in the canary and still pass. The
            sessions needed grow with its inverse square.
        min_pairs: Pairs that differ before the offline or the shadow gate lets anything pass.
        min_sessions: Sessions of each arm before the canary lets anything pass.
        min_gain: Mean gain on held-out tasks that the offline gate asks for, beside evidence.
    """

    alpha: float = 0.05
    margin: float = 0.05
    min_pairs: int = 8
    min_sessions: int = 30
    min_gain: float = 0.0

    def __post_init__(self) -> None:
        bounds = {
            "alpha": (0 < self.alpha < 0.5, "between 0 and .5"),
            "margin": (0 <= self.margin <= 0.9, "from 0 to .9"),
            "min_gain": (0 <= self.min_gain < math.inf, "0 or more, and finite"),
            "min_pairs": (1 <= self.min_pairs <= MAX_PAIRS, f"from 1 to {MAX_PAIRS:,}"),
            "min_sessions": (1 <= self.min_sessions <= MAX_SESSIONS, f"from 1 to {MAX_SESSIONS:,}"),
        }
        for name, (holds, allowed) in bounds.items():
            if not holds:
                raise UsageError(f"{name} must be {allowed}, got {getattr(self, name)}")


# --- The gates ------------------------------------------------------------------------------------


def _first(better: Evidence, worse: Evidence) -> Decision:
    """Whichever of two e-processes reached its level first decides."""
    if better.reached is not None and (worse.reached is None or better.reached < worse.reached):
        return "pass"
    return "wait" if worse.reached is None else "fail"


# --- The offline gate: recorded tasks that nobody learned from, each done with both definitions ---
# The number of tasks is fixed before anything is looked at, so a plain test does, and it needs
# fewer tasks than the e-process. It must not be asked again with more tasks added until it passes.


OFFLINE = "offline"

_LONGEST_NAME = 200
_RESAMPLES = 10_000  # of the bootstrap of the gain

_ROUNDING = 1e-9
"""Attempts at one task whose scores differ by less in all are equal but for rounding."""


def one_sided_mid_p(wins: int, losses: int) -> float:
    """The one-sided mid-p value of McNemar's exact test: is the candidate better.

    Where neither is better, each task that differs is a win with probability 1/2. Counts results
    with more wins in full, the one at hand half (Fagerland, Lydersen and Laake 2013, *BMC Medical
    Research Methodology* 13:91; ``mcnemar_mid_p`` is two-sided). At a given number of pairs the
    exact level may be a little more than asked for; ``docs/gates.md`` says by how much.

    Args:
        wins: Tasks on which the candidate did better.
        losses: Tasks on which the control did.

    Raises:
        UsageError: A count is negative.

    Example:
        >>> round(one_sided_mid_p(10, 2), 4), one_sided_mid_p(0, 0)
        (0.0112, 0.5)
    """
    if min(wins, losses) < 0:
        raise UsageError(f"counts of tasks cannot be negative: {wins}, {losses}")
    ways = [math.comb(wins + losses, more) for more in range(losses + 1)]
    return (2 * sum(ways) - ways[-1]) / (1 << (wins + losses + 1))


def offline_gate(pairs: Iterable[PairedScore], *, rules: GateConfig | None = None) -> GateReport:
    """Ask whether the candidate gains on held-out tasks, once.

    Passes with a mean gain above ``rules.min_gain`` and a one-sided mid-p of at most
    ``rules.alpha``. Fails without either: that is no evidence of a gain, and not evidence that
    there is none. With fewer than ``rules.min_pairs`` tasks that differ it waits, since nothing
    could be shown by so few.

    Args:
        pairs: One for each task, or for each attempt at it: those of one task are averaged.
        rules: The knobs.

    Example:
        >>> pairs = [PairedScore(task=str(n), control=n % 2, candidate=1) for n in range(30)]
        >>> report = offline_gate(pairs)
        >>> report.decision, report.statistics["wins"], round(report.statistics["gain"], 2)
        ('pass', 15, 0.5)
    """
    rules = rules or GateConfig()
    counted = tuple(pairs)
    gains: dict[str, list[float]] = {}
    for pair in counted:
        gains.setdefault(pair.task, []).append(pair.candidate - pair.control)
    totals = {task: math.fsum(several) for task, several in gains.items()}
    gained = sorted(task for task, total in totals.items() if total > _ROUNDING)
    lost = sorted(task for task, total in totals.items() if total < -_ROUNDING)
    wins, losses = len(gained), len(lost)
    p_value = one_sided_mid_p(wins, losses)
    gain = _gain(counted, rules.alpha)
    decision, reason = _decide_offline(wins, losses, p_value, gain.value, rules)
    before = math.fsum(pair.control for pair in counted) / max(1, len(counted))
    after = math.fsum(pair.candidate for pair in counted) / max(1, len(counted))
    return GateReport(
        gate=OFFLINE,
        decision=decision,
        reason=f"{reason}; {wins} tasks gained and {losses} lost, of {len(gains)}: {before:.1%} "
        f"right before, {after:.1%} after",
        statistics={
            "tasks": len(gains),
            "wins": wins,
            "losses": losses,
            "control": before,
            "candidate": after,
            "gain": gain.value,
            "gain_low": gain.low,
            "gain_high": gain.high,
            "p_value": p_value,
            "level": rules.alpha,
        },
        gained=tuple(task[:_LONGEST_NAME] for task in gained[:MOST_NAMED]),
        lost=tuple(task[:_LONGEST_NAME] for task in lost[:MOST_NAMED]),
    )


def _gain(pairs: tuple[PairedScore, ...], alpha: float) -> Interval:
    """The mean gain over tasks; an interval of all gains that scores allow without any task."""
    level = 1 - 2 * alpha
    if not pairs:
        return Interval(value=0.0, low=-1.0, high=1.0, level=level)
    gains = [Observation(value=one.candidate - one.control, task=one.task) for one in pairs]
    return bootstrap_interval(gains, level=level, resamples=_RESAMPLES, seed=0)


def _decide_offline(
    wins: int, losses: int, p_value: float, gain: float, rules: GateConfig
) -> tuple[Decision, str]:
    if wins + losses < rules.min_pairs:
        return "wait", (
            f"too few tasks differ to show anything, at least {rules.min_pairs} are asked for: "
            "bring more held-out tasks"
        )
    points = f"{100 * gain:+.1f} points"
    if gain <= rules.min_gain:
        return "fail", f"no gain: {points} where more than {100 * rules.min_gain:g} is asked for"
    if p_value > rules.alpha:
        return "fail", (
            f"no evidence of a gain: {points}, but so uneven a division has p = {p_value:.3g} "
            f"by chance, and {rules.alpha:g} is asked for"
        )
    return "pass", f"a gain of {points} (p = {p_value:.3g})"


# --- The shadow gate: is the candidate better on the requests of users, asked at any time ---------


SHADOW = "shadow"


def shadow_gate(
    pairs: Iterable[PairedScore], *, rules: GateConfig | None = None, level: float | None = None
) -> GateReport:
    """Ask whether the candidate is right more often where the two differ.

    Passes when the e-process reaches ``1 / level`` with at least ``rules.min_pairs`` pairs that
    differ; fails when the mirrored one, wins and losses exchanged, reaches ``1 /
    rules.alpha`` first, or when ``MAX_PAIRS`` pairs brought neither. Later pairs do
    not change what was decided, and the gate may be asked after each: a candidate that is not
    better passes with probability at most ``level``.

    Pairs of one group depend on each other, so only the first of each counts.

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
    rules = rules or GateConfig()
    level = rules.alpha if level is None else level
    counted = tuple(pairs)
    first: dict[tuple[bool, str], PairedScore] = {}
    for pair in counted:
        first.setdefault((bool(pair.group), pair.group or pair.task), pair)
    single = tuple(first.values())
    within = single[:MAX_PAIRS]
    wins = [pair.candidate > pair.control for pair in within if pair.candidate != pair.control]
    better = evidence(log_e_path(wins), level=level, least=rules.min_pairs)
    worse = evidence(log_e_path(not won for won in wins), level=rules.alpha)
    decision = _first(better, worse)
    shown = f"(p = {better.p_value:.3g}, asked {level:.3g})"
    reason = {
        "pass": f"the candidate is better: e reached 1/{level:.3g} after {better.reached} pairs "
        "that differ",
        "fail": f"the candidate is worse: the alarm reached 1/{rules.alpha:g} after "
        f"{worse.reached} pairs that differ",
        "wait": f"not decided yet {shown}",
    }[decision]
    if decision == "wait" and len(single) >= MAX_PAIRS:
        decision = "fail"
        reason = f"no evidence of a gain in {MAX_PAIRS} pairs {shown}, which is not evidence that "
        reason += "there is none"
    counts = f"; {sum(wins)} of {len(wins)} pairs that differ were won, of {len(within)} in all"
    return GateReport(
        gate=SHADOW,
        decision=decision,
        reason=reason + counts,
        statistics={
            "pairs": len(within),
            "wins": sum(wins),
            "losses": len(wins) - sum(wins),
            "same_group": len(counted) - len(single),
            "level": level,
            "log_e": better.log_e,
            "p_value": better.p_value,
            "alarm_log_e": worse.log_e,
        },
    )


# --- The canary gate: sessions of two arms, is the candidate no worse, and the alarm if it is ----
# Sessions are not paired: each is served by one definition. They are put into *blocks* in the order
# of time, each closed as soon as it holds a session of either arm; the value of a block is the mean
# score of its candidates less that of its controls. Which sessions share a block depends on the
# arms and not on the scores, so the mean of a block, given all before it, is the true difference,
# and betting on it (``log_money_path``) gives two e-processes:
#
# * *no worse*, against the null hypothesis that the candidate is worse by ``margin`` or more;
# * *alarm*, against the null hypothesis that it is not worse.
#
# Traffic that grows harder for both arms does not harm, since a block compares neighbours in time.
# Turner, Ly and Grünwald (2024, "Generic E-variables for exact sequential k-sample tests that allow
# for optional stopping", *Journal of Statistical Planning and Inference* 230) have e-values for two
# streams of coins; ours take scores between 0 and 1 and a margin as they are.


CANARY = "canary"


Block: TypeAlias = tuple[list[float], list[float]]
"""Scores of neighbouring sessions: those with the definition as it is, and with the candidate."""


def blocks(scores: Iterable[ArmScore]) -> Iterator[Block]:
    """Divide sessions in the order of time; those of an unfinished block are left over.

    Example:
        >>> arms = ["control", "control", "candidate", "candidate", "control"]
        >>> zipped = zip(arms, [1, 0, 1, 0, 1], strict=True)
        >>> found = blocks(ArmScore(session="", arm=arm, score=score) for arm, score in zipped)
        >>> list(found)
        [([1, 0], [1]), ([1], [0])]
    """
    block: dict[Arm, list[float]] = {}
    for one in scores:
        block.setdefault(one.arm, []).append(one.score)
        if len(block) == 2:
            yield block["control"], block["candidate"]
            block = {}


def canary_gate(scores: Iterable[ArmScore], *, rules: GateConfig | None = None) -> GateReport:
    """Ask whether the candidate, serving a share of the sessions, is no worse than the control.

    Passes when *no worse* reaches ``1 / rules.alpha`` and each arm served ``rules.min_sessions``;
    fails when the alarm reaches ``1 / rules.alpha`` first, or when ``MAX_SESSIONS`` of
    the candidate brought neither. May be asked after every session: a candidate that is not worse
    rings the alarm with probability at most ``alpha``.

    Args:
        scores: In the order of time, of the first of each session.
        rules: The knobs.

    Example:
        >>> worse = [ArmScore(session=str(n), arm="control", score=1) for n in range(20)]
        >>> worse[1::2] = [ArmScore(session=f"c{n}", arm="candidate", score=0) for n in range(10)]
        >>> canary_gate(worse).decision
        'fail'
    """
    rules = rules or GateConfig()
    first: dict[str, ArmScore] = {}
    for score in scores:
        first.setdefault(score.session, score)
    within = _within(tuple(first.values()))
    served = {arm: [one.score for one in within if one.arm == arm] for arm in _ARMS}
    sessions = {arm: len(served[arm]) for arm in _ARMS}
    found = list(blocks(within))
    gains = [fmean(candidate) - fmean(control) for control, candidate in found]
    no_worse = evidence(
        log_money_path(gains, bound=-rules.margin),
        level=rules.alpha,
        least=_enough(found, rules.min_sessions),
    )
    alarm = evidence(
        log_money_path([-gain for gain in gains], bound=0.0),
        level=rules.alpha,
    )
    decision = _first(no_worse, alarm)
    margin, p_value = f"worse by less than {rules.margin:g}", f"p = {no_worse.p_value:.3g}"
    reached = alarm.reached if decision == "fail" else no_worse.reached
    at = f"(reached 1/{rules.alpha:g} at block {reached})"
    reason = {
        "pass": f"the candidate is {margin}, if at all {at}",
        "fail": f"alarm: the candidate is worse {at}",
        "wait": f"not decided yet (no worse: {p_value}, alarm: p = {alarm.p_value:.3g})",
    }[decision]
    if decision == "wait" and sessions["candidate"] >= MAX_SESSIONS:
        decision, reason = (
            "fail",
            f"{MAX_SESSIONS} sessions did not show that it is {margin} ({p_value})",
        )
    means = {arm: fmean(served[arm]) if served[arm] else 0.0 for arm in _ARMS}
    counts = ", ".join(f"{sessions[arm]} {arm} sessions at {means[arm]:.3f}" for arm in _ARMS)
    return GateReport(
        gate=CANARY,
        decision=decision,
        reason=f"{reason}; {counts}",
        statistics={
            "control_sessions": sessions["control"],
            "candidate_sessions": sessions["candidate"],
            "control_mean": means["control"],
            "candidate_mean": means["candidate"],
            "blocks": len(found),
            "no_worse_log_e": no_worse.log_e,
            "no_worse_p_value": no_worse.p_value,
            "alarm_log_e": alarm.log_e,
            "alarm_p_value": alarm.p_value,
            "margin": rules.margin,
        },
    )


_ARMS: tuple[Arm, Arm] = ("control", "candidate")


def _within(scores: tuple[ArmScore, ...]) -> tuple[ArmScore, ...]:
    """What came before the candidate had served the most sessions that are asked for."""
    served = 0
    for place, one in enumerate(scores):
        served += one.arm == "candidate"
        if served > MAX_SESSIONS:
            return scores[:place]
    return scores


def _enough(found: Sequence[Block], least: int) -> int:
    """The block with which each arm has served so many sessions; one that never comes if none."""
    control, candidate = 0, 0
    for place, (controls, candidates) in enumerate(found, start=1):
        control, candidate = control + len(controls), candidate + len(candidates)
        if min(control, candidate) >= least:
            return place
    return len(found) + 1


# --- The veto: the candidate must not take requests from other tools ------------------------------
# It asks two questions at once, each with an e-process of its own (``log_money_path``): is the mean
# above the limit, or below it? Whichever is answered first decides, at any time.


REGRESSION = "bystanders"


def regression_gate(
    selections: Iterable[PairedSelection], *, tool: str, rules: GateConfig | None = None
) -> GateReport:
    """Ask whether other tools keep the requests that belong to them.

    A description that promises more draws calls away from its neighbours; their own scores may not
    show it for long. The control's choice is the standard, and any other one is a loss, unless the
    candidate's answer was found right. How often a tool was chosen, and in what order, does not
    matter.

    A model that draws its answers at random chooses otherwise now and then with no change at all;
    where nobody judges, draw greedily.

    Args:
        selections: What was chosen, in the order of time; those that belong to ``tool`` are left
            out, and of each request the first counts.
        tool: Name of the tool whose definition is changed.
        rules: The knobs.

    Example:
        >>> kept = [PairedSelection(task=str(n), control=("find",), candidate=("find",))
        ...         for n in range(400)]
        >>> robbed = [PairedSelection(task=f"r{n}", control=("find",), candidate=("buy",))
        ...           for n in range(40)]
        >>> regression_gate(kept, tool="buy").decision
        'pass'
        >>> report = regression_gate(kept[:100] + robbed, tool="buy")
        >>> report.decision, report.statistics["robbed"]
        ('fail', 40)
    """
    rules = rules or GateConfig()
    others: dict[str, PairedSelection] = {}
    for one in selections:
        if tool not in one.control:
            others.setdefault(one.task, one)
    changed = [one for one in others.values() if set(one.control) != set(one.candidate)]
    gone = [one for one in changed if not one.accepted]
    lost = [float(one in gone) for one in others.values()]
    more = evidence(log_money_path(lost, bound=LOST_SHARE, low=0.0), level=rules.alpha)
    kept = (-value for value in lost)
    fewer = evidence(log_money_path(kept, bound=-LOST_SHARE, high=0.0), level=rules.alpha)
    decision = _first(fewer, more)
    share = wilson_interval(len(gone), len(lost), level=1 - 2 * rules.alpha)
    reasons = {
        "pass": "no more are lost than may be",
        "fail": "more are lost than may be",
        "wait": "whether too many are lost is open: bring more of them",
    }
    return GateReport(
        gate=REGRESSION,
        decision=decision,
        reason=f"{reasons[decision]}; {len(gone)} of {len(lost)} requests of other tools are lost,"
        f" and {LOST_SHARE:.1%} may be (so {share.low:.1%} to {share.high:.1%})",
        statistics={
            "lost": len(gone),
            "of": len(lost),
            "limit": LOST_SHARE,
            "changed": len(changed),
            "robbed": sum(tool in one.candidate for one in gone),
        },
    )
