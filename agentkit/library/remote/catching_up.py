"""``CatchingUp``: from what is known of a library to what is newest, or an error and no change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from agentkit.errors import StoreFormatError
from agentkit.library.chain import ChainHead, Verifier
from agentkit.library.events import LibraryEvent
from agentkit.library.library import Library
from agentkit.library.remote.asking import LibraryClient
from agentkit.library.remote.trust import Told, check_events
from agentkit.library.remote.wire import Head, Ranges

_FEW_VERSIONS = 16

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
    told: Told = field(default_factory=Told)
    outlines: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    @property
    def is_heard(self) -> bool:
        """Whether anything is known."""
        return self.head is not NOTHING

    @property
    def has_all_events(self) -> bool:
        """Whether the chain is known to its end."""
        return len(self.events) == self.head.events.sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class Trust:
    """What has to be shown before something is taken up.

    Attributes:
        verifier: Checks signatures; None believes the server.
        signed_from: The first event that has to be signed.
    """

    verifier: Verifier | None = None
    signed_from: int = 1


class CatchingUp:
    """One step from what is known to what is newest.

    Args:
        client: Asks the server.
        trust: What has to be shown.
    """

    def __init__(self, client: LibraryClient, trust: Trust) -> None:
        self._client = client
        self._trust = trust
        self._outlines: dict[int, Mapping[str, str]] = {}

    def after(self, known: Known, *, with_events: bool) -> Known:
        """What is known then.

        Args:
            known: What is known already; it stays as it is.
            with_events: Whether the chain is wanted to its end.

        Raises:
            StoreUnavailableError: The server can not be reached.
            StoreFormatError: Something is not what it should be.
        """
        answer = self._client.head(etag=known.etag)
        head, etag = (known.head, known.etag) if answer is None else answer
        wants_events = with_events or self._trust.verifier is not None
        if head == known.head and (known.has_all_events or not wants_events):
            return replace(known, etag=etag)
        if known.is_heard:
            check_not_back(known.head, head)
        events = self._events(known, head) if wants_events else known.events
        found = replace(
            known, head=head, etag=etag, events=events, library=self._library(known, head)
        )
        if self._trust.verifier is None:
            return found
        self._outlines = dict(known.outlines)
        told = known.told.after(events[len(known.events) :], self._outline)
        told.check(found.library)
        return replace(found, told=told, outlines=self._outlines)

    def checked(self, known: Known) -> Known:
        """What was kept on disk, looked at as if it had just come.

        Raises:
            StoreFormatError: Something is not what it should be.
        """
        self._check_events(known.events, None, known.head)
        if self._trust.verifier is None:
            return known
        self._outlines = dict(known.outlines)
        told = Told().after(known.events, self._outline)
        told.check(known.library)
        return replace(known, told=told, outlines=self._outlines)

    def _events(self, known: Known, head: Head) -> tuple[LibraryEvent, ...]:
        held = known.events
        new = tuple(self._client.events(after=len(held), upto=head.events.sequence))
        self._check_events(new, held[-1] if held else None, head)
        seen = known.head.events.sequence
        if seen and ChainHead.of((*held, *new)[seen - 1]) != known.head.events:
            raise went_back(known.head, head)
        return (*held, *new)

    def _check_events(
        self, events: tuple[LibraryEvent, ...], before: LibraryEvent | None, head: Head
    ) -> None:
        check_events(
            events,
            before=before,
            verifier=self._trust.verifier,
            signed_from=self._trust.signed_from,
        )
        last = events[-1] if events else before
        if last is None or last.sequence != head.events.sequence:
            return  # the chain is not known to its end
        if ChainHead.of(last) != head.events:
            raise StoreFormatError(
                f"event {last.sequence} is another one than the server's head names"
            )

    def _library(self, known: Known, head: Head) -> Library:
        """The newest snapshot: by what changed, or whole where that is less."""
        gap = head.version - known.head.version
        if not gap and (known.is_heard or not head.tools):
            return known.library
        if known.head.version and gap <= max(_FEW_VERSIONS, len(known.library)):
            library = known.library
            for applied in self._client.changes(after=known.head.version, upto=head.version):
                library = library.without(applied.change.removals)
                library = library.with_tools(applied.change.upserts)
        else:
            found = self._client.tools(head.version, most=head.tools)
            library = Library(found).continuing(known.library)
        if (library.digest, len(library)) != (head.digest, head.tools):
            raise StoreFormatError(
                f"library version {head.version} should have {head.tools:,} tools and digest "
                f"{head.digest[:12]}; what came has {len(library):,} and {library.digest[:12]}"
            )
        return library.at_version(head.version)

    def _outline(self, version: int) -> Mapping[str, str]:
        if version not in self._outlines:
            self._outlines[version] = self._client.outline(version)
        return self._outlines[version]


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
