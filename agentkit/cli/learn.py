"""``agentkit tools learn``: worked examples from episodes that went well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from agentkit.cli.loading import load_tools
from agentkit.cli.mine import episodes_of
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import Column, one_line, plural, print_json, print_table, say
from agentkit.cli.stores import author, event_signer, opened_to_read
from agentkit.episodes import Episode
from agentkit.episodes.labels import is_extra_record
from agentkit.evolution.learning.report import LearnReport, SkipReason
from agentkit.evolution.learning.rules import LearningRules
from agentkit.evolution.learning.unmatched import UnmatchedWord, unmatched_words
from agentkit.evolution.learning.uses import has_passed
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.mining.sources import is_success

WORDS_SHOWN = 10
"""Rows of the table of unmatched words; --json gives them all."""


@click.command(
    "learn",
    short_help="Learn from episodes what tools are asked for.",
    epilog="""\b
Examples:
  agentkit tools learn --dry-run
  agentkit tools learn --unjudged --tools my_package.travel
  agentkit tools learn --from episodes.jsonl --json""",
)
@click.option(
    "--from",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Episodes as JSON lines.  [default: those in the store]",
)
@click.option(
    "--unjudged",
    is_flag=True,
    help="Also take episodes without a verdict that finished without a failed call.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    metavar="N",
    default=LearningRules().most_examples,
    show_default=True,
    help="Most examples of one tool.",
)
@click.option(
    "--keep-private",
    is_flag=True,
    help="Keep e-mail addresses, phone and account numbers, passwords and keys.",
)
@click.option(
    "--again", is_flag=True, help="Learn also what was learned before and then rolled back."
)
@click.option(
    "--tools",
    "targets",
    multiple=True,
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="Python code of pure tools, to keep the results that they give again.",
)
@click.option("--dry-run", is_flag=True, help="Change nothing, and show what would be learned.")
@store_option
@json_option
def learn_command(
    file: Path | None,
    most: int,
    targets: Sequence[str],
    *,
    unjudged: bool,
    keep_private: bool,
    again: bool,
    dry_run: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Learn what tools are asked for: requests of episodes become examples of the tools called.

    Taken are episodes whose verdict is 'passed'. The examples are added in one new library
    version, and the same episodes add nothing a second time. Also shown are words of all requests
    that no tool has.
    """
    rules = LearningRules(most_examples=most, keep_private=keep_private, again=again)
    with opened_to_read(store_url) as store:
        episodes = episodes_of(store, file)
        manager = ToolManager(
            store, tools=load_tools(targets), author=author(), signer=event_signer()
        )
        passed = is_success if unjudged else has_passed
        report = manager.learn(episodes, rules=rules, passed=passed, dry_run=dry_run)
        words = unmatched_words(episodes, store.load())
    if as_json:
        print_json({**report.to_json(), "unmatched": [_word(word) for word in words]})
        return
    _print(report, words)
    unknown = 0 if unjudged else sum(map(_is_unjudged, episodes))
    if unknown:
        say(f"{plural(unknown, 'episode')} without a verdict left out; --unjudged takes them")


def _is_unjudged(episode: Episode) -> bool:
    return episode.verdict is None and not is_extra_record(episode.metadata)


def _word(word: UnmatchedWord) -> dict[str, Any]:
    return {
        "word": word.word,
        "episodes": word.episodes,
        "failed": word.failed,
        "requests": list(word.requests),
    }


def _print(report: LearnReport, words: Sequence[UnmatchedWord]) -> None:
    if report.added:
        _print_examples(report)
    if words:
        click.echo("\n" if report.added else "", nl=False)
        _print_words(words[:WORDS_SHOWN])
    say(str(report))
    if report.reasons:
        told = ", ".join(f"{count:,} {_WORDS[reason]}" for reason, count in report.reasons.items())
        say(f"taught nothing: {told}")
    if report.repinned:
        say(f"pinned anew: {', '.join(report.repinned)}")


def _print_examples(report: LearnReport) -> None:
    columns = [
        Column(title="tool", fit="fold"),
        Column(title="examples", align="right"),
        Column(title="with result", align="right"),
        Column(title="such as", fit="cut"),
    ]
    most_first = sorted(report.added.items(), key=lambda item: -len(item[1]))
    rows = [
        (name, len(new), sum(one.is_whole for one in new), one_line(new[0].query))
        for name, new in most_first
    ]
    print_table(columns, rows)


def _print_words(words: Sequence[UnmatchedWord]) -> None:
    columns = [
        Column(title="no tool says", fit="fold"),
        Column(title="requests", align="right"),
        Column(title="failed", align="right"),
        Column(title="such as", fit="cut"),
    ]
    rows = [(one.word, one.episodes, one.failed, one_line(one.requests[0])) for one in words]
    print_table(columns, rows)


_WORDS: Mapping[SkipReason, str] = {
    "unknown_tool": "of tools that the library does not hold",
    "no_words": "without words",
    "too_long": "with a request too long to keep",
    "private": "with a private request (--keep-private)",
    "arguments_changed": "that no longer fit the tool",
    "learned_before": "learned before (--again)",
    "known_words": "in words that an example has",
    "full": "beyond the most examples of a tool (--most)",
}
