"""Reports and comparisons as one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import TypeAlias

from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import FailureLabel
from agentkit.evaluation.results.comparison import Comparison
from agentkit.evaluation.results.records import Distribution, EvaluationReport
from agentkit.evaluation.results.rows import Example, Finding
from agentkit.evaluation.results.style import STYLE
from agentkit.evaluation.results.tables import (
    WORST,
    Table,
    category_table,
    comparison_table,
    confusion_table,
    finding_table,
    headline,
    incident_table,
    label_category_table,
    label_table,
    left_out_table,
    metric_table,
    notes,
    parameter_table,
    pass_table,
    recovery_table,
    refine_table,
    setting_table,
    settings_table,
    spread_table,
    stop_table,
    task_table,
    tool_table,
    used_labels,
    verdict_line,
)
from agentkit.evaluation.results.texts import (
    LABELS,
    interval,
    label_name,
    percent,
    points,
    seconds,
    shown,
    whole,
)
from agentkit.metrics.intervals import Interval

_VOID = frozenset({"meta", "br"})


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
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{told}>")
    return Markup(f"<{name}{told}>{joined(children)}</{name}>")


def joined(children: Child) -> Markup:
    """Children one after the other, escaped unless they are ``Markup``."""
    if isinstance(children, Markup):
        return children
    if isinstance(children, str):
        return Markup(escape(children))
    return Markup("".join(joined(child) for child in children))


def _attribute(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.4g}"


_WIDTH = 200.0
_HEIGHT = 18.0
_PLOT_WIDTH = 480.0
_PLOT_HEIGHT = 110.0


def whisker_bar(share: Interval | None) -> Markup:
    """A share of 0 to 1 as a bar with the interval as a whisker; an empty track for None."""
    parts = [_rect(0, _WIDTH, "track")]
    told = "no attempts"
    if share is not None:
        low, high = share.low * _WIDTH, share.high * _WIDTH
        told = f"{percent(share.value)}, interval {interval(share)}"
        parts += [
            _rect(0, share.value * _WIDTH, "fill"),
            _line(low, _HEIGHT / 2, high, _HEIGHT / 2),
            *(_line(end, 4, end, _HEIGHT - 4) for end in (low, high)),
        ]
    return _picture(told, parts)


def difference_bar(difference: Interval, reach: float) -> Markup:
    """A difference of shares as a bar to the left or right of zero, with its interval.

    Args:
        difference: The difference.
        reach: The difference at either end of the bar.
    """
    half = _WIDTH / 2

    def at(value: float) -> float:
        return half + max(-1.0, min(1.0, value / reach)) * half

    value, low, high = at(difference.value), at(difference.low), at(difference.high)
    told = (
        f"{points(difference.value)} points, interval {points(difference.low)} to "
        f"{points(difference.high)}"
    )
    parts = [
        _rect(0, _WIDTH, "track"),
        _rect(min(half, value), abs(value - half), "fill"),
        _line(half, 0, half, _HEIGHT),
        _line(low, _HEIGHT / 2, high, _HEIGHT / 2),
        *(_line(end, 4, end, _HEIGHT - 4) for end in (low, high)),
    ]
    return _picture(told, parts)


def stacked_bar(counts: Mapping[FailureLabel, int], whole: int) -> Markup:
    """Counts by label as segments of a bar.

    Args:
        counts: How many, by label, in the order of the segments.
        whole: The count that fills the bar.
    """
    parts = [_rect(0, _WIDTH, "track")]
    at = 0.0
    for label, count in counts.items():
        width = _WIDTH * count / max(1, whole)
        title = element("title", f"{label_name(label)}: {count:,}")
        parts.append(_rect(at, width, f"segment {label}", title))
        at += width
    told = ", ".join(f"{label_name(label)} {count:,}" for label, count in counts.items())
    return _picture(told or "none", parts)


def histogram(title: str, spread: Distribution, text: Callable[[float], str]) -> Markup:
    """A histogram, with the median and the 90 % quantile in words below.

    Args:
        title: What is counted.
        spread: The numbers.
        text: How one of them is written.
    """
    step = _PLOT_WIDTH / max(1, len(spread.bins))
    most = max((one.count for one in spread.bins), default=1)
    parts: list[Markup] = []
    for at, one in enumerate(spread.bins):
        tall = _PLOT_HEIGHT * one.count / most
        reach = f"from {text(one.start)}" + ("" if one.end is None else f" to {text(one.end)}")
        parts.append(
            element(
                "rect",
                element("title", f"{reach}: {one.count:,}"),
                x=at * step + 1,
                y=_PLOT_HEIGHT - tall,
                width=max(1.0, step - 2),
                height=tall,
                class_="fill" if one.end is not None else "fill tail",
            )
        )
    parts.append(_line(0, _PLOT_HEIGHT, _PLOT_WIDTH, _PLOT_HEIGHT))
    parts += _ticks([text(one.start) for one in spread.bins], step)
    told = f"{title}: median {text(spread.median)}, nine in ten up to {text(spread.p90)}"
    svg = element(
        "svg",
        parts,
        viewBox=f"-2 0 {_PLOT_WIDTH + 4:g} {_PLOT_HEIGHT + 22:g}",
        class_="histogram",
        role="img",
        aria_label=told,
    )
    return element("figure", svg, element("figcaption", told))


def _ticks(starts: Sequence[str], step: float) -> Iterator[Markup]:
    """The start of every bar, or of every second or fourth where there are many."""
    stride = 1 + len(starts) // 6
    for at in range(0, len(starts), stride):
        yield element("text", starts[at], x=at * step, y=_PLOT_HEIGHT + 16, class_="tick")


def _picture(told: str, parts: Iterable[Markup]) -> Markup:
    return element(
        "svg",
        parts,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        class_="bar",
        role="img",
        aria_label=told,
    )


def _rect(x: float, width: float, class_: str, *children: Markup) -> Markup:
    return element(
        "rect", *children, x=x, y=2, width=max(0.0, width), height=_HEIGHT - 4, class_=class_
    )


def _line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_="line")


_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for the page: nothing. A script would not run either."""

_FEW_COLUMNS = 3
_LABELS_COLUMN = 5  # of the table of tools

Look: TypeAlias = Callable[[int, int, str], Markup | None]
"""Another cell for a row, a column and its text; None for the usual one."""


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
    sections = [section for section in _sections(report) if any(section.content)]
    return page_html(title, (_header(title, report, sections), *map(section_html, sections)))


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


def _header(title: str, report: EvaluationReport, sections: Sequence[Section]) -> Markup:
    about = [shown(report.benchmark), ", ".join(shown(model, 80) for model in report.models)]
    about += [report.started[:16].replace("T", " ")] if report.started else []
    told = notes(report)
    return element(
        "header",
        element("h1", title),
        element("p", " · ".join(filter(None, about)), class_="soft"),
        tiles_html(headline(report)),
        element("ul", (element("li", note) for note in told), class_="notes") if told else "",
        links_html(sections),
    )


def tiles_html(lines: Iterable[tuple[str, str, str]]) -> Markup:
    """Name, value and what stands beside it, each on a tile."""
    return element("dl", (_tile(*line) for line in lines), class_="tiles")


def links_html(sections: Iterable[Section]) -> Markup:
    """Links to the sections of a page."""
    links = (element("a", one.name, href=f"#{_anchor(one)}") for one in sections)
    return element("nav", links, aria_label="Sections")


def _tile(name: str, value: str, more: str) -> Markup:
    return element(
        "div",
        element("dt", name),
        element("dd", value, class_="value"),
        element("dd", more, class_="more"),
    )


def _anchor(section: Section) -> str:
    return section.name.replace(" ", "-").lower()


def section_html(section: Section) -> Markup:
    """A section under its heading."""
    heading = element("h2", section.title)
    return element("section", heading, section.content, id=_anchor(section))


def _sections(report: EvaluationReport) -> Iterator[Section]:
    links = {
        example.episode_id: f"e{at}" for at, example in reversed([*enumerate(report.examples)])
    }
    yield Section(
        name="Accuracy",
        title="Accuracy by category",
        content=(
            categories_html(report),
            table_html(pass_table(report), heading="h3"),
            table_html(metric_table(report), heading="h3"),
        ),
    )
    yield Section(name="Labels", title="What went wrong", content=_labels(report))
    yield Section(name="Tools", title="Worst tools and parameters", content=_tools(report, links))
    yield Section(name="Examples", title="Examples", content=tuple(examples_html(report.examples)))
    yield Section(name="Cost", title="Tokens and time", content=_costs(report))
    yield Section(
        name="Run",
        title="How it was run",
        content=(
            table_html(stop_table(report), heading="h3"),
            table_html(incident_table(report), heading="h3"),
            table_html(settings_table(report), heading="h3"),
            _command(report.command),
            table_html(left_out_table(report), heading="h3"),
        ),
    )


def table_html(
    table: Table,
    *,
    heading: str = "",
    look: Look | None = None,
    extra: Mapping[str, Sequence[Markup]] = MappingProxyType({}),
    at_end: bool = True,
    last: str = "",
) -> Markup:
    """A table; nothing when it has no rows.

    Args:
        table: The table.
        heading: The element of its heading; empty for none.
        look: Makes some cells look otherwise.
        extra: Further columns by title, the content of a cell for each row.
        at_end: Whether these stand at the end, or after the first column.
        last: First cell of a last row that sums up; it is set apart.
    """
    if not table.rows:
        return Markup()
    split = len(table.columns) if at_end else 1
    heads = [element("th", one, scope="col", class_=_class(align)) for one, align in table.columns]
    heads[split:split] = [element("th", title, scope="col") for title in extra]
    body = []
    for at, row in enumerate(table.rows):
        cells = [_cell(table, at, column, look) for column in range(len(table.columns))]
        cells[split:split] = [
            element("td", own[at], class_=_extra_class(own[at])) for own in extra.values()
        ]
        sums_up = bool(last) and row[0] == last and at == len(table.rows) - 1
        body.append(element("tr", cells, class_="all" if sums_up else None))
    whole_table = element(
        "table",
        element("caption", table.note) if table.note else "",
        element("thead", element("tr", heads)),
        element("tbody", body),
        class_="full" if extra or len(table.columns) > _FEW_COLUMNS else None,
    )
    title = element(heading, table.title) if heading else ""
    return joined((title, _scrolled(whole_table, table.title)))


def _scrolled(content: Markup, title: str) -> Markup:
    """What is too wide for a small screen, in a part of its own that scrolls, by keyboard too."""
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=title)


def _cell(table: Table, row: int, column: int, look: Look | None) -> Markup:
    text, (_, align) = table.rows[row][column], table.columns[column]
    other = None if look is None else look(row, column, text)
    if other is not None:
        return other
    if column == 0:
        return element("th", text, scope="row", class_=_class(align))
    return element("td", text, class_=_class(align))


def _extra_class(content: Markup) -> str | None:
    return "wide" if content.startswith("<svg") else None


def _class(align: str) -> str | None:
    return "number" if align == "right" else None


def categories_html(report: EvaluationReport) -> Markup:
    """The table of categories with a bar and a whisker for each accuracy."""
    table = category_table(report)
    groups = [*report.categories, report.total]
    bars = [whisker_bar(group.accuracy) for group in groups[: len(table.rows)]]
    return table_html(table, extra={"0 to 100%": bars}, at_end=False, last="all")


def _labels(report: EvaluationReport) -> tuple[Child, ...]:
    labels = used_labels(report)
    if not labels:
        return ()
    turns = {label: report.total.turn_labels.get(label, 0) for label in labels}

    def keyed(row: int, column: int, text: str) -> Markup | None:
        key = element("span", class_=f"key {labels[row]}")
        return element("th", key, text, scope="row") if column == 0 else None

    return (
        stacked_bar(turns, sum(turns.values())),
        table_html(label_table(report), look=keyed),
        table_html(finding_table(report), heading="h3"),
        table_html(label_category_table(report), heading="h3", look=_heat(report, labels)),
        table_html(recovery_table(report), heading="h3"),
    )


def _heat(report: EvaluationReport, labels: Sequence[FailureLabel]) -> Look:
    """Shades a failing label by its share of the category's turns."""

    def look(row: int, column: int, text: str) -> Markup | None:
        if column == 0 or labels[column - 1] in NOT_FAILURES:
            return None
        counts = report.categories[row].turn_labels
        of = counts.get(labels[column - 1], 0) / max(1, sum(counts.values()))
        return element("td", text, class_="number heat", style=f"--share:{of:.3f}")

    return look


def _tools(report: EvaluationReport, links: Mapping[str, str]) -> tuple[Child, ...]:
    worst = report.tools[:WORST]
    most = max((sum(one.labels.values()) for one in worst), default=1)

    def barred(row: int, column: int, text: str) -> Markup | None:
        if column != _LABELS_COLUMN:
            return None
        bar = stacked_bar(_in_order(worst[row].labels), most)
        return element("td", bar, element("div", text, class_="soft under"), class_="wide")

    return (
        table_html(
            tool_table(report),
            heading="h3",
            look=barred,
            extra={"examples": [_links(one.examples, links) for one in worst]},
        ),
        table_html(
            parameter_table(report),
            heading="h3",
            extra={"examples": [_links(o.examples, links) for o in report.parameters[:WORST]]},
        ),
        table_html(confusion_table(report), heading="h3"),
    )


def _in_order(labels: Mapping[FailureLabel, int]) -> dict[FailureLabel, int]:
    return {label: labels[label] for label in LABELS if label in labels}


def _links(examples: Iterable[str], links: Mapping[str, str]) -> Markup:
    return joined(
        (element("a", f"example {at}", href=f"#{links[one]}"), " ")
        for at, one in enumerate(examples, 1)
        if one in links
    )


def examples_html(examples: Sequence[Example]) -> Iterator[Markup]:
    """Cards of examples under the names of their labels; the first of each is open."""
    label = ""
    for at, example in enumerate(examples):
        if example.label != label:
            label = example.label
            own = sum(one.label == label for one in examples)
            key = element("span", class_=f"key {label}")
            yield element(
                "h3", key, f"{label_name(label)} ", element("span", f"({own})", class_="soft")
            )
            yield _card(example, at, is_open=True)
        else:
            yield _card(example, at, is_open=False)


def _card(example: Example, at: int, *, is_open: bool) -> Markup:
    blamed = ".".join(filter(None, (example.tool, example.parameter)))
    return element(
        "details",
        element(
            "summary",
            shown(example.request, 110) or "(no request)",
            element("span", shown(blamed, 100), class_="soft"),
        ),
        element(
            "dl",
            ((element("dt", name), element("dd", text)) for name, text in _lines(example) if text),
            class_="example",
        ),
        id=f"e{at}",
        open="" if is_open else None,
    )


def _lines(example: Example) -> Iterator[tuple[str, Child]]:
    where = f"step {example.turn + 1}"
    where += f" of user turn {example.user_turn + 1}" if example.user_turn else ""
    where += f", attempt {example.attempt + 1}" if example.attempt else ""
    yield "task", f"{shown(example.task, 120)} ({shown(example.category, 80)})"
    yield "asked", example.request
    for call in example.calls:
        yield "called", element("code", call)
    if example.more_calls:
        yield "", f"and {example.more_calls:,} more calls"
    yield "said", example.answer
    for finding in example.findings:
        yield "found", _finding(finding)
    if len(example.labels) > 1:
        yield "labels", ", ".join(label_name(label) for label in example.labels)
    yield "hint", example.hint
    yield "episode", (element("code", shown(example.episode_id, 80)), f" {where}")


def _finding(finding: Finding) -> Child:
    parts: list[Child] = [finding.message]
    if finding.says_more(finding.expected):
        parts += [", expected ", element("code", finding.expected)]
    if finding.says_more(finding.actual):
        parts += [", got ", element("code", finding.actual)]
    return parts


def _costs(report: EvaluationReport) -> tuple[Child, ...]:
    if not report.tokens.count:
        return ()
    return (
        element(
            "div",
            histogram("Tokens an attempt", report.tokens, whole),
            histogram("Time an attempt", report.seconds, seconds),
            class_="histograms",
        ),
        table_html(spread_table(report)),
        table_html(refine_table(report), heading="h3"),
    )


def _command(command: str) -> Markup:
    if not command:
        return Markup()
    return joined(
        (element("h3", "How to repeat"), element("pre", element("code", command), tabindex="0"))
    )


_LEAST_REACH = 0.1


def comparison_html(comparison: Comparison) -> str:
    """A comparison as one self-contained HTML page.

    Args:
        comparison: The comparison.
    """
    title = f"Evaluations {shown(comparison.a, 80)} and {shown(comparison.b, 80)}"
    table = comparison_table(comparison)
    groups = [*comparison.categories, comparison.total][: len(table.rows)]
    reach = max(
        _LEAST_REACH,
        *(abs(end) for one in groups for end in (one.difference.low, one.difference.high)),
    )
    bars = [difference_bar(group.difference, reach) for group in groups]
    scale = f"{-100 * reach:.0f} to {100 * reach:+.0f} points"
    warnings = [element("li", shown(warning)) for warning in comparison.warnings]
    return page_html(
        title,
        (
            element("h1", title),
            element("p", shown(comparison.benchmark), class_="soft"),
            element("p", verdict_line(comparison)),
            element("ul", warnings, class_="notes") if warnings else "",
            table_html(table, heading="h2", extra={scale: bars}, at_end=False, last="all"),
            table_html(setting_table(comparison), heading="h2"),
            table_html(task_table(comparison), heading="h2"),
        ),
    )
