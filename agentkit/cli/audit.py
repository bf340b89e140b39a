"""``agentkit log`` and ``check``: what happened to a library, and whatever is wrong with it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import click
from click.core import ParameterSource

from agentkit.cli.options import FOLDER, Answers, FromZero, StoreUrl, command
from agentkit.cli.output import Output, fold, listing, one_line, print_line, right, say
from agentkit.cli.project import FILE, Project, current_project
from agentkit.cli.stores import (
    is_there,
    manager_of,
    opened_if_there,
    opened_to_read,
    tool_traffic,
)
from agentkit.episodes.secrets import KEY_FORMATS, secret_spans
from agentkit.errors import UsageError
from agentkit.evaluation.doctor.catalogue import listed
from agentkit.evaluation.results.texts import label_name, shown
from agentkit.evolution.worth import Worth, worth_of
from agentkit.library import Library, Store, chain
from agentkit.library.chain import event_digests, key_texts, read_verifier
from agentkit.library.changes import missing_tool
from agentkit.library.checking import check_store
from agentkit.library.events import ChainHead, EventKind, LibraryEvent
from agentkit.library.memory import MemoryStore
from agentkit.library.opening import file_of, folder_of, open_to_read
from agentkit.library.store import StoreFault
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import plural

_LONGEST_REASON = 600


@command()
def log(
    *,
    tool: str = "",
    kind: EventKind | None = None,
    limit: FromZero = 50,
    head: bool = False,
    verify: bool = False,
    expect: str | None = None,
    key_file: tuple[str, ...] = (),
    signed_from: int = 1,
    answers: Answers,
    store_url: StoreUrl,
) -> Output:
    """List what happened to the library, oldest first; --json has all that each event says.

    With --tool, a promotion tells what it is worth on later traffic.

    Each event holds the hash of the one before it, so --verify finds what was changed, dropped or
    moved since; the exit status is then 1. Keep what --head prints away from the store: only it can
    show that the end was cut off. Keys of signatures also come from the variable
    AGENTKIT_AUDIT_KEY, or from the file that AGENTKIT_AUDIT_KEY_FILE names.

    Args:
        tool (NAME): Only this tool.
        kind (WORD): Only these.
        limit: Only the newest N events, 0 for all.
        head: Print where the log ends, as NUMBER:HASH.
        verify: Look for what was changed after it was written.
        expect (HEAD): With --verify: what --head printed earlier.
        key_file (FILE): With --verify: a key of signatures, an HMAC secret or an ed25519 key in
            PEM, of which the public half will do
        signed_from (NUMBER): With --verify: the first event that must be signed.

    Examples:
      agentkit log --tool get_weather
      agentkit log --head > head.txt
      agentkit log --verify --expect "$(cat head.txt)"
    """
    if (expect is not None or key_file) and not verify:
        raise UsageError("--expect and --key-file belong to --verify; add it")
    with opened_to_read(store_url) as store:
        events = store.events()
        if verify:
            return _verify(store, events, key_file, signed_from, expect)
        if tool:
            events = _about(store, events, tool)
        worths = _worths(store, answers, tool, events) if tool and not head else {}
    if head:
        end = ChainHead.of(events[-1] if events else None)
        record = {"sequence": end.sequence, "hash": end.hash}
        return Output(record=record, view=lambda: click.echo(str(end)))
    found = [one for one in events if kind in {None, one.kind}]
    kept = found[-limit:] if limit else found
    older = len(found) - len(kept)
    rest = f", {older:,} older (--limit 0 for all)" if older else ""
    return listing(
        [
            {**event.to_json(), "hash": event.hash}
            | ({"worth": worth.to_json()} if (worth := worths.get(event.sequence)) else {})
            for event in kept
        ],
        [
            right("#"),
            "when (UTC)",
            "what",
            fold("tool"),
            right("version"),
            fold("who"),
            fold("why"),
        ],
        [_row(event, worths.get(event.sequence)) for event in kept],
        note=f"{plural(len(kept), 'event')}{rest}",
    )


def _about(store: Store, events: Sequence[LibraryEvent], tool: str) -> Sequence[LibraryEvent]:
    """The events about a tool, also those that wrote many at once.

    Raises:
        ToolNotFoundError: Nothing is known of a tool of that name.
    """
    written = {one.version for one in store.history(tool)}
    found = [
        event
        for event in events
        if event.tool_name == tool or (event.kind == "written" and event.library_version in written)
    ]
    if not found and not written:
        raise missing_tool(tool, store.load())
    return found


def _worths(
    store: Store, answers: str, tool: str, events: Sequence[LibraryEvent]
) -> Mapping[int, Worth]:
    """What promotions of a tool are worth on later traffic, by the numbers of their events."""
    promotions = [one for one in events if one.kind == "active"]
    if not promotions:
        return {}
    manager = manager_of(store)
    with opened_if_there(answers) as evaluations:
        traffic = tool_traffic(store, evaluations)(tool)
    found = {
        one.sequence: worth_of(one.proposal_id, manager.ledger, manager.revision, traffic)
        for one in promotions
    }
    return {number: worth for number, worth in found.items() if worth is not None}


def _row(event: LibraryEvent, worth: Worth | None) -> tuple[object, ...]:
    who = shown(event.author.name) or "nobody"
    return (
        event.sequence,
        event.at[:19].replace("T", " ") or "at an unknown time",
        label_name(event.kind),
        shown(event.tool_name),
        event.library_version if event.digest_after else "",
        who if event.author.kind == "person" else f"{who} ({shown(event.author.kind)})",
        one_line(shown(event.reason, _LONGEST_REASON)) + (f"; {worth}" if worth else ""),
    )


def _verify(
    store: Store,
    events: Sequence[LibraryEvent],
    key_files: Sequence[str],
    signed_from: int,
    expect: str | None,
) -> Output:
    texts = tuple(map(chain.key_text, key_files)) or key_texts()
    found = chain.verify_chain(
        events,
        verifier=read_verifier(texts) if texts else None,
        signed_from=signed_from,
        expected_head=None if expect is None else ChainHead.parse(expect),
    )
    found += chain.verify_library(store, events)
    faults = [fault for fault in found if not fault.is_note]
    notes = [fault for fault in found if fault.is_note]
    head = str(ChainHead.of(events[-1] if events else None))
    record = {
        "events": len(events),
        "head": head,
        "is_whole": not faults,
        "faults": [asdict(fault) for fault in faults],
        "notes": [asdict(fault) for fault in notes],
    }

    def view() -> None:
        for one in (*faults, *notes):
            print_line(f"{'note' if one.is_note else one.code}: {shown(one.message)}")
        verdict = "the log was changed after it was written" if faults else "the log is intact"
        click.secho(f"{plural(len(events), 'event')}: {verdict}", fg="red" if faults else None)
        click.echo(f"head {head}")
        if not texts:
            say("signatures were not checked: no key was given (--key-file)")
        if expect is None:
            say("--expect HEAD, with what --head printed before, shows whether the end was cut off")

    return Output(record=record, view=view, failed=bool(faults))


_SHOWN = 20
_MOST_BYTES = 5_000_000
_DAMAGE = {"damage", *get_args(chain.FaultCode)}


@command()
def check(*, store_url: StoreUrl) -> Output:
    """Report what is wrong with the library and its store; the exit status is 1 when something is.

    Reads everything: the store, every definition with its digest, the chain of events and its
    signatures, every episode; then composites (circles, missing or changed children, programs,
    effects, conditions) and files that people edited; then what a stranger could use: files that
    everybody can read or change, keys in the project's files, MCP servers that nobody approved,
    events without a signature among signed ones. Before a project has a store, its files are
    checked. Nothing is written.

    The key for signatures of events comes from the variable AGENTKIT_AUDIT_KEY, or from the file
    that AGENTKIT_AUDIT_KEY_FILE names.

    Examples:
      agentkit check
      agentkit check --store sqlite:///backup.db --json
    """
    texts, project = key_texts(), current_project()
    source = click.get_current_context().get_parameter_source("store_url")
    is_asked = source in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    is_absent = bool(project.keys) and not is_asked and not is_there(store_url)
    with closing(MemoryStore() if is_absent else open_to_read(store_url)) as store:
        checked = check_store(store, verifier=read_verifier(texts) if texts else None)
        found = list(checked.found)
        is_damaged = any(one.code in _DAMAGE for one in checked.faults)
        if not is_damaged:
            found += _security(project, store_url, checked.library, store.events())
    if is_absent:
        words = f"there is no store at {store_url} yet, so only the project's files were checked"
        found.append(_note("store", words, "'agentkit tools add' makes it"))
    faults, notes = ([one for one in found if one.is_note is is_note] for is_note in (False, True))
    amounts = {"versions": checked.versions, "tools": len(checked.library)}
    amounts |= {"events": checked.events, "episodes": checked.episodes}
    amounts |= {"composites": len(checked.library.dag.composites)}
    record = {
        "is_sound": not faults,
        "library_version": checked.library.version,
        "faults": [asdict(one) for one in faults],
        "notes": [asdict(one) for one in notes],
        "store": amounts,
    }

    def view() -> None:
        counted = (plural(count, name[:-1]) for name, count in amounts.items())
        click.echo(f"checked {', '.join(counted)}")
        for title, some in (("notes", notes), ("faults", faults)):
            _print(some, title)
        summary = plural(len(faults), "fault") if faults else "nothing is wrong"
        click.secho(f"\n{summary}", fg="red" if faults else None, bold=bool(faults))
        if is_damaged:
            say("a copy restores what is damaged: 'agentkit store copy BACKUP NEW'")

    return Output(record=record, view=view, failed=bool(faults))


def _print(findings: Sequence[StoreFault], title: str) -> None:
    """Each finding in sentences: a table would break the commands over lines."""
    if findings:
        click.echo(f"\n{title}")
    for one in findings[:_SHOWN]:
        print_line(f"{shown(one.place)}: {shown(one.message, 600)}", indent=2)
        if one.advice:
            print_line(shown(one.advice, 600), indent=6)
    if len(findings) > _SHOWN:
        click.echo(f"  ... and {len(findings) - _SHOWN:,} more (--json names all)")


def _note(place: str, message: str, advice: str, code: str = "note") -> StoreFault:
    return StoreFault(place=place, message=message, advice=advice, code=code, is_note=True)


def _security(
    project: Project, store_url: str, library: Library, events: Sequence[LibraryEvent]
) -> Iterator[StoreFault]:
    """Find what a stranger could use; nothing is written and no server is asked."""
    if os.name == "posix":
        yield from _readable(store_url)
    named = [project.root / FILE]
    for key in ("tools", "tasks", "held_out", "environment"):
        files = (value.partition(":")[0] for value in project.keys.get(key, ()))
        named += [Path(one) for one in files if Path(one).suffix]
    for path in dict.fromkeys(named):
        if path.is_file():
            yield from _in_file(path)
    yield from _unapproved(library, events)
    if silent := [one.name for one in library.definitions if _writes_unasked(one)]:
        message = (
            f"nobody is asked before a model calls {listed(silent)} from outside, which may write"
        )
        advice = "declare those destructive that need approval, in the file they came from"
        yield _note("tools", message, advice, "unasked")
    yield from _unsigned(events)


def _writes_unasked(definition: ToolDefinition) -> bool:
    """Whether a tool from elsewhere may write and needs no approval."""
    effects = definition.signature.effects
    is_foreign = definition.origin.kind in {"mcp", "openapi"}
    return is_foreign and not effects.destructive and effects.writes is not False


def _readable(store_url: str) -> Iterator[StoreFault]:
    """Files with people's words that every user of the machine can read."""
    path, folder = file_of(store_url), folder_of(store_url)
    places = [] if path is None else [path.with_name(path.name + end) for end in ("", "-wal")]
    if path is not None and path.parent.name == FOLDER:
        places = [path.parent]  # a closed folder closes what lies in it
    elif folder is not None:
        places = [folder / "local"]
    for place in places:
        is_empty = place.is_file() and not place.stat().st_size  # as reading leaves a log of SQLite
        if place.exists() and not is_empty and stat.S_IMODE(place.stat().st_mode) & 0o007:
            message = "every user of this machine can read it, with requests and arguments"
            yield StoreFault(
                place=str(place), code="readable", message=message, advice=f"chmod o= {place}"
            )


def _in_file(path: Path) -> Iterator[StoreFault]:
    """A file of the project that everybody can change, and keys in it."""
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH:
        message = "every user of this machine can change what runs here"
        advice = f"read the file, then chmod o-w {path}"
        yield StoreFault(place=str(path), code="writable", message=message, advice=advice)
    if path.stat().st_size > _MOST_BYTES:
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if what := _secret_in(line, is_code=path.suffix in {".py", ".toml"}):
            message = f"it holds what looks like {what}"
            advice = "revoke it at its issuer, and read the new one from an environment variable"
            yield StoreFault(place=f"{path}:{number}", code="key", message=message, advice=advice)


def _secret_in(line: str, *, is_code: bool) -> str:
    """Describe the secret a line holds; nothing when there is none.

    In code and settings a literal that is called a password is one; tasks are full of such
    arguments.
    """
    if found := KEY_FORMATS.search(line):
        return f"a key ({found[0][:4]}...)"
    for start, end in secret_spans(line) if is_code else ():
        is_literal = line[start - 1] in "\"'" or "://" in line[:start]
        if is_literal and any(map(str.isdigit, line[start:end])):
            return "a password"
    return ""


def _unapproved(library: Library, events: Sequence[LibraryEvent]) -> Iterator[StoreFault]:
    """MCP servers whose tools came in without a person."""
    by_people = [event for event in events if event.author.kind == "person"]
    seen = {approved for event in by_people for approved in event_digests(event)}
    servers: dict[str, list[str]] = {}
    for one in library.definitions:
        if one.origin.kind == "mcp" and (one.name, one.digest) not in seen:
            servers.setdefault(one.origin.reference or "an unnamed server", []).append(one.name)
    for server, names in servers.items():
        yield StoreFault(
            place=server,
            code="server",
            message=f"nobody approved {listed(names)} of this MCP server",
            advice=f"read them ('agentkit tools show {names[0]}'), then import the listing "
            "yourself ('agentkit tools import FILE --on-conflict replace'), or take it back "
            f"('agentkit rollback {names[0]}')",
        )


def _unsigned(events: Sequence[LibraryEvent]) -> Iterator[StoreFault]:
    """Events without a signature behind signed ones: a writer lacks the key, or is a stranger."""
    first = next((one.sequence for one in events if one.signature), None)
    later = (one for one in events if first is not None and one.sequence > first)
    unsigned = [one.sequence for one in later if not one.signature]
    if unsigned:
        count = plural(len(unsigned), "event")
        yield StoreFault(
            place=f"event {unsigned[0]}",
            code="unsigned",
            message=f"{count} from here on without a signature; signed since event {first}",
            advice=f"set {chain.KEY_VARIABLE} where programs write; 'agentkit log --verify' "
            "shows who wrote them",
        )
