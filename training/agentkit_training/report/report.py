"""Curves over steps, and shares of labels over steps, in SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import cast

from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.page import (
    Markup,
    Section,
    element,
    links_html,
    page_html,
    section_html,
    tiles_html,
)
from agentkit.evaluation.results.texts import label_name, shown
from agentkit_training.runs.directory import Provenance, RunDirectory
from agentkit_training.runs.records import StepRecord

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


Told = tuple[str, str, Callable[[float], str]]

_FEWEST = 2  # points that make a curve
_LEAST_PLAIN = 1e-3  # smaller numbers, such as learning rates, have too many places
_ALWAYS = frozenset({"reward", "passed", "accuracy", "loss"})
_MEASURED = frozenset({"validation", "test", "evaluate"})
_BEFORE = {"library/version": "library/rendered_version"}
"""Figures that are taken after a step, and the name of the same before it."""


def _share(value: float) -> str:
    return f"{value:.0%}"


def _number(value: float) -> str:
    if 0 < abs(value) < _LEAST_PLAIN:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        return f"{float(mantissa):g}e{int(exponent)}"
    return f"{value:.3g}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


LEARNING: tuple[Told, ...] = (
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
"""Figures about the policy: name in the log, what they are, how they are written."""

LIBRARY: tuple[Told, ...] = (
    ("library/version", "Version of the library after the step", _whole),
    ("library/tools", "Tools in the library", _whole),
    ("library/composites", "Composites in the library", _whole),
    ("library/depth", "Mean depth of the composites", _number),
    ("library/edit_size", "Size of the edits: normalised edit distance", _number),
    ("library/tokens", "Tokens of all definitions", _whole),
    ("library/proposed", "Proposals made", _whole),
    ("library/accepted", "Proposals taken up", _whole),
)
"""Figures about the library."""

COST: tuple[Told, ...] = (
    ("rollout_seconds", "Seconds of making rollouts", _number),
    ("update_seconds", "Seconds of the update", _number),
    ("library_seconds", "Seconds of the library: proposals, checks, commits", _number),
    ("completion_tokens", "Tokens written", _whole),
    ("read_tokens", "Tokens read by the update", _whole),
)
"""Figures about time and tokens."""


def run_html(run: RunDirectory) -> str:
    """The report of a run as one self-contained page; nothing is loaded or run by a browser.

    Args:
        run: The run; one that is not finished shows what there is.
    """
    records = list(run.records())
    title = f"Training run {shown(run.path.name, 80)}"
    sections = [one for one in _sections(records, run) if any(one.content)]
    header = element(
        "header",
        element("h1", title),
        element("p", _about(run.provenance), class_="soft"),
        tiles_html(_headline(records)),
        links_html(sections),
    )
    return page_html(title, (header, *map(section_html, sections)), style=STYLE)


def _sections(records: Sequence[StepRecord], run: RunDirectory) -> Iterable[Section]:
    yield Section(name="Learning", title="How the policy learns", content=_plots(records, LEARNING))
    yield Section(name="Labels", title="What turns come to", content=_labels(records))
    yield Section(
        name="Library",
        title="How the library grows",
        content=_plots(records, LIBRARY, is_noisy=False),
    )
    yield Section(name="Cost", title="What it costs", content=_plots(records, COST))
    yield Section(name="Notes", title="What happened", content=_notes(records))
    yield Section(
        name="Setting",
        title="What was asked for",
        content=(element("pre", run.config), _versions(run.provenance)),
    )


def _plots(
    records: Sequence[StepRecord], figures: Iterable[Told], *, is_noisy: bool = True
) -> tuple[Markup, ...]:
    """Curves, and in words what stayed the same; nothing of what stayed at 0."""
    drawn: list[Markup] = []
    still: list[str] = []
    for phase in dict.fromkeys(record.phase for record in records):
        for name, told, text in figures:
            points = [
                (record.step, record.figures[name])
                for record in records
                if record.phase == phase and name in record.figures
            ]
            if len(points) < _FEWEST:
                continue
            if name not in _ALWAYS and len({value for _, value in points}) == 1:
                if value := points[0][1]:
                    still.append(f"{told} ({phase}): {text(value)} in all steps.")
                continue
            told_of = f"{told} ({phase})."
            least = 1.0 if text is _whole else 0.0
            drawn.append(
                curve_plot(told_of, points, text=text, is_noisy=is_noisy, least_tick=least)
            )
    found = [one for one in drawn if one]
    plots = (element("div", found, class_="plots"),) if found else ()
    return (*plots, element("p", " ".join(still), class_="soft")) if still else plots


def _labels(records: Sequence[StepRecord]) -> tuple[Markup, ...]:
    found = []
    for phase in dict.fromkeys(record.phase for record in records):
        counts = [(one.step, one.labels) for one in records if one.phase == phase]
        found.append(label_plot(f"Share of turns by label ({phase}).", counts))
    drawn = [one for one in found if one]
    return (element("div", drawn, class_="plots"),) if drawn else ()


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
            told = f"{name.replace('/', ' ')}, {same[-1].phase}"
            tiles.append((told, text(same[-1].figures[name]), _at_first(name, text, same)))
    return tiles


def _at_first(name: str, text: Callable[[float], str], records: Sequence[StepRecord]) -> str:
    """What a figure was before anything was done, as far as the log says; empty where it does not.

    Args:
        name: In the log.
        text: How it is written.
        records: Those that have it, of one phase.
    """
    before = records[0].figures.get(_BEFORE.get(name, ""))
    if before is not None:
        return f"{text(before)} at first"
    if len(records) < _FEWEST:
        return ""
    when = "after the first step" if name in _BEFORE else "at first"
    return f"{text(records[0].figures[name])} {when}"


def _count(steps: Sequence[int]) -> int:
    """How many steps were taken, where the numbers begin anew, as with each round of ToolACE-R."""
    last = [one for one, after in pairwise(steps) if after <= one]
    return sum(one + 1 for one in (*last, *steps[-1:]))


def _about(told: Provenance) -> str:
    parts = [told.started_at[:16].replace("T", " "), told.machine, told.command]
    return " · ".join(shown(part, 300) for part in parts if part)


def _versions(told: Provenance) -> Markup:
    lines = [f"{name} {version}" for name, version in told.versions.items()]
    lines += [f"{name}: seed {seed}" for name, seed in told.seeds.items()]
    lines += [f"{name}: sha256 {digest}" for name, digest in told.data.items()]
    lines += [f"commit {told.commit}"] if told.commit else []
    return element("ul", (element("li", shown(line, 200)) for line in lines), class_="soft")
