"""``Ledger``: what the events of a library come to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, TypeVar

from agentkit.errors import StoreFormatError, UsageError
from agentkit.evolution.proposal import (
    NEXT,
    Consent,
    ProposalRecord,
    ProposalState,
    TestPlace,
)
from agentkit.evolution.validation.approvals import is_overruled
from agentkit.library.events import LibraryEvent

K = TypeVar("K")
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
        if which == "last" and records:
            return list(records.values())[-1]
        if which == "last":
            raise UsageError("there is no proposal yet; 'agentkit evolve' makes them")
        begun = [one for one in records.values() if which and one.proposal_id.startswith(which)]
        of_tool = [one for one in records.values() if one.tool_name == which]
        open_of_tool = [one for one in of_tool if one.is_open]
        found = begun if not of_tool else open_of_tool or of_tool[-1:]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(one.proposal_id for one in found[:_NEAREST])
            more = f" and {len(found) - _NEAREST} more" if len(found) > _NEAREST else ""
            raise UsageError(f"{which!r} fits {len(found)} proposals: {ids}{more}; name one")
        names = [*records, *dict.fromkeys(one.tool_name for one in records.values())]
        near = get_close_matches(which, filter(None, names), n=_NEAREST, cutoff=0.4)
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

    def place_of(self, proposal_id: str) -> TestPlace:
        """The place among all tests of a proposal, or the one that it would get now.

        With it the level of its test is ``Elond(opened=place.number - 1,
        promoted=place.discoveries).level(alpha)``, from ``agentkit.evolution.gates``.
        """
        record = self.proposals.get(proposal_id)
        if record is not None and record.place is not None:
            return record.place
        return TestPlace(number=len(self.tested) + 1, discoveries=len(self.passed))


class _Fold:
    """A ledger in the making: its mappings, changed in place by one event after another."""

    def __init__(self, ledger: Ledger) -> None:
        self._head = ledger.head
        self._proposals = dict(ledger.proposals)
        self._experiments = dict(ledger.experiments)
        self._promoted = dict(ledger.promoted)
        self._pins = dict(ledger.pins)
        self._tested = list(ledger.tested)
        self._passed = set(ledger.passed)

    def ledger(self) -> Ledger:
        return Ledger(
            head=self._head,
            proposals=MappingProxyType(self._proposals),
            experiments=MappingProxyType(self._experiments),
            promoted=MappingProxyType(self._promoted),
            pins=MappingProxyType(self._pins),
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
        if event.kind in NEXT:
            self._step(event)
        elif event.kind in _OTHERS:
            _OTHERS[event.kind](self, event)
        else:
            raise StoreFormatError(
                f"event {event.sequence} is of the kind {event.kind!r}, which this agentkit does "
                "not know; upgrade agentkit-evolve"
            )

    def _step(self, event: LibraryEvent) -> None:
        state: ProposalState = event.kind  # type: ignore[assignment]  # take has looked
        known = self._proposals.get(event.proposal_id)
        if known is None:
            if state != "proposed":
                raise _out_of_order(event, "was never proposed")
            record = _fresh(event)
        else:
            if state not in NEXT[known.state]:
                raise _out_of_order(event, f"is {known.state}")
            if known.state == "rejected" and not _is_overruled(known):
                raise _out_of_order(event, "is rejected, and nobody overruled that")
            record = _entered(known, state, event)
        self._follow_experiment(record, event)
        self._follow_promotions(record)
        self._proposals[record.proposal_id] = record
        if state == "shadow":
            self._begin_test(event)
        if state in {"canary", "active"} and record.has_passed_test:
            self._passed.add(record.proposal_id)

    def _follow_experiment(self, record: ProposalRecord, event: LibraryEvent) -> None:
        tool, running = record.tool_name, self._experiments.get(record.tool_name)
        if record.state in EXPERIMENTS:
            if running not in {None, record.proposal_id}:
                raise _out_of_order(event, f"would be tried beside {running!r} on {tool!r}")
            self._experiments[tool] = record.proposal_id
        elif running == record.proposal_id:
            del self._experiments[tool]

    def _follow_promotions(self, record: ProposalRecord) -> None:
        tool = record.tool_name
        stack = self._promoted.get(tool, ())
        if record.state == "active":
            self._promoted[tool] = (*stack, record.proposal_id)
        elif record.state == "rolled_back" and record.proposal_id in stack:
            self._promoted[tool] = tuple(one for one in stack if one != record.proposal_id)

    def _begin_test(self, event: LibraryEvent) -> None:
        record = self._proposals[event.proposal_id]
        if record.place is not None:
            return
        self._tested.append(record.proposal_id)
        place = TestPlace(number=len(self._tested), discoveries=len(self._passed))
        self._proposals[record.proposal_id] = replace(record, place=place)

    def _known(self, event: LibraryEvent) -> ProposalRecord:
        record = self._proposals.get(event.proposal_id)
        if record is None:
            raise _out_of_order(event, "was never proposed")
        return record

    def _noted(self, event: LibraryEvent) -> ProposalRecord:
        """The proposal with one more event, its state as it was."""
        record = self._known(event)
        noted = replace(record, events=(*record.events, event))
        self._proposals[record.proposal_id] = noted
        return noted

    def agreed(self, event: LibraryEvent) -> None:
        """A judge or a person said what they think of a proposal."""
        who: Consent = "judge" if event.kind == "judged" else "person"
        record = self._noted(event)
        agrees = event.kind == "approved" or event.facts.get("agrees")
        if agrees and who not in record.agreed:
            agreed = replace(record, agreed=(*record.agreed, who))
            self._proposals[record.proposal_id] = agreed

    def overruled(self, event: LibraryEvent) -> None:
        record = self._noted(event)
        if record.state != "rejected":
            raise _out_of_order(event, f"is {record.state}")

    def assessed(self, event: LibraryEvent) -> None:
        if self._noted(event).state == "validated":  # an offline comparison
            self._begin_test(event)

    def rebased(self, event: LibraryEvent) -> None:
        record = self._noted(event)
        self._proposals[record.proposal_id] = replace(record, **_moved(event))

    def written(self, event: LibraryEvent) -> None:
        """A change outside of proposals; promotions under it lose their place."""
        for name in event.facts.get("replaced", ()):
            self._promoted.pop(name, None)

    def passed_by(self, event: LibraryEvent) -> None:
        """What earlier releases kept, and nothing depends on any more."""

    def pinned(self, event: LibraryEvent) -> None:
        self._pins[event.tool_name] = int(event.facts["version"])

    def unpinned(self, event: LibraryEvent) -> None:
        self._pins.pop(event.tool_name, None)


_OTHERS: Mapping[str, Callable[[_Fold, LibraryEvent], None]] = {
    "judged": _Fold.agreed,
    "approved": _Fold.agreed,
    "overruled": _Fold.overruled,
    "assessed": _Fold.assessed,
    "rebased": _Fold.rebased,
    "written": _Fold.written,
    "marked": _Fold.passed_by,
    "revalidated": _Fold.passed_by,
    "pinned": _Fold.pinned,
    "unpinned": _Fold.unpinned,
    "proposer_quarantined": _Fold.passed_by,
    "proposer_released": _Fold.passed_by,
}


def _fresh(event: LibraryEvent) -> ProposalRecord:
    kept = event.facts.get("proposal") or {}
    record = ProposalRecord(
        proposal_id=event.proposal_id,
        state="proposed",
        tool_name=event.tool_name,
        author=event.author,
        events=(event,),
        base=kept.get("base", ""),
        needs=tuple(event.facts.get("needs", ())),
    )
    return replace(record, **_moved(event))


def _entered(record: ProposalRecord, state: ProposalState, event: LibraryEvent) -> ProposalRecord:
    changes: dict[str, Any] = {"state": state, "events": (*record.events, event)} | _moved(event)
    if state == "proposed":  # taken up again: who agreed before is asked anew
        changes |= {"needs": tuple(event.facts.get("needs", ())), "agreed": ()}
    return replace(record, **changes)


def _is_overruled(record: ProposalRecord) -> bool:
    """Whether a person overruled all that a rejected proposal was rejected for."""
    failed = record.failed
    return bool(failed) and all(is_overruled(one, record.overruled) for one in failed)


def _moved(event: LibraryEvent) -> dict[str, Any]:
    """What changes with an event that brings the candidate to another revision."""
    return {"moved": event, "base": event.facts["base"]} if "candidate" in event.facts else {}


def _out_of_order(event: LibraryEvent, why: str) -> StoreFormatError:
    return StoreFormatError(
        f"event {event.sequence} says that the proposal {event.proposal_id!r} is {event.kind}, but "
        f"it {why}; 'agentkit log --verify' says whether the chain was tampered with"
    )
