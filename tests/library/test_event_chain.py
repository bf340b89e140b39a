"""Events become a chain: places, hashes, what can be kept, and a head to remember."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentkit.errors import StoreError, StoreFormatError, UsageError
from agentkit.library import LibraryChange
from agentkit.library.chain_check import verify_chain
from agentkit.library.event_chain import ChainHead, EventDraft, chained
from agentkit.library.events import Author, LibraryEvent
from agentkit.library.memory import MemoryStore

AT = "2026-11-21T10:00:00+00:00"
ADA = Author(kind="person", name="Ada")


def draft(reason: str = "", **parts) -> EventDraft:
    """A draft by Ada."""
    return EventDraft(kind="assessed", author=ADA, reason=reason, **parts)


def test_drafts_get_places_behind_the_last_event():
    """Sequences count on from the head, and each event holds the hash of the one before it."""
    first, second = chained(None, [draft("1"), draft("2")], at=AT)
    (third,) = chained(second, [draft("3")], at=AT)
    assert [event.sequence for event in (first, second, third)] == [1, 2, 3]
    assert [event.previous for event in (first, second, third)] == ["", first.hash, second.hash]
    assert chained(third, [], at=AT) == ()


def test_every_part_of_a_draft_arrives():
    """An event says what its draft said."""
    given = draft(
        "why",
        proposal_id="p",
        tool_name="t",
        library_version=3,
        evidence=("e",),
        digest_before="a",
        digest_after="b",
        facts={"x": 1},
    )
    (event,) = chained(None, [given], at=AT)
    for name in EventDraft.__dataclass_fields__:
        assert getattr(event, name) == getattr(given, name)


def test_facts_are_copied():
    """What a caller does to its facts afterwards does not reach the chain."""
    facts = {"numbers": [1]}
    (event,) = chained(None, [draft(facts=facts)], at=AT)
    facts["numbers"].append(2)
    assert event.facts == {"numbers": [1]}


def test_tuples_become_arrays():
    """Facts are as they will be read back: arrays are lists."""
    (event,) = chained(None, [draft(facts={"pair": (1, (2,))})], at=AT)
    assert event.facts == {"pair": [1, [2]]}


def test_half_a_surrogate_pair_is_written_out():
    """What a model wrote can be kept wherever it stands."""
    half = "\ud83d"
    odd = EventDraft(
        kind="proposed",
        author=Author(kind="model", name=half),
        reason=half,
        evidence=(half,),
        facts={half: [half]},
    )
    (event,) = chained(None, [odd], at=AT)
    written = "\\ud83d"
    assert (event.author.name, event.reason, event.evidence) == (written, written, (written,))
    assert event.facts == {written: [written]}
    json.dumps(event.to_json(), ensure_ascii=False).encode()


def nested(depth: int) -> list:
    """Lists in lists."""
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "facts",
    [{"x": float("nan")}, {"x": float("inf")}, {"x": object()}, {1: 2}, {"x": nested(100_000)}],
    ids=["nan", "inf", "object", "number as key", "too deep"],
)
def test_facts_that_json_can_not_hold_are_refused(facts):
    """The error names the event and what is wrong, before anything is written."""
    with pytest.raises(StoreError, match="'assessed' about 'weather' can not be kept"):
        chained(None, [draft(tool_name="weather", facts=facts)], at=AT)


@pytest.mark.parametrize(
    "at", ["", "now", "2026-11-21", "2026-11-21T10:00:00", "2026-11-21T10:00:00+02:00"]
)
def test_a_time_that_is_not_utc_is_refused(at):
    """Times are comparable: ISO 8601 in UTC and nothing else."""
    with pytest.raises(UsageError, match="UTC"):
        chained(None, [draft()], at=at)


def test_a_clock_that_goes_backwards_is_no_hindrance():
    """The order of events is that of the chain, whatever the clocks said."""
    first = chained(None, [draft()], at=AT)
    second = chained(first[-1], [draft()], at="1999-01-01T00:00:00+00:00")
    (note,) = verify_chain(first + second)
    assert (note.code, note.is_note, note.sequence) == ("clock", True, 2)


def test_a_head_is_written_and_read():
    """A head goes to text and back; the empty chain has one too."""
    (event,) = chained(None, [draft()], at=AT)
    for head in (ChainHead.of(event), ChainHead.of(None)):
        assert ChainHead.parse(f"{head}\n") == head


@pytest.mark.parametrize(
    "text", ["", "7", "x:y", "7:", "7:abc", f"-7:{'0' * 64}", f"0:{'0' * 64}", f"²:{'0' * 64}"]
)
def test_what_is_no_head_is_refused(text):
    """A text that is no head says what one looks like."""
    with pytest.raises(UsageError, match="log --head"):
        ChainHead.parse(text)


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": 1.0},
        {"sequence": True},
        {"sequence": "1"},
        {"library_version": 2.0},
        {"reason": 7},
        {"reason": None},
        {"evidence": [1]},
        {"facts": []},
        {"facts": "x"},
        {"author": {"kind": "person"}},
        {"author": {"kind": "person", "name": 7}},
        {"author": "Ada"},
        {"format": 0},
        {"format": True},
        {"format": 2},
        {"format": "1"},
        {"surprise": 1},
    ],
    ids=str,
)
def test_what_only_looks_like_an_event_is_refused(change):
    """A record with a wrong type, a newer format or an unknown part is no event."""
    (event,) = chained(None, [draft("why", library_version=1)], at=AT)
    with pytest.raises(StoreFormatError):
        LibraryEvent.from_json({**event.to_json(), **change})


@pytest.mark.parametrize(
    "parts",
    [
        {"reason": None},
        {"library_version": "1"},
        {"library_version": None},
        {"evidence": ("e", 1)},
        {"facts": None},
        {"author": Author(kind="person", name=None)},
        {"author": None},
    ],
    ids=str,
)
def test_an_event_that_could_not_be_read_again_is_refused(parts):
    """A store takes no event that would be unreadable afterwards, for it would end the chain."""
    (event,) = chained(None, [draft()], at=AT)
    store = MemoryStore()
    with pytest.raises(StoreError, match="can not be stored"):
        store.commit(
            LibraryChange(proposal_id="p", events=(replace(event, **parts),)), expected_version=0
        )
    assert store.events() == ()


def test_nobody_may_be_the_author():
    """An author without a name can be kept and read."""
    (event,) = chained(
        None, [EventDraft(kind="written", author=Author(kind="program", name=""))], at=AT
    )
    assert LibraryEvent.from_json(event.to_json()) == event
