"""A language report as tables of text, which Markdown, HTML and the terminal all show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from agentkit.evaluation.results.tables import Table, columns
from agentkit.evaluation.results.texts import many, shown, whole
from agentkit_bench.language.report import (
    LanguageReport,
    TextChange,
    TextMeasures,
    ToolLanguage,
)

MOST_TOOLS = 50
"""Rows of the table of tools, and tools that are shown one by one."""

_NAME = 60
_REASON = 120


def headline(report: LanguageReport) -> tuple[tuple[str, str, str], ...]:
    """The few numbers that matter: name, value, what stands beside it."""
    now = report.whole
    there = sum(not tool.is_removed for tool in report.tools)
    changed = report.changed
    most = max((tool.rounds for tool in changed), default=0)
    returned = sum(tool.convergence.returns > 0 for tool in changed)
    return (
        (
            "tools changed",
            whole(len(changed)),
            f"of {whole(len(report.tools))}, {there:,} there now",
        ),
        ("edit distance", number(now.mean_change), "mean of changed tools, first to last"),
        ("likeness", number(now.mean_similarity), "mean of changed tools, first to last"),
        (
            "tokens",
            ratio(now.after.tokens, now.before.tokens),
            f"{whole(now.before.tokens)} to {whole(now.after.tokens)}",
        ),
        ("rounds", whole(most), f"at most; {many(returned, 'tool')} came back to an earlier text"),
    )


def notes(report: LanguageReport) -> tuple[str, ...]:
    """What a reader has to know before the numbers, in sentences."""
    methods = (
        f"Likeness: {report.similarity_method}. Depth: {report.depth_method}. "
        f"Tokens: {report.token_method}. Numbers of other methods do not compare with these."
    )
    told = [methods]
    trends = Counter(tool.convergence.trend for tool in report.changed)
    if trends:
        counts = ", ".join(f"{trend} {count:,}" for trend, count in trends.most_common())
        told.append(
            f"Size of edits over rounds, by tool: {counts}. Four rounds are the fewest that can "
            "show a trend; of tools without any, up to one in ten shows one by chance."
        )
    return tuple(told)


def whole_table(report: LanguageReport) -> Table:
    """All tools together, first words against last."""
    old, new = report.whole.before, report.whole.after
    measures: Sequence[tuple[str, Callable[[TextMeasures], float | None], Callable[..., str]]] = (
        ("words", lambda text: text.words, whole),
        ("type-token ratio", lambda text: text.type_token_ratio, precise),
        (f"moving ratio, {report.window} words", lambda text: text.moving_ratio, precise),
        ("depth of the deepest sentence", lambda text: text.depth, decimal),
        ("mean depth of a sentence", lambda text: text.mean_depth, decimal),
        ("tokens", lambda text: text.tokens, whole),
    )
    return Table(
        title="All tools together",
        columns=columns("of the tools there now", "first>", "last>"),
        rows=(
            *(
                (name, _known(take(old), text), _known(take(new), text))
                for name, take, text in measures
            ),
            ("edit distance, weighted by length", "", number(report.whole.edit_share)),
            ("edit distance, mean of changed tools", "", number(report.whole.mean_change)),
            ("likeness, mean of changed tools", "", number(report.whole.mean_similarity)),
        ),
        note="The plain type-token ratio falls with length alone; the moving one does not.",
    )


def tool_table(report: LanguageReport) -> Table:
    """The tools whose words changed, first against last."""
    return Table(
        title="Tools whose words changed",
        columns=columns(
            "tool",
            "rounds>",
            "edit>",
            "likeness>",
            "words>",
            "moving ratio>",
            "depth>",
            "tokens>",
            "trend>",
            "returns>",
        ),
        rows=tuple(_tool_row(tool) for tool in report.changed[:MOST_TOOLS]),
        note="Edit: normalised edit distance in characters from the first text to the last. Trend: "
        "whether edits get smaller from round to round. Returns: rounds that came back to an "
        "earlier text.",
    )


def _tool_row(tool: ToolLanguage) -> tuple[str, ...]:
    old, new, change = tool.first.measures, tool.last.measures, tool.last.from_first
    edit, _, likeness = change_cells(change)
    name = shown(tool.tool_name, _NAME)
    return (
        f"{name} (removed)" if tool.is_removed else name,
        whole(tool.rounds),
        edit,
        likeness,
        both(old.words, new.words, whole),
        both(old.moving_ratio, new.moving_ratio, number),
        both(old.depth, new.depth, decimal),
        both(old.tokens, new.tokens, whole),
        tool.convergence.trend,
        whole(tool.convergence.returns),
    )


def round_table(report: LanguageReport) -> Table:
    """The size of edits by round."""
    return Table(
        title="Size of edits by round",
        columns=columns("round", "tools>", "mean edit>", "largest>"),
        rows=tuple(
            (str(one.number), whole(one.tools), number(one.mean_size), number(one.largest))
            for one in report.rounds
        ),
        note="A round is a revision that changed words. Later rounds have fewer tools, and these "
        "may be those that change most: compare tools with themselves.",
    )


def revision_table(tool: ToolLanguage) -> Table:
    """The revisions of a tool."""
    return Table(
        title="Revisions",
        columns=columns(
            "version",
            "edit>",
            "in words>",
            "likeness>",
            "words>",
            "type-token>",
            "depth>",
            "tokens>",
            "fields",
            "by",
            "why",
        ),
        rows=tuple(_revision_rows(tool)),
    )


def _revision_rows(tool: ToolLanguage) -> Iterator[tuple[str, ...]]:
    for one in tool.revisions:
        text = one.measures
        yield (
            str(one.version),
            *change_cells(one.change),
            whole(text.words),
            number(text.type_token_ratio),
            decimal(text.depth),
            whole(text.tokens),
            ", ".join(shown(field, _NAME) for field in one.fields),
            shown(one.author, _NAME),
            shown(one.reason, _REASON),
        )


def change_cells(change: TextChange | None) -> tuple[str, str, str]:
    """Edit in characters, edit in words, and likeness; dashes where there is no change."""
    if change is None:
        return "-", "-", "-"
    return number(change.characters), number(change.words), number(change.similarity)


def number(value: float | None) -> str:
    """A share with two digits; a dash for none."""
    return "-" if value is None else f"{value:.2f}"


def precise(value: float) -> str:
    """A ratio with four digits, as ToolDNA gives them."""
    return f"{value:.4f}"


def decimal(value: float) -> str:
    """A number with one digit behind the point."""
    return f"{value:.1f}"


def ratio(value: float, of: float) -> str:
    """A value as so many times another; a dash where there is nothing."""
    return f"{value / of:.2f}x" if of else "-"


def both(old: float | None, new: float | None, text: Callable[[float], str]) -> str:
    """Two numbers as ``12 → 15``; once where they read the same."""
    before, after = _known(old, text), _known(new, text)
    return after if before == after else f"{before} → {after}"


def _known(value: float | None, text: Callable[[float], str]) -> str:
    return "-" if value is None else text(value)
