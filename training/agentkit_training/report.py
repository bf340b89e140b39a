"""``run_html``: what a run shows to people, one HTML page with its curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from agentkit.evaluation.results.pages import (
    Markup,
    Section,
    element,
    links_html,
    page_html,
    section_html,
    tiles_html,
)
from agentkit.evaluation.results.texts import shown
from agentkit_training.runs import Provenance, RunDirectory, StepRecord

_WIDTH, _HEIGHT, _MARGIN = 480.0, 150.0, 54.0
_FEWEST = 2  # points that make a curve
_LEAST_PLAIN = 1e-3  # smaller numbers, such as learning rates, have too many places
_ALWAYS = frozenset({"reward", "passed", "accuracy", "loss"})
_MEASURED = frozenset({"validation", "test", "evaluate"})

_STYLE = """
svg.lines { width: 100%; max-width: 680px; height: auto; display: block; }
.plots { display: grid; gap: 10px 26px;
  grid-template-columns: repeat(auto-fit, minmax(420px, 1fr)); }
.curve { fill: none; stroke: var(--line); stroke-width: 2; }
.grid { stroke: var(--rule); stroke-width: 1; }
.tick.left { text-anchor: end; } .tick.middle { text-anchor: middle; }
"""

Told = tuple[str, str, Callable[[float], str]]
"""A figure's name in the log, what it is, and how it is written."""


def _share(value: float) -> str:
    return f"{value:.0%}"


def _number(value: float) -> str:
    if 0 < abs(value) < _LEAST_PLAIN:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.3g}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


_LEARNING: tuple[Told, ...] = (
    ("reward", "Mean reward of the rollouts", _number),
    ("passed", "Share of rollouts that passed", _share),
    ("accuracy", "Share of held-out tasks that passed, greedily answered", _share),
    ("loss", "Loss", _number),
    ("gradient_norm", "Norm of the gradient before clipping", _number),
    ("learning_rate", "Learning rate", _number),
    ("kl", "KL divergence to the reference, in nats a token", _number),
    ("entropy", "Entropy of the policy, in nats a token", _number),
    ("clip_share", "Share of tokens whose ratio was held back", _share),
    ("max_log_ratio", "Largest difference between what was sampled and what was read", _number),
    ("weight", "Mean weight of the advantages (SEAL, Eq. 11)", _number),
    ("skipped", "Share of rollouts without an advantage, from which nothing is learned", _share),
    ("rollouts/faults", "Rollouts with a fault, which are not trained on", _whole),
    ("calls_per_solved", "Tool calls for each solved task", _number),
)
_LIBRARY: tuple[Told, ...] = (
    ("library/version", "Version of the library after the step", _whole),
    ("library/tools", "Tools in the library", _whole),
    ("library/composites", "Composites in the library", _whole),
    ("library/depth", "Mean depth of the composites", _number),
    ("library/edit_size", "Size of the edits: normalised edit distance", _number),
    ("library/tokens", "Tokens of all definitions", _whole),
    ("library/proposed", "Proposals made", _whole),
    ("library/accepted", "Proposals taken up", _whole),
)
_COST: tuple[Told, ...] = (
    ("rollout_seconds", "Seconds of making rollouts", _number),
    ("update_seconds", "Seconds of the update", _number),
    ("library_seconds", "Seconds of the library: proposals, checks, commits", _number),
    ("completion_tokens", "Tokens written", _whole),
    ("read_tokens", "Tokens read by the update", _whole),
)


def run_html(run: RunDirectory) -> str:
    """The report of a run as one self-contained page; nothing is loaded or run by a browser.

    Args:
        run: The run; one that is not finished shows what there is.
    """
    records = list(run.records())
    title = f"Training run {shown(run.path.name, 80)}"
    asked = (element("pre", run.config), _versions(run.provenance))
    contents = (
        ("Learning", "How the policy learns", _plots(records, _LEARNING)),
        ("Labels", "What turns come to", _plots(_as_shares(records), _label_figures(records))),
        ("Library", "How the library grows", _plots(records, _LIBRARY)),
        ("Cost", "What it costs", _plots(records, _COST)),
        ("Notes", "What happened", _notes(records)),
        ("Setting", "What was asked for", asked),
    )
    sections = [
        Section(name=name, title=told, content=content)
        for name, told, content in contents
        if any(content)
    ]
    told = run.provenance
    parts = [told.started_at[:16].replace("T", " "), told.machine, told.command]
    header = element(
        "header",
        element("h1", title),
        element("p", " · ".join(shown(part, 300) for part in parts if part), class_="soft"),
        tiles_html(_headline(records)),
        links_html(sections),
    )
    return page_html(title, (header, *map(section_html, sections)), style=_STYLE)


def curve_plot(
    told: str, points: Sequence[tuple[int, float]], *, text: Callable[[float], str]
) -> Markup:
    """One figure over the steps.

    Args:
        told: What is seen, in a sentence.
        points: Step and value; values that are no numbers are left out.
        text: How a value is written.
    """
    drawn = [(step, value) for step, value in points if math.isfinite(value)]
    if not drawn:
        return Markup()
    low, high = min(value for _, value in drawn), max(value for _, value in drawn)
    low = 0.0 if 0 <= low <= 0.6 * high else low
    wide, tall = drawn[-1][0] - drawn[0][0] or 1, high - low or 1.0

    def place(step: float, value: float) -> tuple[float, float]:
        across = _MARGIN + (step - drawn[0][0]) / wide * (_WIDTH - _MARGIN)
        return across, _HEIGHT - (value - low) / tall * _HEIGHT + 6

    parts: list[Markup] = []
    for value in dict.fromkeys((low, (low + high) / 2, high)):
        _, y = place(drawn[0][0], value)
        parts.append(element("line", x1=_MARGIN, x2=_WIDTH, y1=y, y2=y, class_="grid"))
        parts.append(element("text", text(value), x=_MARGIN - 6, y=y + 4, class_="tick left"))
    for step in dict.fromkeys((drawn[0][0], drawn[-1][0])):
        x, _ = place(step, low)
        parts.append(element("text", str(step), x=x, y=_HEIGHT + 22, class_="tick middle"))
    places = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in drawn)
    parts.append(element("polyline", points=places, class_="curve"))
    box = f"0 0 {_WIDTH + 14:g} {_HEIGHT + 28:g}"
    svg = element("svg", parts, viewBox=box, class_="lines", role="img", aria_label=told)
    return element("figure", svg, element("figcaption", told))


def _plots(records: Sequence[StepRecord], figures: Iterable[Told]) -> tuple[Markup, ...]:
    """Curves, and in words what stayed the same; nothing of what stayed at 0."""
    drawn: list[Markup] = []
    still: list[str] = []
    told_figures = list(figures)
    for phase in dict.fromkeys(record.phase for record in records):
        for name, told, text in told_figures:
            points = [
                (record.step, record.figures[name])
                for record in records
                if record.phase == phase and name in record.figures
            ]
            if len(points) < _FEWEST:
                continue
            if name in _ALWAYS or len({value for _, value in points}) > 1:
                drawn.append(curve_plot(f"{told} ({phase}).", points, text=text))
            elif points[0][1]:
                still.append(f"{told} ({phase}): {text(points[0][1])} in all steps.")
    found = [one for one in drawn if one]
    plots = (element("div", found, class_="plots"),) if found else ()
    return (*plots, element("p", " ".join(still), class_="soft")) if still else plots


def _as_shares(records: Sequence[StepRecord]) -> list[StepRecord]:
    """Records whose figures are the shares of the labels of their turns."""
    names = {name for one in records for name in one.labels}
    return [
        StepRecord(
            step=one.step,
            phase=one.phase,
            figures={name: one.labels.get(name, 0) / sum(one.labels.values()) for name in names},
        )
        for one in records
        if sum(one.labels.values())
    ]


def _label_figures(records: Sequence[StepRecord]) -> list[Told]:
    names = sorted({name for one in records for name in one.labels})
    return [(name, f"Share of turns labelled {name.replace('_', ' ')}", _share) for name in names]


def _notes(records: Sequence[StepRecord]) -> tuple[Markup, ...]:
    """What was told, each note once with the steps that told it."""
    steps: dict[tuple[str, str], list[int]] = {}
    for one in records:
        for note in one.notes:
            steps.setdefault((one.phase, note), []).append(one.step)
    if not steps:
        return ()
    lines = [f"{_steps(told)} ({phase}): {note}" for (phase, note), told in steps.items()]
    return (element("ul", (element("li", shown(line, 400)) for line in lines)),)


def _steps(told: Sequence[int]) -> str:
    if len(told) == 1:
        return f"Step {told[0]}"
    return f"{len(told)} steps, from {told[0]} to {told[-1]}"


def _headline(records: Sequence[StepRecord]) -> list[tuple[str, str, str]]:
    """First and last of the figures that people look for."""
    taken = [one for one in records if one.figures and one.phase not in _MEASURED]
    phase = taken[-1].phase if taken else ""
    steps = _count([one.step for one in taken if one.phase == phase])
    tiles = [("steps", str(steps), phase)]
    for name, text in (("accuracy", _share), ("reward", _number), ("library/version", _whole)):
        having = [one for one in records if name in one.figures]
        same = [one for one in having if one.phase == having[-1].phase]
        if same:
            when = "after the first step" if name.startswith("library/") else "at first"
            first = f"{text(same[0].figures[name])} {when}" if len(same) > 1 else ""
            told = f"{name.replace('/', ' ')}, {same[-1].phase}"
            tiles.append((told, text(same[-1].figures[name]), first))
    return tiles


def _count(steps: Sequence[int]) -> int:
    """How many steps were taken, where the numbers begin anew, as with each round of ToolACE-R."""
    last = [one for one, after in pairwise(steps) if after <= one]
    return sum(one + 1 for one in (*last, *steps[-1:]))


def _versions(told: Provenance) -> Markup:
    lines = [f"{name} {version}" for name, version in told.versions.items()]
    lines += [f"{name}: seed {seed}" for name, seed in told.seeds.items()]
    lines += [f"{name}: sha256 {digest}" for name, digest in told.data.items()]
    lines += [f"commit {told.commit}"] if told.commit else []
    return element("ul", (element("li", shown(line, 200)) for line in lines), class_="soft")
