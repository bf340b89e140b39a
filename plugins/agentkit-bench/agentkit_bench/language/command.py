"""``agentkit bench language``: how the words of tools changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import click

from agentkit.cli.options import AsJson, StoreUrl, command
from agentkit.cli.output import Column, fold, print_json, print_table, right, say
from agentkit.cli.stores import opened_to_read
from agentkit.evaluation.results.texts import shown, visible, whole
from agentkit.tools.error_messages import plural
from agentkit_bench.language.report import (
    LanguageReport,
    Measures,
    TextChange,
    TextMeasures,
    ToolLanguage,
    histories_of,
    language_report,
)
from agentkit_bench.language.words import marked, word_diff

_MOST_TOOLS = 20
_NAME, _REASON = 60, 120
_LONGEST = 4_000


@command()
def language(
    *,
    store_url: StoreUrl,
    tool: tuple[str, ...] = (),
    as_json: AsJson,
) -> None:
    """See how the words of tools changed over their revisions.

    How large each edit was, whether edits get smaller, whether the meaning stayed, and what became
    of vocabulary, depth of sentences and cost in tokens. No model is asked. With the extra
    'vectors' meaning is compared by word vectors, without it by shared terms.

    Args:
        store_url: Where the library is.
        tool (NAME): Only this tool, also one that was removed, with what changed word by word.
        as_json: Print JSON, with every tool and revision.

    Examples:
      agentkit bench language
      agentkit bench language --tool loan_terms
      agentkit bench language --json > words.json
    """
    with opened_to_read(store_url) as store:
        histories = histories_of(store, tool)
    found = language_report(histories, Measures.installed())
    if as_json:
        print_json(found.to_json())
    elif not found.tools:
        say("no tool has any revision")
    else:
        _print(found)
        for one in found.tools if tool else ():
            _print_tool(one)


def _print(report: LanguageReport) -> None:
    """The library as tables; the methods behind the numbers go to stderr."""
    say(
        f"Likeness: {report.similarity_method}. Depth: {report.depth_method}. "
        f"Tokens: {report.token_method}. Numbers of other methods do not compare with these."
    )
    trends = Counter(tool.convergence.trend for tool in report.changed)
    if trends:
        counts = ", ".join(f"{trend} {count:,}" for trend, count in trends.most_common())
        say(
            f"Size of edits over rounds, by tool: {counts}. Four rounds are the fewest that can "
            "show a trend; of tools without any, up to one in ten shows one by chance."
        )
    click.echo(f"{plural(len(report.tools), 'tool')}, {whole(len(report.changed))} changed\n")
    print_table([fold("the tools there now"), right("first"), right("last")], _whole_rows(report))
    _print_table(
        "Size of edits by round",
        [right("round"), right("tools"), right("mean edit"), right("largest")],
        [
            (str(one.number), whole(one.tools), _number(one.mean_size), _number(one.largest))
            for one in report.rounds
        ],
    )
    titles = "rounds edit likeness words moving-ratio depth tokens trend returns"
    _print_table(
        "Tools whose words changed",
        [fold("tool"), *map(right, titles.split())],
        [_tool_row(tool) for tool in report.changed[:_MOST_TOOLS]],
    )
    if len(report.changed) > _MOST_TOOLS:
        say(f"{_MOST_TOOLS} of {len(report.changed):,} shown; --json has all")


def _whole_rows(report: LanguageReport) -> Iterator[tuple[str, ...]]:
    """All tools together, first words against last."""
    every = report.whole
    old, new = every.before, every.after
    yield "words", whole(old.words), whole(new.words)
    ratios = (old.type_token_ratio, new.type_token_ratio)
    yield ("type-token ratio", *map(_precise, ratios))
    ratios = (old.moving_ratio, new.moving_ratio)
    yield (f"moving ratio, {report.window} words", *map(_precise, ratios))
    yield "depth of the deepest sentence", f"{old.depth:.1f}", f"{new.depth:.1f}"
    yield "mean depth of a sentence", f"{old.mean_depth:.1f}", f"{new.mean_depth:.1f}"
    yield "tokens", whole(old.tokens), whole(new.tokens)
    yield "edit distance, weighted by length", "", _number(every.edit_share)
    yield "edit distance, mean of changed tools", "", _number(every.mean_change)
    yield "likeness, mean of changed tools", "", _number(every.mean_similarity)


def _tool_row(tool: ToolLanguage) -> tuple[str, ...]:
    """A tool, first words against last."""
    old, new = tool.first.measures, tool.last.measures
    edit, _, likeness = _change(tool.last.from_first)

    def both(text: Callable[[TextMeasures], str]) -> str:
        before, after = text(old), text(new)
        return after if before == after else f"{before} → {after}"

    name = shown(tool.tool_name, _NAME)
    return (
        f"{name} (removed)" if tool.is_removed else name,
        whole(tool.rounds),
        edit,
        likeness,
        both(lambda one: whole(one.words)),
        both(lambda one: _number(one.moving_ratio)),
        both(lambda one: f"{one.depth:.1f}"),
        both(lambda one: whole(one.tokens)),
        tool.convergence.trend,
        whole(tool.convergence.returns),
    )


def _print_tool(tool: ToolLanguage) -> None:
    """The revisions of a tool, and each field's first text against its last."""
    numbers = ("version", "edit", "in words", "likeness", "words", "type-token", "depth", "tokens")
    _print_table(
        shown(tool.tool_name, 100),
        [*map(right, numbers), *map(fold, ("fields", "by", "why"))],
        [
            (
                str(one.version),
                *_change(one.change),
                whole(one.measures.words),
                _number(one.measures.type_token_ratio),
                f"{one.measures.depth:.1f}",
                whole(one.measures.tokens),
                ", ".join(shown(field, _NAME) for field in one.fields),
                shown(one.author, _NAME),
                shown(one.reason, _REASON),
            )
            for one in tool.revisions
        ],
    )
    for field in tool.fields:
        click.echo(f"\n{shown(field.field, 100)}, first against last")
        text = visible(marked(word_diff(field.before, field.after)))
        click.echo(text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …")


def _print_table(title: str, columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """A table under its title; nothing when it has no rows."""
    found = list(rows)
    if found:
        click.echo(f"\n{title}")
        print_table(columns, found)


def _change(change: TextChange | None) -> tuple[str, str, str]:
    """Edit in characters, edit in words, and likeness; dashes where there is no change."""
    if change is None:
        return "-", "-", "-"
    return _number(change.characters), _number(change.words), _number(change.similarity)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _precise(value: float | None) -> str:
    """A ratio with four digits, as ToolDNA gives them."""
    return "-" if value is None else f"{value:.4f}"
