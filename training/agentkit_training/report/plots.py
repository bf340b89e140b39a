"""Curves over steps, and shares of labels over steps, in SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.page import Markup, element
from agentkit.evaluation.results.texts import label_name

_WIDTH, _HEIGHT = 480.0, 150.0
_LEFT = 54.0
_TICKS = 4
_MOST_DOTS = 24
_MOST_PLACES = 8
_SMOOTHED = 12  # with more points than this a line of means is drawn over them

STYLE = """
svg.lines { width: 100%; max-width: 680px; height: auto; display: block; }
.plots { display: grid; gap: 10px 26px;
  grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); }
.curve { fill: none; stroke: var(--fill); stroke-width: 1.2; opacity: .55; }
.curve.main { stroke: var(--line); stroke-width: 2.2; opacity: 1; }
.dot { fill: var(--line); }
.grid { stroke: var(--rule); stroke-width: 1; }
.zero { stroke: var(--soft); stroke-width: 1; }
.tick.left { text-anchor: end; } .tick.middle { text-anchor: middle; }
.area { fill: var(--own); }
.keys { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 2px 16px;
  font-size: .87rem; }
"""
"""What the plots need beside the style of reports."""

Place = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """The range of both axes.

    Attributes:
        first: Smallest step.
        last: Largest step.
        low: Lowest value shown.
        high: Highest value shown.
        tick: Distance of the lines across.
    """

    first: float
    last: float
    low: float
    high: float
    tick: float

    def at(self, step: float, value: float) -> tuple[float, float]:
        """Where a point lies in the picture."""
        wide, tall = self.last - self.first, self.high - self.low
        across = (step - self.first) / wide if wide else 0.5
        return _LEFT + across * (_WIDTH - _LEFT), _HEIGHT - (value - self.low) / tall * _HEIGHT + 6


def curve_plot(
    told: str,
    points: Sequence[tuple[int, float]],
    *,
    text: Callable[[float], str],
    is_noisy: bool = True,
    least_tick: float = 0.0,
) -> Markup:
    """One figure over the steps; many noisy points are drawn faintly, with their running mean.

    Args:
        told: What is seen, in a sentence.
        points: Step and value; values that are no numbers are left out.
        text: How a value is written.
        is_noisy: Whether a mean says more than the points: not of a count of tools.
        least_tick: Smallest distance of two ticks: 1 for what is counted.
    """
    drawn = [(step, value) for step, value in points if math.isfinite(value)]
    if not drawn:
        return Markup()
    low, high, tick = _range([value for _, value in drawn], least_tick)
    frame = Frame(first=drawn[0][0], last=drawn[-1][0], low=low, high=high, tick=tick)
    is_smoothed = is_noisy and len(drawn) > _SMOOTHED
    lines = [_line(drawn, frame, is_main=not is_smoothed)]
    if is_smoothed:
        lines.append(_line(running_mean(drawn), frame, is_main=True))
    dots = [] if len(drawn) > _MOST_DOTS or is_smoothed else list(_dots(drawn, frame))
    return _figure(told, [*_heights(frame, text), *lines, *dots, *_places(drawn, frame)])


def label_plot(told: str, counts: Sequence[tuple[int, Mapping[str, int]]]) -> Markup:
    """The share of each label over the steps, stacked to one.

    Args:
        told: What is seen, in a sentence.
        counts: Step, and turns by label; steps without turns are left out.
    """
    drawn = [(step, labels) for step, labels in counts if sum(labels.values())]
    if not drawn:
        return Markup()
    frame = Frame(first=drawn[0][0], last=drawn[-1][0], low=0.0, high=1.0, tick=0.25)
    names = sorted({name for _, labels in drawn for name in labels}, key=_order)
    areas: list[Markup] = []
    below = [0.0] * len(drawn)
    for name in names:
        above = [
            lower + labels.get(name, 0) / sum(labels.values())
            for lower, (_, labels) in zip(below, drawn, strict=True)
        ]
        steps = [step for step, _ in drawn]
        areas.append(_area(name, steps, (below, above), frame))
        below = above
    points = [(step, 0.0) for step, _ in drawn]
    picture = [*areas, *_heights(frame, lambda share: f"{share:.0%}"), *_places(points, frame)]
    return element("div", _figure(told, picture), _keys(names))


def running_mean(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Each point as the mean of those around it, a tenth of all on either side.

    Example:
        >>> running_mean([(0, 0.0), (1, 3.0), (2, 6.0)])
        [(0, 1.5), (1, 3.0), (2, 4.5)]
    """
    reach = max(1, len(points) // 10)
    values = [value for _, value in points]
    found = []
    for number, (step, _) in enumerate(points):
        near = values[max(0, number - reach) : number + reach + 1]
        found.append((step, sum(near) / len(near)))
    return found


def _range(values: Sequence[float], least_tick: float) -> tuple[float, float, float]:
    """Round bounds around the values, from zero where that is near, and the distance of ticks."""
    low, high = min(values), max(values)
    if 0 <= low <= 0.6 * high:
        low = 0.0
    step = max(tick_step(low, high), least_tick)
    bottom, top = math.floor(low / step) * step, math.ceil(high / step) * step
    return bottom, top if top > bottom else bottom + step, step


def tick_step(low: float, high: float) -> float:
    """The distance of about four ticks: 1, 2, 2.5 or 5 times a power of ten.

    Example:
        >>> tick_step(0, 0.94), tick_step(-3, 41), tick_step(2, 2)
        (0.25, 10.0, 0.5)
    """
    wanted = (high - low or abs(high) or 1.0) / _TICKS
    power = 10.0 ** math.floor(math.log10(wanted))
    steps = (1.0, 2.0, 2.5, 5.0, 10.0)
    return min((step * power for step in steps), key=lambda step: abs(math.log(step / wanted)))


def _order(label: str) -> tuple[bool, str]:
    return label not in {"pass", "correct_abstention"}, label


def _line(points: Sequence[tuple[int, float]], frame: Frame, *, is_main: bool) -> Markup:
    places = " ".join("{:.1f},{:.1f}".format(*frame.at(*point)) for point in points)
    return element("polyline", points=places, class_="curve main" if is_main else "curve")


def _dots(points: Sequence[tuple[int, float]], frame: Frame) -> Iterator[Markup]:
    for step, value in points:
        x, y = frame.at(step, value)
        yield element("circle", cx=round(x, 1), cy=round(y, 1), r=2.8, class_="dot")


def _area(
    name: str, steps: Sequence[int], bounds: tuple[Sequence[float], Sequence[float]], frame: Frame
) -> Markup:
    below, above = bounds
    if len(steps) == 1:  # one step fills the width
        steps, below, above = [steps[0], steps[0] + 1], [*below] * 2, [*above] * 2
        frame = replace(frame, first=steps[0], last=steps[1])
    way = [frame.at(*point) for point in zip(steps, above, strict=True)]
    way += reversed([frame.at(*point) for point in zip(steps, below, strict=True)])
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in way)
    return element("polygon", element("title", _named(name)), points=places, class_=f"area {name}")


def _keys(names: Sequence[str]) -> Markup:
    entries = (element("li", element("span", class_=f"key {name}"), _named(name)) for name in names)
    return element("ul", entries, class_="keys")


def _named(label: str) -> str:
    return label_name(cast("FailureLabel", label))


def _heights(frame: Frame, text: Callable[[float], str]) -> Iterator[Markup]:
    for number in range(round((frame.high - frame.low) / frame.tick) + 1):
        value = frame.low + number * frame.tick
        _, y = frame.at(frame.first, value)
        yield element("line", x1=_LEFT, x2=_WIDTH + 4, y1=y, y2=y, class_="grid")
        yield element("text", text(value), x=_LEFT - 6, y=y + 4, class_="tick left")


def _places(points: Sequence[tuple[int, float]], frame: Frame) -> Iterator[Markup]:
    steps = sorted({step for step, _ in points})
    every = max(1, math.ceil(len(steps) / _MOST_PLACES))
    for step in steps[::every]:
        x, _ = frame.at(step, frame.low)
        yield element("text", str(step), x=x, y=_HEIGHT + 22, class_="tick middle")


def _figure(told: str, parts: Sequence[Markup]) -> Markup:
    svg = element(
        "svg",
        list(parts),
        viewBox=f"0 0 {_WIDTH + 14:g} {_HEIGHT + 28:g}",
        class_="lines",
        role="img",
        aria_label=told,
    )
    return element("figure", svg, element("figcaption", told))
