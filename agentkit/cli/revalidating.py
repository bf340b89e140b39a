"""``agentkit proposals revalidate``: composites whose children changed untried are tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import click

from agentkit.cli.managing import managed, targets_option
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import Column, one_line, print_json, print_table, say
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.lifecycle.revalidating import Revalidation


@click.command(
    epilog="""\b
Examples:
  agentkit proposals revalidate --tools my_package.loans
  agentkit proposals revalidate --json"""
)
@targets_option
@click.option(
    "--run-undeclared",
    is_flag=True,
    help="Also run tools that declare no effects: your word that they touch nothing. Otherwise "
    "they answer from their worked calls.",
)
@store_option
@json_option
def revalidate(
    targets: Sequence[str], *, run_undeclared: bool, store_url: str, as_json: bool
) -> None:
    """Look again at the composites that wait for re-validation.

    They are made of a tool that changed while nobody could try them. One whose worked calls hold
    waits no more; one that breaks stays marked, and the exit status is 1. What each was found to
    be is an event.
    """
    trying = InsertPolicy(run_undeclared=run_undeclared)
    with managed(store_url, targets, trying=trying) as manager:
        found = manager.revalidate()
    if as_json:
        print_json(found.to_json())
    else:
        _print(found)
    if found.broken:
        raise click.exceptions.Exit(1)


def _print(found: Revalidation) -> None:
    rows = list(_rows(found))
    if not rows:
        say("no composite waits for re-validation")
        return
    columns = [
        Column(title="composite", fit="fold"),
        Column(title="found"),
        Column(title="why", fit="fold"),
    ]
    print_table(columns, rows)
    if found.unknown:
        say("what is unknown stays marked; give the code of its tools with --tools")
    if found.broken:
        say("mend what is broken ('agentkit tools compose'), or take the change back that broke it")


def _rows(found: Revalidation) -> Iterator[tuple[str, str, str]]:
    kinds: Mapping[str, Mapping[str, str]] = {
        "broken": found.broken,
        "unknown": found.unknown,
        "holds": dict.fromkeys(found.holds, "its worked calls hold"),
    }
    for kind, composites in kinds.items():
        for name, why in composites.items():
            yield shown(name), kind, one_line(shown(why, 300))
