"""Proofs required before anything from a library server is accepted.

With a key the library must be what its signed events say, so that neither the server nor anything
on the way has to be trusted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

from agentkit.errors import StoreFormatError
from agentkit.library.chain import bulk_of, event_digests, verify_chain
from agentkit.library.events import ChainHead, LibraryEvent, Verifier
from agentkit.library.library import Library
from agentkit.library.remote.wire import Head
from agentkit.library.store import AppliedChange
from agentkit.tools.canonical import digest

Brought = Callable[[int], Mapping[str, str]]
"""Returns name and digest of one version's definitions, as the server says; checked here."""

_SHOWN = 3


def check_events(
    events: Sequence[LibraryEvent],
    before: LibraryEvent | None,
    head: Head,
    *,
    verifier: Verifier | None,
    signed_from: int,
) -> None:
    """Refuse events that do not go on from those known, or that nobody with the key signed.

    Args:
        events: What is new.
        before: The last event that was checked earlier; None for none.
        head: What the server says is newest.
        verifier: Checks signatures; None believes the server.
        signed_from: The first event that has to be signed.

    Raises:
        StoreFormatError: One is not as it was written.
    """
    faults = verify_chain(events, before=before, verifier=verifier, signed_from=signed_from)
    wrong = [fault for fault in faults if not fault.is_note]
    if wrong:
        more = f", and {len(wrong) - 1:,} more faults" if len(wrong) > 1 else ""
        raise StoreFormatError(f"the chain of events is not whole: {wrong[0].message}{more}")
    last = events[-1] if events else before
    # Without a key the chain may not be known to its end.
    is_end = last is not None and last.sequence == head.events.sequence
    if last is not None and is_end and ChainHead.of(last) != head.events:
        raise StoreFormatError(f"event {last.sequence} is another one than the server's head names")


class SignedHistory:
    """What a chain of events states about each tool.

    Args:
        events: All of it, from the first event on.
        brought: Returns the digests of very large changes, whose events hold one for all.

    Raises:
        StoreFormatError: What a very large change brought is not what its event says.
    """

    def __init__(self, events: Iterable[LibraryEvent], brought: Brought) -> None:
        self._stated: dict[str, dict[int, str]] = {}  # by tool: its digest from a version on
        self._names: dict[int, set[str]] = {}  # by version: the tools of which events tell
        for event in events:
            for name, stated in _stated_by(event, brought).items():
                self._stated.setdefault(name, {})[event.library_version] = stated
                self._names.setdefault(event.library_version, set()).add(name)

    def _digest(self, name: str, version: int) -> str:
        """The digest of a tool at a version, as the events say; empty for none."""
        stated = self._stated.get(name, {})
        last = max((one for one in stated if one <= version), default=None)
        return "" if last is None else stated[last]

    def check_library(self, library: Library) -> None:
        """Refuse a library that is not what the events say.

        Raises:
            StoreFormatError: It is not; names the first tools.
        """
        held = {tool.name: tool.definition.digest for tool in library}
        stated = {name: self._digest(name, library.version) for name in self._stated}
        others = [name for name in held if stated.get(name) and stated[name] != held[name]]
        unstated = [name for name in held if not stated.get(name)]
        lacks = [name for name, digest in stated.items() if digest and name not in held]
        parts = [
            f"{words} {', '.join(map(repr, names[:_SHOWN]))}{' ...' * (len(names) > _SHOWN)}"
            for words, names in (
                ("it holds others than they say of", others),
                ("no event tells of", unstated),
                ("it lacks", lacks),
            )
            if names
        ]
        if parts:
            raise StoreFormatError(
                f"library version {library.version} is not what its signed events say: "
                f"{'; '.join(parts)}. Writers must tell of every change, as the Tool Manager and "
                "the commands of agentkit do"
            )

    def check_change(self, applied: AppliedChange) -> None:
        """Refuse a change that is not what the events of its version say.

        Raises:
            StoreFormatError: It does something else.
        """
        version, change = applied.version, applied.change
        done = dict.fromkeys(change.removals, "") | {one.name: one.digest for one in change.upserts}
        for name in done.keys() | self._names.get(version, set()):
            before = self._digest(name, version - 1)
            if self._stated.get(name, {}).get(version) != done.get(name, before):
                _contradicted(name, version)


def _stated_by(event: LibraryEvent, brought: Brought) -> Mapping[str, str]:
    """The tools that an event names, with the digest of each; empty for a removed one."""
    if not event.library_version:
        return {}
    stated = dict(event_digests(event))
    bulk = bulk_of(event)
    if bulk is not None:
        found = brought(event.library_version)
        if (len(found), digest(dict(found))) != bulk:
            raise StoreFormatError(
                f"event {event.sequence} says that library version {event.library_version} "
                f"brought {bulk[0]:,} definitions; what the server lists are others"
            )
        stated |= found
    return stated


def _contradicted(tool_name: str, version: int) -> NoReturn:
    raise StoreFormatError(
        f"what the server says that library version {version} did to {tool_name!r} is not what "
        "the signed events say"
    )


def check_not_back(seen: Head, head: Head) -> None:
    """Refuse a head that is older than one that was seen, or of another history.

    Raises:
        StoreFormatError: The server went back.
    """
    is_older = head.version < seen.version or head.events.sequence < seen.events.sequence
    has_other_tools = head.version == seen.version and (head.digest, head.tools) != (
        seen.digest,
        seen.tools,
    )
    has_other_events = head.events.sequence == seen.events.sequence and head.events != seen.events
    lacks_versions = bool(seen.version) and head.first > seen.first
    if is_older or has_other_tools or has_other_events or lacks_versions:
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
        "that is right, start again"
    )
