"""A language report to read: as an HTML page, as Markdown, and on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click

from agentkit.cli.output import Column, print_table, say
from agentkit.evaluation.results.pages import (
    Child,
    Markup,
    Section,
    element,
    escaped,
    fenced,
    joined,
    links_html,
    page_html,
    section_html,
    table_html,
    table_markdown,
    tiles_html,
)
from agentkit.evaluation.results.tables import Table
from agentkit.evaluation.results.texts import many, shown, visible
from agentkit_bench.language.report import FieldLanguage, LanguageReport, ToolLanguage
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
from agentkit_bench.language.words import marked, word_diff

_STYLE = """
ins { background: rgb(40 160 80 / .22); text-decoration: none; border-radius: 3px; }
del { background: rgb(214 60 50 / .2); border-radius: 3px; }
.words { white-space: pre-wrap; overflow-wrap: anywhere; max-width: 80ch; }
"""
_OPEN = 3
_LONGEST = 4_000


def language_html(report: LanguageReport) -> str:
    """A report as one self-contained HTML page.

    Texts of models are escaped, cut, and shown without invisible characters; the page's own policy
    forbids a browser to load or run anything.

    Args:
        report: The report.
    """
    title = "How the words of tools changed"
    sections = [section for section in _sections(report) if any(section.content)]
    header = element(
        "header",
        element("h1", title),
        element("p", f"{many(len(report.tools), 'tool')}, first words against last", class_="soft"),
        tiles_html(headline(report)),
        element("ul", (element("li", note) for note in notes(report)), class_="notes"),
        links_html(sections),
    )
    return page_html(title, (header, *map(section_html, sections)), style=_STYLE)


def _sections(report: LanguageReport) -> Iterator[Section]:
    yield Section(
        name="All",
        title="All tools together",
        content=(table_html(whole_table(report)),),
    )
    yield Section(
        name="Rounds",
        title="Size of edits by round",
        content=(table_html(round_table(report)),),
    )
    changed = report.changed[:MOST_TOOLS]
    yield Section(
        name="Tools",
        title="Tools whose words changed",
        content=(_tools(report),) if changed else (),
    )
    yield Section(
        name="Words",
        title="What changed, word by word",
        content=tuple(_tool(tool, is_open=at < _OPEN) for at, tool in enumerate(changed)),
    )


def _tools(report: LanguageReport) -> Markup:
    changed = report.changed[:MOST_TOOLS]
    more = len(report.changed) - len(changed)
    left_out = element("p", f"and {many(more, 'more tool')}", class_="soft") if more > 0 else ""
    return joined((table_html(tool_table(report)), left_out))


def _tool(tool: ToolLanguage, *, is_open: bool) -> Markup:
    rounds = many(tool.rounds, "round")
    told = f"{rounds}, removed" if tool.is_removed else rounds
    same = element("p", "The last words are the first ones again.", class_="soft")
    return element(
        "details",
        element("summary", shown(tool.tool_name, 100), " ", element("span", told, class_="soft")),
        [_field(field) for field in tool.fields] if tool.fields else same,
        table_html(revision_table(tool), heading="h3"),
        open="" if is_open else None,
    )


def _field(field: FieldLanguage) -> Markup:
    edit = f"edit {number(field.change.characters)}, likeness {number(field.change.similarity)}"
    return joined(
        (
            element("h3", shown(field.field, 100), " ", element("span", edit, class_="soft")),
            element("div", list(_diff(field)), class_="words"),
        )
    )


def _diff(field: FieldLanguage) -> Iterator[Child]:
    left = _LONGEST
    for kind, words in word_diff(field.before, field.after):
        text = visible(words[:left])
        left -= len(words)
        match kind:
            case "same":
                yield text
            case "added":
                yield element("ins", text)
            case "removed":
                yield element("del", text)
        if left <= 0:
            yield " …"
            return


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
        lines += _tool_markdown(tool)
    return "\n".join(lines).rstrip() + "\n"


def _tool_markdown(tool: ToolLanguage) -> Iterator[str]:
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


_MOST = 10


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
