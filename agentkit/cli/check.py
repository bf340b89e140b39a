"""``agentkit check``: whatever is wrong with a library and its store, and what to do about it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Literal

import click
from click.core import ParameterSource

from agentkit.cli.options import FOLDER, StoreUrl, argument, command
from agentkit.cli.output import Output, one_line, print_text, say
from agentkit.cli.project import FILE, Project, current_project
from agentkit.cli.stores import is_there
from agentkit.episodes.secrets import KEY_FORMATS, secret_spans
from agentkit.errors import AgentKitError
from agentkit.evaluation.results.texts import shown
from agentkit.library import Library, Store
from agentkit.library.chain import KEY_VARIABLE, event_digests, key_texts, read_verifier
from agentkit.library.checking import StoreCheck, check_store
from agentkit.library.directory.store import DirectoryStore
from agentkit.library.events import LibraryEvent
from agentkit.library.memory import MemoryStore
from agentkit.library.opening import file_of, folder_of, open_to_read
from agentkit.library.pins import library_faults, pin_faults
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import plural

_SHOWN = 20
_MOST_BYTES = 5_000_000
_NAMED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing to act on.

    Attributes:
        place: Where: a tool, a file, a version, an event.
        code: What kind of thing it is.
        message: What is wrong, or what waits.
        advice: What to do, a command where there is one.
        severity: ``error`` and ``warning`` make the exit status 1, ``note`` does not.
    """

    place: str
    code: str
    message: str
    advice: str = ""
    severity: Literal["error", "warning", "note"] = "error"


@command()
def check(
    names: Annotated[tuple[str, ...], argument("[TOOL]...")] = (),
    *,
    store_url: StoreUrl,
) -> Output:
    """Report what is wrong with the library and its store; the exit status is 1 when something is.

    Reads everything: the store, every definition with its digest, the chain of events and its
    signatures, every episode; then composites (circles, missing or changed children, programs,
    effects, conditions) and files that people edited; then what a stranger could use: files that
    everybody can read or change, keys in the project's files, MCP servers that nobody approved,
    events without a signature among signed ones. With TOOL only these composites are checked.
    Before a project has a store, its files are checked. Nothing is written.

    The key for signatures of events comes from the variable AGENTKIT_AUDIT_KEY, or from the file
    that AGENTKIT_AUDIT_KEY_FILE names.

    Examples:
      agentkit check
      agentkit check net_total
      agentkit check --store sqlite:///backup.db --json
    """
    checked: StoreCheck | None = None
    found: list[Finding] = []
    with _opened(store_url, found, has_names=bool(names)) as store:
        if not names:
            texts = key_texts()
            verifier = read_verifier(texts) if texts else None
            checked = check_store(store, verifier=verifier)
            found += _of_store(store, checked)
        is_damaged = any(one.code == "damage" for one in found)
        library = _library(store, is_damaged=is_damaged)
        found += [
            Finding(place=one.tool, code=one.code, message=one.message, advice=one.advice)
            for one in library_faults(library, names or None)
        ]
        if not names and not is_damaged:
            found += _security(current_project(), store_url, library, store.events())
    composites = sum(library[name].definition.is_composite for name in names or library.tools)
    faults = [one for one in found if one.severity != "note"]
    notes = [one for one in found if one.severity == "note"]
    counts = {} if checked is None else checked.to_json()
    amounts = {name: counts[name] for name in ("versions", "tools", "events", "episodes") if counts}
    record = {
        "is_sound": not faults,
        "library_version": library.version,
        "faults": [asdict(one) for one in faults],
        "notes": [asdict(one) for one in notes],
        "store": amounts or None,
        "composites": composites,
    }

    def view() -> None:
        read = (*amounts.items(), ("composites", composites))
        click.echo(f"checked {', '.join(plural(count, name[:-1]) for name, count in read)}")
        _print(notes, "notes")
        _print(faults, "faults")
        summary = plural(len(faults), "fault") if faults else "nothing is wrong"
        click.secho(f"\n{summary}", fg="red" if faults else None, bold=bool(faults))
        if is_damaged:
            say("a copy restores what is damaged: 'agentkit store copy BACKUP NEW', or of an")
            say("artifact 'agentkit import FILE --restore --store NEW'")

    return Output(record=record, view=view, failed=bool(faults))


def _print(findings: Sequence[Finding], title: str) -> None:
    """Each finding in sentences: a table would break the commands over lines."""
    if findings:
        click.echo(f"\n{title}")
    for one in findings[:_SHOWN]:
        print_text(f"{shown(one.place)}: {shown(one.message, 600)}", indent="  ")
        if one.advice:
            print_text(one.advice, indent="      ")
    if len(findings) > _SHOWN:
        click.echo(f"  ... and {len(findings) - _SHOWN:,} more (--json names all)")


@contextmanager
def _opened(url: str, found: list[Finding], *, has_names: bool) -> Iterator[Store]:
    """The store; an empty one in a project that has made none yet, whose files are checked.

    Raises:
        StoreLookupError: There is no such store, and it was asked for by name, or for its tools.
    """
    source = click.get_current_context().get_parameter_source("store_url")
    is_asked = has_names or source in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    if is_asked or not current_project().keys or is_there(url):
        with closing(open_to_read(url)) as store:
            yield store
        return
    message = f"there is no store at {url} yet, so only the project's files were checked"
    found.append(_note("store", message, "'agentkit tools add' makes it"))
    yield MemoryStore()


def _of_store(store: Store, checked: StoreCheck) -> Iterator[Finding]:
    """The store's damage, hand edits of its files, and its notes."""
    pins = set()
    if any(one.place.startswith("tool ") for one in checked.faults):
        pins = {f"{one.message}; {one.advice}" for one in pin_faults(store.load())}
    damage = [one for one in checked.faults if one.message not in pins]  # pin faults come later
    for one in damage:
        yield Finding(place=one.place, code="damage", message=one.message)
    edits = store.edits() if isinstance(store, DirectoryStore) and not damage else ()
    for edit in edits:
        message = f"{edit.file.name} {edit.summary}"
        if edit.faults:
            advice = "correct the file, or restore it with git"
            yield Finding(place=edit.name, code="edit", message=message, advice=advice)
        else:
            advice = "propose it to ToolManager (docs/stores.md), or restore the file with git"
            yield _note(edit.name, message, advice, "edit")
    edited = tuple(f"{edit.file}: " for edit in edits)
    yield from (_note("store", one) for one in checked.notes if not one.startswith(edited))


def _note(place: str, message: str, advice: str = "", code: str = "note") -> Finding:
    return Finding(place=place, code=code, message=message, advice=advice, severity="note")


def _library(store: Store, *, is_damaged: bool) -> Library:
    """The library, as far as it can be read."""
    try:
        return store.load()
    except AgentKitError as error:
        if not is_damaged:
            raise
        say(f"composites are not checked: {one_line(shown(str(error), 300))}")
        return Library()


def _security(
    project: Project, store_url: str, library: Library, events: Sequence[LibraryEvent]
) -> Iterator[Finding]:
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
            f"nobody is asked before a model calls {_listed(silent)} from outside, which may write"
        )
        advice = "declare those destructive that need approval, in the file they came from"
        yield _note("tools", message, advice, "unasked")
    yield from _unsigned(events)


def _writes_unasked(definition: ToolDefinition) -> bool:
    """Whether a tool from elsewhere may write and needs no approval."""
    effects = definition.signature.effects
    is_foreign = definition.origin.kind in {"mcp", "openapi"}
    return is_foreign and not effects.destructive and effects.writes is not False


def _listed(names: Sequence[str]) -> str:
    rest = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest


def _readable(store_url: str) -> Iterator[Finding]:
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
            yield Finding(
                place=str(place),
                code="readable",
                severity="warning",
                message=message,
                advice=f"chmod o= {place}",
            )


def _in_file(path: Path) -> Iterator[Finding]:
    """A file of the project that everybody can change, and keys in it."""
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH:
        message = "every user of this machine can change what runs here"
        advice = f"read the file, then chmod o-w {path}"
        yield Finding(place=str(path), code="writable", message=message, advice=advice)
    if path.stat().st_size > _MOST_BYTES:
        return
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, start=1):
        if what := _secret_in(line, is_code=path.suffix in {".py", ".toml"}):
            message = f"it holds what looks like {what}"
            advice = "revoke it at its issuer, and read the new one from an environment variable"
            yield Finding(place=f"{path}:{number}", code="key", message=message, advice=advice)


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


def _unapproved(library: Library, events: Sequence[LibraryEvent]) -> Iterator[Finding]:
    """MCP servers whose tools came in without a person."""
    by_people = [event for event in events if event.author.kind == "person"]
    seen = {approved for event in by_people for approved in event_digests(event)}
    servers: dict[str, list[str]] = {}
    for one in library.definitions:
        if one.origin.kind == "mcp" and (one.name, one.digest) not in seen:
            servers.setdefault(one.origin.reference or "an unnamed server", []).append(one.name)
    for server, names in servers.items():
        yield Finding(
            place=server,
            code="server",
            severity="warning",
            message=f"nobody approved {_listed(names)} of this MCP server",
            advice=f"read them ('agentkit tools show {names[0]}'), then import the listing "
            "yourself ('agentkit tools import FILE --on-conflict replace'), or take it back "
            f"('agentkit rollback {names[0]}')",
        )


def _unsigned(events: Sequence[LibraryEvent]) -> Iterator[Finding]:
    """Events without a signature behind signed ones: a writer lacks the key, or is a stranger."""
    first = next((one.sequence for one in events if one.signature), None)
    later = (one for one in events if first is not None and one.sequence > first)
    unsigned = [one.sequence for one in later if not one.signature]
    if unsigned:
        count = plural(len(unsigned), "event")
        yield Finding(
            place=f"event {unsigned[0]}",
            code="unsigned",
            severity="warning",
            message=f"{count} from here on without a signature; signed since event {first}",
            advice=f"set {KEY_VARIABLE} for every program that writes; 'agentkit log --verify' "
            "shows who wrote them",
        )
