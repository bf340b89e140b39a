"""Reports and comparisons as one self-contained HTML file, made of the tables of ``tables.py``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from agentkit.evaluation.results.comparison import Comparison
from agentkit.evaluation.results.report import EvaluationReport, Example
from agentkit.evaluation.results.tables import (
    Table,
    comparison_tables,
    example_lines,
    headline,
    notes,
    report_tables,
    verdict_line,
)
from agentkit.evaluation.results.texts import interval, label_name, percent, points, shown
from agentkit.metrics.intervals import Interval

STYLE = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
"""The style sheet: light and dark, screen and paper.

The colours of the labels were searched so that any two stay apart for people who do not see red,
green or blue as others do; ``test_pages.py`` holds how far.
"""

_VOID = frozenset({"meta", "br"})
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for the page: nothing. A script would not run either."""

_WIDTH, _HEIGHT = 200.0, 18.0
_FEW_COLUMNS = 3
_LEAST_REACH = 0.1


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


# --- whole pages ----------------------------------------------------------------------------------


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


def report_html(report: EvaluationReport) -> str:
    """A report as one self-contained HTML page.

    Texts of tasks and models are escaped, cut, and shown without invisible characters; the page's
    own policy forbids a browser to load or run anything.

    Args:
        report: The report.
    """
    title = f"Evaluation {shown(report.run, 80)}".rstrip()
    sections = [*_sections(report)]
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
    first, *others = comparison_tables(comparison)
    groups = [*comparison.categories, comparison.total][: len(first.rows)]
    ends = [abs(end) for one in groups for end in (one.difference.low, one.difference.high)]
    reach = max(_LEAST_REACH, *ends)
    bars = [difference_bar(group.difference, reach) for group in groups]
    scale = f"{-100 * reach:.0f} to {100 * reach:+.0f} points"
    return page_html(
        title,
        (
            element("h1", title),
            element("p", shown(comparison.benchmark), class_="soft"),
            element("p", verdict_line(comparison)),
            _notes_html(shown(warning) for warning in comparison.warnings),
            table_html(first, heading="h2", bars={scale: bars}),
            *(table_html(table, heading="h2") for table in others),
        ),
    )


def page_html(title: str, content: Child, *, style: str = "") -> str:
    """A whole page in the style of reports.

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


_TITLES = {
    "Accuracy": "Accuracy",
    "Labels": "What went wrong",
    "Tools": "Worst tools",
    "Run": "How it was run",
}


def _sections(report: EvaluationReport) -> Iterator[Section]:
    tables = dict(report_tables(report))
    accuracy, *more = tables.pop("Accuracy")
    groups = [*report.categories, report.total][: len(accuracy.rows)]
    bars = {"0 to 100%": [whisker_bar(group.accuracy) for group in groups]}
    first = table_html(accuracy, heading="h3", bars=bars)
    yield _section("Accuracy", [first, *(table_html(one, heading="h3") for one in more)])
    for name, several in tables.items():
        content = [table_html(table, heading="h3") for table in several]
        yield _section(name, [*content, _command(report.command) if name == "Run" else ""])
    if report.examples:
        cards = tuple(examples_html(report.examples))
        yield Section(name="Examples", title="Examples", content=cards)


def _section(name: str, content: Sequence[Child]) -> Section:
    return Section(name=name, title=_TITLES[name], content=tuple(content))


def _command(command: str) -> Markup:
    if not command:
        return Markup()
    code = element("pre", element("code", command), tabindex="0")
    return joined((element("h3", "How to repeat"), code))


# --- tables and bars ------------------------------------------------------------------------------


def table_html(
    table: Table,
    *,
    heading: str = "",
    bars: Mapping[str, Sequence[Markup]] = MappingProxyType({}),
) -> Markup:
    """A table; nothing when it has no rows. What is too wide for a screen scrolls by itself.

    Args:
        table: The table.
        heading: The element of its heading; empty for none.
        bars: Pictures by title, one a row, in columns after the first; the row of all is set apart.
    """
    if not table.rows:
        return Markup()
    classes = ["number" if align == "right" else None for _, align in table.columns]
    heads = [
        element("th", title, scope="col", class_=class_)
        for (title, _), class_ in zip(table.columns, classes, strict=True)
    ]
    heads[1:1] = [element("th", title, scope="col") for title in bars]
    body = []
    for at, row in enumerate(table.rows):
        first, *rest = zip(row, classes, strict=True)
        cells = [
            element("th", first[0], scope="row", class_=first[1]),
            *(element("td", own[at], class_="wide") for own in bars.values()),
            *(element("td", text, class_=class_) for text, class_ in rest),
        ]
        sums_up = bool(bars) and row[0] == "all" and at == len(table.rows) - 1
        body.append(element("tr", cells, class_="all" if sums_up else None))
    is_full = bool(bars) or len(table.columns) > _FEW_COLUMNS
    content = element(
        "table",
        element("caption", table.note) if table.note else "",
        element("thead", element("tr", heads)),
        element("tbody", body),
        class_="full" if is_full else None,
    )
    scrolled = element(
        "div", content, class_="scroll", tabindex="0", role="region", aria_label=table.title
    )
    return joined((element(heading, table.title) if heading else "", scrolled))


def whisker_bar(share: Interval | None) -> Markup:
    """A share of 0 to 1 as a bar with the interval as a whisker; an empty track for None."""
    if share is None:
        return _bar("no attempts", ())
    fill = _rect(0, share.value * _WIDTH, "fill")
    text = f"{percent(share.value)}, interval {interval(share)}"
    return _bar(text, (fill, *_whisker(share.low * _WIDTH, share.high * _WIDTH)))


def difference_bar(difference: Interval, reach: float) -> Markup:
    """A difference of shares as a bar to the left or right of zero, with its interval.

    Args:
        difference: The difference.
        reach: The difference at either end of the bar.
    """
    half = _WIDTH / 2
    value, low, high = (
        half + max(-1.0, min(1.0, one / reach)) * half
        for one in (difference.value, difference.low, difference.high)
    )
    text = (
        f"{points(difference.value)} points, interval {points(difference.low)} to "
        f"{points(difference.high)}"
    )
    fill = _rect(min(half, value), abs(value - half), "fill")
    return _bar(text, (fill, _line(half, 0, half, _HEIGHT), *_whisker(low, high)))


def _bar(text: str, parts: Iterable[Markup]) -> Markup:
    return element(
        "svg",
        _rect(0, _WIDTH, "track"),
        parts,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        class_="bar",
        role="img",
        aria_label=text,
    )


def _rect(x: float, width: float, class_: str) -> Markup:
    return element("rect", x=x, y=2, width=max(0.0, width), height=_HEIGHT - 4, class_=class_)


def _whisker(low: float, high: float) -> Iterator[Markup]:
    yield _line(low, _HEIGHT / 2, high, _HEIGHT / 2)
    yield from (_line(end, 4, end, _HEIGHT - 4) for end in (low, high))


def _line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="line")


# --- examples -------------------------------------------------------------------------------------


def examples_html(examples: Sequence[Example]) -> Iterator[Markup]:
    """Cards of examples under the names of their labels; the first of each is open."""
    label = ""
    for at, example in enumerate(examples):
        is_first = example.label != label
        if is_first:
            label = example.label
            own = sum(one.label == label for one in examples)
            key = element("span", class_=f"key {label}")
            count = element("span", f"({own})", class_="soft")
            yield element("h3", key, f"{label_name(label)} ", count)
        yield _card(example, at, is_open=is_first)


def _card(example: Example, at: int, *, is_open: bool) -> Markup:
    blamed = ".".join(filter(None, (example.tool, example.parameter)))
    lines = (
        (element("dt", name), element("dd", element("code", text) if name == "called" else text))
        for name, text in example_lines(example)
    )
    return element(
        "details",
        element(
            "summary",
            shown(example.request, 110) or "(no request)",
            element("span", shown(blamed, 100), class_="soft"),
        ),
        element("dl", lines, class_="example"),
        id=f"e{at}",
        open="" if is_open else None,
    )
