"""Reports and comparisons to read: as one self-contained HTML file, and as Markdown.

Both are made of the tables of ``tables.py``. Texts of tasks and models are escaped, cut, and shown
without invisible characters: they make no markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TypeAlias

from agentkit.evaluation.results.report import Comparison, EvaluationReport, Example
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

# --- the parts of a page --------------------------------------------------------------------------

STYLE = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
"""The style sheet: light and dark, screen and paper."""

_VOID = frozenset({"meta", "br"})
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""The page's content security policy: a browser loads nothing and runs no script."""

_FEW_COLUMNS = 3


class Markup(str):
    """Text that is HTML already. Only ``element`` and constants of this package make it."""

    __slots__ = ()


Child: TypeAlias = "str | Markup | Iterable[Child]"


def element(name: str, /, *children: Child, **attributes: str | float | None) -> Markup:
    """An element; children and attributes are escaped unless they are ``Markup``.

    Args:
        name: The tag.
        children: What it holds: texts, elements, or sequences of these.
        attributes: Its attributes; ``class_`` is ``class``, other underscores are hyphens, None
            leaves one out.
    """
    texts = {
        key.rstrip("_").replace("_", "-"): value if isinstance(value, str) else f"{value:.4g}"
        for key, value in attributes.items()
        if value is not None
    }
    start = name + "".join(f' {key}="{escape(text)}"' for key, text in texts.items())
    return Markup(f"<{start}>" if name in _VOID else f"<{start}>{joined(children)}</{name}>")


def joined(children: Child) -> Markup:
    """Children one after the other, escaped unless they are ``Markup``."""
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return Markup(escape(children))
    return Markup("".join(joined(child) for child in children))


@dataclass(frozen=True, kw_only=True, slots=True)
class Section:
    """A part of the page.

    Attributes:
        name: What the link to it says, and its id.
        title: Its heading.
        content: What it holds.
    """

    name: str
    title: str
    content: tuple[Child, ...]


def page_html(title: str, content: Child, *, style: str = "") -> str:
    """A whole page in the style of reports; its policy forbids a browser to load or run anything.

    Args:
        title: Its title.
        content: What it shows.
        style: More rules for its style sheet; a constant, never text from elsewhere.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(STYLE + style)),
    )
    body = element("body", element("main", content))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def tiles_html(lines: Iterable[tuple[str, str, str]]) -> Markup:
    """Name, value and what stands beside it, each on a tile."""
    tiles = (
        element(
            "div",
            element("dt", name),
            element("dd", value, class_="value"),
            element("dd", more, class_="more"),
        )
        for name, value, more in lines
    )
    return element("dl", tiles, class_="tiles")


def _notes_html(sentences: Iterable[str]) -> Markup:
    items = [element("li", sentence) for sentence in sentences]
    return element("ul", items, class_="notes") if items else Markup()


def links_html(sections: Iterable[Section]) -> Markup:
    """Links to the sections of a page."""
    links = (element("a", one.name, href=f"#{_anchor(one)}") for one in sections)
    return element("nav", links, aria_label="Sections")


def _anchor(section: Section) -> str:
    return section.name.replace(" ", "-").lower()


def section_html(section: Section) -> Markup:
    """A section under its heading."""
    heading = element("h2", section.title)
    return element("section", heading, section.content, id=_anchor(section))


def table_html(table: Table, *, heading: str = "") -> Markup:
    """A table; nothing when it has no rows. Wide tables scroll on their own.

    Args:
        table: The table.
        heading: The element of its heading; empty for none.
    """
    if not table.rows:
        return Markup()
    classes = ["number" if align == "right" else None for _, align in table.columns]
    heads = [
        element("th", title, scope="col", class_=class_)
        for (title, _), class_ in zip(table.columns, classes, strict=True)
    ]
    body = []
    for row in table.rows:
        first, *rest = zip(row, classes, strict=True)
        cells = [element("td", text, class_=class_) for text, class_ in rest]
        body.append(element("tr", element("th", first[0], scope="row", class_=first[1]), cells))
    content = element(
        "table",
        element("caption", table.note) if table.note else "",
        element("thead", element("tr", heads)),
        element("tbody", body),
        class_="full" if len(table.columns) > _FEW_COLUMNS else None,
    )
    scrolled = element(
        "div", content, class_="scroll", tabindex="0", role="region", aria_label=table.title
    )
    return joined((element(heading, table.title) if heading else "", scrolled))


# --- HTML -----------------------------------------------------------------------------------------

_TITLES = {
    "Accuracy": "Accuracy",
    "Labels": "What went wrong",
    "Tools": "Worst tools",
    "Run": "How it was run",
}


def report_html(report: EvaluationReport) -> str:
    """A report as one self-contained HTML page.

    Args:
        report: The report.
    """
    title = f"Evaluation {shown(report.run, 80)}".rstrip()
    sections = [
        Section(
            name=name,
            title=_TITLES[name],
            content=tuple(table_html(table, heading="h3") for table in tables),
        )
        for name, tables in report_tables(report).items()
    ]
    if report.command:
        code = element("pre", element("code", report.command), tabindex="0")
        sections.append(Section(name="Command", title="How to repeat", content=(code,)))
    if report.examples:
        cards = tuple(_examples_html(report.examples))
        sections.append(Section(name="Examples", title="Examples", content=cards))
    about = [shown(report.benchmark), ", ".join(shown(model, 80) for model in report.models)]
    about += [report.started[:16].replace("T", " ")] if report.started else []
    header = element(
        "header",
        element("h1", title),
        element("p", " · ".join(filter(None, about)), class_="soft"),
        tiles_html(headline(report)),
        _notes_html(notes(report)),
        links_html(sections),
    )
    return page_html(title, (header, *map(section_html, sections)))


def comparison_html(comparison: Comparison) -> str:
    """A comparison as one self-contained HTML page.

    Args:
        comparison: The comparison.
    """
    title = f"Evaluations {shown(comparison.a, 80)} and {shown(comparison.b, 80)}"
    return page_html(
        title,
        (
            element("h1", title),
            element("p", shown(comparison.benchmark), class_="soft"),
            element("p", verdict_line(comparison)),
            _notes_html(shown(warning) for warning in comparison.warnings),
            *(table_html(table, heading="h2") for table in comparison_tables(comparison)),
        ),
    )


def _examples_html(examples: Sequence[Example]) -> Iterator[Markup]:
    """Cards of examples under the names of their labels; the first of each is open."""
    label = ""
    for example in examples:
        is_first, label = example.label != label, example.label
        if is_first:
            yield element("h3", label_name(label))
        lines = (
            (
                element("dt", name),
                element("dd", element("code", text) if name == "called" else text),
            )
            for name, text in example_lines(example)
        )
        yield element(
            "details",
            element(
                "summary",
                shown(example.request, 110) or "(no request)",
                element("span", _blamed(example), class_="soft"),
            ),
            element("dl", lines, class_="example"),
            open="" if is_first else None,
        )


def _blamed(example: Example) -> str:
    return shown(".".join(filter(None, (example.tool, example.parameter))), 100)


# --- Markdown -------------------------------------------------------------------------------------

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#$@&]|:(?=//)|(?<=www)\.)")
_SHOWN_A_LABEL = 3


def report_markdown(report: EvaluationReport) -> str:
    """A report as a Markdown page.

    Args:
        report: The report.
    """
    lines = [f"# Evaluation {escaped(shown(report.run, 80))}".rstrip(), ""]
    lines += [escaped(shown(report.benchmark)), ""]
    lines += [
        f"* {escaped(name)}: **{escaped(value)}**, {escaped(more)}"
        for name, value, more in headline(report)
    ]
    lines += ["", *_warned(notes(report))]
    for tables in report_tables(report).values():
        for table in tables:
            lines += table_markdown(table)
    if report.examples:
        lines += ["## Examples", "", *_examples(report)]
    if report.command:
        lines += ["## How to repeat", "", *_fenced(report.command)]
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
    yield from (f"## {escaped(table.title)}", "")
    if table.note:
        yield from (escaped(table.note), "")
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
        blamed = _blamed(example) or shown(example.task, 120)
        yield from (f"### {escaped(label_name(example.label))}: {escaped(blamed)}", "")
        for name, text in example_lines(example):
            yield f"* {name}: {_code(text) if name == 'called' else escaped(text)}"
        yield ""


def escaped(text: str) -> str:
    """Text that stands for itself: what Markdown or HTML would read has a backslash before it."""
    return _SPECIAL.sub(r"\\\1", text).replace("\\<", "&lt;").replace("\\&", "&amp;")


def _code(text: str) -> str:
    """Text as code, in a fence of more back ticks than it holds."""
    line = shown(text).replace("|", "¦")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}" if line else "(nothing)"


def _fenced(text: str) -> Iterator[str]:
    """The lines of a block of code, in a fence of more back ticks than it holds."""
    fence = "`" * (1 + max((len(run) for run in re.findall("`{3,}", text)), default=2))
    yield from (f"{fence}bash", text, fence)
