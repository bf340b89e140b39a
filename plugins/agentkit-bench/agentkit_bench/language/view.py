"""The language report on the terminal."""

from __future__ import annotations

import click

from agentkit.cli.output import Column, print_table, say
from agentkit.evaluation.results.tables import Table
from agentkit.evaluation.results.texts import shown, visible
from agentkit.evolution.language.differences import marked, word_diff
from agentkit.evolution.language.records import FieldLanguage, LanguageReport, ToolLanguage
from agentkit_bench.language.tables import (
    headline,
    notes,
    revision_table,
    round_table,
    tool_table,
    whole_table,
)

_MOST = 10
_LONGEST = 4_000


def print_language(report: LanguageReport, *, in_words: bool) -> None:
    """Print a report as tables; the methods behind the numbers go to stderr.

    Args:
        report: The report.
        in_words: Whether to show the revisions of each tool, and what changed word by word.
    """
    if not report.tools:
        say("no tool has any revision")
        return
    for note in notes(report):
        say(note)
    for name, value, more in headline(report):
        click.echo(f"{name:<16}{value:>8}  {more}")
    _print(whole_table(report))
    _print(round_table(report))
    _print(tool_table(report))
    if in_words:
        for tool in report.tools:
            _print_tool(tool)


def _print_tool(tool: ToolLanguage) -> None:
    click.echo(f"\n{shown(tool.tool_name, 100)}")
    _print(revision_table(tool), most=None)
    for field in tool.fields:
        click.echo(f"\n{shown(field.field, 100)}, first against last")
        click.echo(_in_words(field))


def _in_words(field: FieldLanguage) -> str:
    text = visible(marked(word_diff(field.before, field.after)))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _print(table: Table, *, most: int | None = _MOST) -> None:
    """A table under its title; nothing when it has no rows."""
    if not table.rows:
        return
    columns = [
        Column(title=title, align=align, fit="fold" if align == "left" else "keep")
        for title, align in table.columns
    ]
    click.echo(f"\n{table.title}")
    print_table(columns, table.rows[:most])
    if most is not None and len(table.rows) > most:
        say(f"{most:,} of {len(table.rows):,} shown; the report in HTML or Markdown has more")
