"""``agentkit export``, ``import`` and ``store copy``: artifacts, other formats, whole stores."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, get_args

import click

from agentkit.agent.session import reserved_ids
from agentkit.cli.add import ARTIFACT, ask_for
from agentkit.cli.boundary import CommandGroup
from agentkit.cli.loading import load_tools
from agentkit.cli.options import (
    AtVersion,
    OnConflict,
    Reason,
    StoreUrl,
    Targets,
    argument,
    command,
    option,
    typed_options,
)
from agentkit.cli.output import Output, fold, one_line, print_table, say, say_some
from agentkit.cli.stores import manager_of, opened, person, read_source
from agentkit.episodes.files import BrokenLine, import_episodes
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.interop import export as exporting
from agentkit.interop.export import formats, importing
from agentkit.library import chain
from agentkit.library.copying import copy_store
from agentkit.library.opening import open_to_read
from agentkit.library.store import append_all
from agentkit.reading import open_plain
from agentkit.tools.error_messages import plural

_FORMATS = ("artifact", *formats.FORMATS)
_AT_A_TIME = 256
_HEAD_BYTES = 4096


@command()
def export(
    names: Annotated[tuple[str, ...], argument("[TOOL]...")] = (),
    *,
    form: Annotated[str, option("--format", type=click.Choice(_FORMATS))] = "artifact",
    output: Annotated[str | None, option("-o", "--output")] = None,
    at: AtVersion,
    sign: bool = False,
    store_url: StoreUrl,
) -> Output:
    """Write the library into a file: all of it, or the tools TOOL with what they call.

    An artifact holds definitions, history, evidence and digests. The other formats are those of
    providers and MCP; what they cannot express is counted on stderr, and listed by --json, which
    prints a record of what was written instead of the text itself.

    Args:
        form: What to write. An artifact holds everything, and
            'agentkit import' reads it.
        output (FILE): Where to write; .gz is compressed.
        sign: Sign the artifact with the key in AGENTKIT_AUDIT_KEY(_FILE).

    Examples:
      agentkit export -o tools.json                  everything, with its history
      agentkit export -o tools.json --sign           signed with AGENTKIT_AUDIT_KEY
      agentkit export --format openai -o openai.json
      agentkit export order_total --format mcp       a tool, with what it calls
      agentkit export --store artifact:tools.json --format anthropic
    """
    is_artifact = form == "artifact"
    if sign and not is_artifact:
        raise UsageError("only an artifact can be signed; leave --format out")
    with read_source(store_url) as store:
        artifact = exporting.artifact_of(store, version=at, history=is_artifact, only=names)
    if sign:
        signer = chain.environment_signer()
        if signer is None:
            variables = f"{chain.KEY_VARIABLE} or {chain.KEY_FILE_VARIABLE}"
            raise UsageError(f"--sign needs a key in {variables}")
        artifact = exporting.signed(artifact, signer)
    library = artifact.library
    record = {"format": form, "tools": len(library), "library_version": library.version}
    if is_artifact and output is not None:
        digest = exporting.write_artifact(artifact, output)
        say(f"{plural(len(library), 'tool')} of library version {library.version} in {output}")
        record |= {"file": output, "digest": digest}
        return Output(record=record, view=lambda: click.echo(digest))
    if is_artifact:
        text = exporting.artifact_text(artifact)
        return Output(record=json.loads(text), view=lambda: click.echo(text, nl=False))
    rendering = formats.render(library, form)
    text = json.dumps(rendering.value, ensure_ascii=False, indent=2) + "\n"
    record |= {"names": dict(rendering.names)}
    if output is not None:
        Path(output).write_text(text, encoding="utf-8")
        return Output(record=record | {"file": output}, view=lambda: None)
    record |= {"content": rendering.value}
    return Output(record=record, view=lambda: click.echo(text, nl=False))


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactOptions:
    """What becomes of an artifact.

    Attributes:
        approve_all: Approve every tool that needs a person's approval.
        yes: Do not show the tools and ask; needed without a terminal.
        key_file (FILE): The key that the artifact must be signed with; of ed25519 the public half
            suffices
    """

    on_conflict: OnConflict
    approve_all: bool = False
    yes: bool = False
    targets: Targets
    key_file: tuple[str, ...] = ()
    reason: Reason


@command("import")
def import_file(
    files: Annotated[tuple[str, ...], argument("FILE...", required=True)],
    *,
    choices: ArtifactOptions,
    own: bool = False,
    store_url: StoreUrl,
) -> Output:
    """Import the artifact FILE into the library, or the episodes of each FILE.

    The content decides which. An artifact's digests are verified, and its signature if a key is
    given. All that models will read of its tools is shown, and you are asked whether to import
    them. New primitives that pass the checks form one library version. Composites, tools that a
    check or a missing consent holds, and replacements become proposals: see 'agentkit review'. If
    something is held or refused, the exit status is 1. --tools runs the worked calls of composites.

    Episodes are JSON lines or Parquet, plain or gzipped. Known ids are skipped; lines that hold no
    episode are reported. Anybody may have written them, so they are labelled 'imported', and
    nothing is learned from them; --own keeps them as they are.

    'agentkit tools import' reads other files of tools, and 'agentkit store copy artifact:FILE NEW'
    makes a library with the whole history of an artifact.

    Args:
        own: These episodes are of your own agents, as files that 'agentkit serve' left are.

    Examples:
      agentkit import tools.json
      agentkit import tools.json --on-conflict replace --key-file public.pem
      agentkit import episodes.jsonl.gz
      agentkit import --own library-unkept-*.jsonl
    """
    artifacts = [name for name in files if _is_artifact(name)]
    if not artifacts:
        of_all = {"files", "own", "store_url", "as_json"}
        if strange := [word for name, word in typed_options().items() if name not in of_all]:
            raise UsageError(f"{strange[0]} is for artifacts, and {files[0]} is none")
        return _import_episodes(files, store_url, own=own)
    if own:
        raise UsageError(f"--own is for episodes, and {artifacts[0]} is an artifact")
    if len(files) > 1:
        raise UsageError("give one artifact at a time, and episodes in another command")
    return _import_artifact(files[0], choices, store_url)


def _is_artifact(name: str) -> bool:
    """Whether a file begins as artifacts do."""
    try:
        with open_plain(name) as file:
            head = file.read(_HEAD_BYTES)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(name) as packed:
                head = packed.read(_HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{name}: cannot be read ({reason})") from error
    return ARTIFACT in head


def _import_artifact(file: str, one: ArtifactOptions, store_url: str) -> Output:
    """Bring an artifact into the library; what became of each tool."""
    texts = tuple(map(chain.key_text, one.key_file))
    verifier = chain.read_verifier(texts) if texts else None
    artifact = exporting.read_artifact(file, verifier=verifier)
    if artifact.signature and not texts:
        say("the signature was not checked; give --key-file")
    request = importing.ImportRequest(
        person=person(),
        on_conflict=one.on_conflict,
        approves_all=one.approve_all,
        reason=one.reason or f"import {file}",
    )
    with opened(store_url) as store:
        if not (one.yes or one.approve_all):
            ask_for(artifact.library.definitions, store.load(), one.on_conflict)
        manager = manager_of(store, load_tools(one.targets), author=person())
        report = asyncio.run(importing.import_artifact(artifact, manager, request))
    return Output(
        record=report.to_json(), view=lambda: _print(report), failed=not report.is_complete
    )


def _print(report: importing.ImportReport) -> None:
    counts = {outcome: len(report.of(outcome)) for outcome in get_args(importing.Outcome)}
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    click.echo(f"{summary or 'nothing to import'}; library version {report.version}")
    rows = [
        (tool.name, tool.outcome, one_line(shown(tool.why, 400)), tool.proposal_id)
        for tool in report.tools
        if tool.outcome in {"held", "refused", "replaced"}
    ]
    if rows:
        print_table([fold("tool"), "came", fold("why"), "proposal"], rows)
    if report.of("refused"):
        say("choose with --on-conflict which definition a name keeps")
    if report.of("held"):
        say("'agentkit review show ID' says why; 'agentkit review approve ID' lets a tool in")


def _import_episodes(files: Sequence[str], store_url: str, *, own: bool) -> Output:
    imported: list[dict[str, object]] = []
    for name in files:
        broken: list[BrokenLine] = []
        count = left_out = 0
        episodes = import_episodes(name, own=own, on_broken=broken.append)
        batch = tuple(islice(episodes, _AT_A_TIME))
        if broken and not batch:
            raise UsageError(
                f"{name} is neither an artifact nor a file of episodes; tools and API "
                f"descriptions come in with: agentkit tools import {name}"
            )
        with opened(store_url) as store:
            reserved = frozenset() if own else reserved_ids(store)
            while batch:
                kept = [one for one in batch if one.episode_id not in reserved]
                append_all(store, kept)
                count, left_out = count + len(kept), left_out + len(batch) - len(kept)
                batch = tuple(islice(episodes, _AT_A_TIME))
        say_some(map(str, broken[:-1]))
        say_some(map(str, broken[-1:]))  # it may say that no more of the file is read
        if left_out:
            say(f"{name}: {left_out:,} left out, with the ids of answers that runs here wait for")
        say(f"{name}: {plural(count, 'episode')} read")
        outcome = {"episodes": count, "broken_lines": len(broken), "left_out": left_out}
        imported.append({"file": name, **outcome})
    nothing = any(not one["episodes"] for one in imported if one["left_out"])
    return Output(record=imported, view=lambda: None, failed=nothing)


@click.group(cls=CommandGroup)
def store() -> None:
    """Copy a store as a whole.

    A store is named by its URL: sqlite:///library.db, library.db, postgres://..., redis://...,
    dir:library, artifact:tools.json. 'agentkit check' looks for damage in one.
    """


@command(short_help="Copy the store SOURCE into the empty store TARGET.", group=store)
def copy(source: str, target: str) -> Output:
    """Copy the store SOURCE into the empty store TARGET, with its whole history.

    Versions keep their numbers and times, events their hashes and signatures, episodes their order.
    SOURCE is only read.

    Examples:
      agentkit store copy library.db sqlite:///backup.db
      agentkit store copy library.db postgres://agentkit@db/agentkit
      agentkit store copy artifact:tools.json restored.db
    """
    if target.strip().lower().partition(":")[0] == "memory":
        raise UsageError("a copy in memory: would be gone with this command; name another target")
    with closing(open_to_read(source)) as ours, opened(target) as theirs:
        copied = copy_store(ours, theirs)
    counts = asdict(copied)
    words = ", ".join(plural(count, name[:-1]) for name, count in counts.items())
    return Output(record=counts, view=lambda: click.echo(f"copied {words}"))
