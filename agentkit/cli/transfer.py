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
from agentkit.cli.add import ARTIFACT
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
from agentkit.cli.output import Output, fold, one_line, print_facts, print_table, say, say_some
from agentkit.cli.stores import is_there, manager_of, opened, person, read_source
from agentkit.episodes.files import BrokenLine, import_episodes
from agentkit.errors import UsageError
from agentkit.evaluation.results.texts import shown
from agentkit.interop import export as exporting
from agentkit.interop.export import formats, importing
from agentkit.library import chain
from agentkit.library.copying import Amount, compare_stores, copy_store
from agentkit.library.opening import file_of, open_to_read
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
    record |= {} if output is None else {"file": output}
    if is_artifact and output is None:
        text = exporting.artifact_text(artifact)
        return Output(record=json.loads(text), view=lambda: click.echo(text, nl=False))
    if is_artifact:
        digest = exporting.write_artifact(artifact, str(output))
        say(f"{plural(len(library), 'tool')} of library version {library.version} in {output}")
        return Output(record=record | {"digest": digest}, view=lambda: click.echo(digest))
    rendering = formats.render(library, form)
    text = json.dumps(rendering.value, ensure_ascii=False, indent=2) + "\n"
    if output is not None:
        Path(output).write_text(text, encoding="utf-8")
    record |= {} if output else {"content": rendering.value}
    record |= {"names": dict(rendering.names)}
    return Output(record=record, view=lambda: None if output else click.echo(text, nl=False))


@dataclass(frozen=True, kw_only=True, slots=True)
class ArtifactOptions:
    """What becomes of an artifact.

    Attributes:
        approve (TOOL): Approve a tool that needs a person's approval
        approve_all: Approve all of these.
        key_file (FILE): The key that the artifact must be signed with; of ed25519 the public half
            suffices
        restore: Restore the artifact's whole history into an empty store.
        dry_run: Write nothing, and say what would happen.
    """

    on_conflict: OnConflict
    approve: tuple[str, ...] = ()
    approve_all: bool = False
    targets: Targets
    key_file: tuple[str, ...] = ()
    restore: bool = False
    dry_run: bool = False
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
    given. New primitives that pass the checks form one library version. Composites, tools that a
    check or a missing consent holds, and replacements become proposals: see 'agentkit review'. If
    something is held or refused, the exit status is 1. --tools runs the worked calls of composites.

    Episodes are JSON lines or Parquet, plain or gzipped. Known ids are skipped; lines that hold no
    episode are reported. Anybody may have written them, so they are labelled 'imported', and
    nothing is learned from them; --own keeps them as they are.

    'agentkit tools import' reads other files of tools.

    Args:
        own: These episodes are of your own agents, as files that 'agentkit serve' left are.

    Examples:
      agentkit import tools.json --dry-run
      agentkit import tools.json --approve weather_now --approve send_mail
      agentkit import tools.json --on-conflict replace
      agentkit import tools.json --key-file public.pem --restore --store sqlite:///copy.db
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
    if one.restore:
        allowed = {"restore", "key_file", "files", "store_url", "as_json"}
        if typed_options().keys() - allowed:
            raise UsageError("--restore takes the whole history; leave the other options out")
        with opened(store_url) as store:
            version = exporting.restore_artifact(artifact, store, trusted=bool(texts))
        count = len(artifact.events)
        message = f"restored to library version {version} with {count:,} events"
        record = {"library_version": version, "events": count}
        return Output(record=record, view=lambda: click.echo(message))
    request = importing.ImportRequest(
        person=person(),
        on_conflict=one.on_conflict,
        approved=one.approve,
        approves_all=one.approve_all,
        reason=one.reason or f"import {file}",
    )
    # Looking makes no file.
    with opened("memory:" if one.dry_run and not is_there(store_url) else store_url) as store:
        manager = manager_of(store, load_tools(one.targets), author=person())
        coming = importing.import_artifact(artifact, manager, request, dry_run=one.dry_run)
        report = asyncio.run(coming)
    return Output(
        record=report.to_json(),
        view=lambda: _print(report, dry_run=one.dry_run),
        failed=not report.is_complete,
    )


def _print(report: importing.ImportReport, *, dry_run: bool) -> None:
    counts = {outcome: len(report.of(outcome)) for outcome in get_args(importing.Outcome)}
    summary = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    what = "nothing was written" if dry_run else f"library version {report.version}"
    click.echo(f"{summary or 'nothing to import'}; {what}")
    rows = [
        (tool.name, tool.outcome, one_line(shown(tool.why, 400)), tool.proposal_id)
        for tool in report.tools
        if tool.outcome in {"held", "refused", "renamed", "replaced"}
    ]
    if rows:
        print_table([fold("tool"), "came", fold("why"), "proposal"], rows)
    if report.of("refused"):
        say("choose with --on-conflict which definition a name keeps, or 'suffix' for both")
    if report.of("held"):
        say("'agentkit review show ID' tells why a tool waits; 'agentkit review approve ID', or an")
        say("import with --approve TOOL, lets it in")


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
        say_some(map(str, broken))
        if left_out:
            say(f"{name}: {left_out:,} left out, with the ids of answers that runs here wait for")
        say(f"{name}: {plural(count, 'episode')} read")
        outcome = {"episodes": count, "broken_lines": len(broken), "left_out": left_out}
        imported.append({"file": name, **outcome})
    nothing = any(not one["episodes"] for one in imported if one["left_out"])
    return Output(record=imported, view=lambda: None, failed=nothing)


@click.group(cls=CommandGroup)
def store() -> None:
    """Copy a store as a whole, or compare two.

    A store is named by its URL: sqlite:///library.db, library.db, postgres://..., redis://...,
    dir:library, artifact:tools.json, https://... . 'agentkit check' looks for damage in one.
    """


@command(short_help="Copy the store SOURCE into the store TARGET.", group=store)
def copy(source: str, target: str, *, dry_run: bool = False, no_episodes: bool = False) -> Output:
    """Copy the store SOURCE into the store TARGET, with its whole history, and compare both.

    Versions keep their numbers and times, events their hashes and signatures, episodes their order.
    TARGET is empty, or holds the beginning of the same history, which is then completed: run the
    command again after an interruption, or to bring a copy up to date. What is in TARGET is never
    changed, and SOURCE is only read.

    With --dry-run the exit status is 1 when the stores differ; the first difference in versions,
    tools, events and episodes is named.

    Args:
        dry_run: Copy nothing; say how TARGET differs.
        no_episodes: Copy definitions and events only.

    Examples:
      agentkit store copy library.db sqlite:///backup.db
      agentkit store copy library.db postgres://agentkit@db/agentkit
      agentkit store copy library.db sqlite:///backup.db --dry-run
      agentkit store copy artifact:tools.json restored.db --no-episodes
    """
    episodes = not no_episodes
    if dry_run:
        with closing(open_to_read(source)) as ours, closing(open_to_read(target)) as theirs:
            found = compare_stores(ours, theirs, episodes=episodes)
        say_some(f"{one.part} {one.place}: {one.message}" for one in found.differences)
        return Output(
            record={"is_equal": found.is_equal, **asdict(found)},
            view=lambda: print_facts([("the same", _words(found, episodes=episodes))]),
            failed=not found.is_equal,
        )
    if target.strip().lower().partition(":")[0] == "memory":
        raise UsageError("a copy in memory: would be gone with this command; name another target")
    one, other = file_of(source), file_of(target)
    is_same_file = one is not None and other is not None and one.resolve() == other.resolve()
    if source == target or is_same_file:
        raise UsageError("SOURCE and TARGET are the same store; name another target")
    with closing(open_to_read(source)) as ours, opened(target) as theirs:
        report = copy_store(ours, theirs, episodes=episodes)
    amounts = {"copied": report.copied, "the same": report.compared}
    rows = [(name, _words(amount, episodes=episodes)) for name, amount in amounts.items()]
    if not report.compared.is_equal:
        say("the source has grown since; run the command again to copy that too")
    compared = {"is_equal": report.compared.is_equal, **asdict(report.compared)}
    record = {"copied": asdict(report.copied), "compared": compared}
    return Output(record=record, view=lambda: print_facts(rows))


def _words(amount: Amount, *, episodes: bool) -> str:
    parts = [plural(amount.versions, "version"), plural(amount.events, "event")]
    return ", ".join([*parts, *([plural(amount.episodes, "episode")] if episodes else [])])
