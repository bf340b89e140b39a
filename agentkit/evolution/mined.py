"""Hand mined composites to the Tool Manager, with the recorded calls that they are tried on."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from agentkit.episodes import Episode
from agentkit.evolution.dry_run import call_key, runs_live
from agentkit.evolution.insert_outcomes import InsertOutcome, InsertPolicy
from agentkit.evolution.lifting import MOST_EXAMPLES, MinedComposite, WorkedCall
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.mining import MiningConfig, mine
from agentkit.evolution.proposal import Proposal, ProposalRecord
from agentkit.evolution.repository import LibraryStore
from agentkit.evolution.trajectories import trajectories_of
from agentkit.evolution.usage import PASSWORD_FIELD, private_part, suspicious_part
from agentkit.library.events import Author, Signer
from agentkit.library.library import Library
from agentkit.library.pins import with_current_pins
from agentkit.metrics.calls import CanonicalCall
from agentkit.tools.canonical import digest
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.tool import Tool

# --- Recorded calls of children, kept as their worked calls --------------------------------------
# A composite whose children touch the world can not be tried out by calling them. InsertTool
# answers them from their worked calls, so what the episodes recorded of them has to be there
# first.
# The world changes between episodes: the same question may have been answered differently. A tool
# keeps one answer to a question, and worked calls that rely on another one are left out.


@dataclass(frozen=True, kw_only=True, slots=True)
class Recordings:
    """What has to be known of the children before composites can be tried out.

    Attributes:
        worked_calls: Further worked calls of primitives, by name.
        composites: The composites, with worked calls that agree with these records.
    """

    worked_calls: Mapping[str, tuple[Example, ...]]
    composites: tuple[MinedComposite, ...]


def with_recordings(
    library: Library,
    composites: Sequence[MinedComposite],
    *,
    policy: InsertPolicy = InsertPolicy(),  # noqa: B008 - frozen
) -> Recordings:
    """Choose worked calls for composites, and keep the recorded calls behind them.

    Tools that may run while a candidate is tried out need no records.

    Args:
        library: The library that the composites are proposed for.
        composites: What mining found.
        policy: Which tools may run, and how many worked calls a tool keeps.
    """
    shelf = _Shelf(library, policy)
    chosen = []
    for composite in composites:
        taken = (one.example for one in composite.worked if shelf.take(one))
        definition = replace(composite.definition, examples=tuple(islice(taken, MOST_EXAMPLES)))
        chosen.append(replace(composite, definition=definition))
    return Recordings(worked_calls=shelf.new(), composites=tuple(chosen))


class _Shelf:
    """One answer for each question that a tool was asked."""

    def __init__(self, library: Library, policy: InsertPolicy) -> None:
        self._policy = policy
        self._definitions = {
            definition.name: definition
            for definition in library.definitions
            if not definition.is_composite and not runs_live(definition, policy)
        }
        self._known = {name: _by_call(definition) for name, definition in self._definitions.items()}
        self._new: dict[str, list[Example]] = {}

    def take(self, worked: WorkedCall) -> bool:
        """Keep the records behind a worked call, unless they contradict those that are kept.

        Models read worked calls, so what looks private or like an attack on models is not kept.
        """
        if not _is_presentable(worked):
            return False
        new: dict[tuple[str, CanonicalCall], Example] = {}
        for call in worked.recorded:
            if call.tool not in self._known:
                continue
            key = call_key(self._definitions[call.tool], call.arguments)
            example = Example(
                arguments=call.arguments, result=call.result, query=worked.example.query
            )
            known = self._known[call.tool].get(key) or new.setdefault((call.tool, key), example)
            if _text(known.result) != _text(call.result):
                return False
        if not self._has_room(new):
            return False
        for (tool, key), example in new.items():
            self._known[tool][key] = example
            self._new.setdefault(tool, []).append(example)
        return True

    def _has_room(self, new: Collection[tuple[str, CanonicalCall]]) -> bool:
        return all(
            len(self._known[tool]) + sum(other == tool for other, _ in new)
            <= self._policy.max_examples
            for tool, _ in new
        )

    def new(self) -> dict[str, tuple[Example, ...]]:
        """The records that the library does not hold, by tool."""
        return {name: tuple(examples) for name, examples in self._new.items()}


def _is_presentable(worked: WorkedCall) -> bool:
    """Whether nothing in a worked call, or in the calls behind it, looks private or hostile."""
    parts = [[call.arguments, call.result] for call in worked.recorded]
    example = worked.example
    said = [example.query, example.arguments, example.result, *parts]
    is_private = private_part(said, secret=PASSWORD_FIELD) is not None
    return not is_private and suspicious_part(said) is None


def _by_call(definition: ToolDefinition) -> dict[CanonicalCall, Example]:
    """The worked calls of a tool; of two for one call the first holds, as in a stub."""
    worked = reversed(definition.worked_calls)
    return {call_key(definition, example.arguments): example for example in worked}


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def pinned_to(composite: MinedComposite, library: Library) -> ToolDefinition:
    """The definition of a mined composite, pinned to its children as a library holds them now."""
    definition = composite.definition
    return with_current_pins(library.with_tools([definition]), definition)


# --- Handing mined composites to the Tool Manager ------------------------------------------------


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
    """Put mined composites into the library at once, as far as the Tool Manager takes them.

    Their literals come from conversations and nobody is asked, so this is for libraries that no
    user is served from: experiments and benchmarks. Elsewhere ``submit_mined`` makes them wait.

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
    manager: ToolManager, episodes: Iterable[Episode], rules: MiningConfig
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
    fresh = [one for one in found.composites if digest(one.definition.body) not in known]
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
