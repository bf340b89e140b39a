"""Events become a chain that shows tampering, signed by keys, and held against the library."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings, strategies as st

from agentkit import ToolDefinition
from agentkit.errors import MissingExtraError, StoreError, StoreFormatError, UsageError
from agentkit.library import LibraryChange
from agentkit.library.chain import (
    HmacKey,
    environment_signer,
    read_signer,
    read_verifier,
    verify_chain,
    verify_library,
)
from agentkit.library.events import Author, ChainHead, EventDraft, LibraryEvent, chained
from agentkit.library.memory import MemoryStore
from agentkit.library.sqlite import SQLiteStore
from agentkit.tools.canonical import digest
from agentkit.tools.definition import Description

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


def nested(depth: int) -> list:
    """Lists in lists."""
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "facts",
    [{"x": float("nan")}, {"x": object()}, {1: 2}, {"x": nested(100_000)}],
    ids=["nan", "object", "number as key", "too deep"],
)
def test_facts_that_json_can_not_hold_are_refused(facts):
    """The error names the event and what is wrong, before anything is written."""
    with pytest.raises(StoreError, match="'assessed' about 'weather' cannot be kept"):
        chained(None, [draft(tool_name="weather", facts=facts)], at=AT)


@pytest.mark.parametrize("text", ["", "x:y", "7:abc", f"0:{'0' * 64}", f"²:{'0' * 64}"])
def test_what_is_no_head_is_refused(text):
    """A text that is no head says what one looks like."""
    with pytest.raises(UsageError, match="log --head"):
        ChainHead.parse(text)


@pytest.mark.parametrize(
    "change",
    [
        {"sequence": 1.0},
        {"reason": None},
        {"evidence": [1]},
        {"author": {"kind": "person", "name": 7}},
        {"format": 2},
        {"surprise": 1},
    ],
    ids=str,
)
def test_what_only_looks_like_an_event_is_refused(change):
    """A record with a wrong type, a newer format or an unknown part is no event, and no text is."""
    (event,) = chained(None, [draft("why", library_version=1)], at=AT)
    for record in ({**event.to_json(), **change}, "SSS!"):
        with pytest.raises(StoreFormatError):
            LibraryEvent.from_json(record)


@pytest.mark.parametrize(
    "parts",
    [
        {"library_version": "1"},
        {"evidence": ("e", 1)},
        {"facts": None},
        {"author": Author(kind="person", name=None)},
    ],
    ids=str,
)
def test_an_event_that_could_not_be_read_again_is_refused(parts):
    """A store takes no event that would be unreadable afterwards, for it would end the chain."""
    (event,) = chained(None, [draft()], at=AT)
    store = MemoryStore()
    with pytest.raises(StoreError, match="cannot be stored"):
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
@given(CHAINS, PLACE)
def test_a_dropped_event_is_found(events, place):
    """An event that is missing is found; at the end, by whoever remembers the head."""
    at = place % len(events)
    tampered = [*events[:at], *events[at + 1 :]]
    assert guarded(tampered, events)
    if at + 1 < len(events):
        assert faults(tampered) == ["gap"]


@some
@given(CHAINS)
def test_a_chain_that_was_written_anew_is_found(events):
    """A whole chain made of other events is found by the key, and by the remembered head."""
    drafts = [EventDraft(kind="active", author=Author(kind="person", name="Eve")) for _ in events]
    forged = chained(None, drafts, at=AT)
    assert faults(forged) == []
    assert faults(forged, verifier=KEY) == ["unsigned"] * len(events)
    assert faults(forged, expected_head=ChainHead.of(events[-1])) == ["head"]


@pytest.fixture
def chain():
    """Five signed events."""
    drafts = [EventDraft(kind="pinned", author=ADA)] * 5
    return chained(None, drafts, at=AT, signer=KEY)


def test_each_fault_is_named_in_plain_words(chain):
    """All faults of a chain are reported, each with its place and a sentence."""
    one, _, three, four, five = chain
    not_the_one = "event 4 is not the one that event 5 was chained to"
    told = verify_chain([one, three, replace(four, reason="x"), five, one], verifier=KEY)
    assert [(fault.place, fault.message) for fault in told] == [
        ("event 2", "event 2 is missing: event 3 follows event 1"),
        (
            "event 4",
            "event 4 carries a signature that was made with another key, or for another content",
        ),
        ("event 4", f"{not_the_one}: one of the two was changed after it was written"),
        ("event 1", "event 1 stands behind event 5: it was moved, or is there twice"),
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
    assert note.message == "signatures that nobody checked, because no key was given: 5"


OLD = ToolDefinition(name="weather", description=Description(summary="old words"))
NEW = replace(OLD, description=Description(summary="new words"))


def commit(store, definitions, *, removals=(), told=True, **parts):
    """Commit definitions, with an event that tells of them unless asked otherwise."""
    version = store.load().version
    event = EventDraft(author=ADA, library_version=version + 1, **{"kind": "written", **parts})
    events = chained(next(reversed(store.events()), None), [event], at=AT) if told else ()
    change = LibraryChange(
        proposal_id=f"{version}", upserts=definitions, removals=removals, events=events
    )
    store.commit(change, expected_version=version)


def put(store, definition, *, told=True, names=None):
    """Commit one definition, which the event names."""
    parts = {"tool_name": definition.name, "digest_after": names or definition.digest}
    commit(store, (definition,), told=told, kind="active", **parts)


def written(store, definitions, facts, *, removals=()):
    """Commit several definitions with one event, which tells of them in its facts."""
    commit(store, definitions, removals=removals, facts=facts)


@pytest.fixture
def path(tmp_path):
    """A file in which a tool was changed and changed back, each with an event."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path)) as store:
        for definition in (OLD, NEW, OLD):
            put(store, definition)
    return path


def found_in(path):
    """What is found in a file."""
    with closing(SQLiteStore(path)) as store:
        return verify_library(store, store.events())


def tamper(path, sql):
    """Change a file with the driver alone."""
    with closing(sqlite3.connect(path)) as raw, raw:
        raw.execute(sql)


@pytest.fixture
def many(tmp_path):
    """A file to which two changes of several tools were written, each told in facts."""
    path = tmp_path / "many.db"
    pair = (OLD, replace(OLD, name="climate"))
    with closing(SQLiteStore(path)) as store:
        written(store, pair, {"tools": {one.name: one.digest for one in pair}})
        newer = tuple(replace(NEW, name=one.name) for one in pair)
        written(store, newer, {"repinned": {one.name: one.digest for one in newer}})
        written(store, (), {"removed": ["climate"]}, removals=("climate",))
    return path


def test_what_events_say_is_held_to_the_store(path, many):
    """What they say of a tool that changed and changed back, of pins and removals is as it is."""
    assert found_in(path) == found_in(many) == ()


@pytest.mark.parametrize(
    ("sql", "sequences"),
    [
        ("UPDATE definitions SET body = replace(body, 'old words', 'evil')", [1, 2, 3]),
        ("UPDATE definitions SET body = replace(body, 'new words', 'evil')", [1, 2, 3]),
        ("DELETE FROM revisions WHERE version = 3", [3]),
        ("DELETE FROM revisions WHERE version = 1 AND tool_name = 'climate'", [1]),
    ],
)
def test_one_of_several_tools_changed_in_the_file_is_found(many, sql, sequences):
    """A definition of which only the facts tell is guarded as any other."""
    tamper(many, sql)
    assert [(one.code, one.place) for one in found_in(many)] == [
        ("definition", f"event {sequence}") for sequence in sequences
    ]


@pytest.mark.parametrize("sql", [None, "UPDATE definitions SET body = replace(body, 'one', 'two')"])
def test_a_digest_over_very_many_tools(tmp_path, sql):
    """Of very many definitions an event keeps one digest over all, which is worked out anew."""
    some = [replace(OLD, name=f"tool_{n}") for n in range(9)]
    some.append(ToolDefinition(name="last", description=Description(summary="one")))
    kept = {"count": len(some), "digest": digest({one.name: one.digest for one in some})}
    path = tmp_path / "many.db"
    with closing(SQLiteStore(path)) as store:
        written(store, (replace(OLD, name="earlier"),), {})
        written(store, tuple(some), kept)
        put(store, replace(NEW, name="later"))
    assert found_in(path) == ()
    if sql is not None:
        tamper(path, sql)
        (fault,) = found_in(path)
        assert (fault.code, fault.place) == ("definition", "event 2")
        assert "holds a definition of 'last' that was changed" in fault.message
    with closing(MemoryStore()) as store:
        written(store, tuple(some), {**kept, "digest": "0" * 64})
        (fault,) = verify_library(store, store.events())
        assert "brought 10 definitions with a digest over all of them" in fault.message


SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def pem():
    """An ed25519 key and its public half, in PEM."""
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
    )

    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public.decode()


def signed(signer):
    """Three events signed with a key."""
    return chained(None, [EventDraft(kind="pinned", author=ADA)] * 3, at=AT, signer=signer)


def codes(events, *texts):
    """What is wrong for somebody who has these keys."""
    return {fault.code for fault in verify_chain(events, verifier=read_verifier(texts))}


def test_the_public_half_checks(pem):
    """What was signed by ed25519 is checked with either half, and with no other key."""
    private, public = pem
    events = signed(read_signer(private))
    assert all(event.signature.startswith("ed25519:") for event in events)
    assert codes(events, public) == codes(events, private) == set()
    assert codes(events, SECRET) == {"signature"}
    for before in ("\ufeff", "# of the audit\n", "Bag Attributes\n    name: a\n"):  # of the same
        assert codes(events, before + public) == set()
        assert codes(signed(read_signer(SECRET)), before + public) == {"signature"}


@pytest.mark.parametrize(
    "alter",
    [
        str.upper,
        lambda text: text.replace(":", ": "),
        lambda text: text.partition(":")[2],
        lambda text: f"{text} ",
        lambda text: text[:-1],
        lambda _: "\ud83d",
    ],
    ids=["upper case", "blank", "no name", "blank at the end", "short", "no text"],
)
def test_a_signature_has_one_spelling(pem, alter):
    """A signature that is written in another way is another one, for both kinds."""
    for text in (SECRET, pem[0]):
        key = read_signer(text)
        signature = key.sign("0" * 64)
        assert key.verify("0" * 64, signature)
        assert not key.verify("0" * 64, alter(signature))


def test_keys_do_not_show_themselves(pem):
    """Neither kind of key appears when it is printed."""
    assert SECRET not in repr(read_signer(SECRET))
    assert pem[0].splitlines()[1] not in repr(read_signer(pem[0]))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "0 characters"),
        ("secret", "too easy to guess"),
        ("-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----", "cannot be read"),
        ("-----BEGIN CERTIFICATE-----", "cannot be read"),
        (f"ssh-ed25519 {'A' * 68} ada@example.org", "another form than PEM"),
        ("---- BEGIN SSH2 PUBLIC KEY ----\nAAAA\n---- END SSH2 PUBLIC KEY ----", "another form"),
        (f"untrusted comment: minisign public key\nRW{'A' * 54}", "another form than PEM"),
        (f"MCowBQYDK2VwAyEA{'A' * 43}=", "another form than PEM"),
    ],
)
def test_what_is_no_key_is_refused(text, complaint):
    """A text that cannot be a key says why."""
    if text.startswith("-----"):
        pytest.importorskip("cryptography")
    with pytest.raises(UsageError, match=complaint):
        read_signer(text)


def test_a_public_key_signs_nothing(pem):
    """Whoever gives the public half to sign is told which one to give."""
    with pytest.raises(UsageError, match="private key"):
        read_signer(pem[1])


def test_without_the_package_the_extra_is_named(monkeypatch):
    """Without the package, an ed25519 key says what to install; a secret works all the same."""
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(MissingExtraError, match=r'pip install "agentkit-evolve\[sign\]"'):
        read_signer("-----BEGIN PRIVATE KEY-----")
    assert signed(read_signer(SECRET))


def test_a_key_comes_from_the_environment(tmp_path):
    """One variable holds the key, another names its file; neither means no signatures."""
    file = tmp_path / "audit.key"
    file.write_text(f"{SECRET}\n")
    assert environment_signer({}) is None
    by_text = environment_signer({"AGENTKIT_AUDIT_KEY": SECRET})
    by_file = environment_signer({"AGENTKIT_AUDIT_KEY_FILE": str(file)})
    assert by_text == by_file == read_signer(SECRET)
