"""``FailureProfile``: which tools, parameters and turns fail, and how, over many episodes.

SEAL calls it the failure profile of a policy (section 3.5, equation 14), summed over the diagnoses
of recent rollouts. Here it serves the runtime as well: passes are counted beside failures, so that
there are rates and not just numbers; old observations fade; and replicas that observe different
episodes can put their profiles together in any order.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, get_args

from agentkit.diagnosis.labels import NOT_FAILURES, by_weight, dominant
from agentkit.episodes import Attribution, Diagnosis, Episode, FailureLabel, TurnDiagnosis
from agentkit.episodes.labels import in_library_names, is_extra_record
from agentkit.errors import StoreFormatError, UsageError
from agentkit.metrics.statistics import Interval, wilson_interval


@dataclass(frozen=True, kw_only=True, slots=True)
class FailureRate:
    """How often calls of a tool fail, or fail at one of its parameters.

    Attributes:
        tool: The tool.
        parameter: The parameter; empty for the tool as a whole.
        failures: The weight of failures; a fresh one weighs 1.
        observed: The weight of all calls of the tool that were made or missing, good ones included.
        labels: The weight of failures by label, the heaviest first.
        examples: Ids of episodes with such a failure, the newest first.
    """

    tool: str
    parameter: str = ""
    failures: float
    observed: float
    labels: Mapping[FailureLabel, float] = field(default_factory=dict)
    examples: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """The share of failures, from 0 to 1."""
        return self.failures / self.observed if self.observed > 0 else 0.0

    @property
    def lowest(self) -> float:
        """The lower end of Wilson's 95% interval of the rate: what the failures bear out.

        Weights count as a number of calls, which is less than their true information (Kish's
        effective size is never smaller than a sum of weights up to 1), so it errs on the low side.
        """
        return self._interval.low

    @property
    def highest(self) -> float:
        """The upper end of that interval."""
        return self._interval.high

    @property
    def _interval(self) -> Interval:
        failed = max(0.0, min(self.failures, self.observed))  # sums of weights round apart
        return wilson_interval(failed, max(0.0, self.observed))


FORMAT_VERSION = 1
"""Version of the JSON form of a profile."""

LAST_POSITION = 31
"""Turns from this one on are counted together."""

MAX_EXAMPLES = 3
"""Ids of episodes that are kept for each cell, the newest ones."""

_SECONDS_A_DAY = 86_400.0
_LONGEST_NAME = 200
_LABELS = frozenset(get_args(FailureLabel))
_MOST_HALF_LIVES = 256.0  # between the landmark and the newest observation; floats reach 1023


class CellKey(NamedTuple):
    """The counts of a cell: turns at a position, calls of a tool, or faults of a parameter.

    Attributes:
        label: The label.
        tool: The tool; empty in a cell of turns.
        parameter: The parameter; empty in a cell of turns or calls.
        position: Index of the turn in its episode; -1 in a cell of calls or parameters.
    """

    label: FailureLabel
    tool: str = ""
    parameter: str = ""
    position: int = -1


class _Cell(NamedTuple):
    """How often something was observed.

    Attributes:
        weight: The sum of weights, relative to the landmark.
        seen: The number of observations, which does not fade.
        examples: Time and episode id of the newest observations, the newest first.
    """

    weight: float = 0.0
    seen: int = 0
    examples: tuple[tuple[float, str], ...] = ()

    def plus(self, other: _Cell) -> _Cell:
        """Both together."""
        examples = _newest((*self.examples, *other.examples))
        return _Cell(self.weight + other.weight, self.seen + other.seen, examples)

    def scaled(self, factor: float) -> _Cell:
        """The same with another weight."""
        return self._replace(weight=self.weight * factor)


def _newest(examples: Iterable[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
    """The different examples that are kept of many, the newest first."""
    return tuple(heapq.nlargest(MAX_EXAMPLES, set(examples)))


class FailureProfile:
    """Counts the diagnoses of episodes.

    Observe each episode once. Episodes whose verdict has a fault, those without a diagnosis, and
    records of shadow runs and views, which repeat others, are not counted. Not thread-safe.

    Args:
        half_life_days: Days, in the time of the episodes, in which an observation loses half its
            weight; None lets it keep its weight until ``decay`` is called.
        name: Stands in the JSON form.

    Raises:
        UsageError: The half-life is not positive.

    Example:
        >>> from agentkit.diagnosis.labelling import diagnose
        >>> from agentkit.episodes import Turn
        >>> from agentkit.messages import AssistantMessage, ToolCall
        >>> from agentkit.testing import sample_library
        >>> profile = FailureProfile(half_life_days=14)
        >>> call = ToolCall(call_id="1", name="weather_now", arguments={"town": "Oslo"})
        >>> turn = Turn(message=AssistantMessage(tool_calls=(call,)))
        >>> episode = Episode(episode_id="e1", request="Warm in Oslo?", turns=(turn,))
        >>> profile.observe(episode, diagnose(episode, sample_library(), None))
        True
        >>> [(one.tool, one.failures, one.examples) for one in profile.worst_tools()]
        [('weather_now', 1.0, ('e1',))]
    """

    def __init__(self, *, half_life_days: float | None = 30.0, name: str = "profile") -> None:
        if half_life_days is not None and not half_life_days > 0:
            raise UsageError(
                f"half_life_days is {half_life_days}; give a positive number of days, or None for "
                "no fading"
            )
        self.half_life_days = half_life_days
        self.name = name
        self._updates = 0
        self._landmark = 0.0
        self._latest = -math.inf
        self._cells: dict[CellKey, _Cell] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing was observed."""
        return not self._cells

    def __eq__(self, other: object) -> bool:
        """Whether the observations are the same."""
        return isinstance(other, FailureProfile) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def copy(self) -> FailureProfile:
        """A profile of its own with the same observations."""
        return FailureProfile.from_json(self.to_json())

    # Counting

    def observe(self, episode: Episode, diagnosis: Diagnosis | None = None) -> bool:
        """Count one episode.

        Args:
            episode: What happened. Its ``started_at`` says how old it is; one from the future
                counts as of now, one without a time as of the newest time observed.
            diagnosis: Why it failed; that of the episode when left out.

        Returns:
            Whether it was counted. One without a diagnosis is not, nor is one whose reference or
            checker is broken, nor one that no user saw (``is_extra_record``).
        """
        if diagnosis is not None:
            episode = replace(episode, diagnosis=diagnosis)
        episode = in_library_names(episode)
        found = episode.diagnosis
        if found is None or found.is_excluded or is_extra_record(episode.metadata):
            return False
        self._updates += 1
        at = _time_of(episode)
        at = max(self._latest, 0.0) if at is None else at
        if not self._cells or (at - self._landmark) / self._half_life > _MOST_HALF_LIVES:
            self._move(at)
        self._latest = max(self._latest, at)
        seen = _Cell(self._growth(at - self._landmark), 1, ((at, episode.episode_id),))
        for key in _keys(episode, found):
            self._add(key, seen)
        return True

    def observe_all(self, episodes: Iterable[Episode]) -> int:
        """Count episodes that carry their diagnoses; returns how many were counted."""
        return sum(self.observe(episode) for episode in episodes)

    def decay(self, factor: float) -> None:
        """Multiply the weight of all that was observed, as after a training round.

        Raises:
            UsageError: The factor is not from 0 to 1.
        """
        if not 0 <= factor <= 1:
            raise UsageError(f"the factor of decay is {factor}; give one from 0 to 1")
        self._updates += 1
        self._cells = {key: cell.scaled(factor) for key, cell in self._cells.items()}

    def _add(self, key: CellKey, seen: _Cell) -> None:
        self._cells[key] = self._cells.get(key, _Cell()).plus(seen)

    def _move(self, landmark: float) -> None:
        fading = self._growth(self._landmark - landmark)
        self._cells = {key: cell.scaled(fading) for key, cell in self._cells.items()}
        self._landmark = landmark if self.half_life_days is not None else 0.0

    def _growth(self, seconds: float) -> float:
        """The factor of a weight that is this much newer; 0 when it is far older."""
        return math.exp2(max(-1100.0, min(1000.0, seconds / self._half_life)))

    @property
    def _half_life(self) -> float:
        days = self.half_life_days
        return math.inf if days is None else days * _SECONDS_A_DAY

    # Questions

    def label_distribution(self) -> dict[FailureLabel, float]:
        """The share of each label among all turns, the largest first (SEAL, equations 10 and 14).

        The shares add up to 1; an empty profile gives an empty dict.
        """
        return _shares((key.label, cell) for key, cell in self._weighed() if not key.tool)

    @property
    def observed(self) -> float:
        """The weight of all turns."""
        return math.fsum(cell.weight for key, cell in self._weighed() if not key.tool)

    def tools(self) -> tuple[FailureRate, ...]:
        """Each tool that was called or missing, by name."""
        return tuple(rate for rate in self._rates() if not rate.parameter)

    def parameters(self) -> tuple[FailureRate, ...]:
        """Each parameter at which a call failed, by tool and name."""
        return tuple(rate for rate in self._rates() if rate.parameter)

    def worst_tools(self, limit: int = 10) -> tuple[FailureRate, ...]:
        """Tools that fail, those first of which it is borne out best (``FailureRate.lowest``).

        One failure in one call says little: its rate is 1, and its lower bound .21, which is less
        than that of 15 failures in 40 calls.
        """
        return _worst(self.tools(), limit)

    def _rates(self) -> Iterator[FailureRate]:
        cells: dict[tuple[str, str], list[tuple[FailureLabel, _Cell]]] = defaultdict(list)
        for key, cell in self._weighed():
            if key.tool:
                cells[key.tool, key.parameter].append((key.label, cell))
        for (tool, parameter), found in sorted(cells.items()):
            calls = cells.get((tool, ""), found)
            failed = [(label, cell) for label, cell in found if label not in NOT_FAILURES]
            examples = _newest(one for _, cell in failed for one in cell.examples)
            yield FailureRate(
                tool=tool,
                parameter=parameter,
                failures=sum(cell.weight for _, cell in failed),
                observed=sum(cell.weight for _, cell in calls),
                labels=by_weight(_sums(failed)),
                examples=tuple(name for _, name in examples),
            )

    def _weighed(self) -> Iterator[tuple[CellKey, _Cell]]:
        """The cells with weights as of the newest observation."""
        fading = self._growth(self._landmark - max(self._latest, 0.0))
        yield from ((key, cell.scaled(fading)) for key, cell in sorted(self._cells.items()))

    # Keeping

    def to_json(self) -> dict[str, Any]:
        """The profile as a JSON object."""
        own = {
            "updates": self._updates,
            "landmark": self._landmark,
            "latest": None if math.isinf(self._latest) else self._latest,
            "cells": [
                [*key, cell.weight, cell.seen, [list(one) for one in cell.examples]]
                for key, cell in sorted(self._cells.items())
            ],
        }
        return {
            "format": FORMAT_VERSION,
            "half_life_days": self.half_life_days,
            "replica": self.name,
            "shards": {self.name: own} if self._updates else {},
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> FailureProfile:
        """The inverse of ``to_json``; what several replicas of an earlier release saw is added up.

        Raises:
            StoreFormatError: It is not a profile, or its format is newer than ours.
        """
        try:
            if record["format"] > FORMAT_VERSION:
                raise StoreFormatError(
                    f"the profile has format {record['format']}, this agentkit reads up to "
                    f"{FORMAT_VERSION}; upgrade agentkit-evolve"
                )
            profile = cls(half_life_days=record["half_life_days"], name=str(record["replica"]))
            for shard in record["shards"].values():
                profile._read(shard)
        except (AttributeError, KeyError, TypeError, ValueError, UsageError) as error:
            raise StoreFormatError(
                f"not a failure profile ({type(error).__name__}: {error}): {str(record)[:200]}"
            ) from error
        return profile

    def _read(self, shard: Mapping[str, Any]) -> None:
        landmark = _number(shard["landmark"])
        if landmark > self._landmark:
            self._move(landmark)
        self._updates += int(shard["updates"])
        if shard["latest"] is not None:
            self._latest = max(self._latest, _number(shard["latest"]))
        fading = self._growth(landmark - self._landmark)
        for label, tool, parameter, position, weight, count, examples in shard["cells"]:
            if label not in _LABELS:
                raise ValueError(f"unknown label {label!r}")
            key = CellKey(label, str(tool), str(parameter), int(position))
            seen = _newest((_number(time), str(name)) for time, name in examples)
            self._add(key, _Cell(_number(weight) * fading, int(count), seen))


def _keys(episode: Episode, diagnosis: Diagnosis) -> Iterator[CellKey]:
    """The cells that an episode adds to."""
    failed = {one.call_id for one in diagnosis.recoveries if one.episode == episode.episode_id}
    is_judged = episode.verdict is not None or any(
        turn.label in {"pass", "correct_abstention"} for turn in diagnosis.turns
    )
    for turn in diagnosis.turns:
        if not 0 <= turn.turn < len(episode.turns):
            continue
        yield CellKey(turn.label, position=min(turn.turn, LAST_POSITION))
        yield from _call_keys(episode, turn, failed, is_judged=is_judged)


def _call_keys(
    episode: Episode, turn: TurnDiagnosis, failed: set[str], *, is_judged: bool
) -> Iterator[CellKey]:
    """One cell for each call of a turn, one for each missing call, one for each wrong parameter."""
    blamed: dict[str, list[Attribution]] = defaultdict(list)
    for one in turn.attributions:
        if one.call_id:
            blamed[one.call_id].append(one)
        elif one.tool and one.label in {"missing_tool_call", "invalid_tool_call"}:
            yield CellKey(one.label, _name(one.tool))  # a call that was due, or stayed text
    is_repeated = episode.resumes is not None and turn.turn == 0  # it was counted as it waited
    for call, _ in episode.turns[turn.turn].steps():
        labels = {one.label for one in blamed[call.call_id]}
        if labels:
            yield CellKey(dominant(labels), _name(call.name))
        elif not is_repeated:
            is_unknown = not is_judged or call.call_id in failed or turn.label == "unjudged"
            yield CellKey("unjudged" if is_unknown else "pass", _name(call.name))
        wrong = {(one.label, one.parameter) for one in blamed[call.call_id] if one.parameter}
        yield from (CellKey(label, _name(call.name), _name(name)) for label, name in sorted(wrong))


def _name(text: str) -> str:
    return text[:_LONGEST_NAME] or "?"


def _time_of(episode: Episode) -> float | None:
    """When the episode began, in seconds since 1970 and not in the future; None when unknown."""
    try:
        began = datetime.fromisoformat(episode.started_at)
    except ValueError:
        return None
    at = began if began.tzinfo is not None else began.replace(tzinfo=UTC)
    return max(0.0, min(at.timestamp(), time.time()))


def _sums(cells: Iterable[tuple[FailureLabel, _Cell]]) -> dict[FailureLabel, float]:
    weights: dict[FailureLabel, float] = defaultdict(float)
    for label, cell in cells:
        weights[label] += cell.weight
    return weights


def _shares(cells: Iterable[tuple[FailureLabel, _Cell]]) -> dict[FailureLabel, float]:
    sums = _sums(cells)
    total = sum(sums.values())
    return {label: weight / total for label, weight in by_weight(sums).items()} if total else {}


def _worst(rates: Iterable[FailureRate], limit: int) -> tuple[FailureRate, ...]:
    failing = [rate for rate in rates if rate.failures > 0]
    failing.sort(key=lambda one: (-one.lowest, -one.failures, one.tool, one.parameter))
    return tuple(failing[:limit])


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number
