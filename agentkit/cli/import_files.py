"""``agentkit import``: artifacts and files of episodes, told apart by what they hold."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import click

from agentkit import evolution
from agentkit.cli import apis
from agentkit.cli.files import read_content
from agentkit.cli.loading import load_tools
from agentkit.cli.options import is_typed, json_option, store_option
from agentkit.cli.output import Column, one_line, plural, print_json, print_table, say
from agentkit.cli.stores import event_signer, opened, person
from agentkit.episodes import Episode
from agentkit.episodes.files import import_episodes
from agentkit.episodes.jsonl import BrokenLine
from agentkit.errors import AgentKitError, UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.validation.approvals import OVERRULABLE_OF_ARRIVALS
from agentkit.interop import export as exporting
from agentkit.interop.export import importing
from agentkit.library import EpisodeStore, signing
from agentkit.library.capabilities import BatchAppending
from agentkit.library.conflicts import ConflictPolicy
from agentkit.library.opening import file_of
from agentkit.tools.sources.json_records import definitions_from_json


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


FileKind: TypeAlias = Literal["artifact", "episodes", "other"]

_AT_A_TIME = 256
_TOLD = 5
"""Lines without an episode that are told of each file; of more there is the count."""

_HEAD_BYTES = 1 << 20
_ARTIFACT = b'"agentkit_artifact"'
"""The key with which an artifact begins."""


@click.command(
    "import",
    short_help="Bring an artifact, or files of episodes, in.",
    epilog="""\b
Examples:
  agentkit import tools.json --dry-run
  agentkit import tools.json --approve weather_now --approve send_mail
  agentkit import tools.json --on-conflict replace
  agentkit import tools.json --key-file public.pem --restore --store sqlite:///copy.db
  agentkit import episodes.jsonl.gz spill/*.jsonl""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
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
    help="Take a new tool although checks speak against its words: you read them, and the log says "
    "so; may be given several times.",
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
@click.option("--reason", default="", help="Why, for the log.")
@store_option
@json_option
def import_file(files: Sequence[str], *, store_url: str, as_json: bool, **choices: Any) -> None:
    """Bring the artifact FILE into the library, or keep the episodes of each FILE.

    What a file holds is told by its content. Of an artifact the digests are checked, and its
    signature when a key is given. New tools whose words pass the checks come in as one library
    version. What a check or a missing consent holds, and what would replace a tool, becomes a
    proposal: see 'agentkit review'. Where something is held or refused, the exit status is 1.

    Episodes come as JSON lines or Parquet, plain or compressed with gzip. One whose id the store
    knows is left as it is; lines that hold no episode are told and left out.

    'agentkit tools import' reads files of tools that are no artifacts.
    """
    kinds = {name: file_kind(name) for name in files}
    for name, kind in kinds.items():
        if kind == "other":
            raise UsageError(_what_it_is(name))
    if "artifact" not in kinds.values():
        names = {one.name: one.opts[-1] for one in click.get_current_context().command.params}
        if strange := [names[key] for key in choices if is_typed(key)]:
            raise UsageError(f"{strange[0]} belongs to artifacts, and {files[0]} holds episodes")
        _import_episodes(files, store_url, as_json=as_json)
    elif len(files) > 1:
        raise UsageError("give one artifact at a time, and episodes in another command")
    else:
        import_artifact(files[0], ArtifactChoices(**choices), store_url=store_url, as_json=as_json)


def file_kind(name: str) -> FileKind:
    """What a file holds, by its beginning.

    Raises:
        UsageError: The file can not be read.
    """
    try:
        with Path(name).open("rb") as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(name) as packed:
                head = packed.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{name}: can not be read ({reason})") from error
    if head.startswith(b"PAR1"):
        return "episodes"
    if _ARTIFACT in head[:4096]:
        return "artifact"
    return "episodes" if any(map(_is_episode, head.splitlines()[:_TOLD])) else "other"


def _is_episode(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        # A line may be longer than what was read of the file, or broken.
        return line.lstrip().startswith(b"{") and b'"episode_id"' in line
    return isinstance(record, dict) and "episode_id" in record


def _what_it_is(name: str) -> str:
    """Why a file is not taken, and which command takes it."""
    data = read_content(name)
    if not data.strip():
        return f"{name} is empty"
    if apis.recognised(data):
        return f"{name} describes an API; type: agentkit tools import {name}"
    try:
        count = len(definitions_from_json(data, reference=name).definitions)
    except AgentKitError:
        count = 0
    if count:
        return f"{name} holds {plural(count, 'tool')}; type: agentkit tools import {name}"
    return f"{name} is neither an artifact nor a file of episodes; was another file meant?"


def _import_episodes(files: Sequence[str], store_url: str, *, as_json: bool) -> None:
    told: list[dict[str, object]] = []
    with opened(store_url) as store:
        for name in files:
            broken = _BrokenLines()
            count = _keep(store, _read(name, broken))
            broken.tell_rest(name)
            told.append({"file": name, "episodes": count, "broken_lines": broken.count})
            if not as_json:
                say(f"{name}: {plural(count, 'episode')} read")
    if as_json:
        print_json(told)


class _BrokenLines:
    """Tells of the first lines of a file that hold no episode, and counts the rest."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, broken: BrokenLine) -> None:
        self.count += 1
        if self.count <= _TOLD:
            say(str(broken))

    def tell_rest(self, name: str) -> None:
        if self.count > _TOLD:
            say(f"{name}: {self.count - _TOLD:,} more lines hold no episode")


def _read(name: str, broken: _BrokenLines) -> Iterator[Episode]:
    try:
        yield from import_episodes(name, on_broken=broken.tell)
    except OSError as error:
        raise UsageError(f"{name}: can not be read ({error.strerror or error})") from error


def _keep(store: EpisodeStore, episodes: Iterator[Episode]) -> int:
    count = 0
    while batch := tuple(islice(episodes, _AT_A_TIME)):
        count += len(batch)
        if isinstance(store, BatchAppending):
            store.append_many(batch)
        else:
            for episode in batch:
                store.append(episode)
    return count
