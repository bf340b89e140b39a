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
from typing import Any, Literal, get_args

import click

from agentkit.cli.loading import load_tools
from agentkit.cli.options import (
    command,
    common_options,
    conflict_option,
    flag,
    option,
    reason_option,
    several,
    tools_option,
    typed_options,
)
from agentkit.cli.output import fold, one_line, plural, print_json, print_table, say, say_some
from agentkit.cli.stores import is_there, manager_of, opened, person
from agentkit.cli.tools import ARTIFACT
from agentkit.episodes import Episode
from agentkit.episodes.files import BrokenLine, import_episodes
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.validation.approvals import OVERRULABLE_OF_ARRIVALS
from agentkit.interop import export as exporting
from agentkit.interop.export import importing
from agentkit.library import EpisodeStore, signing
from agentkit.library.capabilities import BatchAppending
from agentkit.library.conflicts import ConflictPolicy

FileKind = Literal["artifact", "episodes", "other"]

_AT_A_TIME = 256
_HEAD_BYTES = 1 << 20
_READ_LINES = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactChoices:
    """What was chosen for an artifact; see the options of ``agentkit import``."""

    on_conflict: ConflictPolicy
    approved: Sequence[str]
    approve_all: bool
    overruled: Sequence[str]
    targets: Sequence[str]
    key_files: Sequence[str]
    expect: str
    restore: bool
    dry_run: bool
    reason: str


@command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@conflict_option
@several(
    "--approve", "approved", metavar="TOOL", help="Agree to a tool to which a person must agree"
)
@flag("--approve-all", help="Agree to all of these.")
@several(
    "--overrule",
    "overruled",
    metavar="TOOL",
    help="Take a new tool although checks speak against its words: you read them, and the log says "
    "so",
)
@tools_option
@several(
    "--key-file",
    "key_files",
    metavar="FILE",
    help="The key that the artifact must be signed with; of ed25519 the public half will do",
)
@option("--expect", default="", metavar="DIGEST", help="The digest that 'export' printed.")
@flag(
    "--restore",
    help="Make an empty store what the artifact's store was, with all of its history.",
)
@flag("--dry-run", help="Write nothing, and say what would come of it.")
@reason_option
@common_options
def import_file(files: Sequence[str], *, store_url: str, as_json: bool, **choices: Any) -> None:
    """Bring the artifact FILE into the library, or keep the episodes of each FILE.

    The content says which it is. Of an artifact the digests are checked, and its signature when a
    key is given. New tools whose words pass the checks come in as one library version. What a check
    or a missing consent holds, and what would replace a tool, becomes a proposal: see 'agentkit
    review'. Where something is held or refused, the exit status is 1. Worked calls of composites
    are tried with --tools.

    Episodes come as JSON lines or Parquet, plain or compressed with gzip. One whose id the store
    knows is left as it is; lines that hold no episode are reported and left out.

    'agentkit tools import' reads files of tools that are no artifacts.

    Examples:
      agentkit import tools.json --dry-run
      agentkit import tools.json --approve weather_now --approve send_mail
      agentkit import tools.json --on-conflict replace
      agentkit import tools.json --key-file public.pem --restore --store sqlite:///copy.db
      agentkit import episodes.jsonl.gz spill/*.jsonl
    """
    kinds = {name: file_kind(name) for name in files}
    if others := [name for name, kind in kinds.items() if kind == "other"]:
        raise UsageError(
            f"{others[0]} is neither an artifact nor a file of episodes; tools and API "
            f"descriptions come in with: agentkit tools import {others[0]}"
        )
    if "artifact" not in kinds.values():
        if strange := [word for name, word in typed_options().items() if name in choices]:
            raise UsageError(f"{strange[0]} belongs to artifacts, and {files[0]} holds episodes")
        _import_episodes(files, store_url, as_json=as_json)
    elif len(files) > 1:
        raise UsageError("give one artifact at a time, and episodes in another command")
    else:
        _import_artifact(files[0], ArtifactChoices(**choices), store_url, as_json=as_json)


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
    if ARTIFACT in head[:4096]:
        return "artifact"
    is_parquet = head.startswith(b"PAR1")
    if is_parquet or any(map(_is_episode, head.splitlines()[:_READ_LINES])):
        return "episodes"
    return "other"


def _is_episode(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        # A line may be longer than what was read of the file, or broken.
        return line.lstrip().startswith(b"{") and b'"episode_id"' in line
    return isinstance(record, dict) and "episode_id" in record


def _import_artifact(file: str, one: ArtifactChoices, store_url: str, *, as_json: bool) -> None:
    """Bring an artifact into the library, and print what became of each tool.

    Raises:
        ArtifactError: The file is damaged, changed, or not signed with the key given.
        UsageError: Choices do not go together.
        Exit: With status 1, where something is held or refused.
    """
    texts = tuple(map(signing.key_text, one.key_files))
    verifier = signing.read_verifier(texts) if texts else None
    artifact = exporting.read_artifact(file, verifier=verifier, expected=one.expect)
    if artifact.signature and not texts:
        say("the artifact is signed, and nobody checked it: give --key-file")
    if one.restore:
        others = typed_options().keys() - {"restore", "key_files", "expect", "files"}
        if others - {"store_url", "as_json"}:
            raise UsageError(
                "--restore takes all of a history or nothing; leave the other choices away"
            )
        with opened(store_url) as store:
            version = exporting.restore_artifact(artifact, store, trusted=bool(texts))
        count = len(artifact.events)
        if as_json:
            print_json({"library_version": version, "events": count})
        else:
            click.echo(f"restored to library version {version} with {count:,} events")
        return
    request = importing.ImportRequest(
        person=person(),
        on_conflict=one.on_conflict,
        approved=one.approved,
        approves_all=one.approve_all,
        overruled=one.overruled,
        reason=one.reason or f"import {file}",
    )
    # Looking makes no file.
    with opened("memory:" if one.dry_run and not is_there(store_url) else store_url) as store:
        code = load_tools(one.targets)
        manager = manager_of(store, code, author=person())
        coming = importing.import_artifact(
            artifact, manager, request, code=code, dry_run=one.dry_run
        )
        report = asyncio.run(coming)
    print_json(report.to_json()) if as_json else _print(report, dry_run=one.dry_run)
    if not report.is_complete:
        raise click.exceptions.Exit(1)


def _print(report: importing.ImportReport, *, dry_run: bool) -> None:
    counts = {outcome: len(report.of(outcome)) for outcome in get_args(importing.Outcome)}
    told = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    what = "nothing was written" if dry_run else f"library version {report.version}"
    click.echo(f"{told or 'nothing to import'}; {what}")
    rows = [
        (tool.name, tool.outcome, one_line(shown(tool.why, 400)), tool.proposal_id)
        for tool in report.tools
        if tool.outcome in {"held", "refused", "renamed", "replaced"}
    ]
    if rows:
        print_table([fold("tool"), "came", fold("why"), "proposal"], rows)
    if report.of("refused"):
        say("choose with --on-conflict which definition a name keeps, or 'suffix' for both")
    held = report.of("held")
    is_written = any(tool.proposal_id for tool in held)
    again = "; or import again with" if is_written else "import with"
    if any(not tool.failed for tool in held):
        first = "'agentkit review approve ID' lets in what waits"
        say(f"{first if is_written else ''}{again} --approve TOOL")
    failed = [{check.code for check in tool.failed} for tool in held if tool.failed]
    if any(codes <= OVERRULABLE_OF_ARRIVALS for codes in failed):
        first = "'agentkit review show ID' tells what speaks against it, and how to overrule it"
        say(f"{first if is_written else ''}{again} --overrule TOOL")
    if report.untried:
        why = one_line(shown(report.untried[0].untried, 120))
        count = plural(len(report.untried), "composite")
        say(f"the worked calls of {count} were not tried ({why}); --tools CODE tries them")


def _import_episodes(files: Sequence[str], store_url: str, *, as_json: bool) -> None:
    told: list[dict[str, object]] = []
    with opened(store_url) as store:
        for name in files:
            broken: list[BrokenLine] = []
            count = _keep(store, import_episodes(name, on_broken=broken.append))
            say_some(map(str, broken))
            told.append({"file": name, "episodes": count, "broken_lines": len(broken)})
            if not as_json:
                say(f"{name}: {plural(count, 'episode')} read")
    if as_json:
        print_json(told)


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
