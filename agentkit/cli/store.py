"""``agentkit store``: copying a store, and comparing it with a copy."""

from __future__ import annotations

from collections.abc import Sequence

import click

from agentkit.cli.boundary import CommandGroup
from agentkit.cli.options import json_option
from agentkit.cli.output import Column, plural, print_json, print_table, say
from agentkit.cli.progress import slow_progress
from agentkit.cli.stores import opened, opened_untouched
from agentkit.errors import UsageError
from agentkit.library.comparing import Amount, Comparison, compare_stores
from agentkit.library.copying import Copied, copy_store
from agentkit.library.opening import file_of


@click.group(cls=CommandGroup)
def store() -> None:
    """Copy a store as a whole, or compare two.

    A store is named by its URL: sqlite:///library.db, library.db, postgres://..., redis://...,
    dir:library, artifact:tools.json, https://... . 'agentkit check' looks for damage in one.
    """


@store.command(
    short_help="Copy the store SOURCE into the store TARGET.",
    epilog="""\b
Examples:
  agentkit store copy library.db sqlite:///backup.db
  agentkit store copy library.db postgres://agentkit@db/agentkit
  agentkit store copy library.db sqlite:///backup.db --dry-run
  agentkit store copy artifact:tools.json restored.db --no-episodes""",
)
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("--dry-run", is_flag=True, help="Copy nothing; tell what TARGET holds differently.")
@click.option(
    "--no-episodes", is_flag=True, help="Leave episodes out: only definitions and events."
)
@json_option
def copy(source: str, target: str, *, dry_run: bool, no_episodes: bool, as_json: bool) -> None:
    """Copy the store SOURCE into the store TARGET, with its whole history, and compare both.

    Versions keep their numbers and times, events their hashes and signatures, episodes their order.
    TARGET is empty, or holds a beginning of the same history; then the rest is copied. So run it
    again after it was interrupted, or now and then to keep a copy up to date. Nothing in TARGET is
    ever changed, and of SOURCE nothing at all.

    With --dry-run the exit status is 1 when the stores differ; named is the first difference in
    versions, tools, events and episodes. 'agentkit diff' tells how two libraries differ today.
    """
    episodes = not no_episodes
    if dry_run:
        _compare(source, target, episodes=episodes, as_json=as_json)
        return
    _require_two(source, target)
    with opened_untouched(source) as ours, opened(target) as theirs, slow_progress() as begin:
        report = copy_store(ours, theirs, episodes=episodes, progress=begin)
    print_json(report.to_json()) if as_json else _print_copied(report, episodes=episodes)
    if report.is_behind:
        say("the source holds more by now; run the command again to copy that too")


def _compare(first: str, second: str, *, episodes: bool, as_json: bool) -> None:
    """Print the first differences between two stores.

    Raises:
        Exit: With status 1, where there is one.
    """
    with (
        opened_untouched(first) as ours,
        opened_untouched(second) as theirs,
        slow_progress() as begin,
    ):
        found = compare_stores(ours, theirs, episodes=episodes, progress=begin)
    if as_json:
        print_json(found.to_json())
    else:
        click.echo(f"the same  {_same(found, episodes=episodes)}")
        if found.differences:
            click.echo()
            columns = (
                Column(title="part"),
                Column(title="where"),
                Column(title="what", fit="fold"),
            )
            print_table(columns, [(one.part, one.place, one.message) for one in found.differences])
    if not found.is_equal:
        raise click.exceptions.Exit(1)


def _require_two(source: str, target: str) -> None:
    """Refuse copies that could not be of use."""
    if target.strip().lower().partition(":")[0] == "memory":
        raise UsageError("a copy in memory: would be gone with this command; name another target")
    one, other = file_of(source), file_of(target)
    is_same_file = one is not None and other is not None and one.resolve() == other.resolve()
    if source == target or is_same_file:
        raise UsageError("SOURCE and TARGET are the same store; name another target")


def _print_copied(report: Copied, *, episodes: bool) -> None:
    """Print what was copied, and what was compared afterwards."""
    if report.held != Amount():
        click.echo(f"held      {_amount(report.held, episodes=episodes)}")
    click.echo(f"copied    {_amount(report.copied, episodes=episodes)}")
    click.echo(f"the same  {_same(report.compared, episodes=episodes)}")


def _amount(amount: Amount, *, episodes: bool) -> str:
    parts = [plural(amount.versions, "version"), plural(amount.events, "event")]
    return _listed([*parts, plural(amount.episodes, "episode")] if episodes else parts)


def _same(found: Comparison, *, episodes: bool) -> str:
    versions = plural(found.versions, "version")
    tools = f" ({plural(found.tools, 'tool')} in the newest)" if found.versions else ""
    parts = [f"{versions}{tools}", plural(found.events, "event")]
    return _listed([*parts, plural(found.episodes, "episode")] if episodes else parts)


def _listed(parts: Sequence[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
