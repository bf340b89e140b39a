"""Evaluation reports and comparisons on the terminal, and what is told beside them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import click

from agentkit.cli.options import typed
from agentkit.cli.output import Column, plural, print_table, print_text, say, say_some
from agentkit.evaluation.held_out import NAME as HELD_OUT
from agentkit.evaluation.loading import is_benchmark_name
from agentkit.evaluation.results.comparison import Comparison
from agentkit.evaluation.results.report import EvaluationReport
from agentkit.evaluation.results.tables import (
    Table,
    comparison_tables,
    headline,
    notes,
    report_tables,
    verdict_line,
)
from agentkit.evaluation.results.texts import many, shown
from agentkit.evaluation.settings import EvaluationProgress, Listener
from agentkit.evaluation.task import Benchmark
from agentkit.library import EpisodeFilter, Store

_WORST = 8
_WIDE = frozenset({"mean score", "meaning", "gained", "lost"})
"""Columns that a terminal has no room for."""

_ELSEWHERE = frozenset({"Settings", "Left out"})
"""Tables of what was said before the run, or beside it."""


def print_evaluation(report: EvaluationReport) -> None:
    """Print a report as tables; what spoils it goes to stderr."""
    for note in notes(report):
        say(note)
    print_text(shown(", ".join(filter(None, (report.benchmark, ", ".join(report.models))))))
    click.echo()
    for name, value, more in headline(report):
        click.echo(f"{name:<22}{value:>8}  {more}")
    for tables in report_tables(report).values():
        for table in tables:
            if table.title not in _ELSEWHERE:
                _print(table, most=None if table.title == "Accuracy by category" else _WORST)


def print_comparison(comparison: Comparison) -> None:
    """Print a comparison as tables; its warnings go to stderr."""
    for warning in comparison.warnings:
        say(warning)
    print_text(verdict_line(comparison))
    total = comparison.total
    click.echo(f"{many(len(total.gained), 'task')} gained, {len(total.lost):,} lost")
    runs = [shown(run, 60) for run in (comparison.a, comparison.b)]
    click.echo(f"a is {runs[0]}, b is {runs[1]}")
    table, *others = comparison_tables(comparison)
    first, tasks, a, b, difference, *rest = table.columns
    named = zip(("a", "b", "b - a"), (a, b, difference), strict=True)
    short = [(title, align) for title, (_, align) in named]
    _print(replace(table, columns=(first, tasks, *short, *rest)))
    for other in others:
        if other.title == "What differs":
            _print(other)


def _print(table: Table, most: int | None = None) -> None:
    """A table under its title."""
    kept = [at for at, (title, _) in enumerate(table.columns) if title not in _WIDE]
    columns = [
        Column(title=title, align=align, fit="fold" if align == "left" else "keep")
        for title, align in (table.columns[at] for at in kept)
    ]
    click.echo(f"\n{table.title}")
    print_table(columns, ([row[at] for at in kept] for row in table.rows[:most]))
    if most is not None and len(table.rows) > most:
        shown_rows = f"{most:,} of {len(table.rows):,} shown"
        say(f"{shown_rows}; the report in HTML or Markdown has more")


def tell_left_out(benchmark: Benchmark, place: str) -> None:
    """Say which rows of a file of tasks are not asked, why, and what to do."""
    rows = benchmark.left_out
    say_some((shown(f"left out: {row}") for row in rows), rest=f" ({len(rows)} in all)")
    if rows and not is_benchmark_name(place):
        say(
            f"{len(rows):,} of {plural(len(benchmark.tasks) + len(rows), 'task')} left out: mend "
            "these lines, or give the code of their tools with --tools or --environment"
        )


def listener(told: Callable[[float, float, str], None]) -> Listener:
    """What tells a person how far an evaluation is."""

    def listen(news: EvaluationProgress) -> None:
        judged = news.passed + news.failed
        parts = {
            f"{news.passed:,} of {judged:,} passed": judged,
            f"{news.resumed:,} were done before": news.resumed,
            f"{news.unfinished:,} not finished, since the model failed": news.unfinished,
            f"the last one with: {shown(news.error, 80)}": news.error,
        }
        told(news.done, news.total, ", ".join(part for part, counts in parts.items() if counts))

    return listen


_MOST_LOOKED_AT = 5_000
"""Episodes among which an earlier run is looked for."""

_CALLING = "agentkit eval --tool-choice required (tool-choice of [eval] and [evolve])"
"""What to do where a model calls no tool by itself."""


def tell_next(report: EvaluationReport, answers: str, earlier: str) -> None:
    """Say what may be typed after an evaluation; ``earlier`` is the run to compare it with."""
    run, store = shlex.quote(report.run), f"--store {shlex.quote(answers)}"
    failed = "" if report.total.passed == report.total.attempts else "--verdict failed "
    learn = "agentkit evolve" if failed else ""
    if report.total.turn_labels.keys() == {"missing_tool_call"}:
        say(f"no tool was called in {plural(report.total.turns, 'turn')}: evolve learns from calls")
        has_to_call = report.settings.get("tool_choice") == "required"
        learn = "agentkit eval --model NAME" if has_to_call else _CALLING
    lines = ["", "Where to look next:", *([f"  {learn}"] if learn else [])]
    lines.append(f"  agentkit episodes list {failed}--label run={run} {store}")
    if earlier:
        kept = typed("answers", "answers")
        lines.append(f"  agentkit eval --compare {shlex.quote(earlier)} {run}{kept}")
    say("\n".join(lines))


def earlier_run(store: Store, report: EvaluationReport) -> str:
    """The last other run of the same tasks; empty where there is none among the newest episodes."""
    same = store.select(EpisodeFilter(labels={"benchmark": report.benchmark}))
    runs = (one.metadata.get("run", "") for one in islice(same, _MOST_LOOKED_AT))
    others = (run for run in runs if run != report.run and not run.startswith(f"{HELD_OUT}:"))
    return next(others, "")
