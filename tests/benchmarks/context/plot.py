"""The picture of ``context_cost.py``, drawn by matplotlib (part of the extra ``dev``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.ticker import FixedLocator

Points = Sequence[tuple[float, float]]
"""Tools in the library, and a value."""

COLOURS = ("#64748b", "#dc2626", "#d97706", "#7c3aed", "#059669")
"""One a line, told apart by people who see few colours; lines also differ in their marks."""

MARKS = ("s", "^", "v", "D", "o")
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "context",  # the same figures give the same file
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
}


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: What is shown.
        lines: Points by the name of their line, in the order of the legend; the last stands out.
        logarithmic: Whether the vertical axis is; else it begins at 0.
    """

    title: str
    lines: Mapping[str, Points]
    logarithmic: bool = False


def draw(panels: Sequence[Panel], path: Path) -> None:
    """Write the panels side by side, with one legend below them, as SVG."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure(figsize=(10, 4.1), layout="constrained")
        for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
            _panel(axes, panel)
        lines = axes.get_lines()
        figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), frameon=False)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _panel(axes: Axes, panel: Panel) -> None:
    for place, (name, points) in enumerate(panel.lines.items()):
        last = place == len(panel.lines) - 1
        axes.plot(
            *zip(*points, strict=True),
            label=name,
            color=COLOURS[place],
            marker=MARKS[place],
            markersize=4,
            linewidth=2.5 if last else 1.5,
            zorder=3 if last else 2,
        )
    axes.set_title(panel.title)
    axes.set_xlabel("tools in the library")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(_at([50, 100, 200, 400, 800, 1600, 3200, 10_000]))
    axes.xaxis.set_minor_locator(_at([]))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    if panel.logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(_at([]))
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.grid(axis="y", color="#e2e8f0")


def _at(places: Sequence[float]) -> FixedLocator:
    from matplotlib.ticker import FixedLocator

    return FixedLocator(places)
