"""``Ledger``: what the events of a library come to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeVar

from agentkit.errors import StoreFormatError, UsageError
from agentkit.evolution.gate_statistics import Elond
from agentkit.evolution.proposal import (
    NEXT,
    Consent,
    ProposalRecord,
    ProposalState,
)
from agentkit.library.events import LibraryEvent

V = TypeVar("V")

EXPERIMENTS: frozenset[ProposalState] = frozenset({"shadow", "canary"})
"""States in which a candidate is tried on real requests. One proposal of each tool may be there."""

_NEAREST = 5

WHOLE_LIBRARY = ""
"""What a pin is filed under that holds for every tool."""


def _empty() -> Mapping[str, V]:
    return MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """The state of the life cycle: a fold over the events of one library, and nothing else.

    It never changes; ``after`` gives the next one. So the same chain gives the same ledger,
    wherever and however often it is read.

    Attributes:
        head: The last event taken in; None for none.
        proposals: Every proposal ever made, by id, oldest first.
        experiments: By tool: the proposal that is being tried on real requests.
        promoted: By tool: the proposals that became active and were not taken back, oldest first.
            The last one is what a roll-back takes back.
        pins: By tool, or ``WHOLE_LIBRARY``: the library version that runs use.
        vectors: Digests of trained word vectors that were promoted and not taken back, oldest
            first; retrieval reads the last.
        tested: Ids of the proposals in the order in which their tests began.
        passed: Those of them that a comparison with the active definition let go on, which e-LOND
            calls discoveries. One that is rolled back later still counts.

    Example:
        >>> from agentkit.library.events import Author, EventDraft, chained
        >>> ada = Author(kind="person", name="ada")
        >>> pin = EventDraft(kind="pinned", author=ada, facts={"version": 3})
        >>> ledger = Ledger().after(chained(None, [pin], at="2026-11-21T12:00:00Z"))
        >>> ledger.pinned_version("any_tool"), ledger.sequence
        (3, 1)
    """

    head: LibraryEvent | None = None
    proposals: Mapping[str, ProposalRecord] = field(default_factory=_empty)
    experiments: Mapping[str, str] = field(default_factory=_empty)
    promoted: Mapping[str, tuple[str, ...]] = field(default_factory=_empty)
    pins: Mapping[str, int] = field(default_factory=_empty)
    vectors: tuple[str, ...] = ()
    tested: tuple[str, ...] = ()
    passed: frozenset[str] = frozenset()

    @property
    def sequence(self) -> int:
        """Place of the last event taken in; 0 for none."""
        return 0 if self.head is None else self.head.sequence

    def after(self, events: Iterable[LibraryEvent]) -> Ledger:
        """The ledger once ``events`` have happened, which follow the last one.

        Raises:
            StoreFormatError: An event does not follow: its place in the chain is wrong, or it
                brings a proposal into a state that may not follow its last one.

        Cost: one copy of the mappings, then a small constant for each event.
        """
        taken = tuple(events)
        if not taken:
            return self
        fold = _Fold(self)
        for event in taken:
            fold.take(event)
        return fold.ledger()

    def find(self, which: str) -> ProposalRecord:
        """The proposal of an id, of the beginning of one, of a tool's name, or ``last``.

        The name of a tool means its one open proposal, or else its latest.

        Raises:
            UsageError: There is none, or several fit.
        """
        records = self.proposals
        if which in records:
            return records[which]
        if which == "last":
            if records:
                return list(records.values())[-1]
            raise UsageError("there is no proposal yet; 'agentkit evolve' makes them")
        found = [one for one in records.values() if one.tool_name == which]
        found = [one for one in found if one.is_open] or found[-1:]
        if not found and which:
            found = [one for one in records.values() if one.proposal_id.startswith(which)]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(one.proposal_id for one in found[:_NEAREST])
            more = f" and {len(found) - _NEAREST} more" if len(found) > _NEAREST else ""
            raise UsageError(f"{which!r} fits {len(found)} proposals: {ids}{more}; name one")
        names = [*records, *(one.tool_name for one in records.values() if one.tool_name)]
        near = get_close_matches(which, dict.fromkeys(names), n=_NEAREST, cutoff=0.4)
        hint = f"did you mean {', '.join(near)}? " if near else ""
        raise UsageError(
            f"there is no proposal {which!r}, and no proposal for a tool of that name; {hint}"
            "'agentkit review list --all' shows all"
        )

    def pinned_version(self, tool_name: str = WHOLE_LIBRARY) -> int | None:
        """The library version that runs use for a tool; None when they use the newest.

        A pin of the whole library goes before one of a tool.
        """
        return self.pins.get(WHOLE_LIBRARY, self.pins.get(tool_name))

    def active(self, tool_name: str) -> ProposalRecord | None:
        """The proposal whose candidate serves as this tool; None when no proposal does."""
        ids = self.promoted.get(tool_name, ())
        found = self.proposals[ids[-1]] if ids else None
        return found if found is not None and found.state == "active" else None

    def experiment(self, tool_name: str) -> ProposalRecord | None:
        """The proposal that is tried on real requests for this tool; None for none."""
        found = self.experiments.get(tool_name)
        return None if found is None else self.proposals[found]

    def place_of(self, proposal_id: str) -> Elond:
        """The place among all tests of a proposal, or the one that it would get now.

        ``level`` of it is the level of its test.
        """
        record = self.proposals.get(proposal_id)
        if record is not None and record.place is not None:
            return record.place
        return _next_place(self.tested, self.passed)


class _Fold:
    """A ledger in the making: its mappings, changed in place by one event after another."""

    def __init__(self, ledger: Ledger) -> None:
        self._head = ledger.head
        self._proposals = dict(ledger.proposals)
        self._experiments = dict(ledger.experiments)
        self._promoted = dict(ledger.promoted)
        self._pins = dict(ledger.pins)
        self._vectors = list(ledger.vectors)
        self._tested = list(ledger.tested)
        self._passed = set(ledger.passed)

    def ledger(self) -> Ledger:
        return Ledger(
            head=self._head,
            proposals=MappingProxyType(self._proposals),
            experiments=MappingProxyType(self._experiments),
            promoted=MappingProxyType(self._promoted),
            pins=MappingProxyType(self._pins),
            vectors=tuple(self._vectors),
            tested=tuple(self._tested),
            passed=frozenset(self._passed),
        )

    def take(self, event: LibraryEvent) -> None:
        expected = 1 if self._head is None else self._head.sequence + 1
        previous = "" if self._head is None else self._head.hash
        if (event.sequence, event.previous) != (expected, previous):
            raise StoreFormatError(
                f"event {event.sequence} does not follow event {expected - 1}: the chain is "
                "broken; 'agentkit log --verify' says where"
            )
        self._head = event
        match event.kind:
            case "judged" | "approved" | "overruled" | "assessed" | "rebased":
                self._note(event)
            case "written":  # promotions under a change outside of proposals lose their place
                for name in event.facts.get("replaced", ()):
                    self._promoted.pop(name, None)
            case "pinned" | "unpinned":
                self._hold(event)
            case "vectors_promoted" | "vectors_taken_back":
                self._turn_to(event)
            case "marked" | "revalidated" | "proposer_quarantined" | "proposer_released":
                pass  # what earlier releases kept, and nothing depends on any more
            case state if state in NEXT:
                self._enter(event, state)
            case _:
                raise StoreFormatError(
                    f"event {event.sequence} is of the kind {event.kind!r}, which this agentkit "
                    "does not know; upgrade agentkit-evolve"
                )

    def _hold(self, event: LibraryEvent) -> None:
        if event.kind == "pinned":
            self._pins[event.tool_name] = int(event.facts["version"])
        else:
            self._pins.pop(event.tool_name, None)

    def _turn_to(self, event: LibraryEvent) -> None:
        """Retrieval turns to other word vectors, or back to earlier ones."""
        if event.kind == "vectors_promoted":
            self._vectors.append(str(event.facts["digest"]))
        else:
            del self._vectors[-1:]

    def _note(self, event: LibraryEvent) -> None:
        """Something about a proposal, whose state stays."""
        record = self._proposals.get(event.proposal_id)
        if record is None:
            raise _out_of_order(event, "was never proposed")
        changes: dict[str, Any] = {"events": (*record.events, event)}
        if event.kind == "overruled" and record.state != "rejected":
            raise _out_of_order(event, f"is {record.state}")
        if event.kind == "approved" or (event.kind == "judged" and event.facts.get("agrees")):
            who: Consent = "judge" if event.kind == "judged" else "person"
            changes["agreed"] = tuple(dict.fromkeys((*record.agreed, who)))
        if event.kind == "rebased":
            changes |= _moved(event)
        if event.kind == "assessed" and record.state == "validated":  # an offline comparison
            changes["place"] = self._place(record)
        self._proposals[record.proposal_id] = replace(record, **changes)

    def _enter(self, event: LibraryEvent, state: ProposalState) -> None:
        """A proposal comes into a state."""
        record = self._proposals.get(event.proposal_id) or _unknown(event)
        if record.events and state not in NEXT[record.state]:
            raise _out_of_order(event, f"is {record.state}")
        if record.state == "rejected" and not _is_overruled(record):
            raise _out_of_order(event, "is rejected, and nobody overruled that")
        changes: dict[str, Any] = {"state": state, "events": (*record.events, event)}
        changes |= _moved(event)
        if state == "proposed":  # or taken up again: who agreed before is asked anew
            changes |= {"needs": tuple(event.facts.get("needs", ())), "agreed": ()}
        if state == "shadow":
            changes["place"] = self._place(record)
        record = replace(record, **changes)
        self._proposals[record.proposal_id] = record
        self._follow(record, event)
        if state in {"canary", "active"} and record.has_passed_test:
            self._passed.add(record.proposal_id)

    def _follow(self, record: ProposalRecord, event: LibraryEvent) -> None:
        """What is tried on the tool, and what was promoted on it."""
        tool, name = record.tool_name, record.proposal_id
        running, stack = self._experiments.get(tool), self._promoted.get(tool, ())
        if record.state in EXPERIMENTS:
            if running not in {None, name}:
                raise _out_of_order(event, f"would be tried beside {running!r} on {tool!r}")
            self._experiments[tool] = name
        elif running == name:
            del self._experiments[tool]
        if record.state == "active":
            self._promoted[tool] = (*stack, name)
        elif record.state == "rolled_back" and name in stack:
            self._promoted[tool] = tuple(one for one in stack if one != name)

    def _place(self, record: ProposalRecord) -> Elond:
        """The place of a test, which begins now unless it began before."""
        if record.place is not None:
            return record.place
        place = _next_place(self._tested, self._passed)
        self._tested.append(record.proposal_id)
        return place


def _next_place(tested: Collection[str], passed: Collection[str]) -> Elond:
    """The place of the next test; of a chain that others made more may have passed than tested."""
    return Elond(opened=len(tested), promoted=min(len(tested), len(passed)))


def _unknown(event: LibraryEvent) -> ProposalRecord:
    """A proposal before its first event."""
    if event.kind != "proposed":
        raise _out_of_order(event, "was never proposed")
    return ProposalRecord(
        proposal_id=event.proposal_id,
        state="proposed",
        tool_name=event.tool_name,
        author=event.author,
        events=(),
        base=(event.facts.get("proposal") or {}).get("base", ""),
    )


def _is_overruled(record: ProposalRecord) -> bool:
    """Whether a person overruled all that a rejected proposal was rejected for."""

    def said(kind: str, of: str) -> set[tuple[str, str]]:
        checks = (one for event in record.events if event.kind == kind for one in event.facts[of])
        return {(one["code"], one.get("excerpt", "")) for one in checks}

    failed = {(one.code, one.excerpt) for one in record.failed}
    return bool(failed) and failed <= said("overruled", "overruled")


def _moved(event: LibraryEvent) -> dict[str, Any]:
    """What changes with an event that brings the candidate to another revision."""
    return {"moved": event, "base": event.facts["base"]} if "candidate" in event.facts else {}


def _out_of_order(event: LibraryEvent, why: str) -> StoreFormatError:
    return StoreFormatError(
        f"event {event.sequence} says that the proposal {event.proposal_id!r} is {event.kind}, but "
        f"it {why}; 'agentkit log --verify' says whether the chain was tampered with"
    )
