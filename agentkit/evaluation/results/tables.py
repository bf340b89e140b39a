"""Reports and comparisons as tables of text, which Markdown, HTML and the terminal all show."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agentkit.evaluation.results.report import (
    FEWEST_DRAWN,
    Comparison,
    EvaluationReport,
    Example,
    GroupComparison,
    GroupReport,
)
from agentkit.evaluation.results.texts import (
    LABELS,
    dollars,
    interval,
    label_name,
    percent,
    points,
    seconds,
    share,
    shown,
    whole,
)
from agentkit.tools.error_messages import plural

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


# --- before the tables ----------------------------------------------------------------------------


def notes(report: EvaluationReport) -> tuple[str, ...]:
    """Caveats to read before the numbers, as sentences; empty for a sound, complete run."""
    total = report.total
    broken = ", ".join(plural(n, label_name(fault)) for fault, n in total.faults.items())
    sentences = {
        f"Finished: {total.finished:,} of {total.planned or 0:,} planned attempts.": (
            report.is_short
        ),
        f"Begun and not finished: {plural(total.unfinished, 'attempt')}.": total.unfinished,
        f"In no number, because the reference or the verifier is broken: {broken}.": broken,
        f"Nobody judged {plural(total.unjudged, 'attempt')}; in no number.": total.unjudged,
        f"The model failed in {plural(total.errors, 'attempt')}; these count.": total.errors,
        f"Settings that are not the same in all episodes: {', '.join(report.mixed)}.": report.mixed,
    }
    return tuple(sentence for sentence, holds in sentences.items() if holds)


def headline(report: EvaluationReport) -> tuple[tuple[str, str, str], ...]:
    """The few numbers that matter: name, value, what stands beside it."""
    total, macro, n = report.total, report.macro, report.total.attempts
    if total.accuracy is None:
        return (("accuracy", "-", "no attempt counts"),)
    passed = f"{total.passed:,} of {n:,}, {interval(total.accuracy)}"
    lines = [("accuracy", percent(total.accuracy.value), passed)]
    if macro is not None and len(report.categories) > 1:
        more = f"{len(report.categories):,} categories, {interval(macro)}"
        lines.append(("mean over categories", percent(macro.value), more))
    lines.append(("mean score", f"{total.score:.3f}", "from 0 to 1"))
    usage = total.usage
    cached = f" ({share(usage.cached_tokens, usage.prompt_tokens)} cached)"
    read = f"{usage.prompt_tokens / n:,.0f} read{cached if usage.cached_tokens else ''}"
    tokens = f"{read}, {usage.completion_tokens / n:,.0f} written"
    lines.append(("tokens an attempt", whole(usage.total_tokens / n), tokens))
    lines.append(("time an attempt", seconds(total.seconds / n), "with all waiting"))
    if report.spent.cost_usd is not None:
        cost = dollars(report.spent.cost_usd)
        lines.append(("cost of the run", cost, "unfinished attempts included"))
    return tuple(lines)


# --- a report -------------------------------------------------------------------------------------


def report_tables(report: EvaluationReport) -> Mapping[str, tuple[Table, ...]]:
    """The tables that have rows, by the part of the report that they belong to."""
    parts = {
        "Accuracy": (_category_table(report), _pass_table(report), _metric_table(report)),
        "Labels": (_label_table(report),),
        "Tools": (_tool_table(report),),
        "Run": (_incident_table(report), _settings_table(report), _left_out_table(report)),
    }
    filled = {name: tuple(one for one in tables if one.rows) for name, tables in parts.items()}
    return {name: tables for name, tables in filled.items() if tables}


def _groups(report: EvaluationReport) -> list[tuple[str, GroupReport]]:
    """The categories and, unless there is just one, all of them together."""
    groups = [(shown(group.name, _LONGEST), group) for group in report.categories]
    return groups if len(groups) == 1 else [*groups, ("all", report.total)]


def _category_table(report: EvaluationReport) -> Table:
    headings = ("category", "accuracy>", "95% interval>", "passed>", "attempts>", "mean score>")
    return _table(
        "Accuracy by category",
        (*headings, "tokens>", "time>"),
        (_category_row(name, group) for name, group in _groups(report)),
        "Tokens and time are means an attempt.",
    )


def _category_row(name: str, group: GroupReport) -> tuple[str, ...]:
    n = group.attempts
    is_whole = group.planned is None or group.planned == n
    attempts = whole(n) if is_whole else f"{n:,} of {group.planned:,}"
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
    headings = ("category", *(f"{shown(label_name(name), _LONGEST)}>" for name in names))
    note = "Means over the attempts that have the metric."
    return _table("Metrics of the verdicts", headings, rows, note)


def _label_table(report: EvaluationReport) -> Table:
    turns = report.total.turn_labels
    count = sum(turns.values())
    rows = (
        (label_name(label), whole(turns[label]), share(turns[label], count), words)
        for label, words in LABELS.items()
        if label in turns
    )
    return _table("Labels", ("label", "turns>", "share>", "meaning"), rows)


def _tool_table(report: EvaluationReport) -> Table:
    rows = []
    for one in report.tools[:WORST]:
        named = [f"{label_name(label)} {count:,}" for label, count in one.labels.items()]
        rows.append(
            (
                shown(one.tool, _LONGEST),
                whole(one.episodes),
                whole(one.faulty),
                share(one.faulty, one.episodes),
                f"{one.share.low:.0%}",
                _listed(named[:_LABELS_NAMED], len(named)),
            )
        )
    return _table(
        "Worst tools",
        ("tool", "episodes>", "faulty>", "share>", "at least>", "labels"),
        rows,
        "Episodes: in which the tool was called or should have been. Faulty: a label blames it. At "
        f"least: the lower end of the share's 95% interval. {len(rows):,} of "
        f"{plural(len(report.tools), 'tool')}.",
    )


def _incident_table(report: EvaluationReport) -> Table:
    rows = (
        (label_name(what), whole(one.count), shown(one.task, _LONGEST), one.message)
        for one in report.incidents
        for what in (shown(one.what, _LONGEST),)
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
        (shown(one.reason), whole(one.count), _listed(one.where, one.count))
        for one in report.left_out
    )
    return _table("Left out", ("why", "rows>", "where"), rows)


def _listed(names: Sequence[str], count: int) -> str:
    text = ", ".join(shown(name, _LONGEST) for name in names)
    return f"{text} and {count - len(names):,} more" if count > len(names) else text


def example_lines(example: Example) -> Iterator[tuple[str, str]]:
    """An example as names and texts; code has the name ``called``."""
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
    runs = tuple(shown(one, _HEADING) or "-" for one in (comparison.a, comparison.b))
    groups = [(shown(group.name, _NAME), group) for group in comparison.categories]
    if len(groups) != 1:
        groups.append(("all", comparison.total))
    headings = ("category", "tasks>", *(f"{run}>" for run in runs), "difference>", "95% interval>")
    accuracy = _table(
        "Accuracy on the tasks of both",
        (*headings, "gained>", "lost>", "p>", "tokens>"),
        (_comparison_row(name, group) for name, group in groups),
        "Difference: in percentage points; its interval is that of a paired bootstrap over "
        f"tasks, below {FEWEST_DRAWN} tasks that of Agresti and Min. p: McNemar's mid-p, for "
        "categories adjusted for their number (Holm). Tokens: of the second run for each of the "
        "first.",
    )
    differs = (
        (shown(name, _NAME), a or "(not set)", b or "(not set)")
        for name, (a, b) in comparison.differences.items()
    )
    kinds = {
        "gained": comparison.total.gained,
        "lost": comparison.total.lost,
        f"only in {shown(comparison.a, _NAME)}": comparison.only_a,
        f"only in {shown(comparison.b, _NAME)}": comparison.only_b,
    }
    tasks = (
        (name, whole(len(found)), _listed(found[:MOST_TASKS], len(found)))
        for name, found in kinds.items()
        if found
    )
    tables = (
        accuracy,
        _table("What differs", ("setting", *runs), differs),
        _table("Tasks", ("what", "tasks>", "which"), tasks),
    )
    return tuple(table for table in tables if table.rows)


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
