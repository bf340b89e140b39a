"""Handing mined composites to the Tool Manager."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence

from agentkit.errors import StaleVersionError
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.mining.candidates import MinedComposite
from agentkit.evolution.mining.recording import pinned_to, with_recordings
from agentkit.evolution.outcome import InsertOutcome
from agentkit.evolution.policy import InsertPolicy
from agentkit.library.store import LibraryChange, ToolStore
from agentkit.tools.tool import Tool


def insert_mined(
    store: ToolStore,
    composites: Sequence[MinedComposite],
    *,
    tools: Iterable[Tool] = (),
    policy: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
    author: str = "agentkit",
) -> dict[str, InsertOutcome]:
    """Propose mined composites to the library, children before those that call them.

    First the recorded calls of tools that touch the world become worked calls of these tools
    (``with_recordings``): on them the Tool Manager tries the composites out.

    Args:
        store: Where the library is kept.
        composites: As ``mine`` gives them.
        tools: Code of primitives, to try composites of pure tools on.
        policy: What is asked of a candidate.
        author: Who proposes, for the history.

    Returns:
        What came of each, by its proposed name.

    Raises:
        StoreError: The store failed, or other writers were faster every time.
    """
    ready = _record(store, composites, policy, author)
    manager = ToolManager(store, tools=tools, policy=policy, author=author)
    outcomes: dict[str, InsertOutcome] = {}
    for composite in ready:
        outcomes[composite.name] = manager.insert(
            pinned_to(composite, manager.library),
            evidence=composite.evidence,
            reason=f"mined: {composite.uses} uses in {composite.support} episodes",
        )
    return outcomes


def _record(
    store: ToolStore, composites: Sequence[MinedComposite], policy: InsertPolicy, author: str
) -> tuple[MinedComposite, ...]:
    """Commit the records that the composites need; the composites with what agrees with them."""
    proposal_id = f"recordings-{uuid.uuid4().hex}"
    evidence = dict.fromkeys(name for composite in composites for name in composite.evidence)
    for attempt in range(1, policy.attempts + 1):
        library = store.load()
        recordings = with_recordings(library, composites, policy=policy)
        change = LibraryChange(
            proposal_id=proposal_id,
            upserts=recordings.definitions,
            author=author,
            reason="recorded calls, to try mined composites on",
            evidence=tuple(evidence),
        )
        try:
            if change.upserts:
                store.commit(change, expected_version=library.version)
        except StaleVersionError:
            if attempt == policy.attempts:
                raise
        else:
            break
    return recordings.composites
