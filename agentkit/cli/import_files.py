"""``agentkit import``: artifacts and files of episodes, told apart by what they hold."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import click

from agentkit.cli import apis
from agentkit.cli.files import read_content
from agentkit.cli.import_artifact import ArtifactChoices, import_artifact
from agentkit.cli.options import is_typed, json_option, store_option
from agentkit.cli.output import plural, print_json, say
from agentkit.cli.stores import opened
from agentkit.episodes import Episode
from agentkit.episodes.files import import_episodes
from agentkit.episodes.jsonl import BrokenLine
from agentkit.errors import AgentKitError, UsageError
from agentkit.library import EpisodeStore
from agentkit.library.capabilities import BatchAppending
from agentkit.tools.sources.json_records import definitions_from_json

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
