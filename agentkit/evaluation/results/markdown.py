"""Reports and comparisons as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentkit.evaluation.results.comparison import Comparison
from agentkit.evaluation.results.report import EvaluationReport
from agentkit.evaluation.results.tables import (
    Table,
    comparison_tables,
    example_lines,
    headline,
    notes,
    report_tables,
    verdict_line,
)
from agentkit.evaluation.results.texts import label_name, shown

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$@&]|:(?=//)|(?<=www)\.)")
_SHOWN_A_LABEL = 3


def report_markdown(report: EvaluationReport) -> str:
    """A report as a Markdown page.

    Text of tasks and models is escaped: it shows as it is and makes no markup, link or table.

    Args:
        report: The report.
    """
    lines = [f"# Evaluation {escaped(shown(report.run, 80))}".rstrip(), ""]
    lines += [escaped(shown(report.benchmark)), ""]
    lines += [
        f"* {escaped(name)}: **{escaped(value)}**, {escaped(more)}"
        for name, value, more in headline(report)
    ]
    lines.append("")
    lines += _warned(notes(report))
    for tables in report_tables(report).values():
        for table in tables:
            lines += table_markdown(table)
    lines += _examples(report)
    if report.command:
        lines += ["## How to repeat", "", *fenced(report.command)]
    return "\n".join(lines).rstrip() + "\n"


def comparison_markdown(comparison: Comparison) -> str:
    """A comparison as a Markdown page.

    Args:
        comparison: The comparison.
    """
    names = f"{escaped(shown(comparison.a, 80))} and {escaped(shown(comparison.b, 80))}"
    lines = [f"# Evaluations {names}", "", escaped(shown(comparison.benchmark)), ""]
    lines += [escaped(verdict_line(comparison)), ""]
    lines += _warned(map(shown, comparison.warnings))
    for table in comparison_tables(comparison):
        lines += table_markdown(table)
    return "\n".join(lines).rstrip() + "\n"


def _warned(sentences: Iterable[str]) -> list[str]:
    lines = [f"> * {escaped(sentence)}" for sentence in sentences]
    return [*lines, ""] if lines else []


def table_markdown(table: Table) -> Iterator[str]:
    """The lines of a table under a heading of the second level."""
    yield f"## {escaped(table.title)}"
    yield ""
    if table.note:
        yield escaped(table.note)
        yield ""
    yield _row(escaped(title) for title, _ in table.columns)
    yield _row("---:" if align == "right" else "---" for _, align in table.columns)
    yield from (_row(map(escaped, row)) for row in table.rows)
    yield ""


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _examples(report: EvaluationReport) -> Iterator[str]:
    """The first few examples of each label."""
    seen: dict[str, int] = {}
    for example in report.examples:
        seen[example.label] = seen.get(example.label, 0) + 1
        if seen[example.label] > _SHOWN_A_LABEL:
            continue
        if len(seen) == 1 and seen[example.label] == 1:
            yield from ("## Examples", "")
        blamed = ".".join(filter(None, (example.tool, example.parameter))) or example.task
        yield f"### {escaped(label_name(example.label))}: {escaped(shown(blamed, 120))}"
        yield ""
        for name, text in example_lines(example):
            yield f"* {name}: {_code(text) if name == 'called' else escaped(text)}"
        yield ""


def escaped(text: str) -> str:
    """Text that stands for itself: what Markdown or HTML would read has a backslash before it."""
    return _SPECIAL.sub(r"\\\1", text).replace("\\<", "&lt;").replace("\\&", "&amp;")


def _code(text: str) -> str:
    """Text as code, in a fence of more back ticks than it holds."""
    line = shown(text).replace("|", "¦")
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else "(nothing)"


def fenced(text: str, language: str = "bash") -> Iterator[str]:
    """The lines of a block of code, in a fence of more back ticks than it holds."""
    longest = max((len(run) for run in re.findall("`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    yield from (f"{fence}{language}", text, fence)
