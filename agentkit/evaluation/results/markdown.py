"""Reports and comparisons as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentkit.evaluation.results.comparison import Comparison
from agentkit.evaluation.results.records import EvaluationReport
from agentkit.evaluation.results.rows import Example, Finding
from agentkit.evaluation.results.tables import (
    Table,
    category_table,
    comparison_table,
    detail_tables,
    headline,
    notes,
    setting_table,
    task_table,
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
    lines = [
        f"# Evaluation {escaped(shown(report.run, 80))}".rstrip(),
        "",
        escaped(shown(report.benchmark)),
        "",
    ]
    lines += [
        f"* {escaped(name)}: **{escaped(value)}**, {escaped(more)}"
        for name, value, more in headline(report)
    ]
    lines.append("")
    if told := notes(report):
        lines += [f"> * {escaped(note)}" for note in told]
        lines.append("")
    for table in (category_table(report), *detail_tables(report)):
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
    if comparison.warnings:
        lines += [f"> * {escaped(shown(warning))}" for warning in comparison.warnings]
        lines.append("")
    for table in (comparison_table(comparison), setting_table(comparison), task_table(comparison)):
        if table.rows:
            lines += table_markdown(table)
    return "\n".join(lines).rstrip() + "\n"


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
    chosen = chosen_examples(report)
    if not chosen:
        return
    yield "## Examples"
    yield ""
    for example in chosen:
        yield from _example(example)


def chosen_examples(report: EvaluationReport, a_label: int = _SHOWN_A_LABEL) -> list[Example]:
    """The first few examples of each label.

    Args:
        report: The report.
        a_label: How many of a label.
    """
    seen: dict[str, int] = {}
    chosen = []
    for example in report.examples:
        seen[example.label] = seen.get(example.label, 0) + 1
        if seen[example.label] <= a_label:
            chosen.append(example)
    return chosen


def _example(example: Example) -> Iterator[str]:
    blamed = ".".join(filter(None, (example.tool, example.parameter)))
    yield f"### {escaped(label_name(example.label))}: {escaped(shown(blamed or example.task, 120))}"
    yield ""
    place = f"episode {_code(example.episode_id)}, step {example.turn + 1}"
    yield f"* task {_code(example.task)}, {place}"
    yield f"* asked: {escaped(example.request)}"
    for call in example.calls:
        yield f"* called: {_code(call)}"
    if example.more_calls:
        yield f"* and {example.more_calls:,} more calls"
    if example.answer:
        yield f"* said: {escaped(example.answer)}"
    for finding in example.findings:
        yield f"* found: {_finding(finding)}"
    if example.hint:
        yield f"* hint: {escaped(example.hint)}"
    yield ""


def _finding(finding: Finding) -> str:
    parts = [escaped(finding.message)]
    if finding.says_more(finding.expected):
        parts.append(f"expected {_code(finding.expected)}")
    if finding.says_more(finding.actual):
        parts.append(f"got {_code(finding.actual)}")
    return ", ".join(parts)


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
