"""A language report as one HTML file, in the style of evaluation reports."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evaluation.results.markup import Child, Markup, element, joined
from agentkit.evaluation.results.page import (
    Section,
    links_html,
    page_html,
    section_html,
    table_html,
    tiles_html,
)
from agentkit.evaluation.results.texts import shown, visible
from agentkit.evaluation.results.wording import many, whole
from agentkit.evolution.language.differences import word_diff
from agentkit.evolution.language.records import FieldLanguage, LanguageReport, ToolLanguage
from agentkit_bench.language.plots import STYLE as LINES, Curve, line_plot, sparkline
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

_STYLE = f"""{LINES}
ins {{ background: rgb(40 160 80 / .22); text-decoration: none; border-radius: 3px; }}
del {{ background: rgb(214 60 50 / .2); border-radius: 3px; }}
.words {{ white-space: pre-wrap; overflow-wrap: anywhere; max-width: 80ch; }}
"""
_OPEN = 3
_CURVES = 40
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
        content=(table_html(whole_table(report)), _token_plot(report)),
    )
    yield Section(
        name="Rounds",
        title="Size of edits by round",
        content=(_round_plot(report), table_html(round_table(report))),
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


def _token_plot(report: LanguageReport) -> Markup:
    if len(report.tokens) < 2:
        return Markup()
    first, last = report.tokens[0], report.tokens[-1]
    points = [(float(one.version), float(one.tokens)) for one in report.tokens]
    told = (
        f"Tokens of all definitions: {whole(first.tokens)} of {many(first.tools, 'tool')} at "
        f"first, {whole(last.tokens)} of {many(last.tools, 'tool')} at last."
    )
    curve = Curve(name="tokens", points=points, is_main=True)
    return line_plot(told, [curve], text=whole, below="library version")


def _round_plot(report: LanguageReport) -> Markup:
    if not report.rounds:
        return Markup()
    curves = [
        Curve(
            name=shown(tool.tool_name, 60),
            points=[(float(at), size) for at, size in enumerate(tool.convergence.sizes, 1)],
        )
        for tool in report.changed[:_CURVES]
    ]
    mean = [(float(one.number), one.mean_size) for one in report.rounds]
    curves.append(Curve(name="mean of the tools", points=mean, is_main=True))
    told = (
        "Normalised edit distance from the text before: a line a tool, their mean drawn strongly."
    )
    return line_plot(told, curves, text=number, below="round")


def _tools(report: LanguageReport) -> Markup:
    changed = report.changed[:MOST_TOOLS]
    edits = [
        sparkline(tool.convergence.sizes, ", ".join(map(number, tool.convergence.sizes)))
        for tool in changed
    ]
    costs = [[float(one.measures.tokens) for one in tool.revisions] for tool in changed]
    tokens = [sparkline(values, ", ".join(map(whole, values))) for values in costs]
    more = len(report.changed) - len(changed)
    left_out = element("p", f"and {many(more, 'more tool')}", class_="soft") if more > 0 else ""
    plots = {"size of edits": edits, "tokens": tokens}
    return joined((table_html(tool_table(report), extra=plots), left_out))


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
    for part in word_diff(field.before, field.after):
        text = visible(part.text[:left])
        left -= len(part.text)
        match part.kind:
            case "kept":
                yield text
            case "added":
                yield element("ins", text)
            case "removed":
                yield element("del", text)
        if left <= 0:
            yield " …"
            return
