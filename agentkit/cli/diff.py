"""``agentkit diff``: what changed between two libraries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from agentkit.cli.diff_view import print_diff
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import print_json
from agentkit.cli.sources import label, read_source, split_version
from agentkit.errors import UsageError
from agentkit.interop.export import diff as diffing
from agentkit.interop.export.artifact import GateEvidence, gate_evidence
from agentkit.library import Library


@click.command(
    epilog="""\b
Examples:
  agentkit diff 3 5                                  versions of the project's library
  agentkit diff 3                                    what came since version 3
  agentkit diff old.json new.json
  agentkit diff library.db@3 library.db
  agentkit diff tools.json sqlite:///library.db --tool weather_now
  agentkit diff main.json branch.json --markdown > comment.md
  agentkit diff main.json branch.json --exit-code"""
)
@click.argument("before", metavar="A")
@click.argument("after", metavar="[B]", default="")
@click.option(
    "--tool",
    "only",
    multiple=True,
    metavar="NAME",
    help="Only this tool; may be given several times.",
)
@click.option("--markdown", "as_markdown", is_flag=True, help="Markdown, for a pull request.")
@click.option("--exit-code", "with_exit_code", is_flag=True, help="Exit status 1 on a difference.")
@store_option
@json_option
def diff(
    before: str,
    after: str,
    *,
    only: Sequence[str],
    as_markdown: bool,
    with_exit_code: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Show what changed from the library A to the library B.

    Each is a version of --store, or an artifact's file or the URL of a store, with @VERSION for an
    earlier version; without B it is the newest version of --store. Changes of contracts are told as
    breaking or compatible, those of words are shown word by word, with the composites above and
    what the gates said.
    """
    if as_json and as_markdown:
        raise UsageError("choose one of --json and --markdown")
    places = [_place(one, store_url) for one in (before, after)]
    (old, _), (new, evidence) = map(_load, places)
    if only:
        unknown = [name for name in only if name not in old and name not in new]
        if unknown:
            raise UsageError(f"neither library has a tool {', '.join(map(repr, unknown))}")
    found = diffing.compare_libraries(old, new, evidence=evidence, only=only)
    names = {"before": label(places[0]), "after": label(places[1])}
    if as_json:
        print_json(found.to_json())
    elif as_markdown:
        click.echo(diffing.diff_markdown(found, **names), nl=False)
    else:
        print_diff(found, **names)
    if with_exit_code and not found.is_empty:
        raise click.exceptions.Exit(1)


def _place(typed: str, store_url: str) -> str:
    """Where a library lies: a number, or nothing, means a version of the command's store."""
    if not typed:
        return store_url
    return f"{store_url}@{typed}" if typed.isdecimal() and not Path(typed).exists() else typed


def _load(place: str) -> tuple[Library, tuple[GateEvidence, ...]]:
    url, version = split_version(place)
    with read_source(url, version=version) as store:
        library = store.load(version)
        events = [one for one in store.events() if one.library_version <= library.version]
        evidence = gate_evidence(events)
        held = getattr(store, "artifact", None)
    return library, evidence if held is None or events else held.evidence
