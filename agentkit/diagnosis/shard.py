"""What one replica has observed of turns and calls, with weights that fade."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, get_args

from agentkit.episodes import FailureLabel

MAX_EXAMPLES = 3
"""Ids of episodes that are kept for each cell, the newest ones."""

MAX_CELLS = 20_000
"""Different cells in one shard; beyond, those of the least weight are dropped."""

_LABELS = frozenset(get_args(FailureLabel))
_MOST_HALF_LIVES = 256.0  # between the landmark and the newest observation; floats reach 1023


class CellKey(NamedTuple):
    """What a cell counts: turns at a position, calls of a tool, or faults of a parameter.

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


@dataclass(kw_only=True, slots=True)
class Cell:
    """How often something was observed.

    Attributes:
        weight: The sum of weights, relative to the landmark of the shard.
        count: The number of observations, which does not fade.
        examples: Time and episode id of the newest observations, the newest first.
    """

    weight: float = 0.0
    count: int = 0
    examples: tuple[tuple[float, str], ...] = ()

    def add(self, weight: float, count: int, examples: Iterable[tuple[float, str]]) -> None:
        """Add observations that were counted elsewhere."""
        self.weight += weight
        self.count += count
        self.examples = newest((*self.examples, *examples))


def newest(examples: Iterable[tuple[float, str]]) -> tuple[tuple[float, str], ...]:
    """The different examples that are kept of many, the newest first."""
    return tuple(heapq.nlargest(MAX_EXAMPLES, set(examples)))


@dataclass(kw_only=True, slots=True)
class Shard:
    """The observations of one replica.

    Weights are kept as of a fixed landmark and grow with the time of the observation, instead of
    shrinking with the time that has passed since (forward decay: Cormode, Shkapenyuk, Srivastava
    and Xu, "Forward decay", ICDE 2009). So nothing has to be recomputed as time goes on, and
    observations may come in any order.

    Attributes:
        updates: Observed episodes and decays so far; of two states of a shard, the one with more
            is the later one.
        landmark: Time, in seconds since 1970, at which an observation has the weight 1.
        latest: Time of the newest observation.
        cells: What was observed.
    """

    updates: int = 0
    landmark: float = 0.0
    latest: float = -math.inf
    cells: dict[CellKey, Cell] = field(default_factory=dict)

    def observe(
        self,
        keys: Iterable[CellKey],
        *,
        at: float | None,
        episode_id: str,
        half_life: float | None,
    ) -> None:
        """Count one episode.

        Args:
            keys: A cell for each of its turns, calls and faults.
            at: Its time; None counts as the newest time so far.
            episode_id: Kept as an example.
            half_life: Seconds in which a weight halves; None lets time pass without effect.
        """
        self.updates += 1
        time = at if at is not None else max(self.latest, 0.0)
        if half_life is not None and (
            not self.cells or (time - self.landmark) / half_life > _MOST_HALF_LIVES
        ):
            self._move(time, half_life)
        self.latest = max(self.latest, time)
        weight = growth(time - self.landmark, half_life)
        for key in keys:
            cell = self.cells.get(key)
            if cell is None:
                cell = self.cells[key] = Cell()
            cell.add(weight, 1, ((time, episode_id),))
        if len(self.cells) > MAX_CELLS:
            self._drop_lightest()

    def decay(self, factor: float) -> None:
        """Multiply every weight by ``factor``."""
        self.updates += 1
        for cell in self.cells.values():
            cell.weight *= factor

    def weighed(self, at: float, half_life: float | None) -> Iterator[tuple[CellKey, Cell, float]]:
        """Each cell with its weight as of a time."""
        fading = growth(self.landmark - at, half_life)
        for key, cell in self.cells.items():
            yield key, cell, cell.weight * fading

    def copy(self) -> Shard:
        """A shard of its own with the same observations."""
        cells = {
            key: Cell(weight=cell.weight, count=cell.count, examples=cell.examples)
            for key, cell in self.cells.items()
        }
        return Shard(updates=self.updates, landmark=self.landmark, latest=self.latest, cells=cells)

    def is_later_than(self, other: Shard) -> bool:
        """Whether this state of a shard takes the place of another one.

        Two states with as many updates are the same, unless two processes wrote under one name;
        even then the order is total, so that all replicas choose alike.
        """
        if self.updates != other.updates:
            return self.updates > other.updates
        return json.dumps(self.to_json()) > json.dumps(other.to_json())

    def _move(self, landmark: float, half_life: float) -> None:
        fading = growth(self.landmark - landmark, half_life)
        for cell in self.cells.values():
            cell.weight *= fading
        self.landmark = landmark

    def _drop_lightest(self) -> None:
        kept = heapq.nlargest(
            MAX_CELLS * 9 // 10, self.cells, key=lambda key: (self.cells[key].weight, key)
        )
        self.cells = {key: self.cells[key] for key in kept}

    def to_json(self) -> dict[str, Any]:
        """The shard as a JSON object, cells in order of their keys."""
        return {
            "updates": self.updates,
            "landmark": self.landmark,
            "latest": None if math.isinf(self.latest) else self.latest,
            "cells": [
                [*key, cell.weight, cell.count, [list(one) for one in cell.examples]]
                for key, cell in sorted(self.cells.items())
            ],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Shard:
        """The inverse of ``to_json``.

        Raises:
            KeyError, TypeError, ValueError: It is not the record of a shard.
        """
        shard = cls(updates=int(record["updates"]), landmark=_number(record["landmark"]))
        if record["latest"] is not None:
            shard.latest = _number(record["latest"])
        for label, tool, parameter, position, weight, count, examples in record["cells"]:
            if label not in _LABELS:
                raise ValueError(f"unknown label {label!r}")
            shard.cells[CellKey(label, str(tool), str(parameter), int(position))] = Cell(
                weight=_number(weight),
                count=int(count),
                examples=newest((_number(time), str(name)) for time, name in examples),
            )
        return shard


def growth(seconds: float, half_life: float | None) -> float:
    """The factor by which a weight differs that is ``seconds`` newer; 0 when it is far older."""
    if half_life is None:
        return 1.0
    return math.exp2(max(-1100.0, min(1000.0, seconds / half_life)))


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} is not a finite number")
    return number
