"""What signed events prove about a library that came from somewhere else.

With a key, the newest snapshot has to be exactly what the events say: every tool with the digest
that the last event about it names, none that no event tells of, none missing. So neither the
server nor anything in between can add, change, drop or hold back a definition, as long as the
chain of events goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentkit.errors import StoreFormatError
from agentkit.library.abilities import AppliedChange
from agentkit.library.chain import Verifier
from agentkit.library.chain_faults import verify_chain
from agentkit.library.chain_library import bulk_of, told_digests
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.store import ToolRevision
from agentkit.tools.canonical import digest

Outline = Callable[[int], Mapping[str, str]]
"""Gives name and digest of what one version brought, as the server says; it is checked here."""

_SHOWN = 3


def check_events(
    events: Sequence[LibraryEvent],
    *,
    before: LibraryEvent | None,
    verifier: Verifier | None,
    signed_from: int,
) -> None:
    """Refuse events that do not go on from those known, or that nobody with the key signed.

    Args:
        events: What is new.
        before: The last event that was checked earlier; None for none.
        verifier: Checks the signatures; None looks at the chain alone.
        signed_from: The first event that has to be signed.

    Raises:
        StoreFormatError: One is not as it was written.
    """
    faults = verify_chain(events, before=before, verifier=verifier, signed_from=signed_from)
    wrong = [fault for fault in faults if not fault.is_note]
    if wrong:
        more = f", and {len(wrong) - 1:,} more faults" if len(wrong) > 1 else ""
        raise StoreFormatError(f"the chain of events is not whole: {wrong[0].message}{more}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What the events up to one of them say that the library holds.

    Attributes:
        digests: The digest of each tool.
    """

    digests: Mapping[str, str] = field(default_factory=dict)

    def after(self, events: Iterable[LibraryEvent], outline: Outline) -> Told:
        """The same with further events.

        Raises:
            StoreFormatError: The outline of a large change is not what its event says.
        """
        digests = dict(self.digests)
        for event in events:
            _take(digests, told_by(event, outline))
        return Told(digests=digests)

    def check(self, library: Library) -> None:
        """Refuse a library that is not what the events say.

        Raises:
            StoreFormatError: It is not; names the first tools.
        """
        held = {tool.name: tool.definition.digest for tool in library}
        if held == self.digests:
            return
        untold = [name for name in held if name not in self.digests]
        missing = [name for name in self.digests if name not in held]
        other = [name for name in held if self.digests.get(name, held[name]) != held[name]]
        parts = [
            f"{words} {', '.join(map(repr, names[:_SHOWN]))}{' ...' * (len(names) > _SHOWN)}"
            for words, names in (
                ("it holds others than they say of", other),
                ("no event tells of", untold),
                ("it lacks", missing),
            )
            if names
        ]
        raise StoreFormatError(
            f"library version {library.version} is not what its signed events say: "
            f"{'; '.join(parts)}. Writers must tell of every change, as the Tool Manager and the "
            "commands of agentkit do"
        )


def told_by(event: LibraryEvent, outline: Outline) -> Mapping[str, str]:
    """The tools of which an event tells, with the digest of each; empty for one that is gone.

    Raises:
        StoreFormatError: The outline of a large change is not what its event says.
    """
    if not event.library_version:
        return {}
    told = dict(told_digests(event))
    bulk = bulk_of(event)
    if bulk is not None:
        brought = outline(event.library_version)
        if (len(brought), digest(dict(brought))) != bulk:
            raise StoreFormatError(
                f"event {event.sequence} says that library version {event.library_version} "
                f"brought {bulk[0]:,} definitions; what the server lists are others"
            )
        told |= brought
    return told


def check_history(
    tool_name: str,
    revisions: Sequence[ToolRevision],
    events: Iterable[LibraryEvent],
    outline: Outline,
) -> None:
    """Refuse a history of a tool that is not what the events say of it.

    Raises:
        StoreFormatError: A revision is another one, or one is missing or too much.
    """
    told: dict[int, set[str]] = {}
    for event in events:
        named = told_by(event, outline)
        if tool_name in named:
            told.setdefault(event.library_version, set()).add(named[tool_name])
    for version, digests in told.items():
        earlier = [one for one in revisions if one.version <= version]
        if digests != {_digest(earlier[-1]) if earlier else ""}:
            _not_told(tool_name, version)
    for revision in revisions:
        if revision.version not in told:
            _not_told(tool_name, revision.version)


def check_change(applied: AppliedChange, before: Told, told: Iterable[Mapping[str, str]]) -> None:
    """Refuse a change that is not what the events of its version say.

    Args:
        applied: The change.
        before: What the library held before.
        told: What each event of its version tells.

    Raises:
        StoreFormatError: It does something else.
    """
    change = applied.change
    done = dict.fromkeys(change.removals, "") | {one.name: one.digest for one in change.upserts}
    said: dict[str, str] = {}
    for one in told:
        said |= one
    for name in done.keys() | said.keys():
        if said.get(name) != done.get(name, before.digests.get(name, "")):
            _not_told(name, applied.version)


def _take(digests: dict[str, str], told: Mapping[str, str]) -> None:
    for name, found in told.items():
        if found:
            digests[name] = found
        else:
            digests.pop(name, None)


def _digest(revision: ToolRevision) -> str:
    return "" if revision.definition is None else revision.definition.digest


def _not_told(tool_name: str, version: int) -> None:
    raise StoreFormatError(
        f"what the server says that library version {version} did to {tool_name!r} is not what "
        "the signed events say"
    )
