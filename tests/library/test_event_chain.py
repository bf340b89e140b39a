"""Events become a chain: places, hashes, what can be kept, and a head to remember."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings, strategies as st
from support.store_killer import kill_writers

from agentkit.errors import StoreError, StoreFormatError, UsageError
from agentkit.library import LibraryChange
from agentkit.library.chain_check import verify_chain
from agentkit.library.events import Author, ChainHead, EventDraft, LibraryEvent, chained
from agentkit.library.memory import MemoryStore
from agentkit.library.signing import HmacKey

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


KEY = HmacKey(secret=b"a secret that nobody is to know.")
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
JSON_DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
DRAFTS = st.builds(
    EventDraft,
    kind=st.sampled_from(["proposed", "validated", "active", "rejected", "written"]),
    author=st.builds(
        Author, kind=st.sampled_from(["person", "model"]), name=TEXT, prompt_hash=TEXT
    ),
    reason=TEXT,
    proposal_id=TEXT,
    tool_name=TEXT,
    library_version=st.integers(0, 9),
    evidence=st.lists(TEXT, max_size=2).map(tuple),
    digest_before=TEXT,
    digest_after=TEXT,
    facts=st.dictionaries(TEXT, JSON_DATA, max_size=2),
)
CHAINS = st.lists(DRAFTS, min_size=2, max_size=4).map(
    lambda drafts: chained(None, drafts, at=AT, signer=KEY)
)
PLACE = st.integers(0, 1_000_000)
some = settings(max_examples=50)


def faults(events, **how) -> list[str]:
    """Codes of what is wrong, without notes."""
    return [fault.code for fault in verify_chain(events, **how) if not fault.is_note]


def guarded(events, original) -> list[str]:
    """Faults of a chain for somebody who has the key and remembers the head."""
    return faults(events, verifier=KEY, expected_head=ChainHead.of(original[-1]))


def reread(event: LibraryEvent) -> LibraryEvent:
    """An event after it was written as JSON text and read."""
    return LibraryEvent.from_json(json.loads(json.dumps(event.to_json())))


@some
@given(CHAINS)
def test_a_chain_as_it_was_written_has_no_fault(events):
    """Nothing is found in a whole chain, before and after it went through JSON."""
    assert verify_chain(events, verifier=KEY, expected_head=ChainHead.of(events[-1])) == ()
    assert verify_chain(map(reread, events), verifier=KEY) == ()


@some
@given(CHAINS)
def test_hashes_survive_json(events):
    """An event that went through JSON text has the hash that it had, and is equal."""
    for event in events:
        assert reread(event).hash == event.hash
        assert reread(event) == event


@some
@given(CHAINS, PLACE, DRAFTS, st.data())
def test_any_changed_part_is_found(events, place, other, data):
    """An event with one part changed is found; all but the last one without a key too."""
    at = place % len(events)
    name = data.draw(st.sampled_from([*EventDraft.__dataclass_fields__, "at", "previous"]))
    value = getattr(other, name, "2026-11-21T10:00:01+00:00")
    changed = replace(events[at], **{name: value})
    assume(changed.hash != events[at].hash)
    tampered = [*events[:at], changed, *events[at + 1 :]]
    assert guarded(tampered, events)
    assert faults(tampered, verifier=KEY)
    if at + 1 < len(events):
        assert faults(tampered)


@some
@given(CHAINS, PLACE, TEXT)
def test_a_changed_signature_is_found(events, place, signature):
    """A signature that is another, or gone, is found by whoever has the key."""
    at = place % len(events)
    assume(signature != events[at].signature)
    tampered = [*events[:at], replace(events[at], signature=signature), *events[at + 1 :]]
    assert faults(tampered, verifier=KEY) == ["signature" if signature else "unsigned"]


@some
@given(CHAINS, PLACE)
def test_a_dropped_event_is_found(events, place):
    """An event that is missing is found; at the end, by whoever remembers the head."""
    at = place % len(events)
    tampered = [*events[:at], *events[at + 1 :]]
    assert guarded(tampered, events)
    if at + 1 < len(events):
        assert faults(tampered) == ["gap"]


@some
@given(CHAINS, PLACE, PLACE)
def test_swapped_events_are_found(events, one, other):
    """Two events that changed places are found, whether their numbers did too or not."""
    i, j = one % len(events), other % len(events)
    assume(i != j)
    swapped = list(events)
    swapped[i], swapped[j] = events[j], events[i]
    assert faults(swapped)
    renumbered = [replace(event, sequence=at) for at, event in enumerate(swapped, start=1)]
    assert guarded(renumbered, events)
    assert faults(renumbered)


@some
@given(CHAINS, PLACE, PLACE)
def test_a_repeated_event_is_found(events, which, where):
    """An event that stands there twice is found."""
    at = where % (len(events) + 1)
    tampered = [*events[:at], events[which % len(events)], *events[at:]]
    assert faults(tampered)


@some
@given(CHAINS)
def test_a_chain_that_was_written_anew_is_found(events):
    """A whole chain made of other events is found by the key, and by the remembered head."""
    drafts = [EventDraft(kind="active", author=Author(kind="person", name="Eve")) for _ in events]
    forged = chained(None, drafts, at=AT)
    assert faults(forged) == []
    assert faults(forged, verifier=KEY) == ["unsigned"] * len(events)
    assert faults(forged, expected_head=ChainHead.of(events[-1])) == ["head"]


@some
@given(CHAINS, PLACE)
def test_a_chain_may_grow_behind_a_remembered_head(events, place):
    """Any earlier end of the chain is found in it again."""
    head = ChainHead.of(events[place % len(events)])
    assert faults(events, expected_head=head) == []
    assert faults(events, expected_head=ChainHead.of(None)) == []


@pytest.fixture
def chain() -> tuple[LibraryEvent, ...]:
    """Five signed events."""
    drafts = [EventDraft(kind="pinned", author=Author(kind="person", name="Ada"))] * 5
    return chained(None, drafts, at=AT, signer=KEY)


def test_each_fault_is_named_in_plain_words(chain):
    """All faults of a chain are reported, each with its place and a sentence."""
    one, _, three, four, five = chain
    not_the_one = "event 4 is not the one that event 5 was chained to"
    told = verify_chain([one, three, replace(four, reason="x"), five, one], verifier=KEY)
    assert [(fault.sequence, fault.message) for fault in told] == [
        (2, "event 2 is missing: event 3 follows event 1"),
        (4, "event 4 carries a signature that was made with another key, or for another content"),
        (4, f"{not_the_one}: one of the two was changed after it was written"),
        (1, "event 1 stands behind event 5: it was moved, or is there twice"),
    ]


def test_signing_may_have_begun_later(chain):
    """Events before the first that has to be signed may go without, and none after it."""
    mixed = [*(replace(event, signature="") for event in chain[:2]), *chain[2:]]
    assert faults(mixed, verifier=KEY) == ["unsigned", "unsigned"]
    assert faults(mixed, verifier=KEY, signed_from=3) == []
    assert faults([*mixed[:3], replace(mixed[3], signature="")], verifier=KEY, signed_from=3) == [
        "unsigned"
    ]


def test_signatures_without_a_key_are_a_note(chain):
    """Signatures that nobody looks at are told, and are no fault."""
    (note,) = verify_chain(chain)
    assert (note.code, note.is_note) == ("unchecked", True)
    assert note.message == "5 events carry signatures that nobody checked: no key was given"


def test_another_head_at_the_same_place_is_found(chain):
    """A remembered head of another chain is not taken for this one's."""
    other = ChainHead(sequence=3, hash="0" * 64)
    (fault, _) = verify_chain(chain, expected_head=other)
    assert fault.message == "event 3 is another than the one that was seen before"


def test_an_empty_chain_where_events_were_is_found(chain):
    """A chain that is gone is found by whoever remembers its head."""
    assert verify_chain([]) == ()
    (fault,) = verify_chain([], expected_head=ChainHead.of(chain[0]))
    assert fault.message == ("the chain is empty, but event 1 was seen before: its end was cut off")


PROPOSALS = 500
WRITERS = 4
KILLS = 200


@pytest.mark.long
@pytest.mark.skipif(
    not (hasattr(os, "fork") and hasattr(signal, "SIGKILL")), reason="the system can not fork"
)
def test_writers_killed_in_mid_commit_leave_nothing_half_done(tmp_path):
    """After each of 200 kills inside a commit: all that was answered is kept, once, whole."""
    report = kill_writers(f"sqlite:///{tmp_path / 'store.db'}", KILLS)
    assert report.in_commit == KILLS
