"""``RemoteStore``: a library on a server, read over HTTP.

With a key the library must be what its signed events say, so that neither the server nor anything
on the way has to be trusted.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence

from agentkit.episodes import Episode
from agentkit.errors import ReadOnlyStoreError, StoreError, StoreFormatError, UsageError
from agentkit.library.chain import bulk_of, event_digests, key_texts, read_verifier, verify_chain
from agentkit.library.changes import check_change, check_filter
from agentkit.library.events import ChainHead, LibraryEvent, Verifier
from agentkit.library.library import Library
from agentkit.library.memory import MemoryStore
from agentkit.library.remote.client import KEY_VARIABLE, Answer, Head, LibraryClient, read_address
from agentkit.library.store import AppliedChange, EpisodeFilter, ForwardingStore, LibraryChange
from agentkit.tools.canonical import digest


class RemoteStore(ForwardingStore):
    """A library on a server of ``create_library_app``. It cannot be written to.

    The history is held in memory; each question asks the server for what it lacks. A ``Replica``
    serves the last snapshot while the server is away. The first request is made when something is
    asked for.

    Every definition is checked against its digest, and the library against its own; a server that
    goes back to an earlier state than this object saw is refused. With a key the chain of events is
    signed as well, and each change must be what its signed events say.

    Args:
        url: ``http://HOST:PORT`` or ``https://HOST``, perhaps with a path. Options are
            ``?timeout=SECONDS`` for the longest answer, and ``?signed-from=NUMBER`` for the first
            event that has to be signed.
        key: What is shown to the server; None takes that of ``AGENTKIT_LIBRARY_KEY``.
        verifier: Checks the signatures of events; None takes the key of ``AGENTKIT_AUDIT_KEY`` or
            ``AGENTKIT_AUDIT_KEY_FILE``. Where there is none, the server is believed.

    Raises:
        UsageError: The URL or the key is not usable, or there is an audit key that is not.
        MissingExtraError: An ed25519 key needs the package ``cryptography``.
    """

    def __init__(
        self, url: str, *, key: str | None = None, verifier: Verifier | None = None
    ) -> None:
        self._address = read_address(url)
        shown = _usable(os.environ.get(KEY_VARIABLE, "").strip() if key is None else key)
        texts = key_texts() if verifier is None else ()
        self._verifier = read_verifier(texts) if texts else verifier
        self._client = LibraryClient(self._address, key=shown)
        self._asking = threading.Lock()
        self._kept = MemoryStore()
        self._last: LibraryEvent | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"RemoteStore({str(self._address)!r})"

    def commit(self, change: LibraryChange, *, expected_version: int) -> int:
        """Refused: the library is only read here.

        Raises:
            ReadOnlyStoreError: Always.
        """
        words = "can only be read from here; write to its server's store"
        raise ReadOnlyStoreError(f"the library at {self._address} {words}")

    def append(self, episode: Episode) -> None:
        """Refused: the library is only read here.

        Raises:
            StoreError: Always.
        """
        words = "keeps no episodes; give the agent a store of its own for them"
        raise StoreError(f"the library at {self._address} {words}")

    def get(self, episode_id: str) -> Episode | None:
        """None: a library server gives no episodes."""
        self._check_open()
        return None

    def select(self, matching: EpisodeFilter = EpisodeFilter()) -> Iterator[Episode]:  # noqa: B008 - frozen
        """None: a library server gives no episodes."""
        check_filter(matching)
        self._check_open()
        return iter(())

    def close(self) -> None:
        """Refuse further use. A second call does nothing."""
        self._closed = True
        self._client.close()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"the library at {self._address} is closed; open it again")

    @property
    def _tools(self) -> MemoryStore:
        """The history, after asking the server for what it lacks.

        Raises:
            StoreUnavailableError: The server is away.
            StoreFormatError: The server's answer is not what it should be; what was known stays.
        """
        self._check_open()
        with self._asking:
            known, seen = self._kept.load(), ChainHead.of(self._last)
            answer = self._client.read(version=known.version, event=seen.sequence)
            self._check_events(answer, seen)
            libraries = self._check_changes(known, answer)
            head, newest = answer.head, libraries[-1]
            if (head.version, head.digest) != (newest.version, newest.digest):
                raise StoreFormatError(
                    f"library version {head.version} should have digest {head.digest[:12]}; what "
                    f"came is version {newest.version} with {newest.digest[:12]}"
                )
            self._take(answer)
            return self._kept

    def _take(self, answer: Answer) -> None:
        """Take up what was checked."""
        for applied in answer.changes:
            self._kept.commit(applied.change, expected_version=applied.version - 1)
        if answer.events:
            self._last = answer.events[-1]
            rest = LibraryChange(proposal_id=self._last.hash, events=answer.events)
            self._kept.commit(rest, expected_version=answer.head.version)

    def _check_events(self, answer: Answer, seen: ChainHead) -> None:
        """Refuse events that do not go on from those known, or that nobody with the key signed."""
        faults = verify_chain(
            answer.events,
            before=self._last,
            verifier=self._verifier,
            signed_from=self._address.signed_from,
        )
        wrong = [fault.message for fault in faults if not fault.is_note]
        if wrong:
            more = f", and {len(wrong) - 1:,} more faults" if len(wrong) > 1 else ""
            raise StoreFormatError(f"the chain of events is not whole: {wrong[0]}{more}")
        end = ChainHead.of(answer.events[-1]) if answer.events else seen
        if end != answer.head.events:
            if end == seen:
                raise _went_back(self._kept.load(), seen, answer.head)
            named = answer.head.events.sequence
            raise StoreFormatError(f"the head should be event {end.sequence}, not this {named}")

    def _check_changes(self, known: Library, answer: Answer) -> list[Library]:
        """The libraries that the changes make, the known one first.

        Raises:
            StoreFormatError: A change does not follow the one before, or is not what its events
                say.
        """
        head = answer.head
        if head.version < known.version:
            raise _went_back(known, ChainHead.of(self._last), head)
        stated = _stated(answer) if self._verifier is not None else None
        libraries, ids = [known], set[str]()
        if answer.changes:
            ids = {one.change.proposal_id for one in self._kept.changes()}
        for applied in answer.changes:
            before, change = libraries[-1], applied.change
            try:
                check_change(change)
            except StoreError as error:
                raise StoreFormatError(f"not a change: {error}") from error
            if applied.version != before.version + 1 or change.proposal_id in ids or change.events:
                words = f"was not asked for, or some behind version {before.version} are missing"
                raise StoreFormatError(f"a change of version {applied.version} {words}")
            if not change.makes_version or any(name not in before for name in change.removals):
                raise StoreFormatError(f"version {applied.version} changes what is not there")
            after = before.without(change.removals).with_tools(change.upserts)
            if stated is not None:
                _check_stated(applied, after, stated.get(applied.version, {}))
            ids.add(change.proposal_id)
            libraries.append(after.at_version(applied.version))
        return libraries


def open_remote(url: str) -> RemoteStore:
    """The store of a library's URL; no request is made yet.

    Raises:
        UsageError: The URL is not usable, or there is an audit key that is not.
    """
    return RemoteStore(url)


def _stated(answer: Answer) -> Mapping[int, Mapping[str, str]]:
    """By version the tools that its events name, with the digest of each; empty for a removed one.

    Raises:
        StoreFormatError: What a very large change brought is not what its event says.
    """
    made = {one.version: one.change.upserts for one in answer.changes}
    stated: dict[int, dict[str, str]] = {}
    for event in answer.events:
        version = event.library_version
        of_version = stated.setdefault(version, {})
        of_version |= event_digests(event)
        bulk = bulk_of(event)
        if bulk is not None and version in made:
            brought = {one.name: one.digest for one in made[version]}
            if (len(brought), digest(brought)) != bulk:
                words = f"says that library version {version} brought other definitions"
                raise StoreFormatError(f"event {event.sequence} {words}")
            of_version |= brought
    return stated


def _check_stated(applied: AppliedChange, after: Library, stated: Mapping[str, str]) -> None:
    """Refuse a change that is not what the signed events of its version say."""
    change = applied.change
    touched: Sequence[str] = (*(one.name for one in change.upserts), *change.removals)
    for name in dict.fromkeys((*touched, *stated)):
        tool = after.get(name)
        actual = "" if tool is None else tool.definition.digest
        if stated.get(name) != actual:
            what = "no event tells of" if name not in stated else "they say something else of"
            raise StoreFormatError(
                f"library version {applied.version} is not what its signed events say: {what} "
                f"{name!r}. Writers must tell of every change, as the Tool Manager does"
            )


def _went_back(known: Library, seen: ChainHead, head: Head) -> StoreFormatError:
    """The error for a server whose history is no longer the one that was seen."""
    what = "has another history than the one that was seen before"
    if (head.version, head.events.sequence) < (known.version, seen.sequence):
        what = "went back"
    return StoreFormatError(
        f"the server {what}: it is at library version {head.version} and event "
        f"{head.events.sequence}, and was seen at {known.version} and {seen.sequence}. If its "
        "store was restored or is another one, start again"
    )


def _usable(key: str) -> str:
    """The key, if a header can hold it; the message does not repeat it."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise UsageError(f"the key in {KEY_VARIABLE} is not printable ASCII without blanks")
    return key
