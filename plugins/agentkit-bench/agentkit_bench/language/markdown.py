"""A language report as a Markdown page."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evaluation.results.markdown import escaped, fenced, table_markdown
from agentkit.evaluation.results.texts import shown, visible
from agentkit.evolution.language.differences import marked, word_diff
from agentkit.evolution.language.records import LanguageReport, ToolLanguage
from agentkit_bench.language.tables import (
    MOST_TOOLS,
    headline,
    notes,
    number,
    revision_table,
    round_table,
    tool_table,
    whole_table,
)

_LONGEST = 4_000


def language_markdown(report: LanguageReport) -> str:
    """A report as a Markdown page.

    Texts of models are escaped or stand in blocks of code: they show as they are.

    Args:
        report: The report.
    """
    lines = ["# How the words of tools changed", ""]
    lines += [
        f"* {escaped(name)}: **{escaped(value)}**, {escaped(more)}"
        for name, value, more in headline(report)
    ]
    lines += ["", *(f"> * {escaped(note)}" for note in notes(report)), ""]
    for table in (whole_table(report), round_table(report), tool_table(report)):
        if table.rows:
            lines += table_markdown(table)
    for tool in report.changed[:MOST_TOOLS]:
        lines += _tool(tool)
    return "\n".join(lines).rstrip() + "\n"


def _tool(tool: ToolLanguage) -> Iterator[str]:
    yield f"## {escaped(shown(tool.tool_name, 100))}"
    yield ""
    for field in tool.fields:
        edit = f"edit {number(field.change.characters)}"
        yield f"{escaped(shown(field.field, 100))} ({edit}), removed `[-so-]`, added `{{+so+}}`:"
        yield ""
        text = visible(marked(word_diff(field.before, field.after)))
        yield from fenced(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …", "text")
        yield ""
    yield from list(table_markdown(revision_table(tool)))[2:]  # the tool's name is its heading
