"""Whatever somebody does to a chain afterwards is found."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings, strategies as st

from agentkit.errors import StoreFormatError
from agentkit.library.chain_check import verify_chain
from agentkit.library.event_chain import ChainHead, EventDraft, chained
from agentkit.library.events import Author, LibraryEvent
from agentkit.library.signing import HmacKey

AT = "2026-11-21T10:00:00+00:00"
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
@given(CHAINS, PLACE, PLACE)
def test_any_flipped_bit_is_found(events, place, bit):
    """A bit that flipped in the text of an event is found, or changes nothing that it says."""
    at = place % len(events)
    body = bytearray(json.dumps(events[at].to_json(), separators=(",", ":")).encode())
    body[bit // 8 % len(body)] ^= 1 << bit % 8
    try:
        changed = LibraryEvent.from_json(json.loads(body))
    except (ValueError, StoreFormatError):
        return  # no event any more, which the store says
    if changed != events[at]:
        assert guarded([*events[:at], changed, *events[at + 1 :]], events)


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


def test_events_missing_at_the_start_are_named(chain):
    """A chain that does not begin with its first event says what is missing."""
    (fault,) = verify_chain(chain[3:], verifier=KEY)
    assert fault.message == "events 1 to 3 are missing: event 4 is the first"


def test_a_first_event_that_names_another_is_found(chain):
    """The first event has none before it."""
    assert faults([replace(chain[0], previous="0" * 64)]) == ["link"]


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


def test_an_event_without_a_hash_is_a_fault(chain):
    """An event that holds what no JSON can does not stop the look at the others."""
    odd = replace(chain[1], facts={"x": object()})
    assert faults([chain[0], odd, *chain[2:]]) == ["unreadable", "link"]


@pytest.mark.parametrize("at", ["", "yesterday", "2026-11-21T10:00:00"])
def test_a_time_that_can_not_be_read_stops_nothing(chain, at):
    """Times that can not be compared are left alone; the hash guards them."""
    assert faults([chain[0], replace(chain[1], at=at)]) == []
