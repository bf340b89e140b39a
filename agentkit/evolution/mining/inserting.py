"""Handing mined composites to the Tool Manager."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agentkit.episodes import Episode
from agentkit.evolution.insertion.outcome import InsertOutcome
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.lifecycle.journal import LibraryStore
from agentkit.evolution.lifecycle.record import ProposalRecord
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.mining.candidates import MinedComposite
from agentkit.evolution.mining.miner import MiningRules, mine
from agentkit.evolution.mining.recording import pinned_to, with_recordings
from agentkit.evolution.mining.sources import trajectories_of
from agentkit.evolution.proposals.proposal import Proposal
from agentkit.library.chain import Signer
from agentkit.library.events import Author
from agentkit.tools.canonical import digest
from agentkit.tools.tool import Tool

_MINING = Author(kind="program", name="mining")


def insert_mined(
    store: LibraryStore,
    composites: Sequence[MinedComposite],
    *,
    tools: Iterable[Tool] = (),
    policy: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
    author: str | Author = "agentkit",
    signer: Signer | None = None,
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
        signer: Signs every event.

    Returns:
        What came of each, by its proposed name.

    Raises:
        StoreError: The store failed, or other writers were faster every time.
    """
    manager = ToolManager(store, tools=tools, policy=policy, author=author, signer=signer)
    outcomes: dict[str, InsertOutcome] = {}
    for composite in _recorded(manager, composites, policy):
        outcomes[composite.name] = manager.insert(
            pinned_to(composite, manager.library),
            evidence=composite.evidence,
            reason=f"mined: {composite.uses} uses in {composite.support} episodes",
        )
    return outcomes


async def submit_mined(
    manager: ToolManager, episodes: Iterable[Episode], rules: MiningRules
) -> tuple[ProposalRecord, ...]:
    """Mine episodes, and propose what was not proposed before.

    The proposals wait, whatever the tools do: a composite is a tool that models did not have. One
    with the program of a composite that there is, or that was proposed, is left out.

    Args:
        manager: Takes the proposals in.
        episodes: What happened.
        rules: What mining looks for.

    Returns:
        Where each new proposal stands.
    """
    tools = {definition.name: definition for definition in manager.library.definitions}
    found = mine(trajectories_of(episodes).trajectories, tools, rules)
    earlier = (record.candidate for record in manager.ledger.proposals.values())
    there = (*tools.values(), *(one for one in earlier if one is not None))
    known = {digest(one.body) for one in there if one.is_composite}
    # those of later rounds call composites that are not in the library yet
    first = (one for one in found.composites if one.round == 1)
    fresh = [one for one in first if digest(one.definition.body) not in known]
    if not fresh:
        return ()
    return tuple([await _submitted(manager, one) for one in _recorded(manager, fresh)])


async def _submitted(manager: ToolManager, composite: MinedComposite) -> ProposalRecord:
    proposal = Proposal.of(
        None,
        pinned_to(composite, manager.library),
        stream="composite",
        author=_MINING,
        reason=f"mined: {composite.uses} uses in {composite.support} episodes",
        evidence=composite.evidence,
    )
    return await manager.submit_async(proposal)


def _recorded(
    manager: ToolManager,
    composites: Sequence[MinedComposite],
    policy: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
) -> tuple[MinedComposite, ...]:
    """Record the calls that the composites need; the composites with what agrees with them."""
    recordings = with_recordings(manager.library, composites, policy=policy)
    if recordings.worked_calls:
        manager.record(
            recordings.worked_calls,
            evidence=tuple(dict.fromkeys(id_ for one in composites for id_ in one.evidence)),
            reason="recorded calls, to try mined composites on",
        )
        # another writer may have recorded other answers in between
        recordings = with_recordings(manager.library, composites, policy=policy)
    return recordings.composites
