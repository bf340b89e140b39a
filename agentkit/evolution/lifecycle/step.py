"""``Position`` and ``Step``: where the library stands, and what is to be written next."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.evolution.insertion.snapshot import Snapshot
from agentkit.evolution.lifecycle.ledger import Ledger
from agentkit.library.chain import EventDraft
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.tools.definition import ToolDefinition


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
