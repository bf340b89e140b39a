"""What ``agentkit check`` says of a project's security: files, keys, servers, approvals, events."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agentkit.cli.options import FOLDER
from agentkit.cli.output import plural
from agentkit.cli.project import FILE, Project
from agentkit.episodes.secrets import KEY_FORMATS, secret_spans
from agentkit.library import Library
from agentkit.library.chain_check import told_digests
from agentkit.library.directory.store import folder_of
from agentkit.library.events import LibraryEvent
from agentkit.library.opening import file_of
from agentkit.library.signing import KEY_VARIABLE

_MOST_BYTES = 5_000_000
_NAMED = 5
_CODE = frozenset({".py", ".toml"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing to act on.

    Attributes:
        place: Where: a tool, a file, a version, an event.
        code: What kind of thing it is.
        message: What is wrong, or what waits.
        advice: What to do, a command where there is one.
        severity: Of an ``error`` or a ``warning`` the exit status is 1, of a ``note`` it is not.
    """

    place: str
    code: str
    message: str
    advice: str = ""
    severity: Literal["error", "warning", "note"] = "error"


def security_findings(
    project: Project, store_url: str, library: Library, events: Sequence[LibraryEvent]
) -> Iterator[Finding]:
    """What a stranger could use: nothing is written, and no server is asked."""
    yield from _readable(store_url)
    yield from _writable(project)
    yield from _keys(project)
    yield from _unapproved(library, events)
    yield from _unsigned(events)


def _readable(store_url: str) -> Iterator[Finding]:
    """Files with people's words that every user of the machine can read."""
    if os.name != "posix":
        return
    path, folder = file_of(store_url), folder_of(store_url)
    places = [] if path is None else [path.with_name(path.name + end) for end in ("", "-wal")]
    if path is not None and path.parent.name == FOLDER:
        places = [path.parent]  # a closed folder closes what lies in it
    elif folder is not None:
        places = [folder / "local"]
    for place in places:
        is_empty = place.is_file() and not place.stat().st_size  # as reading leaves a log of SQLite
        if place.exists() and not is_empty and stat.S_IMODE(place.stat().st_mode) & 0o007:
            yield Finding(
                place=str(place),
                code="readable",
                severity="warning",
                message="every user of this machine can read it, with the requests and arguments "
                "of episodes",
                advice=f"chmod o= {place}",
            )


def _files(project: Project) -> Iterator[Path]:
    """The files of a project that are there, each once."""
    named = [project.root / FILE]
    for key in ("tools", "tasks", "held_out", "environment"):
        files = (value.partition(":")[0] for value in project.keys.get(key, ()))
        named += [Path(one) for one in files if Path(one).suffix]
    return (path for path in dict.fromkeys(named) if path.is_file())


def _writable(project: Project) -> Iterator[Finding]:
    """Code and settings that every user of the machine can change."""
    for path in _files(project) if os.name == "posix" else ():
        if stat.S_IMODE(path.stat().st_mode) & stat.S_IWOTH:
            yield Finding(
                place=str(path),
                code="writable",
                message="every user of this machine can change what runs here",
                advice=f"look at what it says, then chmod o-w {path}",
            )


def _keys(project: Project) -> Iterator[Finding]:
    """Keys in files that are likely to be shared."""
    for path in _files(project):
        if path.stat().st_size > _MOST_BYTES:
            continue
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, start=1):
            if what := _secret_in(line, is_code=path.suffix in _CODE):
                yield Finding(
                    place=f"{path}:{number}",
                    code="key",
                    message=f"it holds what looks like {what}",
                    advice="revoke it where it was issued, and read the new one from an "
                    "environment variable",
                )


def _secret_in(line: str, *, is_code: bool) -> str:
    """What a line holds that nobody should read, in words; nothing where it holds none.

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
    seen = {
        (name, digest)
        for event in events
        if event.author.kind == "person"
        for name, digest in told_digests(event)
    }
    servers: dict[str, list[str]] = {}
    for one in library.definitions:
        if one.origin.kind == "mcp" and (one.name, one.digest) not in seen:
            servers.setdefault(one.origin.reference or "an unnamed server", []).append(one.name)
    for server, names in servers.items():
        yield Finding(
            place=server,
            code="server",
            severity="warning",
            message=f"no person approved {_listed(names)} of this MCP server as they are now",
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
        yield Finding(
            place=f"event {unsigned[0]}",
            code="unsigned",
            severity="warning",
            message=f"{plural(len(unsigned), 'event')} from here on have no signature, though "
            f"events are signed since event {first}",
            advice=f"set {KEY_VARIABLE} for every program that writes; 'agentkit log --verify' "
            "shows who wrote them",
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    rest = len(names) - _NAMED
    return f"{shown} and {rest:,} more" if rest > 0 else shown
