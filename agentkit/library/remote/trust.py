"""What has to be shown before something from a library server is taken up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentkit.errors import StoreFormatError
from agentkit.library.chain_check import bulk_of, told_digests, verify_chain
from agentkit.library.event_chain import ChainHead, Verifier
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.wire import Head, Ranges
from agentkit.library.store import AppliedChange, ToolRevision
from agentkit.tools.canonical import digest

Outline = Callable[[int], Mapping[str, str]]
"""Gives name and digest of what one version brought, as the server says; it is checked here."""

_SHOWN = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Trust:
    """What has to be shown before something is taken up.

    Attributes:
        verifier: Checks signatures; None believes the server.
        signed_from: The first event that has to be signed.
    """

    verifier: Verifier | None = None
    signed_from: int = 1

    @property
    def is_verified(self) -> bool:
        """Whether signatures have to show that what comes is what was written."""
        return self.verifier is not None

    def check_events(
        self, events: Sequence[LibraryEvent], before: LibraryEvent | None, head: Head
    ) -> None:
        """Refuse events that do not go on from those known, or that nobody with the key signed.

        Args:
            events: What is new.
            before: The last event that was checked earlier; None for none.
            head: What the server says is newest.

        Raises:
            StoreFormatError: One is not as it was written.
        """
        faults = verify_chain(
            events, before=before, verifier=self.verifier, signed_from=self.signed_from
        )
        wrong = [fault for fault in faults if not fault.is_note]
        if wrong:
            more = f", and {len(wrong) - 1:,} more faults" if len(wrong) > 1 else ""
            raise StoreFormatError(f"the chain of events is not whole: {wrong[0].message}{more}")
        last = events[-1] if events else before
        # Without a key the chain may not be known to its end.
        is_end = last is not None and last.sequence == head.events.sequence
        if last is not None and is_end and ChainHead.of(last) != head.events:
            raise StoreFormatError(
                f"event {last.sequence} is another one than the server's head names"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldTools:
    """What the events up to one of them say that the library holds.

    Attributes:
        digests: The digest of each tool.
    """

    digests: Mapping[str, str] = field(default_factory=dict)

    def after(self, events: Iterable[LibraryEvent], outline: Outline) -> ToldTools:
        """The same with further events.

        Raises:
            StoreFormatError: The outline of a large change is not what its event says.
        """
        digests = dict(self.digests)
        for event in events:
            _take(digests, told_by(event, outline))
        return ToldTools(digests=digests)

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


def check_change(
    applied: AppliedChange, before: ToldTools, told: Iterable[Mapping[str, str]]
) -> None:
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


NOTHING = Head(
    version=0, digest=Library().digest, tools=0, versions=(), events=ChainHead(sequence=0, hash="")
)
"""The head of a library of which nothing was heard yet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What is known of a library, all of it checked.

    Attributes:
        head: What the server said last.
        etag: The ETag of that; empty where nothing was heard.
        library: The snapshot at the head's version.
        events: The chain, perhaps not to its end: without a key it is read when asked for.
        told: What the events say that the library holds; with a key alone.
        outlines: What very large changes brought, of which events have one digest alone.
    """

    head: Head = NOTHING
    etag: str = ""
    library: Library = field(default_factory=Library)
    events: tuple[LibraryEvent, ...] = ()
    told: ToldTools = field(default_factory=ToldTools)
    outlines: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def is_heard(self) -> bool:
        """Whether anything is known."""
        return self.head is not NOTHING

    @property
    def has_all_events(self) -> bool:
        """Whether the chain is known to its end."""
        return len(self.events) == self.head.events.sequence


def check_not_back(seen: Head, head: Head) -> None:
    """Refuse a head that is older than one that was seen, or of another history.

    Raises:
        StoreFormatError: The server went back.
    """
    if head.version < seen.version or head.events.sequence < seen.events.sequence:
        raise went_back(seen, head)
    if head.version == seen.version and (head.digest, head.tools) != (seen.digest, seen.tools):
        raise went_back(seen, head)
    if head.events.sequence == seen.events.sequence and head.events != seen.events:
        raise went_back(seen, head)
    if seen.version and not _covers(head.versions, seen.versions):
        raise went_back(seen, head)


def went_back(seen: Head, head: Head) -> StoreFormatError:
    """The error for a server whose history is no longer the one that was seen."""
    if (head.version, head.events.sequence) < (seen.version, seen.events.sequence):
        what = "went back"
    else:
        what = "has another history than the one that was seen before"
    return StoreFormatError(
        f"the server {what}: it is at library version {head.version} and event "
        f"{head.events.sequence}, and was seen at {seen.version} and {seen.events.sequence}. "
        "Somebody plays an old state, or the store behind it was restored or is another one. If "
        "that is right, empty this library's cache (?cache=, or its folder in the libraries of "
        "$AGENTKIT_CACHE) and start again"
    )


def _covers(rows: Ranges, seen: Ranges) -> bool:
    """Whether all versions that were seen are still there."""
    return all(any(a <= first and last <= b for a, b in rows) for first, last in seen)
