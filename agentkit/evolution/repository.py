"""``LibraryRepository``: the newest state of one store, and the one way to write to it.

Every change of a library is a ``Transaction``: events, and the definitions that change with them,
written in one commit. It is decided on a ``LibraryState``; when another writer committed first, it
is decided again on the state which that writer made.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from agentkit.errors import StaleVersionError, UsageError
from agentkit.evolution.ledger import Ledger
from agentkit.library.changes import now
from agentkit.library.events import (
    Author,
    EventDraft,
    Operation,
    Signer,
    chained,
    written,
)
from agentkit.library.library import Library, link
from agentkit.library.pins import repinned
from agentkit.library.store import EventStore, LibraryChange, ToolStore
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

T = TypeVar("T")

_ATTEMPTS = 100  # how often a change is decided anew when other writers commit first


class LibraryStore(ToolStore, EventStore, Protocol):
    """What the Tool Manager needs of a store: definitions and events, written together."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryState:
    """What a transaction is decided on. One decided on an older state is refused by the store.

    Attributes:
        library: The newest library known, with the code of its primitives. Its composites are not
            linked, because judging a candidate links what it needs over stubs.
        ledger: What its events come to.
    """

    library: Library
    ledger: Ledger


@dataclass(frozen=True, kw_only=True, slots=True)
class Transaction:
    """Events, and the definitions that change with them, to be written in one commit.

    Attributes:
        drafts: What is to be remembered, in order; the commit adds the library version.
        change: The definitions that change, by whom and why, with an id that recognises a retry;
            empty for events alone.
    """

    drafts: tuple[EventDraft, ...]
    change: LibraryChange = field(default_factory=partial(LibraryChange, proposal_id=""))

    @classmethod
    def outside_proposals(
        cls,
        operation: Operation,
        change: LibraryChange,
        state: LibraryState,
        author: Author,
        *,
        about: Sequence[EventDraft] = (),
        replaced: Sequence[str] = (),
    ) -> Transaction:
        """A change that no proposal made, with the event that records it.

        Args:
            operation: What kind of change it is.
            change: What changes, children before parents; the first is what it is about.
            state: The library before.
            author: Who writes.
            about: Further events of the same change, which come first.
            replaced: Names of tools that get other words than any proposal gave them.
        """
        event = written(
            operation,
            change.proposal_id,
            change.upserts,
            before=state.library,
            author=author,
            reason=change.reason,
            evidence=change.evidence,
            replaced=replaced,
        )
        return cls(drafts=(*about, event), change=change)


@dataclass(frozen=True, kw_only=True, slots=True)
class Written(Generic[T]):
    """What came of a decision.

    Attributes:
        state: The state afterwards.
        version: The library version that the change made, now or earlier; else the newest.
        transaction: What was written, or was known from before; None where nothing was to write.
        instead: What was decided in the place of a transaction.
    """

    state: LibraryState
    version: int
    transaction: Transaction | None = None
    instead: T | None = None

    @property
    def makes_version(self) -> bool:
        """Whether the library differs afterwards."""
        return self.transaction is not None and self.transaction.change.makes_version


class LibraryRepository:
    """Holds the newest state that was seen, and commits transactions decided on it.

    Threads may share one: what is held is replaced as a whole, never changed. Nothing is locked
    while a transaction is decided or committed; the store refuses one decided on the past.

    Args:
        store: Where the library and its events are kept.
        code: Tools of this process, whose code is bound to the definitions of their names.
        author: Who writes.
        signer: Signs each event.
    """

    def __init__(
        self,
        store: LibraryStore,
        *,
        code: Mapping[str, Tool],
        author: Author,
        signer: Signer | None = None,
    ) -> None:
        self.store = store
        self.author = author
        self._code = dict(code)
        self._signer = signer
        self._library = bound_library(store.load(), self._code)
        self._ledger: Ledger | None = None
        self._linked: Library | None = None
        self._served: tuple[object, Library] | None = None
        self._lock = threading.RLock()  # guards what is held, never a run or a commit

    @property
    def library(self) -> Library:
        """The newest library seen, its composites linked."""
        with self._lock:
            if self._linked is None:
                self._linked = link(self._library)
            return self._linked

    @property
    def served(self) -> Library:
        """The library that runs are to use: the newest, except for what is pinned; linked."""
        state = self.state
        if not state.ledger.pins:
            return self.library
        key = (state.library.version, tuple(state.ledger.pins.items()))
        held = self._served
        if held is None or held[0] != key:
            served = served_library(self.store, state.library, state.ledger)
            held = self._served = (key, link(served))
        return held[1]

    @property
    def state(self) -> LibraryState:
        """What is known now; the events are read when they are first asked for."""
        if self._ledger is None:
            self._read_events()
        with self._lock:
            ledger = self._ledger or Ledger()
            return LibraryState(library=self._library, ledger=ledger)

    def bind(self, tools: Iterable[Tool]) -> None:
        """Bind the code of further tools.

        Raises:
            UsageError: The parameters of one differ from those in the library.
        """
        bound = {tool.name: tool for tool in tools if tool.is_bound}
        with self._lock:
            self._library, self._linked = bound_library(self._library, bound), None
            self._code |= bound

    def reload(self) -> LibraryState:
        """Pick up what other writers made."""
        stored = self.store.load()
        self._read_events()
        with self._lock:
            if stored.version != self._library.version:
                self._library, self._linked = bound_library(stored, self._code), None
        return self.state

    def write(self, decide: Callable[[LibraryState], Transaction | T]) -> Written[T]:
        """As ``write_async``, for a decision that waits for nothing; also where a loop runs."""

        async def decide_now(state: LibraryState) -> Transaction | T:
            return decide(state)

        return _completed(self.write_async(decide_now))

    async def write_async(
        self, decide: Callable[[LibraryState], Awaitable[Transaction | T]]
    ) -> Written[T]:
        """Decide on a transaction and commit it, again while other writers commit first.

        Args:
            decide: Gives the transaction, or anything else when there is nothing to write.

        Raises:
            StaleVersionError: Other writers committed first every time.
            StoreError: The store failed. Nothing was written, unless only its answer was lost;
                deciding again finds out.
        """
        state = self.state
        for attempt in range(_ATTEMPTS):
            decided = await decide(state)
            if not isinstance(decided, Transaction):
                return Written(state=state, version=state.library.version, instead=decided)
            try:
                return self._commit(decided, state)
            except StaleVersionError:
                if attempt == _ATTEMPTS - 1:
                    raise
                state = self.reload()
        raise AssertionError("the last attempt returns or raises")

    def revision(self, tool_name: str, digest: str) -> ToolDefinition | None:
        """An earlier definition of a tool by its digest; None when it never had that one."""
        for revision in reversed(self.store.history(tool_name)):
            if revision.definition is not None and revision.definition.digest == digest:
                return revision.definition
        return None

    def _commit(self, transaction: Transaction, state: LibraryState) -> Written[T]:
        change = transaction.change
        after = state.library.version + change.makes_version
        drafts = [replace(draft, library_version=after) for draft in transaction.drafts]
        events = chained(state.ledger.head, drafts, at=now(), signer=self._signer)
        change = replace(
            change,
            proposal_id=change.proposal_id or f"events-{uuid.uuid4().hex}",
            author=change.author or self.author.name,
            events=events,
        )
        version = self.store.commit(change, expected_version=state.library.version)
        self._read_events()
        is_new = version == state.library.version + 1  # else the store knows the change from before
        if is_new and change.upserts and not change.removals:
            newest = self._advance(change.upserts, state, version)
        else:
            newest = self.reload() if change.makes_version else self.state
        return Written(state=newest, version=version, transaction=transaction)

    def _advance(
        self, changed: tuple[ToolDefinition, ...], state: LibraryState, version: int
    ) -> LibraryState:
        """The state once definitions have changed, without reading the store again."""
        tools = [self._with_code(definition, state.library) for definition in changed]
        library = state.library.with_tools(tools).at_version(version)
        with self._lock:
            if version > self._library.version:  # else another thread is ahead
                self._library, self._linked = library, None
            return LibraryState(library=library, ledger=self._ledger or Ledger())

    def _with_code(self, definition: ToolDefinition, library: Library) -> Tool:
        if definition.name in self._code:
            return _bound(definition, self._code[definition.name])
        known = library.get(definition.name)
        return Tool(definition=definition) if known is None else known.with_definition(definition)

    def _read_events(self) -> None:
        known = self._ledger or Ledger()
        ledger = known.after(self.store.events(after=known.sequence))
        with self._lock:
            if self._ledger is None or ledger.sequence > self._ledger.sequence:
                self._ledger = ledger


def _completed(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing, whether an event loop runs or not."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        value: T = end.value
        return value
    coroutine.close()
    raise AssertionError("the decision waited for something")


def bound_library(stored: Library, code: Mapping[str, Tool]) -> Library:
    """A library from a store with the code of this process.

    Raises:
        UsageError: The parameters of a tool in code differ from those in the library.
    """
    return stored.with_tools(
        [_bound(stored[name].definition, tool) for name, tool in code.items() if name in stored]
    )


def _bound(stored: ToolDefinition, tool: Tool) -> Tool:
    if tool.definition.signature.parameters != stored.signature.parameters:
        raise UsageError(
            f"the parameters of {tool.name!r} in code differ from those in the library; add the "
            "definition in code to the library first (agentkit tools add --on-conflict replace)"
        )
    return tool.bound_to(stored)


def served_library(store: ToolStore, newest: Library, ledger: Ledger) -> Library:
    """The library that runs use: the newest, except for what is pinned.

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
    held = {
        name: store.load(version)[name].definition
        for name, version in ledger.pins.items()
        if name in newest
    }
    return with_overrides(newest, held)


def with_overrides(library: Library, definitions: Mapping[str, ToolDefinition]) -> Library:
    """The library with these definitions in place of those of the same name.

    Code stays where it was. Composites above are pinned to the new definitions, and linked anew;
    their words stay. Tools keep their places, so that a prompt begins as before up to the first
    tool that differs.

    Args:
        library: The snapshot to start from.
        definitions: By tool name.

    Raises:
        LibraryError: Composites above call each other in a circle, so no pin can be moved.
    """
    changed = [
        one
        for name, one in definitions.items()
        if name not in library or library[name].definition.digest != one.digest
    ]
    if not changed:
        return library
    moved = []
    for one in repinned(library, changed):
        tool = library.get(one.name)
        moved.append(Tool(definition=one) if tool is None else tool.with_definition(one))
    return link(library.with_tools(moved))
