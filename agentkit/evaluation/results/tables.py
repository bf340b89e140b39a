"""Reports and comparisons as tables of text, which Markdown, HTML and the terminal all show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.comparison import Comparison, GroupComparison
from agentkit.evaluation.results.counting import FEWEST_DRAWN
from agentkit.evaluation.results.records import Distribution, EvaluationReport, GroupReport
from agentkit.evaluation.results.texts import (
    LABELS,
    dollars,
    interval,
    label_name,
    many,
    percent,
    points,
    seconds,
    share,
    shown,
    whole,
)


def notes(report: EvaluationReport) -> tuple[str, ...]:
    """What a reader has to know before the numbers, in sentences; empty for a sound, whole run."""
    total, told = report.total, []
    if report.planned is not None and report.finished < report.planned:
        told.append(f"Finished: {report.finished:,} of {report.planned:,} planned attempts.")
    if total.unfinished:
        told.append(f"Begun and not finished: {many(total.unfinished, 'attempt')}.")
    if total.faults:
        what = ", ".join(many(n, label_name(fault)) for fault, n in total.faults.items())
        told.append(f"In no number, because the reference or the verifier is broken: {what}.")
    if total.unjudged:
        told.append(f"In no number, because nobody judged: {many(total.unjudged, 'attempt')}.")
    if total.errors:
        told.append(f"The model failed in {many(total.errors, 'attempt')}; these count.")
    if report.mixed:
        told.append(f"Settings that are not the same in all episodes: {', '.join(report.mixed)}.")
    if report.repeated:
        told.append(
            f"In no number, because it repeats another: {many(report.repeated, 'attempt')}."
        )
    if report.strangers:
        told.append(f"In no number, because no task is named: {many(report.strangers, 'episode')}.")
    if report.undiagnosed:
        told.append(f"Judged and not diagnosed: {many(report.undiagnosed, 'episode')}.")
    return tuple(told)


WORST = 25
"""Rows of the tables of tools, parameters and mix-ups."""

_LONGEST = 80
_LABELS_NAMED = 3

Align = Literal["left", "right"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """A table of text.

    Attributes:
        title: What it shows.
        columns: Headings, with how the cells below them are aligned.
        rows: Cells as plain text.
        note: What has to be known to read it, in a sentence.
    """

    title: str
    columns: tuple[tuple[str, Align], ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def columns(*titles: str) -> tuple[tuple[str, Align], ...]:
    """Headings with their alignment: ``"tokens>"`` stands at the right, ``"tool"`` at the left."""
    return tuple(
        (title.removesuffix(">"), "right" if title.endswith(">") else "left") for title in titles
    )


def headline(report: EvaluationReport) -> tuple[tuple[str, str, str], ...]:
    """The few numbers that matter: name, value, what stands beside it."""
    total = report.total
    lines = [
        (
            "accuracy",
            "-" if total.accuracy is None else percent(total.accuracy.value),
            "no attempt counts"
            if total.accuracy is None
            else f"{total.passed:,} of {total.attempts:,}, {interval(total.accuracy)}",
        )
    ]
    if report.macro is not None and len(report.categories) > 1:
        lines.append(
            (
                "mean over categories",
                percent(report.macro.value),
                f"{len(report.categories):,} categories, {interval(report.macro)}",
            )
        )
    lines.append(("mean score", f"{total.score:.3f}", "from 0 to 1"))
    if total.attempts:
        lines += _costs(report)
    return tuple(lines)


def _costs(report: EvaluationReport) -> Iterator[tuple[str, str, str]]:
    total, usage = report.total, report.total.usage
    n = total.attempts
    cached = share(usage.cached_tokens, usage.prompt_tokens)
    cached = f" ({cached} cached)" if usage.prompt_tokens else ""
    yield (
        "tokens an attempt",
        whole(usage.total_tokens / n),
        (
            f"{usage.prompt_tokens / n:,.0f} read{cached}, "
            f"{usage.completion_tokens / n:,.0f} written"
        ),
    )
    yield (
        "time an attempt",
        seconds(total.time.seconds / n),
        f"{seconds(total.time.overhead_seconds / n)} of it agentkit overhead",
    )
    if report.spent.cost_usd is not None:
        yield "cost of the run", dollars(report.spent.cost_usd), "unfinished attempts included"


def category_table(report: EvaluationReport) -> Table:
    """Accuracy by category, and all categories together."""
    rows = [_category_row(shown(group.name, _LONGEST), group) for group in report.categories]
    if len(report.categories) != 1:
        rows.append(_category_row("all", report.total))
    return Table(
        title="Accuracy by category",
        columns=columns(
            "category",
            "accuracy>",
            "95% interval>",
            "passed>",
            "attempts>",
            "mean score>",
            "tokens>",
            "time>",
        ),
        rows=tuple(rows),
        note="Tokens and time are means an attempt.",
    )


def _category_row(name: str, group: GroupReport) -> tuple[str, ...]:
    n = group.attempts
    attempts = whole(n)
    if group.planned is not None and group.planned != n:
        attempts = f"{n:,} of {group.planned:,}"
    if group.accuracy is None:
        return (name, "-", "-", "0", attempts, "-", "-", "-")
    return (
        name,
        percent(group.accuracy.value),
        interval(group.accuracy),
        whole(group.passed),
        attempts,
        f"{group.score:.3f}",
        whole(group.usage.total_tokens / n),
        seconds(group.time.seconds / n),
    )


def pass_table(report: EvaluationReport) -> Table:
    """pass@k and pass^k."""
    return Table(
        title="Repeated attempts",
        columns=columns("k>", "tasks>", "pass@k>", "pass^k>"),
        rows=tuple(
            (str(one.k), whole(one.tasks), percent(one.any_passes), percent(one.all_pass))
            for one in report.pass_at
        ),
        note="pass@k: at least one of k attempts passes; pass^k: all of them do.",
    )


def metric_table(report: EvaluationReport) -> Table:
    """Means of the verdicts' further metrics, by category and overall."""
    names = [one.name for one in report.total.metrics]
    rows = [(shown(group.name, _LONGEST), group) for group in report.categories]
    if len(rows) != 1:
        rows.append(("all", report.total))
    return Table(
        title="Metrics of the verdicts",
        columns=(
            ("category", "left"),
            *((shown(label_name(name), _LONGEST), "right") for name in names),
        ),
        rows=tuple(
            (title, *(_metric(group, name) for name in names)) for title, group in rows if names
        ),
        note="Means over the attempts that have the metric.",
    )


def _metric(group: GroupReport, name: str) -> str:
    return next((f"{one.mean:.3f}" for one in group.metrics if one.name == name), "-")


def label_table(report: EvaluationReport) -> Table:
    """How often each label is the dominant one of a turn, and of an episode."""
    turns, episodes = report.total.turn_labels, report.total.episode_labels
    count = sum(turns.values())
    return Table(
        title="Labels",
        columns=columns("label", "turns>", "share>", "episodes>", "meaning"),
        rows=tuple(
            (
                label_name(label),
                whole(turns.get(label, 0)),
                share(turns.get(label, 0), count),
                whole(episodes.get(label, 0)),
                LABELS[label],
            )
            for label in used_labels(report)
        ),
    )


def finding_table(report: EvaluationReport) -> Table:
    """How often the verdicts' evidence is of each kind."""
    findings = report.total.findings
    count = sum(findings.values())
    return Table(
        title="What the verdicts found",
        columns=columns("finding", "times>", "share>"),
        rows=tuple((label_name(kind), whole(n), share(n, count)) for kind, n in findings.items()),
    )


def label_category_table(report: EvaluationReport) -> Table:
    """How often each label is the dominant one of a turn, by category."""
    labels = used_labels(report)
    return Table(
        title="Labels by category",
        columns=(("category", "left"), *((label_name(label), "right") for label in labels)),
        rows=tuple(
            (
                shown(group.name, _LONGEST),
                *(whole(group.turn_labels.get(label, 0)) for label in labels),
            )
            for group in report.categories
        ),
        note="Turns of the model, by their dominant label.",
    )


def used_labels(report: EvaluationReport) -> tuple[FailureLabel, ...]:
    """The labels that occur, the gravest first."""
    found = report.total.turn_labels.keys() | report.total.episode_labels.keys()
    return tuple(label for label in LABELS if label in found)


def failing(labels: Mapping[FailureLabel, int]) -> int:
    """How many of the labels hold something against the agent."""
    return sum(count for label, count in labels.items() if label not in NOT_FAILURES)


def tool_table(report: EvaluationReport) -> Table:
    """The worst tools."""
    return Table(
        title="Worst tools",
        columns=columns("tool", "episodes>", "faulty>", "share>", "at least>", "labels"),
        rows=tuple(
            (
                shown(one.tool, _LONGEST),
                whole(one.episodes),
                whole(one.faulty),
                share(one.faulty, one.episodes),
                f"{one.share.low:.0%}",
                labels_text(one.labels),
            )
            for one in report.tools[:WORST]
        ),
        note="Episodes: in which the tool was called or should have been. Faulty: a label blames "
        f"it. At least: the lower end of the share's 95% interval. {seen_once(report)}".rstrip()
        + _rest(len(report.tools), "tools"),
    )


def seen_once(report: EvaluationReport) -> str:
    """A sentence where no tool came up twice, so that none is worse than another; else empty."""
    if not report.tools or any(one.episodes > 1 for one in report.tools):
        return ""
    if len(report.tools) == 1:
        return "It was seen in one episode only."
    return (
        f"Each of the {len(report.tools):,} tools was seen in one episode only, so their order "
        "says nothing."
    )


def parameter_table(report: EvaluationReport) -> Table:
    """The worst parameters."""
    return Table(
        title="Worst parameters",
        columns=columns("tool", "parameter", "faults>", "calls of the tool>", "labels"),
        rows=tuple(
            (
                shown(one.tool, _LONGEST),
                shown(one.parameter, _LONGEST),
                whole(one.faults),
                whole(one.calls),
                labels_text(one.labels),
            )
            for one in report.parameters[:WORST]
        ),
        note=_rest(len(report.parameters), "parameters").strip(),
    )


def confusion_table(report: EvaluationReport) -> Table:
    """Tools that were called in place of others, in addition, or not at all."""
    return Table(
        title="Expected and called tools",
        columns=columns("expected", "called", "count>"),
        rows=tuple(
            (
                shown(one.expected, _LONGEST) or "(no call)",
                shown(one.called, _LONGEST) or "(no call)",
                whole(one.count),
            )
            for one in report.confusions[:WORST]
        ),
        note=_rest(len(report.confusions), "pairs").strip(),
    )


def recovery_table(report: EvaluationReport) -> Table:
    """What became of failed calls."""
    count = sum(one.count for one in report.recoveries)
    return Table(
        title="Recovery from failed calls",
        columns=columns("failure", "what followed", "count>", "share>"),
        rows=tuple(
            (
                label_name(one.kind),
                label_name(one.outcome),
                whole(one.count),
                share(one.count, count),
            )
            for one in report.recoveries
        ),
    )


def refine_table(report: EvaluationReport) -> Table:
    """What refinement did, and what it cost."""
    refine, total = report.total.refine, report.total
    rows: list[tuple[str, str]] = []
    if refine.turns:
        n = max(1, total.attempts)
        rows = [
            ("turns refined", f"{refine.turns:,} of {total.turns:,}"),
            ("mean rounds after the direct answer", f"{refine.iterations:.2f}"),
            ("two answers in a row agreed", percent(refine.converged)),
            ("extra tokens an attempt", whole(refine.usage.total_tokens / n)),
            ("share of all tokens", share(refine.usage.total_tokens, total.usage.total_tokens)),
        ]
    return Table(title="Refinement", columns=columns("what", "value>"), rows=tuple(rows))


def spread_table(report: EvaluationReport) -> Table:
    """How tokens and time are spread over the attempts."""
    rows = [
        ("tokens", *_spread(report.tokens, whole)),
        ("time", *_spread(report.seconds, seconds)),
    ]
    return Table(
        title="Tokens and time",
        columns=(
            ("an attempt", "left"),
            *((name, "right") for name in ("mean", "least", "median", "9 in 10", "most")),
        ),
        rows=tuple(rows) if report.total.attempts else (),
    )


def _spread(spread: Distribution, text: Callable[[float], str]) -> tuple[str, ...]:
    return tuple(
        map(text, (spread.mean, spread.minimum, spread.median, spread.p90, spread.maximum))
    )


def stop_table(report: EvaluationReport) -> Table:
    """Why episodes ended."""
    reasons = report.total.stop_reasons
    count = sum(reasons.values())
    return Table(
        title="Why episodes ended",
        columns=columns("reason", "episodes>", "share>"),
        rows=tuple((label_name(why), whole(n), share(n, count)) for why, n in reasons.items()),
    )


def incident_table(report: EvaluationReport) -> Table:
    """Errors of the model, broken references and verifiers."""
    return Table(
        title="Errors and faults",
        columns=columns("what", "episodes>", "task", "message"),
        rows=tuple(
            (
                label_name(shown(one.what, _LONGEST)),
                whole(one.count),
                shown(one.task, _LONGEST),
                one.message,
            )
            for one in (*report.errors, *report.faults)
        ),
        note="Errors of the model count as the verdict says; faults of the reference or the "
        "verifier count nowhere.",
    )


def settings_table(report: EvaluationReport) -> Table:
    """How the questions were asked."""
    rows = {
        "benchmark": report.benchmark,
        "model": ", ".join(report.models),
        "library versions": ", ".join(map(str, report.library_versions)),
        "first episode": report.started,
        "last episode": report.ended,
    }
    known = {"benchmark", "model"}
    rows |= {
        label_name(str(name)): value if isinstance(value, str) else json.dumps(value)
        for name, value in report.settings.items()
        if name not in known
    }
    return Table(
        title="Settings",
        columns=columns("setting", "value"),
        rows=tuple((shown(name, _LONGEST), shown(value)) for name, value in rows.items() if value),
    )


def left_out_table(report: EvaluationReport) -> Table:
    """What the source holds beside the tasks."""
    return Table(
        title="Left out",
        columns=columns("why", "rows>", "where"),
        rows=tuple(
            (shown(one.reason), whole(one.count), _where(one.where, one.count))
            for one in report.left_out
        ),
    )


def _where(places: Sequence[str], count: int) -> str:
    told = ", ".join(shown(place, _LONGEST) for place in places)
    return f"{told} and {count - len(places):,} more" if count > len(places) else told


def labels_text(labels: Mapping[FailureLabel, int]) -> str:
    """The most frequent labels with their counts."""
    named = [f"{label_name(label)} {count:,}" for label, count in labels.items()]
    more = len(named) - _LABELS_NAMED
    return ", ".join(named[:_LABELS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _rest(count: int, noun: str) -> str:
    return f" The worst {WORST} of {count:,} {noun}." if count > WORST else ""


def detail_tables(report: EvaluationReport) -> Iterable[Table]:
    """Every table after that of the categories, without those that have no rows."""
    tables = (
        pass_table(report),
        metric_table(report),
        label_table(report),
        finding_table(report),
        label_category_table(report),
        tool_table(report),
        parameter_table(report),
        confusion_table(report),
        recovery_table(report),
        refine_table(report),
        spread_table(report),
        stop_table(report),
        incident_table(report),
        settings_table(report),
        left_out_table(report),
    )
    return (table for table in tables if table.rows)


MOST_TASKS = 20
_NAME = 60
_HEADING = 24


def comparison_table(comparison: Comparison) -> Table:
    """Accuracy of both runs by category, with the difference."""
    rows = [_row(shown(group.name, _NAME), group) for group in comparison.categories]
    if len(rows) != 1:
        rows.append(_row("all", comparison.total))
    return Table(
        title="Accuracy on the tasks of both",
        columns=(
            ("category", "left"),
            ("tasks", "right"),
            (shown(comparison.a, _HEADING) or "a", "right"),
            (shown(comparison.b, _HEADING) or "b", "right"),
            ("difference", "right"),
            ("95% interval", "right"),
            ("gained", "right"),
            ("lost", "right"),
            ("p", "right"),
            ("tokens", "right"),
        ),
        rows=tuple(rows),
        note="Difference: in percentage points; its interval is that of a paired bootstrap over "
        f"tasks, below {FEWEST_DRAWN} tasks that of Agresti and Min. p: McNemar's mid-p, for "
        "categories adjusted for their number (Holm). Tokens: of the second run for each of the "
        "first.",
    )


def _row(name: str, group: GroupComparison) -> tuple[str, ...]:
    difference = group.difference
    return (
        name,
        whole(group.tasks),
        percent(group.a),
        percent(group.b),
        points(difference.value),
        f"{points(difference.low)} to {points(difference.high)}",
        whole(len(group.gained)),
        whole(len(group.lost)),
        p_text(group.p_adjusted),
        ratio_text(group.tokens_ratio),
    )


def p_text(p_value: float) -> str:
    """A p-value with as many digits as matter."""
    return "<0.001" if p_value < 0.001 else f"{p_value:.3f}"


def ratio_text(ratio: float | None) -> str:
    """A ratio: ``1.62x``; a dash where there is none."""
    return "-" if ratio is None else f"{ratio:.2f}x"


def setting_table(comparison: Comparison) -> Table:
    """Settings in which the runs differ."""
    return Table(
        title="What differs",
        columns=(
            ("setting", "left"),
            (shown(comparison.a, _HEADING) or "a", "left"),
            (shown(comparison.b, _HEADING) or "b", "left"),
        ),
        rows=tuple(
            (shown(one.name, _NAME), one.a or "(not set)", one.b or "(not set)")
            for one in comparison.differences
        ),
    )


def task_table(comparison: Comparison) -> Table:
    """Ids of the tasks that changed, and of those that only one run has."""
    return Table(
        title="Tasks",
        columns=columns("what", "tasks>", "which"),
        rows=tuple(_task_rows(comparison)),
    )


def _task_rows(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    kinds = {
        "gained": comparison.total.gained,
        "lost": comparison.total.lost,
        f"only in {shown(comparison.a, _NAME)}": comparison.only_a,
        f"only in {shown(comparison.b, _NAME)}": comparison.only_b,
    }
    for name, tasks in kinds.items():
        if tasks:
            told = ", ".join(shown(task, _NAME) for task in tasks[:MOST_TASKS])
            more = len(tasks) - MOST_TASKS
            yield name, whole(len(tasks)), f"{told} and {more:,} more" if more > 0 else told


def verdict_line(comparison: Comparison) -> str:
    """The outcome in a sentence."""
    total, difference = comparison.total, comparison.total.difference
    holds_zero = difference.low <= 0 <= difference.high
    a, b = shown(comparison.a, _NAME), shown(comparison.b, _NAME)
    return (
        f"Of {total.tasks:,} tasks that both answered, {a} passes {percent(total.a)} and {b} "
        f"{percent(total.b)}: {points(difference.value)} points. The 95% interval, "
        f"{points(difference.low)} to {points(difference.high)}, "
        f"{'includes' if holds_zero else 'does not include'} zero."
    )
