"""The geometry of two pictures: what a gate found, and the composites around a tool."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentkit.evolution.gate_statistics import gamma
from agentkit.evolution.gates import CANARY, SHADOW, GateConfig, GateReport
from agentkit.evolution.ledger import Ledger
from agentkit.library.library import Library

# --- What a gate found ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Meter:
    """A share of something, as a bar.

    Attributes:
        title: Of what.
        share: From 0 to 1; the bar is full at 1.
        words: The numbers.
        is_bad: Whether more of it speaks against the candidate.
    """

    title: str
    share: float
    words: str
    is_bad: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class GateFigure:
    """A gate's numbers as a picture.

    Attributes:
        report: What it said.
        gained: Tasks that the candidate did better.
        lost: Tasks that it did worse.
        interval: Low end, value and high end of the difference, in points; empty for none.
        ticks: The same and zero as places from 0 to 100 on an axis.
        meters: How far the evidence goes, and how the arms did.
    """

    report: GateReport
    gained: int
    lost: int
    interval: tuple[float, ...] = ()
    ticks: tuple[float, ...] = ()
    meters: tuple[Meter, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """The error budget of all tests, of which e-LOND gives each a part.

    Attributes:
        number: Which test this is, from 1.
        alpha: The budget: the share of useless changes among those promoted that is tolerated.
        level: How often this test may let a useless change pass.
        before: The part of the budget that went to earlier tests, from 0 to 1.
        own: The part that this test has.
    """

    number: int
    alpha: float
    level: float
    before: float
    own: float


def gate_figure(report: GateReport, rules: GateConfig) -> GateFigure:
    """What a picture of a report shows."""
    numbers = report.statistics
    ends = [numbers.get(name) for name in ("gain_low", "gain", "gain_high")]
    interval = tuple(100 * one for one in ends if one is not None)
    ticks: tuple[float, ...] = ()
    if len(interval) == 3:
        low, high = min(0.0, *interval), max(0.0, *interval)
        wide = (high - low) or 1.0
        ticks = tuple(5 + 90 * (one - low) / wide for one in (*interval, 0.0))
    return GateFigure(
        report=report,
        gained=int(numbers.get("wins", len(report.gained))),
        lost=int(numbers.get("losses", len(report.lost))),
        interval=interval if ticks else (),
        ticks=ticks,
        meters=tuple(_meters(report, rules)),
    )


def _meters(report: GateReport, rules: GateConfig) -> Iterator[Meter]:
    numbers = report.statistics
    if report.gate == CANARY:
        for arm in ("control", "candidate"):
            mean, sessions = numbers.get(f"{arm}_mean", 0.0), numbers.get(f"{arm}_sessions", 0)
            words = f"{100 * mean:.1f} % right in {sessions:,.0f} sessions"
            yield Meter(title=arm, share=mean, words=words)
        yield _evidence("no worse", numbers.get("no_worse_log_e"), rules.alpha)
        yield _evidence("alarm", numbers.get("alarm_log_e"), rules.alpha, is_bad=True)
    elif report.gate == SHADOW:
        level = numbers.get("level", rules.alpha)
        yield _evidence("evidence of a gain", numbers.get("log_e"), level)
        yield _evidence("alarm", numbers.get("alarm_log_e"), rules.alpha, is_bad=True)


def _evidence(title: str, log_e: float | None, level: float, *, is_bad: bool = False) -> Meter:
    """How far an e-process has come on its way to ``1 / level``, on a logarithmic scale."""
    found = log_e or 0.0
    share = min(1.0, max(0.0, found / math.log(1 / level)))
    words = f"{math.exp(min(found, 700.0)):,.3g} of {1 / level:,.3g}"
    return Meter(title=title, share=share, words=words, is_bad=is_bad)


def budget_of(ledger: Ledger, proposal_id: str, rules: GateConfig) -> Budget:
    """What the test of a proposal may cost, or would if it began now."""
    place = ledger.place_of(proposal_id)
    return Budget(
        number=place.opened + 1,
        alpha=rules.alpha,
        level=place.level(rules.alpha),
        before=sum(gamma(number) for number in range(1, place.opened + 1)),
        own=gamma(place.opened + 1),
    )


# --- The composites around a tool -----------------------------------------------------------------

_MOST_BOXES = 60
_HOPS = 3
_MOST_COLUMNS = 12
WIDTH, HEIGHT = 176, 30
_GAP_X, _GAP_Y = 56, 12
_ARC = 44
"""How far a line that passes a column bends upwards, so that it is not behind a box."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A tool in the picture.

    Attributes:
        name: The tool.
        kind: ``composite``, ``code`` or ``missing``.
        x: The left edge.
        y: The upper edge.
    """

    name: str
    kind: str
    x: float
    y: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Graph:
    """The composites around a tool: those that call it on the left, what it calls on the right.

    Attributes:
        boxes: The tools.
        edges: From a composite to what it calls, as the path of a line.
        width: Of the picture.
        height: Of the picture.
        is_cut: Whether there is more than is shown.
    """

    boxes: tuple[Box, ...] = ()
    edges: tuple[str, ...] = ()
    width: float = 0
    height: float = 0
    is_cut: bool = False


def graph_around(library: Library, name: str) -> Graph:
    """The picture of what is up to three calls away from a tool; empty where nothing is."""
    dag = library.dag
    columns: dict[str, int] = {name: 0}
    is_cut = _spread(dag.children, columns, 1)
    is_cut |= _spread(dag.parents, columns, -1)
    if len(columns) == 1:
        return Graph()
    _apart(dag.children, columns)
    first = min(columns.values())
    rows: dict[int, list[str]] = {}
    for one in sorted(columns):
        rows.setdefault(columns[one] - first, []).append(one)
    tallest = max(map(len, rows.values()))
    edges = [
        (one, child) for one in columns for child in dag.children.get(one, ()) if child in columns
    ]
    room = 3 * _ARC / 4 if any(columns[child] - columns[one] > 1 for one, child in edges) else 1
    boxes = {
        one: Box(
            name=one,
            kind=_kind(library, one),
            x=column * (WIDTH + _GAP_X) + 1,
            y=(tallest - len(names)) * (HEIGHT + _GAP_Y) / 2 + at * (HEIGHT + _GAP_Y) + room,
        )
        for column, names in rows.items()
        for at, one in enumerate(names)
    }
    return Graph(
        boxes=tuple(boxes.values()),
        edges=tuple(
            _line(boxes[one], boxes[child], passes=columns[child] - columns[one] > 1)
            for one, child in edges
        ),
        width=(max(rows) + 1) * (WIDTH + _GAP_X) - _GAP_X + 2,
        height=tallest * (HEIGHT + _GAP_Y) - _GAP_Y + 1 + room,
        is_cut=is_cut,
    )


def _spread(near: Mapping[str, Sequence[str]], columns: dict[str, int], step: int) -> bool:
    """Add what is some hops away on one side, column by column; whether something was left out."""
    edge = [one for one in columns if columns[one] == 0]
    for hop in range(1, _HOPS + 1):
        beyond = dict.fromkeys(one for name in edge for one in near.get(name, ()))
        edge = [one for one in beyond if one not in columns]
        room = _MOST_BOXES - len(columns)
        columns.update(dict.fromkeys(edge[:room], step * hop))
        if len(edge) > room:
            return True
    return any(near.get(one) for one in edge)


def _apart(children: Mapping[str, Sequence[str]], columns: dict[str, int]) -> None:
    """Move tools outwards until each stands left of what it calls; a circle ends at some bound."""
    edges = [(one, child) for one in columns for child in children.get(one, ()) if child in columns]
    for _ in range(_MOST_COLUMNS):
        wrong = [(one, child) for one, child in edges if columns[one] >= columns[child]]
        if not wrong:
            return
        for one, child in wrong:
            if columns[child] <= 0:
                columns[one] = columns[child] - 1
            else:
                columns[child] = columns[one] + 1


def _kind(library: Library, name: str) -> str:
    if name not in library:
        return "missing"
    return "composite" if library[name].definition.is_composite else "code"


def _line(one: Box, other: Box, *, passes: bool) -> str:
    x, y = one.x + WIDTH, one.y + HEIGHT / 2
    to_x, to_y = other.x, other.y + HEIGHT / 2
    bend = min(80.0, max(24.0, (to_x - x) / 2))
    up = _ARC if passes else 0
    curve = (x + bend, y - up, to_x - bend, to_y - up, to_x, to_y)
    return f"M{x:.0f} {y:.0f}C{' '.join(f'{at:.0f}' for at in curve)}"
