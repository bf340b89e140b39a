"""Lines over rounds and versions, in SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentkit.evaluation.results.markup import Markup, element

_WIDTH, _HEIGHT = 480.0, 150.0
_LEFT = 46.0
_TICKS = 4
_MOST_DOTS = 24
_SPARK_WIDTH, _SPARK_HEIGHT = 88.0, 22.0

STYLE = """
svg.lines { width: 100%; max-width: 680px; height: auto; display: block; }
svg.spark { display: block; width: 88px; height: 22px; }
td.wide:has(svg.spark) { min-width: 0; width: auto; }
.curve { fill: none; stroke: var(--fill); stroke-width: 1.2; opacity: .65; }
.curve.main { stroke: var(--line); stroke-width: 2.2; opacity: 1; }
.dot { fill: var(--fill); } .main .dot, .spark .dot { fill: var(--line); }
.grid { stroke: var(--rule); stroke-width: 1; }
.tick.left { text-anchor: end; } .tick.middle { text-anchor: middle; }
"""
"""What lines need beside the style of reports."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Points that are joined by a line.

    Attributes:
        name: What it shows.
        points: Places along the axes, from left to right.
        is_main: Drawn strongly, with a dot at each point.
    """

    name: str
    points: Sequence[tuple[float, float]]
    is_main: bool = False


def line_plot(
    told: str, curves: Iterable[Curve], *, text: Callable[[float], str], below: str
) -> Markup:
    """Curves over whole numbers, the height from zero up.

    Args:
        told: What is seen, in a sentence.
        curves: The curves, the main one last so that it lies on top.
        text: How a height is written.
        below: What the whole numbers are.
    """
    drawn = [curve for curve in curves if curve.points]
    xs = [x for curve in drawn for x, _ in curve.points]
    if not xs:
        return Markup()
    top = round_up(max(y for curve in drawn for _, y in curve.points))
    low, high = min(xs), max(xs)

    def at(x: float, y: float) -> tuple[float, float]:
        share = (x - low) / (high - low) if high > low else 0.5
        return _LEFT + share * (_WIDTH - _LEFT), _HEIGHT - y / top * (_HEIGHT - 8)

    svg = element(
        "svg",
        list(_heights(top, text)),
        [_curve(curve, at) for curve in drawn],
        list(_places(sorted(set(xs)), at)),
        viewBox=f"0 0 {_WIDTH + 14:g} {_HEIGHT + 24:g}",
        class_="lines",
        role="img",
        aria_label=told,
    )
    return element("figure", svg, element("figcaption", f"{told} Below: {below}."))


def round_up(value: float) -> float:
    """The next number whose quarters read well: 1, 2, 4 or 8 times a power of ten.

    Example:
        >>> round_up(0.66), round_up(1426), round_up(0)
        (0.8, 2000.0, 1.0)
    """
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1, 2, 4, 8, 10)
    return float(next((step * power for step in steps if step * power >= value), 10 * power))


def sparkline(values: Sequence[float], told: str) -> Markup:
    """A few numbers as a small line from zero up; nothing for none.

    Args:
        values: The numbers, 0 or more.
        told: What is seen, in words.
    """
    if not values:
        return Markup()
    top = max(values) or 1.0
    step = (_SPARK_WIDTH - 8) / max(1, len(values) - 1)
    places = [
        (4 + at * step, _SPARK_HEIGHT - 3 - value / top * (_SPARK_HEIGHT - 6))
        for at, value in enumerate(values)
    ]
    parts = [element("polyline", points=_joined(places), class_="curve main")]
    parts.append(element("circle", cx=places[-1][0], cy=places[-1][1], r=2.4, class_="dot"))
    return element(
        "svg",
        parts,
        viewBox=f"0 0 {_SPARK_WIDTH:g} {_SPARK_HEIGHT:g}",
        class_="spark",
        role="img",
        aria_label=told,
    )


def _curve(curve: Curve, at: Callable[[float, float], tuple[float, float]]) -> Markup:
    places = [at(x, y) for x, y in curve.points]
    kind = "curve main" if curve.is_main else "curve"
    line = element("polyline", element("title", curve.name), points=_joined(places), class_=kind)
    has_dots = len(places) == 1 or (curve.is_main and len(places) <= _MOST_DOTS)
    dots = [
        element("circle", element("title", curve.name), cx=x, cy=y, r=2.8, class_="dot")
        for x, y in (places if has_dots else ())
    ]
    return element("g", line, dots, class_="main" if curve.is_main else None)


def _heights(top: float, text: Callable[[float], str]) -> Iterator[Markup]:
    for step in range(_TICKS + 1):
        y = _HEIGHT - step / _TICKS * (_HEIGHT - 8)
        yield element("line", x1=_LEFT, x2=_WIDTH + 8, y1=y, y2=y, class_="grid")
        label = text(top * step / _TICKS)
        yield element("text", label, x=_LEFT - 6, y=y + 4, class_="tick left")


def _places(
    xs: Sequence[float], at: Callable[[float, float], tuple[float, float]]
) -> Iterator[Markup]:
    stride = 1 + (len(xs) - 1) // 10
    for x in xs[::stride]:
        yield element("text", f"{x:,.0f}", x=at(x, 0)[0], y=_HEIGHT + 17, class_="tick middle")


def _joined(places: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
