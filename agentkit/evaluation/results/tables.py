"""Reports and comparisons as tables of text, which Markdown, HTML and the terminal all show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.comparison import Comparison, GroupComparison
from agentkit.evaluation.results.report import EvaluationReport, Example, GroupReport
from agentkit.evaluation.results.statistics import FEWEST_DRAWN
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
"""Rows of the table of tools."""

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
    usage, n = report.total.usage, report.total.attempts
    cached = share(usage.cached_tokens, usage.prompt_tokens)
    read = f"{usage.prompt_tokens / n:,.0f} read" + (f" ({cached} cached)" if cached != "-" else "")
    written = f"{usage.completion_tokens / n:,.0f} written"
    yield "tokens an attempt", whole(usage.total_tokens / n), f"{read}, {written}"
    yield "time an attempt", seconds(report.total.seconds / n), "with all waiting"
    if report.spent.cost_usd is not None:
        yield "cost of the run", dollars(report.spent.cost_usd), "unfinished attempts included"


# --- a report -------------------------------------------------------------------------------------


def report_tables(report: EvaluationReport) -> Mapping[str, tuple[Table, ...]]:
    """The tables that have rows, by the part of the report that they belong to."""
    parts = {
        "Accuracy": (category_table(report), _pass_table(report), _metric_table(report)),
        "Labels": (_label_table(report),),
        "Tools": (tool_table(report),),
        "Run": (
            _incident_table(report),
            _settings_table(report),
            _left_out_table(report),
        ),
    }
    filled = {name: tuple(one for one in tables if one.rows) for name, tables in parts.items()}
    return {name: tables for name, tables in filled.items() if tables}


def _groups(report: EvaluationReport) -> list[tuple[str, GroupReport]]:
    """The categories and, unless there is just one, all of them together."""
    groups = [(shown(group.name, _LONGEST), group) for group in report.categories]
    return groups if len(groups) == 1 else [*groups, ("all", report.total)]


def category_table(report: EvaluationReport) -> Table:
    """Accuracy by category, and all categories together."""
    headings = ("category", "accuracy>", "95% interval>", "passed>", "attempts>", "mean score>")
    return _table(
        "Accuracy by category",
        (*headings, "tokens>", "time>"),
        (_category_row(name, group) for name, group in _groups(report)),
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
        seconds(group.seconds / n),
    )


def _pass_table(report: EvaluationReport) -> Table:
    rows = (
        (str(one.k), whole(one.tasks), percent(one.any_passes), percent(one.all_pass))
        for one in report.pass_at
    )
    note = "pass@k: at least one of k attempts passes; pass^k: all of them do."
    return _table("Repeated attempts", ("k>", "tasks>", "pass@k>", "pass^k>"), rows, note)


def _metric_table(report: EvaluationReport) -> Table:
    names = tuple(report.total.metrics)
    rows = (
        (title, *(f"{group.metrics[one]:.3f}" if one in group.metrics else "-" for one in names))
        for title, group in (_groups(report) if names else ())
    )
    return _table(
        "Metrics of the verdicts",
        ("category", *(f"{shown(label_name(name), _LONGEST)}>" for name in names)),
        rows,
        "Means over the attempts that have the metric.",
    )


def _label_table(report: EvaluationReport) -> Table:
    turns = report.total.turn_labels
    count = sum(turns.values())
    rows = (
        (label_name(label), whole(turns[label]), share(turns[label], count), words)
        for label, words in LABELS.items()
        if label in turns
    )
    return _table("Labels", ("label", "turns>", "share>", "meaning"), rows)


def tool_table(report: EvaluationReport) -> Table:
    """The worst tools."""
    rows = (
        (
            shown(one.tool, _LONGEST),
            whole(one.episodes),
            whole(one.faulty),
            share(one.faulty, one.episodes),
            f"{one.share.low:.0%}",
            _labels_text(one.labels),
        )
        for one in report.tools[:WORST]
    )
    once = report.tools and all(one.episodes == 1 for one in report.tools)
    said = "Each was seen in one episode only, so their order says nothing." if once else ""
    return _table(
        "Worst tools",
        ("tool", "episodes>", "faulty>", "share>", "at least>", "labels"),
        rows,
        "Episodes: in which the tool was called or should have been. Faulty: a label blames it. At "
        f"least: the lower end of the share's 95% interval. {said}".rstrip()
        + _rest(len(report.tools), "tools"),
    )


def _incident_table(report: EvaluationReport) -> Table:
    rows = (
        (
            label_name(shown(one.what, _LONGEST)),
            whole(one.count),
            shown(one.task, _LONGEST),
            one.message,
        )
        for one in report.incidents
    )
    note = (
        "Errors of the model count as the verdict says; faults of the reference or the verifier "
        "count nowhere."
    )
    return _table("Errors and faults", ("what", "episodes>", "task", "message"), rows, note)


def _settings_table(report: EvaluationReport) -> Table:
    rows = {
        "benchmark": report.benchmark,
        "model": ", ".join(report.models),
        "library versions": ", ".join(map(str, report.library_versions)),
        "first episode": report.started,
    }
    rows |= {
        label_name(str(name)): value if isinstance(value, str) else json.dumps(value)
        for name, value in report.settings.items()
        if name not in {"benchmark", "model"}
    }
    cells = ((shown(name, _LONGEST), shown(value)) for name, value in rows.items() if value)
    return _table("Settings", ("setting", "value"), cells if report.models else ())


def _left_out_table(report: EvaluationReport) -> Table:
    rows = (
        (shown(one.reason), whole(one.count), _listed(one.where, one.count, _LONGEST))
        for one in report.left_out
    )
    return _table("Left out", ("why", "rows>", "where"), rows)


def _listed(names: Sequence[str], count: int, longest: int) -> str:
    text = ", ".join(shown(name, longest) for name in names)
    return f"{text} and {count - len(names):,} more" if count > len(names) else text


def _labels_text(labels: Mapping[FailureLabel, int]) -> str:
    """The most frequent labels with their counts."""
    named = [f"{label_name(label)} {count:,}" for label, count in labels.items()]
    more = len(named) - _LABELS_NAMED
    return ", ".join(named[:_LABELS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _rest(count: int, noun: str) -> str:
    return f" The worst {WORST} of {count:,} {noun}." if count > WORST else ""


def example_lines(example: Example) -> Iterator[tuple[str, str]]:
    """What an example tells, as names and texts; a text that is code has the name ``called``."""
    where = f"step {example.turn + 1}"
    where += f" of user turn {example.user_turn + 1}" if example.user_turn else ""
    where += f", attempt {example.attempt + 1}" if example.attempt else ""
    lines = [
        ("task", f"{shown(example.task, 120)} ({shown(example.category, 80)}), {where}"),
        ("asked", example.request),
        *(("called", call) for call in example.calls),
        ("said", example.answer),
        *(("found", finding) for finding in example.findings),
        ("labels", ", ".join(map(label_name, example.labels)) if example.labels[1:] else ""),
        ("hint", example.hint),
        ("episode", shown(example.episode_id, 80)),
    ]
    yield from ((name, text) for name, text in lines if text)


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


def comparison_tables(comparison: Comparison) -> tuple[Table, ...]:
    """The tables of a comparison that have rows; accuracy first."""
    tables = (comparison_table(comparison), _setting_table(comparison), _task_table(comparison))
    return tuple(table for table in tables if table.rows)


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
    difference, p, ratio = group.difference, group.p_adjusted, group.tokens_ratio
    return (
        name,
        whole(group.tasks),
        percent(group.a),
        percent(group.b),
        points(difference.value),
        f"{points(difference.low)} to {points(difference.high)}",
        whole(len(group.gained)),
        whole(len(group.lost)),
        "<0.001" if p < 0.001 else f"{p:.3f}",
        "-" if ratio is None else f"{ratio:.2f}x",
    )


def _setting_table(comparison: Comparison) -> Table:
    rows = (
        (shown(name, _NAME), a or "(not set)", b or "(not set)")
        for name, (a, b) in comparison.differences.items()
    )
    headings: list[tuple[str, Align]] = [("setting", "left")]
    headings += ((run, "left") for run in _runs(comparison))
    return Table(title="What differs", columns=tuple(headings), rows=tuple(rows))


def _task_table(comparison: Comparison) -> Table:
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
