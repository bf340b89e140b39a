"""A plot with lines as SVG, for the pages of ``docs/``; no plotting library is needed for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

COLOURS = ("#2563eb", "#dc2626", "#d97706", "#7c3aed", "#059669", "#64748b")
"""One a line, told apart by people who see few colours, too; lines also carry their names."""

_STYLE = 'font-family="Helvetica, Arial, sans-serif" font-size="12"'
_INK, _GRID = "#334155", "#e2e8f0"
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 34, 46
_LABEL_GAP = 15


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: What is shown.
        x_title: What the horizontal axis counts; it is logarithmic.
        lines: Points by name, in the order of the legend.
        logarithmic: Whether the vertical axis is, too.
        low: Where the vertical axis begins; None lets the points say.
    """

    title: str
    x_title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    logarithmic: bool = False
    low: float | None = None


def svg(panels: Sequence[Panel], *, width: int = 470, height: int = 330) -> str:
    """The panels side by side, with one legend below them."""
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    colours = dict(zip(names, COLOURS, strict=False))
    full, tall = width * len(panels), height + 24 * -(-len(names) // 3) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{full}" height="{tall}" {_STYLE}>',
        '<rect width="100%" height="100%" fill="white"/>',
    ]
    for at, panel in enumerate(panels):
        parts.append(f'<g transform="translate({at * width} 0)">')
        parts.extend(_panel(panel, colours, width, height))
        parts.append("</g>")
    parts.extend(_legend(colours, full, height))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel, colours: Mapping[str, str], width: int, height: int) -> Iterator[str]:
    points = [point for line in panel.lines.values() for point in line]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low = min(ys) if panel.low is None else panel.low
    high = max(ys)
    place_x = _scale(min(xs), max(xs), _LEFT, width - _RIGHT, logarithmic=True)
    place_y = _scale(low, high, height - _BOTTOM, _TOP, logarithmic=panel.logarithmic)
    yield _text(width / 2, 18, panel.title, anchor="middle", weight=600)
    yield _text(width / 2, height - 8, panel.x_title, anchor="middle")
    ticks = _decades(low, high) if panel.logarithmic else _steps(low, high)
    for value in ticks:
        y = place_y(value)
        yield f'<path d="M{_LEFT} {y:.1f} H{width - _RIGHT}" stroke="{_GRID}"/>'
        yield _text(_LEFT - 6, y + 4, _number(value), anchor="end")
    shown = sorted(set(xs))
    for value in shown:
        x = place_x(value)
        yield f'<path d="M{x:.1f} {height - _BOTTOM} v5" stroke="{_INK}"/>'
        yield _text(x, height - _BOTTOM + 18, _number(value), anchor="middle", size=10)
    for name, line in panel.lines.items():
        places = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in line)
        yield (
            f'<polyline points="{places}" fill="none" stroke="{colours[name]}" stroke-width="2"/>'
        )
        for x, y in line:
            yield (
                f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3" '
                f'fill="{colours[name]}"><title>{escape(name)}, {_number(x)} tools: '
                f"{_number(y)}</title></circle>"
            )


def _legend(colours: Mapping[str, str], width: int, top: int) -> Iterator[str]:
    column = width / 3
    for at, (name, colour) in enumerate(colours.items()):
        x, y = 30 + column * (at % 3), top + 20 + 24 * (at // 3)
        yield f'<path d="M{x:.0f} {y - 4} h26" stroke="{colour}" stroke-width="3"/>'
        yield _text(x + 34, y, name)


def _scale(
    low: float, high: float, start: float, end: float, *, logarithmic: bool
) -> Callable[[float], float]:
    bend = math.log10 if logarithmic else float
    bottom, span = bend(low), bend(high) - bend(low) or 1.0
    return lambda value: start + (bend(value) - bottom) / span * (end - start)


def _decades(low: float, high: float) -> list[float]:
    return [
        float(10**power)
        for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    ]


def _steps(low: float, high: float) -> list[float]:
    step = 10 ** math.floor(math.log10(high - low or 1.0))
    step = step / 5 if (high - low) / step < 3 else step
    first = math.ceil(low / step - 1e-9)
    return [round(step * at, 6) for at in range(first, math.floor(high / step + 1e-9) + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def _text(
    x: float, y: float, text: str, *, anchor: str = "start", weight: int = 400, size: int = 12
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
        f'font-size="{size}" fill="{_INK}">{escape(text)}</text>'
    )
