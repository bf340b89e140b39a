"""The main job's report for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import click

from agentkit.cli.output import Column, plural, print_table
from agentkit.evaluation.report import (
    ConditionReport,
    MainJobReport,
    NotScored,
    RetrievalReport,
)

_TITLES = {"retrieved": "retrieved tools", "given": "benchmark's tools"}


def print_report(report: MainJobReport) -> None:
    """Print the report as tables."""
    click.echo(
        f"{report.benchmark}: {plural(report.catalogue, 'tool')} under {report.names:,} names, "
        f"library version {report.library_version}\n"
        f"{report.model}, refine={report.refine}, seed {report.seed}, "
        f"{report.seconds:.0f} s in all\n"
    )
    if report.retrieval is not None:
        _print_retrieval(report.retrieval)
    if report.answers:
        _print_conditions(report.conditions)
        _print_categories(report)
    if report.stopped:
        click.echo(f"Stopped early: {report.stopped}.\n")
    _print_not_scored(report.not_scored)


def _print_retrieval(report: RetrievalReport) -> None:
    columns = [Column(title=f"Retrieval, {plural(report.questions, 'question')}", fit="fold")]
    columns += [Column(title=f"@{k}", align="right") for k in report.recall]
    columns += [Column(title="offered", align="right")]
    print_table(
        columns,
        [
            ("gold tools found", *_percent(report.recall.values()), f"{report.offered_recall:.0%}"),
            ("  or a namesake of them", *_percent(report.recall_by_name.values()), ""),
        ],
    )
    click.echo(
        f"On average {report.mean_offered:.1f} tools offered in full for about "
        f"{report.mean_tokens:,.0f} prompt tokens, "
        f"{1000 * report.seconds / max(1, report.questions):.1f} ms a question.\n"
    )


def _percent(shares: Iterable[float]) -> Iterator[str]:
    return (f"{share:.0%}" for share in shares)


def _print_conditions(conditions: Sequence[ConditionReport]) -> None:
    columns = [Column(title="The model's calls", fit="fold")]
    columns += [Column(title=_TITLES[c.condition], align="right") for c in conditions]
    rows = [list(column) for column in zip(*map(_cells, conditions), strict=True)]
    print_table(columns, [(label, *cells) for label, cells in zip(_LABELS, rows, strict=True)])
    click.echo()


def _print_categories(report: MainJobReport) -> None:
    conditions = [one.condition for one in report.conditions]
    columns = [Column(title="By category", fit="fold"), Column(title="asked", align="right")]
    for condition in conditions:
        columns.append(Column(title=f"{condition}: tools", align="right"))
        columns.append(Column(title="exact", align="right"))
    print_table(
        columns,
        (
            (
                one.category,
                max(one.questions.values()),
                *chain.from_iterable(
                    (one.right_tools.get(c, 0), one.exact.get(c, 0)) for c in conditions
                ),
            )
            for one in report.categories
        ),
    )
    click.echo()


_LABELS = (
    "questions",
    "gold tools offered",
    "right tools called",
    "  or namesakes of them",
    "exactly right calls",
    "  or to namesakes",
    "mean refinement rounds",
    "two answers agreed",
    "mean tokens read",
    "  of them from the cache",
    "mean tokens written",
    "mean seconds",
    "model errors",
)


def _cells(report: ConditionReport) -> tuple[str, ...]:
    def share(count: int) -> str:
        return f"{count} ({count / max(1, report.questions):.0%})"

    return (
        str(report.questions),
        share(report.gold_offered),
        share(report.right_tools),
        share(report.right_tools_by_name),
        share(report.exact),
        share(report.exact_by_name),
        f"{report.refinements:.1f}",
        share(report.converged),
        f"{report.prompt_tokens:,.0f}",
        f"{report.cached_tokens:,.0f}",
        f"{report.completion_tokens:,.0f}",
        f"{report.seconds:.1f}",
        str(report.errors),
    )


def _print_not_scored(left_out: Sequence[NotScored]) -> None:
    reasons: dict[str, list[NotScored]] = {}
    for entry in left_out:
        reasons.setdefault(entry.reason, []).append(entry)
    for reason, entries in reasons.items():
        count = sum(entry.questions for entry in entries)
        names = ", ".join(entry.category for entry in entries)
        click.echo(f"Not asked: {plural(count, 'question')} ({names}): {reason}.")
    if left_out:
        click.echo()
