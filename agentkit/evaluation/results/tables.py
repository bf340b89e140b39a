"""Reports and comparisons as tables of text, which Markdown, HTML and the terminal all show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

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

WORST = 25
"""Rows of the tables of tools, parameters and mix-ups."""

MOST_TASKS = 20
_LONGEST = 80
_LABELS_NAMED = 3
_NAME, _HEADING = 60, 24

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


def _table(
    title: str, headings: Sequence[str], rows: Iterable[tuple[str, ...]], note: str = ""
) -> Table:
    return Table(title=title, columns=columns(*headings), rows=tuple(rows), note=note)


# --- what stands before the tables ----------------------------------------------------------------


def notes(report: EvaluationReport) -> tuple[str, ...]:
    """What a reader has to know before the numbers, in sentences; empty for a sound, whole run."""
    total = report.total
    broken = ", ".join(many(n, label_name(fault)) for fault, n in total.faults.items())
    is_short = report.planned is not None and report.finished < report.planned
    sentences = {
        f"Finished: {report.finished:,} of {report.planned or 0:,} planned attempts.": is_short,
        f"Begun and not finished: {many(total.unfinished, 'attempt')}.": total.unfinished,
        f"In no number, because the reference or the verifier is broken: {broken}.": broken,
        f"In no number, because nobody judged: {many(total.unjudged, 'attempt')}.": total.unjudged,
        f"The model failed in {many(total.errors, 'attempt')}; these count.": total.errors,
        f"Settings that are not the same in all episodes: {', '.join(report.mixed)}.": report.mixed,
        f"In no number, because it repeats another: {many(report.repeated, 'attempt')}.": (
            report.repeated
        ),
        f"In no number, because no task is named: {many(report.strangers, 'episode')}.": (
            report.strangers
        ),
        f"Judged and not diagnosed: {many(report.undiagnosed, 'episode')}.": report.undiagnosed,
    }
    return tuple(sentence for sentence, holds in sentences.items() if holds)


def headline(report: EvaluationReport) -> tuple[tuple[str, str, str], ...]:
    """The few numbers that matter: name, value, what stands beside it."""
    total, macro = report.total, report.macro
    lines = [("accuracy", "-", "no attempt counts")]
    if total.accuracy is not None:
        passed = f"{total.passed:,} of {total.attempts:,}, {interval(total.accuracy)}"
        lines = [("accuracy", percent(total.accuracy.value), passed)]
    if macro is not None and len(report.categories) > 1:
        more = f"{len(report.categories):,} categories, {interval(macro)}"
        lines.append(("mean over categories", percent(macro.value), more))
    lines.append(("mean score", f"{total.score:.3f}", "from 0 to 1"))
    return (*lines, *(_costs(report) if total.attempts else ()))


def _costs(report: EvaluationReport) -> Iterator[tuple[str, str, str]]:
    usage, time, n = report.total.usage, report.total.time, report.total.attempts
    cached = share(usage.cached_tokens, usage.prompt_tokens)
    read = f"{usage.prompt_tokens / n:,.0f} read" + (f" ({cached} cached)" if cached != "-" else "")
    written = f"{usage.completion_tokens / n:,.0f} written"
    yield "tokens an attempt", whole(usage.total_tokens / n), f"{read}, {written}"
    overhead = f"{seconds(time.overhead_seconds / n)} of it agentkit overhead"
    yield "time an attempt", seconds(time.seconds / n), overhead
    if report.spent.cost_usd is not None:
        yield "cost of the run", dollars(report.spent.cost_usd), "unfinished attempts included"


# --- a report -------------------------------------------------------------------------------------


def detail_tables(report: EvaluationReport) -> Iterable[Table]:
    """Every table after that of the categories, without those that have no rows."""
    makers = (
        *(pass_table, metric_table, label_table, finding_table, label_category_table, tool_table),
        *(parameter_table, confusion_table, recovery_table, refine_table, spread_table),
        *(stop_table, incident_table, settings_table, left_out_table),
    )
    return (table for table in (maker(report) for maker in makers) if table.rows)


def _groups(report: EvaluationReport) -> list[tuple[str, GroupReport]]:
    """The categories and, unless there is just one, all of them together."""
    groups = [(shown(group.name, _LONGEST), group) for group in report.categories]
    return groups if len(groups) == 1 else [*groups, ("all", report.total)]


def category_table(report: EvaluationReport) -> Table:
    """Accuracy by category, and all categories together."""
    headings = ("category", "accuracy>", "95% interval>", "passed>", "attempts>", "mean score>")
    rows = (_category_row(name, group) for name, group in _groups(report))
    return _table(
        "Accuracy by category",
        (*headings, "tokens>", "time>"),
        rows,
        "Tokens and time are means an attempt.",
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
    rows = (
        (str(one.k), whole(one.tasks), percent(one.any_passes), percent(one.all_pass))
        for one in report.pass_at
    )
    note = "pass@k: at least one of k attempts passes; pass^k: all of them do."
    return _table("Repeated attempts", ("k>", "tasks>", "pass@k>", "pass^k>"), rows, note)


def metric_table(report: EvaluationReport) -> Table:
    """Means of the verdicts' further metrics, by category and overall."""
    names = [one.name for one in report.total.metrics]
    means = [
        (title, {one.name: f"{one.mean:.3f}" for one in group.metrics})
        for title, group in (_groups(report) if names else ())
    ]
    return _table(
        "Metrics of the verdicts",
        ("category", *(f"{shown(label_name(name), _LONGEST)}>" for name in names)),
        ((title, *(own.get(name, "-") for name in names)) for title, own in means),
        "Means over the attempts that have the metric.",
    )


def label_table(report: EvaluationReport) -> Table:
    """How often each label is the dominant one of a turn, and of an episode."""
    turns, episodes = report.total.turn_labels, report.total.episode_labels
    count = sum(turns.values())
    rows = (
        (
            label_name(label),
            whole(turns.get(label, 0)),
            share(turns.get(label, 0), count),
            whole(episodes.get(label, 0)),
            LABELS[label],
        )
        for label in used_labels(report)
    )
    return _table("Labels", ("label", "turns>", "share>", "episodes>", "meaning"), rows)


def used_labels(report: EvaluationReport) -> tuple[FailureLabel, ...]:
    """The labels that occur, the gravest first."""
    found = report.total.turn_labels.keys() | report.total.episode_labels.keys()
    return tuple(label for label in LABELS if label in found)


def label_category_table(report: EvaluationReport) -> Table:
    """How often each label is the dominant one of a turn, by category."""
    labels = used_labels(report)
    rows = (
        (shown(group.name, _LONGEST), *(whole(group.turn_labels.get(one, 0)) for one in labels))
        for group in report.categories
    )
    return _table(
        "Labels by category",
        ("category", *(f"{label_name(label)}>" for label in labels)),
        rows,
        "Turns of the model, by their dominant label.",
    )


def finding_table(report: EvaluationReport) -> Table:
    """How often the verdicts' evidence is of each kind."""
    headings = ("finding", "times>", "share>")
    return _table("What the verdicts found", headings, _counted(report.total.findings.items()))


def stop_table(report: EvaluationReport) -> Table:
    """Why episodes ended."""
    headings = ("reason", "episodes>", "share>")
    return _table("Why episodes ended", headings, _counted(report.total.stop_reasons.items()))


def _counted(counts: Iterable[tuple[str, int]]) -> Iterator[tuple[str, ...]]:
    pairs = list(counts)
    of = sum(n for _, n in pairs)
    yield from ((label_name(name), whole(n), share(n, of)) for name, n in pairs)


def tool_table(report: EvaluationReport) -> Table:
    """The worst tools."""
    rows = (
        (
            shown(one.tool, _LONGEST),
            whole(one.episodes),
            whole(one.faulty),
            share(one.faulty, one.episodes),
            f"{one.share.low:.0%}",
            labels_text(one.labels),
        )
        for one in report.tools[:WORST]
    )
    note = (
        "Episodes: in which the tool was called or should have been. Faulty: a label blames it. At "
        f"least: the lower end of the share's 95% interval. {seen_once(report)}"
    )
    return _table(
        "Worst tools",
        ("tool", "episodes>", "faulty>", "share>", "at least>", "labels"),
        rows,
        note.rstrip() + _rest(len(report.tools), "tools"),
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
    rows = (
        (
            shown(one.tool, _LONGEST),
            shown(one.parameter, _LONGEST),
            whole(one.faults),
            whole(one.calls),
            labels_text(one.labels),
        )
        for one in report.parameters[:WORST]
    )
    headings = ("tool", "parameter", "faults>", "calls of the tool>", "labels")
    note = _rest(len(report.parameters), "parameters").strip()
    return _table("Worst parameters", headings, rows, note)


def confusion_table(report: EvaluationReport) -> Table:
    """Tools that were called in place of others, in addition, or not at all."""
    rows = (
        (
            shown(one.expected, _LONGEST) or "(no call)",
            shown(one.called, _LONGEST) or "(no call)",
            whole(one.count),
        )
        for one in report.confusions[:WORST]
    )
    headings = ("expected", "called", "count>")
    note = _rest(len(report.confusions), "pairs").strip()
    return _table("Expected and called tools", headings, rows, note)


def recovery_table(report: EvaluationReport) -> Table:
    """What became of failed calls."""
    of = sum(one.count for one in report.recoveries)
    rows = (
        (label_name(one.kind), label_name(one.outcome), whole(one.count), share(one.count, of))
        for one in report.recoveries
    )
    headings = ("failure", "what followed", "count>", "share>")
    return _table("Recovery from failed calls", headings, rows)


def refine_table(report: EvaluationReport) -> Table:
    """What refinement did, and what it cost."""
    refine, total = report.total.refine, report.total
    tokens, n = refine.usage.total_tokens, max(1, total.attempts)
    rows = (
        ("turns refined", f"{refine.turns:,} of {total.turns:,}"),
        ("mean rounds after the direct answer", f"{refine.iterations:.2f}"),
        ("two answers in a row agreed", percent(refine.converged)),
        ("extra tokens an attempt", whole(tokens / n)),
        ("share of all tokens", share(tokens, total.usage.total_tokens)),
    )
    return _table("Refinement", ("what", "value>"), rows if refine.turns else ())


def spread_table(report: EvaluationReport) -> Table:
    """How tokens and time are spread over the attempts."""

    def row(name: str, one: Distribution, text: Callable[[float], str]) -> tuple[str, ...]:
        numbers = (one.mean, one.minimum, one.median, one.p90, one.maximum)
        return (name, *map(text, numbers))

    rows = (row("tokens", report.tokens, whole), row("time", report.seconds, seconds))
    headings = ("an attempt", "mean>", "least>", "median>", "9 in 10>", "most>")
    return _table("Tokens and time", headings, rows if report.total.attempts else ())


def incident_table(report: EvaluationReport) -> Table:
    """Errors of the model, broken references and verifiers."""
    rows = (
        (
            label_name(shown(one.what, _LONGEST)),
            whole(one.count),
            shown(one.task, _LONGEST),
            one.message,
        )
        for one in (*report.errors, *report.faults)
    )
    note = (
        "Errors of the model count as the verdict says; faults of the reference or the verifier "
        "count nowhere."
    )
    return _table("Errors and faults", ("what", "episodes>", "task", "message"), rows, note)


def settings_table(report: EvaluationReport) -> Table:
    """How the questions were asked."""
    rows = {
        "benchmark": report.benchmark,
        "model": ", ".join(report.models),
        "library versions": ", ".join(map(str, report.library_versions)),
        "first episode": report.started,
        "last episode": report.ended,
    }
    rows |= {
        label_name(str(name)): value if isinstance(value, str) else json.dumps(value)
        for name, value in report.settings.items()
        if name not in {"benchmark", "model"}
    }
    cells = ((shown(name, _LONGEST), shown(value)) for name, value in rows.items() if value)
    return _table("Settings", ("setting", "value"), cells)


def left_out_table(report: EvaluationReport) -> Table:
    """What the source holds beside the tasks."""
    rows = (
        (shown(one.reason), whole(one.count), _listed(one.where, one.count, _LONGEST))
        for one in report.left_out
    )
    return _table("Left out", ("why", "rows>", "where"), rows)


def _listed(names: Sequence[str], count: int, longest: int) -> str:
    text = ", ".join(shown(name, longest) for name in names)
    return f"{text} and {count - len(names):,} more" if count > len(names) else text


def labels_text(labels: Mapping[FailureLabel, int]) -> str:
    """The most frequent labels with their counts."""
    named = [f"{label_name(label)} {count:,}" for label, count in labels.items()]
    more = len(named) - _LABELS_NAMED
    return ", ".join(named[:_LABELS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _rest(count: int, noun: str) -> str:
    return f" The worst {WORST} of {count:,} {noun}." if count > WORST else ""


# --- a comparison ---------------------------------------------------------------------------------


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


def comparison_table(comparison: Comparison) -> Table:
    """Accuracy of both runs by category, with the difference."""
    rows = [_comparison_row(shown(group.name, _NAME), group) for group in comparison.categories]
    if len(rows) != 1:
        rows.append(_comparison_row("all", comparison.total))
    a, b = _runs(comparison)
    headings = ("category", "tasks>", f"{a}>", f"{b}>", "difference>", "95% interval>")
    return _table(
        "Accuracy on the tasks of both",
        (*headings, "gained>", "lost>", "p>", "tokens>"),
        rows,
        "Difference: in percentage points; its interval is that of a paired bootstrap over "
        f"tasks, below {FEWEST_DRAWN} tasks that of Agresti and Min. p: McNemar's mid-p, for "
        "categories adjusted for their number (Holm). Tokens: of the second run for each of the "
        "first.",
    )


def _runs(comparison: Comparison) -> tuple[str, str]:
    return shown(comparison.a, _HEADING) or "a", shown(comparison.b, _HEADING) or "b"


def _comparison_row(name: str, group: GroupComparison) -> tuple[str, ...]:
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
    rows = (
        (shown(one.name, _NAME), one.a or "(not set)", one.b or "(not set)")
        for one in comparison.differences
    )
    a, b = _runs(comparison)
    headings: tuple[tuple[str, Align], ...] = (("setting", "left"), (a, "left"), (b, "left"))
    return Table(title="What differs", columns=headings, rows=tuple(rows))


def task_table(comparison: Comparison) -> Table:
    """Ids of the tasks that changed, and of those that only one run has."""
    kinds = {
        "gained": comparison.total.gained,
        "lost": comparison.total.lost,
        f"only in {shown(comparison.a, _NAME)}": comparison.only_a,
        f"only in {shown(comparison.b, _NAME)}": comparison.only_b,
    }
    rows = (
        (name, whole(len(tasks)), _listed(tasks[:MOST_TASKS], len(tasks), _NAME))
        for name, tasks in kinds.items()
        if tasks
    )
    return _table("Tasks", ("what", "tasks>", "which"), rows)
