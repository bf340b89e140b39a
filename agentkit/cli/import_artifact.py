"""``agentkit import``: an artifact into the library, through the Tool Manager."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import get_args

import click

from agentkit import evolution
from agentkit import export as exporting
from agentkit.cli.loading import load_tools
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import Column, one_line, plural, print_json, print_table, say
from agentkit.cli.stores import event_signer, opened, person
from agentkit.errors import StoreError, UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.validation.overruling import OVERRULABLE_OF_ARRIVALS
from agentkit.export import importing, requests
from agentkit.library import signing
from agentkit.library.conflicts import ConflictPolicy
from agentkit.library.opening import file_of


@click.command(
    "import",
    epilog="""\b
Examples:
  agentkit import tools.json --dry-run
  agentkit import tools.json --approve weather_now --approve send_mail
  agentkit import tools.json --on-conflict replace
  agentkit import tools.json --key-file public.pem --restore --store sqlite:///copy.db""",
)
@click.argument("file", metavar="FILE")
@click.option(
    "--on-conflict",
    type=click.Choice(["error", "skip", "replace", "suffix"]),
    default="error",
    show_default=True,
    help="When a name stands for another definition: report it, keep the old one, propose the new "
    "one, or add the new one as NAME__2.",
)
@click.option(
    "--approve",
    "approved",
    multiple=True,
    metavar="TOOL",
    help="Agree to a tool to which a person must agree; may be given several times.",
)
@click.option("--approve-all", is_flag=True, help="Agree to all of these.")
@click.option(
    "--overrule",
    "overruled",
    multiple=True,
    metavar="TOOL",
    help="Take a new tool although checks speak against its words: you read them, and the history "
    "says so; may be given several times.",
)
@click.option(
    "--tools",
    "targets",
    multiple=True,
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="Python code of tools, with which the worked calls of composites are tried.",
)
@click.option(
    "--key-file",
    "key_files",
    multiple=True,
    metavar="FILE",
    help="The key that the artifact must be signed with; of ed25519 the public half will do.",
)
@click.option("--expect", default="", metavar="DIGEST", help="The digest that 'export' printed.")
@click.option(
    "--restore",
    is_flag=True,
    help="Make an empty store what the artifact's store was, with all of its history.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing, and say what would come of it.")
@click.option("--reason", default="", help="Why, for the history.")
@store_option
@json_option
def import_artifact(
    file: str,
    *,
    on_conflict: ConflictPolicy,
    approved: Sequence[str],
    approve_all: bool,
    overruled: Sequence[str],
    targets: Sequence[str],
    key_files: Sequence[str],
    expect: str,
    restore: bool,
    dry_run: bool,
    reason: str,
    store_url: str,
    as_json: bool,
) -> None:
    """Bring the artifact FILE into the library.

    Its digests are checked, and its signature when a key is given. New tools whose words pass the
    checks come in as one library version. What a check or a missing consent holds, and what would
    replace a tool, becomes a proposal: see 'agentkit review'. Where something is held or
    refused, the exit status is 1.

    'agentkit tools import' reads files of tools that are no artifacts.
    """
    choices = (approved, approve_all, overruled, targets, dry_run, on_conflict != "error")
    if restore and any(choices):
        raise UsageError(
            "--restore takes all of a history or nothing; leave the other choices away"
        )
    texts = tuple(map(signing.key_text, key_files))
    verifier = signing.read_verifier(texts) if texts else None
    try:
        artifact = exporting.read_artifact(file, verifier=verifier, expected=expect)
    except OSError as error:
        raise StoreError(f"{file}: can not be read ({error.strerror})") from error
    if artifact.signature and not texts:
        say("the artifact is signed, and nobody checked it: give --key-file")
    if restore:
        _restore(artifact, store_url, trusted=bool(texts), as_json=as_json)
        return
    request = requests.ImportRequest(
        person=person(),
        on_conflict=on_conflict,
        approved=approved,
        approves_all=approve_all,
        overruled=overruled,
        reason=reason or f"import {file}",
    )
    with opened(_place(store_url, dry_run=dry_run)) as store:
        code = load_tools(targets)
        manager = evolution.ToolManager(store, tools=code, author=person(), signer=event_signer())
        coming = importing.import_artifact(artifact, manager, request, code=code, dry_run=dry_run)
        report = asyncio.run(coming)
    print_json(report.to_json()) if as_json else _print(report, dry_run=dry_run)
    if not report.is_complete:
        raise click.exceptions.Exit(1)


def _place(store_url: str, *, dry_run: bool) -> str:
    """The store, or none where looking would make the file."""
    path = file_of(store_url)
    return "memory:" if dry_run and path is not None and not path.exists() else store_url


def _restore(artifact: exporting.Artifact, store_url: str, *, trusted: bool, as_json: bool) -> None:
    with opened(store_url) as store:
        version = exporting.restore_artifact(artifact, store, trusted=trusted)
    events = len(artifact.events)
    if as_json:
        print_json({"library_version": version, "events": events})
    else:
        click.echo(f"restored to library version {version} with {events:,} events")


def _print(report: requests.ImportReport, *, dry_run: bool) -> None:
    outcomes = get_args(requests.Outcome)
    counts = {outcome: len(report.of(outcome)) for outcome in outcomes}
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    what = "nothing was written" if dry_run else f"library version {report.version}"
    click.echo(f"{told or 'nothing to import'}; {what}")
    rows = [
        (shown(tool.name), tool.outcome, one_line(shown(tool.why, 400)), tool.proposal_id)
        for tool in report.tools
        if tool.outcome in {"held", "refused", "renamed", "replaced"}
    ]
    if rows:
        columns = [
            Column(title="tool", fit="fold"),
            Column(title="came"),
            Column(title="why", fit="fold"),
            Column(title="proposal"),
        ]
        with_proposals = any(row[-1] for row in rows)
        width = len(columns) if with_proposals else len(columns) - 1
        print_table(columns[:width], [row[:width] for row in rows])
    _advise(report)


def _advise(report: requests.ImportReport) -> None:
    if report.of("refused"):
        say("choose with --on-conflict which definition a name keeps, or 'suffix' for both")
    held = report.of("held")
    is_written = any(tool.proposal_id for tool in held)
    again = "; or import again with" if is_written else "import with"
    if any(not tool.failed for tool in held):
        first = "'agentkit review approve ID' lets in what waits"
        say(f"{first if is_written else ''}{again} --approve TOOL")
    of_words = [tool for tool in held if tool.failed and _is_about_words(tool)]
    if of_words:
        first = "'agentkit review show ID' tells what speaks against it, and how to overrule it"
        say(f"{first if is_written else ''}{again} --overrule TOOL")
    if any(tool.failed and tool not in of_words for tool in held):
        say("what does not fit here can be imported again, once its reasons are mended")
    if report.untried:
        count = plural(len(report.untried), "composite")
        why = one_line(shown(report.untried[0].untried, 120))
        say(f"the worked calls of {count} were not tried ({why}); --tools CODE tries them")


def _is_about_words(tool: requests.ImportedTool) -> bool:
    return OVERRULABLE_OF_ARRIVALS.issuperset(check.code for check in tool.failed)
