"""What goes into a gate and what comes out of it.

A gate is a pure function: scores in, a ``GateReport`` out. The same scores give the same report, so
that a decision can be looked at again at any later time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, get_args

from agentkit.errors import StoreFormatError, UsageError
from agentkit.messages import JsonObject

Decision = Literal[
    "pass",  # the numbers allow the next step
    "wait",  # they say nothing yet: more of them are needed
    "fail",  # they speak against it, or so many said nothing that waiting on is no use
]

Arm = Literal["control", "candidate"]
"""``control`` uses the definition as it is, ``candidate`` the one that is proposed."""

MOST_NAMED = 20
"""Tasks gained, and tasks lost, that a report names; their number is among its statistics."""

_Record = TypeVar("_Record")


@dataclass(frozen=True, kw_only=True, slots=True)
class GateReport:
    """What a gate says.

    Attributes:
        gate: Name of the gate.
        decision: Whether to go on, to wait or to stop.
        reason: Why, in a sentence with the numbers.
        statistics: The numbers, by name. All are finite; e-values stand as their logarithm.
        tasks: What stands for the set of held-out tasks that were asked, see ``task_marks``; empty
            where there is no such set.
        gained: Names of the first ``MOST_NAMED`` tasks that the candidate did better, by name.
        lost: Of those that it did worse.
    """

    gate: str
    decision: Decision
    reason: str
    statistics: Mapping[str, float] = field(default_factory=dict)
    tasks: str = ""
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

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object, as the ``facts`` of an event keep it."""
        record: dict[str, Any] = {
            "gate": self.gate,
            "decision": self.decision,
            "reason": self.reason,
        }
        if self.statistics:
            record["statistics"] = dict(self.statistics)
        if self.tasks:
            record["tasks"] = self.tasks
        for name, some in (("gained", self.gained), ("lost", self.lost)):
            if some:
                record[name] = list(some)
        return record

    @classmethod
    def from_json(cls, record: JsonObject) -> GateReport:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no report of a gate.
        """
        return _read(cls, record)


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
    """

    task: str
    control: float
    candidate: float
    group: str = ""

    def to_json(self) -> dict[str, Any]:
        """The pair as a JSON object."""
        return _written(self)

    @classmethod
    def from_json(cls, record: JsonObject) -> PairedScore:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no pair of scores.
        """
        return _read(cls, record)


@dataclass(frozen=True, kw_only=True, slots=True)
class ArmScore:
    """How one session went, with one of the two definitions.

    Attributes:
        session: The session; each counts once.
        arm: Which definition served it.
        score: From 0 to 1.
    """

    session: str
    arm: Arm
    score: float

    def to_json(self) -> dict[str, Any]:
        """The score as a JSON object."""
        return _written(self)

    @classmethod
    def from_json(cls, record: JsonObject) -> ArmScore:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no score of a session.
        """
        found = _read(cls, record)
        if found.arm not in get_args(Arm):
            raise StoreFormatError(f"an arm is control or candidate, not {found.arm!r}")
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class PairedSelection:
    """Which tools were chosen for one request, with both definitions.

    Attributes:
        task: The request.
        control: Names of the tools chosen with the definition as it is.
        candidate: Names chosen with the one that is proposed.
        expected: Names that are right; empty when nobody knows, and ``control`` is then the
            standard.
        accepted: Whether the candidate's choice was found right, although it may be another one.
    """

    task: str
    control: tuple[str, ...]
    candidate: tuple[str, ...]
    expected: tuple[str, ...] = ()
    accepted: bool = False

    def to_json(self) -> dict[str, Any]:
        """The selection as a JSON object."""
        return _written(self)

    @classmethod
    def from_json(cls, record: JsonObject) -> PairedSelection:
        """The inverse of ``to_json``.

        Raises:
            StoreFormatError: The record is no pair of selections.
        """
        return _read(cls, record)


@dataclass(frozen=True, kw_only=True, slots=True)
class GateRules:
    """The knobs of all gates. What each changes is measured in ``docs/gates.md``.

    Attributes:
        alpha: How often a gate may let a candidate pass that is not better (offline, shadow), or
            that is worse by ``margin`` (canary). In the shadow gate the level that e-LOND gives a
            proposal takes its place. Smaller needs more pairs.
        alarm_alpha: How often the alarm may ring for a candidate that is not worse, over the whole
            of an experiment.
        margin: By how much of the score a candidate may be worse in the canary and still pass. The
            sessions needed grow with its inverse square.
        alarm_margin: By how much it may be worse before the alarm begins to count. Larger rings
            later, and not at all for smaller harm.
        least_pairs: Pairs that differ before the offline or the shadow gate lets anything pass.
        most_pairs: Pairs, equal ones included, after which the shadow gate gives up.
        least_tasks: Tasks before the cost gate says anything.
        least_sessions: Sessions of each arm before the canary lets anything pass.
        most_sessions: Sessions of the candidate after which the canary gives up.
        least_gain: Mean gain on held-out tasks that the offline gate asks for, beside evidence.
        most_uses: Comparisons that the same held-out tasks decide before fresh ones are advised.
        lost_share: Largest share of other tools' requests, or of paraphrases, that may be lost.
        token_growth: By how much of the control's tokens the candidate may cost more.
        latency_growth: By how much of the control's time it may take longer.
        resamples: How often the bootstrap of the costs draws.
        seed: Of its random numbers.
    """

    alpha: float = 0.05
    alarm_alpha: float = 0.05
    margin: float = 0.05
    alarm_margin: float = 0.0
    least_pairs: int = 8
    most_pairs: int = 2_000
    least_tasks: int = 30
    least_sessions: int = 30
    most_sessions: int = 5_000
    least_gain: float = 0.0
    most_uses: int = 20
    lost_share: float = 0.02
    token_growth: float = 0.1
    latency_growth: float = 0.25
    resamples: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("alpha", "alarm_alpha"):
            _check(name, getattr(self, name), 0 < getattr(self, name) < 0.5, "between 0 and .5")
        for name in ("margin", "alarm_margin", "lost_share"):
            _check(name, getattr(self, name), 0 <= getattr(self, name) <= 0.9, "from 0 to .9")
        for name in ("least_gain", "token_growth", "latency_growth"):
            value = getattr(self, name)
            _check(name, value, math.isfinite(value) and value >= 0, "0 or more, and finite")
        for name in (*_COUNTS, "most_uses", "resamples"):
            _check(name, getattr(self, name), getattr(self, name) >= 1, "1 or more")
        for least, most in (("least_pairs", "most_pairs"), ("least_sessions", "most_sessions")):
            bound = getattr(self, most)
            _check(least, getattr(self, least), getattr(self, least) <= bound, f"at most {bound}")

    def to_json(self) -> dict[str, Any]:
        """The rules as a JSON object."""
        return _written(self)

    @classmethod
    def from_json(cls, record: JsonObject) -> GateRules:
        """The inverse of ``to_json``; what is not given has its default.

        Raises:
            StoreFormatError: The record holds something else.
            UsageError: A rule is out of range.
        """
        return _read(cls, record)


_COUNTS = ("least_pairs", "most_pairs", "least_tasks", "least_sessions", "most_sessions")


def _check(name: str, value: float, holds: bool, allowed: str) -> None:  # noqa: FBT001 - a claim
    if not holds:
        raise UsageError(f"{name} must be {allowed}, got {value}")


def _written(record: Any) -> dict[str, Any]:
    """The fields as JSON; of those that may be left out, the empty ones are."""
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    empty = {one.name for one in fields(record) if one.default in ("", ()) or one.default is False}
    kept = {name: value for name, value in values.items() if value or name not in empty}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in kept.items()}


def _read(kind: type[_Record], record: JsonObject) -> _Record:
    """A record of this kind, its values of the types that its fields are written with."""
    readers = {"str": _text, "float": _number, "int": _whole, "tuple[str, ...]": _names}
    readers |= {"bool": _flag, "Decision": _text, "Arm": _text, "Mapping[str, float]": _numbers}
    types = {one.name: str(one.type) for one in fields(kind)}  # type: ignore[arg-type]  # all are
    try:
        return kind(**{name: readers[types[name]](value) for name, value in record.items()})
    except (AttributeError, KeyError, TypeError, UsageError) as error:
        if isinstance(error, UsageError) and kind is GateRules:
            raise
        raise StoreFormatError(
            f"not a {kind.__name__} ({type(error).__name__}: {error}): {str(record)[:200]}"
        ) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, got {value!r}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {value!r}")
    try:
        return float(value)
    except OverflowError as error:
        raise TypeError("an integer of that size is no score") from error


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"expected an integer, got {value!r}")
    return value


def _names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"expected a list of names, got {value!r}")
    return tuple(map(_text, value))


def _numbers(value: Any) -> dict[str, float]:
    return {_text(name): _number(one) for name, one in value.items()}
