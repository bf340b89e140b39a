"""The picture of ``bench_gates.py``, drawn by matplotlib (part of the extra ``dev``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit.evolution.gate_statistics import chance_to_pass

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Rows = Sequence[Mapping[str, Any]]

COLOURS = ("#64748b", "#dc2626", "#d97706", "#7c3aed", "#059669")
"""One a line, told apart by people who see few colours; lines also differ in their marks."""

MARKS = ("s", "^", "v", "D", "o")
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "gates",  # the same figures give the same file
    "font.family": "sans-serif",
    "font.sans-serif": ["Helvetica", "Arial", "DejaVu Sans"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
}


def draw(found: Mapping[str, Rows], path: Path) -> None:
    """Write three panels side by side."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_SETTINGS):
        figure = Figure(figsize=(12, 4.8), layout="constrained")
        peeking, power, proposals = figure.subplots(1, 3)
        _peeking(peeking, found["peeking"])
        _power(power)
        _proposals(proposals, found["many proposals"])
        for axes in (peeking, power, proposals):
            axes.grid(axis="y", color="#e2e8f0")
            axes.yaxis.set_major_formatter("{x:.0%}")
            axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, metadata=metadata)


def _peeking(axes: Axes, rows: Rows) -> None:
    episodes = [row["episodes"] for row in rows]
    for place, (name, label) in enumerate(
        {"naive": "a test made for one look", "e_process": "e-process"}.items()
    ):
        axes.plot(
            episodes,
            [row[name] for row in rows],
            label=label,
            color=COLOURS[(1, 4)[place]],
            marker=MARKS[(1, 4)[place]],
        )
    axes.axhline(0.05, color=COLOURS[0], linestyle="--", linewidth=1)
    axes.set(title="Useless candidates that pass", xlabel="episodes, looked at every ten")
    axes.set_ylim(bottom=0)


def _power(axes: Axes) -> None:
    for place, share in enumerate((0.6, 0.65, 0.7, 0.8, 0.9)):
        chances = chance_to_pass(share, 300, least=8)
        axes.plot(
            range(1, 301),
            chances,
            label=f"{share:.0%} won",
            color=COLOURS[place],
            marker=MARKS[place],
            markevery=(20 + 8 * place, 60),
        )
    axes.axhline(0.8, color=COLOURS[0], linestyle="--", linewidth=1)
    axes.set(title="Better candidates that have passed", xlabel="pairs that differ")
    axes.set_ylim(0, 1.02)


def _proposals(axes: Axes, rows: Rows) -> None:
    for place, differ in enumerate((50, 100, 200, 400)):
        chosen = [row for row in rows if row["differ"] == differ]
        axes.plot(
            [row["wins"] for row in chosen],
            [row["elond_kept"] for row in chosen],
            label=f"{differ} pairs that differ",
            color=COLOURS[place + 1],
            marker=MARKS[place + 1],
        )
    axes.axhline(0.8, color=COLOURS[0], linestyle="--", linewidth=1)
    axes.set(title="Useful ones kept of 200 proposals", xlabel="pairs that differ and are won")
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.set_ylim(0, 1.02)
