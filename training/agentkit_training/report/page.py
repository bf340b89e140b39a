"""The report of a run as one HTML page, in the style of the runtime's reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from agentkit.evaluation.results.page import (
    Markup,
    Section,
    element,
    links_html,
    page_html,
    section_html,
    tiles_html,
)
from agentkit.evaluation.results.texts import shown
from agentkit_training.report.plots import STYLE, curve_plot, label_plot
from agentkit_training.runs.directory import RunDirectory
from agentkit_training.runs.provenance import Provenance
from agentkit_training.runs.records import StepRecord

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
