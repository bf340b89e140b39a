"""An artifact into the library, through the Tool Manager, for ``agentkit import``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import click

from agentkit import evolution
from agentkit.cli.loading import load_tools
from agentkit.cli.options import is_typed
from agentkit.cli.output import Column, one_line, plural, print_json, print_table, say
from agentkit.cli.stores import event_signer, opened, person
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.validation.approvals import OVERRULABLE_OF_ARRIVALS
from agentkit.interop import export as exporting
from agentkit.interop.export import importing
from agentkit.library import signing
from agentkit.library.conflicts import ConflictPolicy
from agentkit.library.opening import file_of


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactChoices:
    """What was chosen for an artifact; see the options of ``agentkit import``."""

    on_conflict: ConflictPolicy = "error"
    approved: Sequence[str] = ()
    approve_all: bool = False
    overruled: Sequence[str] = ()
    targets: Sequence[str] = ()
    key_files: Sequence[str] = ()
    expect: str = ""
    restore: bool = False
    dry_run: bool = False
    reason: str = ""


def import_artifact(file: str, choices: ArtifactChoices, *, store_url: str, as_json: bool) -> None:
    """Bring an artifact into the library, and print what became of each tool.

    Raises:
        ArtifactError: The file is damaged, changed, or not signed with the key given.
        UsageError: Choices do not go together.
        Exit: With status 1, where something is held or refused.
    """
    one = choices
    others = (one.approved, one.approve_all, one.overruled, is_typed("targets"), one.dry_run)
    if one.restore and (any(others) or one.on_conflict != "error"):
        raise UsageError(
            "--restore takes all of a history or nothing; leave the other choices away"
        )
    texts = tuple(map(signing.key_text, one.key_files))
    verifier = signing.read_verifier(texts) if texts else None
    artifact = exporting.read_artifact(file, verifier=verifier, expected=one.expect)
    if artifact.signature and not texts:
        say("the artifact is signed, and nobody checked it: give --key-file")
    if one.restore:
        _restore(artifact, store_url, trusted=bool(texts), as_json=as_json)
        return
    request = importing.ImportRequest(
        person=person(),
        on_conflict=one.on_conflict,
        approved=one.approved,
        approves_all=one.approve_all,
        overruled=one.overruled,
        reason=one.reason or f"import {file}",
    )
    with opened(_place(store_url, dry_run=one.dry_run)) as store:
        code = load_tools(one.targets)
        manager = evolution.ToolManager(store, tools=code, author=person(), signer=event_signer())
        coming = importing.import_artifact(
            artifact, manager, request, code=code, dry_run=one.dry_run
        )
        report = asyncio.run(coming)
    print_json(report.to_json()) if as_json else _print(report, dry_run=one.dry_run)
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


def _print(report: importing.ImportReport, *, dry_run: bool) -> None:
    outcomes = get_args(importing.Outcome)
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


def _advise(report: importing.ImportReport) -> None:
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


def _is_about_words(tool: importing.ImportedTool) -> bool:
    return OVERRULABLE_OF_ARRIVALS.issuperset(check.code for check in tool.failed)
