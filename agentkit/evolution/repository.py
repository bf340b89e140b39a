"""``LibraryRepository``: the newest state of one store, and the one way to write to it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from agentkit.composites.composite import composite_tool
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import StaleVersionError, UsageError
from agentkit.evolution.duplicates import Snapshot
from agentkit.evolution.ledger import WHOLE_LIBRARY, Ledger
from agentkit.library.changes import now
from agentkit.library.event_chain import EventDraft, Signer, chained
from agentkit.library.events import Author, LibraryEvent
from agentkit.library.library import Library
from agentkit.library.linking import link
from agentkit.library.pins import repinned
from agentkit.library.store import EventStore, LibraryChange, ToolStore
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

# --- The kill switch: runs use the version that a person names, whatever happens to the libra ----
# The kill switch: runs use the version that a person names, whatever happens to the library.


def pin_step(
    on: Position, version: int, tool_name: str, author: Author, reason: str, *, store: ToolStore
) -> Step | None:
    """Pin a tool, or with an empty name the whole library; None when it is pinned so already.

    Raises:
        StoreError: There is no such version.
        ToolNotFoundError: The library has no such tool, then or now.
    """
    then = store.load(version)
    if tool_name:
        then[tool_name], on.library[tool_name]
    if on.ledger.pins.get(tool_name) == version:
        return None
    digest = then[tool_name].definition.digest if tool_name else then.digest
    pinned = EventDraft(
        kind="pinned",
        author=author,
        reason=reason,
        tool_name=tool_name,
        library_version=on.library.version,
        facts={"version": version, "digest": digest},
    )
    return Step(drafts=(pinned,))


def unpin_step(on: Position, tool_name: str, author: Author, reason: str) -> Step | None:
    """Take a pin away; None when there is none.

    Raises:
        UsageError: The tool is not pinned, but the whole library is.
    """
    if tool_name not in on.ledger.pins:
        if tool_name and WHOLE_LIBRARY in on.ledger.pins:
            raise UsageError(
                f"{tool_name!r} has no pin of its own: the whole library is pinned to version "
                f"{on.ledger.pins[WHOLE_LIBRARY]}; unpin that"
            )
        return None
    unpinned = EventDraft(
        kind="unpinned",
        author=author,
        reason=reason,
        tool_name=tool_name,
        library_version=on.library.version,
    )
    return Step(drafts=(unpinned,))


def served_library(store: ToolStore, newest: Library, ledger: Ledger) -> Library:
    """The library that runs use: the newest, but for what is pinned.

    A pinned tool has the definition that it had in its version; composites above are pinned to
    that one. A tool that is gone since stays gone.

    Args:
        store: Where earlier versions are.
        newest: The newest library, with or without code.
        ledger: What is pinned.

    Raises:
        StoreError: The store failed.
        LibraryError: Composites above call each other in a circle, so no pin can be moved.
    """
    whole = ledger.pinned_version()
    if whole is not None:
        then = store.load(whole)
        return then.with_tools(
            newest[tool.name].with_definition(tool.definition)
            for tool in then
            if tool.name in newest
        )
    held = [
        store.load(version)[name].definition
        for name, version in ledger.pins.items()
        if name in newest
    ]
    changed = [one for one in held if one != newest[one.name].definition]
    if not changed:
        return newest
    return newest.with_tools(
        newest[definition.name].with_definition(definition)
        for definition in repinned(newest, changed)
    )


# --- ``Position`` and ``Step``: where the library stands, and what is to be written next ---------


@dataclass(frozen=True, kw_only=True, slots=True)
class Position:
    """What a step is decided on. A step decided on an older one is refused by the store.

    Attributes:
        snapshot: The newest library known, with the code of its primitives.
        ledger: What its events come to.
    """

    snapshot: Snapshot
    ledger: Ledger

    @property
    def library(self) -> Library:
        """The newest library known."""
        return self.snapshot.library


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """Events, and the definitions that change with them, to be written in one change.

    Attributes:
        drafts: What is to be remembered, in order.
        upserts: Definitions that change, children before parents; none for events alone.
        removals: Names of tools that go.
        change_id: Recognises a retry of a change that makes a version; empty for one that nobody
            else can have made.
        author: Who makes the change, for the history; None for whoever writes.
        reason: Why, for the history of the tools that change.
        evidence: Ids of the episodes behind it, for the same.
    """

    drafts: tuple[EventDraft, ...]
    upserts: tuple[ToolDefinition, ...] = ()
    removals: tuple[str, ...] = ()
    change_id: str = ""
    author: Author | None = None
    reason: str = ""
    evidence: tuple[str, ...] = ()

    @property
    def makes_version(self) -> bool:
        """Whether the library differs afterwards."""
        return bool(self.upserts or self.removals)


# --- ``Journal``: the newest state of one store, and the one way to write to it ------------------


class LibraryStore(ToolStore, EventStore, Protocol):
    """What the Tool Manager needs of a store: definitions and events, written together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Committed:
    """What a store answered.

    Attributes:
        version: The library version that the change made, now or earlier.
        is_new: Whether it was written now; otherwise the store knew its id, and wrote nothing.
    """

    version: int
    is_new: bool


class Journal:
    """Holds the newest snapshot and ledger that were seen, and commits steps made on them.

    Threads may share one: what is held is replaced as a whole, never changed. Nothing is locked
    while a step is decided or committed; the store refuses a step that was decided on the past.

    Args:
        store: Where the library and its events are kept.
        code: Tools of this process, whose code is bound to the definitions of their names.
        author: Who writes.
        limits: Caps on runs of composites.
        signer: Signs each event.
        clock: The time, as ISO 8601 in UTC. The order of events is that of the chain, so a clock
            that goes backwards does no harm.
    """

    def __init__(
        self,
        store: LibraryStore,
        *,
        code: Mapping[str, Tool],
        author: Author,
        limits: CompositeLimits,
        signer: Signer | None = None,
        clock: Callable[[], str] = now,
    ) -> None:
        self.store = store
        self.author = author
        self.limits = limits
        self._code = dict(code)
        self._signer = signer
        self._clock = clock
        self._snapshot = Snapshot.of(store.load(), self._code)
        self._ledger: Ledger | None = None
        self._linked: Library | None = None
        self._served: tuple[object, Library] | None = None
        self._is_code_new = False
        self._lock = threading.RLock()  # guards what is held, never a run or a commit

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot seen."""
        return self._snapshot

    @property
    def library(self) -> Library:
        """The library of that snapshot, its composites linked."""
        with self._lock:
            if self._linked is None:
                self._linked = link(self._snapshot.library, limits=self.limits)
            return self._linked

    @property
    def served(self) -> Library:
        """The library that runs are to use: the newest, but for what is pinned; linked."""
        on = self.position
        if not on.ledger.pins:
            return self.library
        key = (on.library.version, tuple(on.ledger.pins.items()))
        held = self._served
        if held is None or held[0] != key:
            served = served_library(self.store, on.library, on.ledger)
            held = self._served = (key, link(served, limits=self.limits))
        return held[1]

    @property
    def position(self) -> Position:
        """What is known now; the events are read when they are first asked for."""
        if self._ledger is None:
            self._read_events()
        with self._lock:
            return Position(snapshot=self._snapshot, ledger=self._ledger or Ledger())

    def know(self, tools: Iterable[Tool]) -> None:
        """Bind the code of further tools, from the next reload on."""
        bound = {tool.name: tool for tool in tools if tool.is_bound}
        with self._lock:
            self._code |= bound
            self._is_code_new = self._is_code_new or bool(bound)

    def reload(self) -> Position:
        """Take up what other writers made."""
        stored = self.store.load()
        self._read_events()
        with self._lock:
            if self._is_code_new or stored.version != self._snapshot.library.version:
                self._snapshot, self._linked = Snapshot.of(stored, self._code), None
                self._is_code_new = False
        return self.position

    def commit(self, step: Step, on: Position) -> Committed:
        """Write a step that was decided on a position.

        Raises:
            StaleVersionError: Another writer was faster; reload, and decide again.
            StoreError: The store failed. Nothing was written, unless only its answer was lost;
                deciding again finds out.
        """
        events = chained(on.ledger.head, step.drafts, at=self._clock(), signer=self._signer)
        change = LibraryChange(
            proposal_id=step.change_id or f"events-{uuid.uuid4().hex}",
            upserts=step.upserts,
            removals=step.removals,
            author=(step.author or self.author).name,
            reason=step.reason,
            evidence=step.evidence,
            events=events,
        )
        version = self.store.commit(change, expected_version=on.library.version)
        is_new = not step.makes_version or self._holds(events[0])
        if is_new:
            self._follow(on.ledger.after(events))
        return Committed(version=version, is_new=is_new)

    def write(self, decide: Callable[[Position], Step | None], *, attempts: int) -> Position:
        """Decide on a step and commit it, again while other writers are faster.

        Args:
            decide: Gives the step, or None when there is nothing to do (any more).
            attempts: How often it is decided at most.

        Returns:
            The position afterwards.

        Raises:
            StaleVersionError: Other writers were faster every time.
            StoreError: The store failed.
        """
        position = self.position
        while True:
            step = decide(position)
            if step is None:
                return position
            try:
                return self._written(step, position)
            except StaleVersionError:
                attempts -= 1
                if not attempts:
                    raise
                position = self.reload()

    async def write_async(
        self, decide: Callable[[Position], Awaitable[Step | None]], *, attempts: int
    ) -> Position:
        """As ``write``, for a decision that waits."""
        position = self.position
        while True:
            step = await decide(position)
            if step is None:
                return position
            try:
                return self._written(step, position)
            except StaleVersionError:
                attempts -= 1
                if not attempts:
                    raise
                position = self.reload()

    def adopt(self, snapshot: Snapshot, changed: Iterable[ToolDefinition]) -> None:
        """Go on with a snapshot that differs from the last one in ``changed`` only."""
        with self._lock:
            before = self._snapshot.library.version
            if snapshot.library.version <= before:  # another thread is ahead
                return
            linked, self._snapshot, self._linked = self._linked, snapshot, None
            if linked is None or before != snapshot.library.version - 1:
                return
            for definition in changed:  # children before parents
                tool = snapshot.library[definition.name]
                if definition.is_composite:
                    tool = composite_tool(definition, linked.tools, limits=self.limits)
                linked = linked.with_tools([tool])
            self._linked = linked.at_version(snapshot.library.version)

    def revision(self, tool_name: str, digest: str) -> ToolDefinition | None:
        """An earlier definition of a tool by its digest; None when it never had that one."""
        for revision in reversed(self.store.history(tool_name)):
            if revision.definition is not None and revision.definition.digest == digest:
                return revision.definition
        return None

    def _written(self, step: Step, on: Position) -> Position:
        committed = self.commit(step, on)
        if not committed.is_new or step.makes_version:
            return self.reload()
        return self.position

    def _holds(self, event: LibraryEvent) -> bool:
        """Whether the store took an event, rather than know its change from before."""
        after = self.store.events(after=event.sequence - 1)
        return bool(after) and after[0].hash == event.hash

    def _read_events(self) -> None:
        ledger = self._ledger or Ledger()
        self._follow(ledger.after(self.store.events(after=ledger.sequence)))

    def _follow(self, ledger: Ledger) -> None:
        with self._lock:
            if self._ledger is None or ledger.sequence > self._ledger.sequence:
                self._ledger = ledger
