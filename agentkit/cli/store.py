"""``agentkit store``: copying a store, and comparing it with a copy."""

from __future__ import annotations

from contextlib import closing

import click

from agentkit.cli.boundary import CommandGroup
from agentkit.cli.options import AsJson, command
from agentkit.cli.output import fold, plural, print_facts, print_json, print_table, say, slow_step
from agentkit.cli.stores import opened
from agentkit.errors import UsageError
from agentkit.library.copying import Amount, Comparison, compare_stores, copy_store
from agentkit.library.opening import file_of, open_to_read


@click.group(cls=CommandGroup)
def store() -> None:
    """Copy a store as a whole, or compare two.

    A store is named by its URL: sqlite:///library.db, library.db, postgres://..., redis://...,
    dir:library, artifact:tools.json, https://... . 'agentkit check' looks for damage in one.
    """


@command(short_help="Copy the store SOURCE into the store TARGET.", group=store)
def copy(
    source: str,
    target: str,
    *,
    dry_run: bool = False,
    no_episodes: bool = False,
    as_json: AsJson,
) -> None:
    """Copy the store SOURCE into the store TARGET, with its whole history, and compare both.

    Versions keep their numbers and times, events their hashes and signatures, episodes their order.
    TARGET is empty, or holds a beginning of the same history; then the rest is copied. So run it
    again after it was interrupted, or now and then to keep a copy up to date. Nothing in TARGET is
    ever changed, and of SOURCE nothing at all.

    With --dry-run the exit status is 1 when the stores differ; named is the first difference in
    versions, tools, events and episodes. 'agentkit diff' tells how two libraries differ today.

    Args:
        dry_run: Copy nothing; tell what TARGET holds differently.
        no_episodes: Leave episodes out: only definitions and events.

    Examples:
      agentkit store copy library.db sqlite:///backup.db
      agentkit store copy library.db postgres://agentkit@db/agentkit
      agentkit store copy library.db sqlite:///backup.db --dry-run
      agentkit store copy artifact:tools.json restored.db --no-episodes
    """
    episodes = not no_episodes
    if dry_run:
        _compare(source, target, episodes=episodes, as_json=as_json)
        return
    if target.strip().lower().partition(":")[0] == "memory":
        raise UsageError("a copy in memory: would be gone with this command; name another target")
    one, other = file_of(source), file_of(target)
    is_same_file = one is not None and other is not None and one.resolve() == other.resolve()
    if source == target or is_same_file:
        raise UsageError("SOURCE and TARGET are the same store; name another target")
    with closing(open_to_read(source)) as ours, opened(target) as theirs:
        report = copy_store(ours, theirs, episodes=episodes, progress=slow_step)
    if as_json:
        print_json(report.to_json())
    else:
        facts = {"copied": report.copied} if report.held == Amount() else {}
        facts = facts or {"held": report.held, "copied": report.copied}
        told = [(name, _words(amount, episodes=episodes)) for name, amount in facts.items()]
        print_facts([*told, ("the same", _words(report.compared, episodes=episodes))])
    if report.is_behind:
        say("the source holds more by now; run the command again to copy that too")


def _compare(first: str, second: str, *, episodes: bool, as_json: bool) -> None:
    """Print the first differences between two stores.

    Raises:
        Exit: With status 1, where there is one.
    """
    with closing(open_to_read(first)) as ours, closing(open_to_read(second)) as theirs:
        found = compare_stores(ours, theirs, episodes=episodes, progress=slow_step)
    if as_json:
        print_json(found.to_json())
    else:
        print_facts([("the same", _words(found, episodes=episodes))])
        if found.differences:
            click.echo()
            rows = [(one.part, one.place, one.message) for one in found.differences]
            print_table(["part", "where", fold("what")], rows)
    if not found.is_equal:
        raise click.exceptions.Exit(1)


def _words(amount: Amount | Comparison, *, episodes: bool) -> str:
    parts = [plural(amount.versions, "version"), plural(amount.events, "event")]
    if isinstance(amount, Comparison) and amount.versions:
        parts[0] += f" ({plural(amount.tools, 'tool')} in the newest)"
    if episodes:
        parts.append(plural(amount.episodes, "episode"))
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
