"""Evaluation reports and comparisons on the terminal."""

from __future__ import annotations

from dataclasses import replace

import click

from agentkit.cli.output import Column, print_table, print_text, say
from agentkit.evaluation.results.comparison import Comparison
from agentkit.evaluation.results.comparison_tables import (
    comparison_table,
    setting_table,
    verdict_line,
)
from agentkit.evaluation.results.records import EvaluationReport
from agentkit.evaluation.results.tables import (
    Align,
    Table,
    category_table,
    finding_table,
    headline,
    incident_table,
    label_table,
    metric_table,
    parameter_table,
    pass_table,
    recovery_table,
    refine_table,
    seen_once,
    tool_table,
)
from agentkit.evaluation.results.texts import shown
from agentkit.evaluation.results.wording import many, notes

_WORST = 8
_WIDE = frozenset({"mean score", "meaning", "gained", "lost"})
"""Columns that a terminal has no room for."""


def print_evaluation(report: EvaluationReport) -> None:
    """Print a report as tables; what spoils it goes to stderr.

    Args:
        report: The report.
    """
    for note in notes(report):
        say(note)
    models = ", ".join(report.models)
    print_text(shown(", ".join(filter(None, (report.benchmark, models)))))
    click.echo()
    for name, value, more in headline(report):
        click.echo(f"{name:<22}{value:>8}  {more}")
    tables = (
        category_table(report),
        pass_table(report),
        metric_table(report),
        label_table(report),
        finding_table(report),
        recovery_table(report),
        refine_table(report),
    )
    for table in tables:
        _print(table)
    _print_worst(report)
    _print(incident_table(report), most=_WORST)


def _print_worst(report: EvaluationReport) -> None:
    """Tools and parameters that came up more than once: of the others none is worse."""
    tools = [tool for tool in report.tools if tool.episodes > 1]
    parameters = [one for one in report.parameters if one.calls > 1]
    again = replace(report, tools=tuple(tools), parameters=tuple(parameters))
    _print(tool_table(again), most=_WORST, of=len(tools))
    if once := len(report.tools) - len(tools):
        told = f"{many(once, 'more tool')}: seen in one episode each, so none is worse than another"
        click.echo(told if tools else f"\nWorst tools\n{seen_once(report)}")
    _print(parameter_table(again), most=_WORST, of=len(parameters))


def print_comparison(comparison: Comparison) -> None:
    """Print a comparison as tables; its warnings go to stderr.

    Args:
        comparison: The comparison.
    """
    for warning in comparison.warnings:
        say(warning)
    print_text(verdict_line(comparison))
    total = comparison.total
    click.echo(f"{many(len(total.gained), 'task')} gained, {len(total.lost):,} lost")
    runs = [shown(run, 60) for run in (comparison.a, comparison.b)]
    click.echo(f"a is {runs[0]}, b is {runs[1]}")
    table = comparison_table(comparison)
    first, tasks, _, _, _, *rest = table.columns
    short: tuple[tuple[str, Align], ...] = (("a", "right"), ("b", "right"), ("b - a", "right"))
    _print(replace(table, columns=(first, tasks, *short, *rest)))
    _print(setting_table(comparison))


def _print(table: Table, most: int | None = None, of: int = 0) -> None:
    """A table under its title; nothing when it has no rows."""
    if not table.rows:
        return
    kept = [at for at, (title, _) in enumerate(table.columns) if title not in _WIDE]
    columns = [
        Column(title=title, align=align, fit="fold" if align == "left" else "keep")
        for title, align in (table.columns[at] for at in kept)
    ]
    click.echo(f"\n{table.title}")
    print_table(columns, ([row[at] for at in kept] for row in table.rows[:most]))
    if most is not None and len(table.rows) > most:
        count = max(of, len(table.rows))
        say(f"{most:,} of {count:,} shown; the report in HTML or Markdown has more")
