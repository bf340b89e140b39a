"""The chain of events: signing it, checking it, and checking a library against what it says.

HMAC-SHA256 needs the same key to sign and to check; ed25519 checks with the public half, which may
lie anywhere. Keys come from a file or the environment. They never lie in the store: whoever can
write there could sign there.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from agentkit.errors import MissingExtraError, StoreFormatError, UsageError
from agentkit.library.changes import actual_digest
from agentkit.library.events import ChainHead, EventKind, LibraryEvent, Signer, Verifier, moment_of
from agentkit.library.store import StoreFault, ToolRevision, ToolStore
from agentkit.tools.canonical import digest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

# Signing.

KEY_VARIABLE = "AGENTKIT_AUDIT_KEY"
"""Environment variable that holds a key."""

KEY_FILE_VARIABLE = "AGENTKIT_AUDIT_KEY_FILE"
"""Environment variable that names a file with a key."""

SHORTEST_SECRET = 32
"""Characters of an HMAC secret, at least: the output length of the hash (RFC 2104, section 3)."""

_HMAC = "hmac-sha256:"
_ED25519 = "ed25519:"


@dataclass(frozen=True, kw_only=True, slots=True)
class HmacKey:
    """Signs and checks with one secret (RFC 2104 with SHA-256).

    Attributes:
        secret: At least 32 bytes, which nobody can guess.

    Example:
        >>> key = HmacKey(secret=b"0123456789abcdef0123456789abcdef")
        >>> signature = key.sign("some hash")
        >>> signature[:20], key.verify("some hash", signature), key.verify("other", signature)
        ('hmac-sha256:a445fa9b', True, False)
    """

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < SHORTEST_SECRET:
            raise UsageError(
                f"the secret of an audit key has {len(self.secret)} characters, which is too easy "
                f"to guess; give at least {SHORTEST_SECRET}, such as: openssl rand -hex 32"
            )

    def sign(self, event_hash: str) -> str:
        """See ``Signer.sign``."""
        return _HMAC + hmac.new(self.secret, _message(event_hash), hashlib.sha256).hexdigest()

    def verify(self, event_hash: str, signature: str) -> bool:
        """See ``Verifier.verify``."""
        encoded = signature.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(self.sign(event_hash).encode(), encoded)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ed25519Key:
    """Checks signatures by ed25519 (RFC 8032), and signs where it has the private half.

    Attributes:
        public: What may be given to everybody who is to check.
        private: Creates signatures; None where only the public half is known.
    """

    public: Ed25519PublicKey
    private: Ed25519PrivateKey | None = field(default=None, repr=False)

    def sign(self, event_hash: str) -> str:
        """See ``Signer.sign``."""
        if self.private is None:
            raise UsageError(
                "a public key can check signatures and not make them; give the private key that "
                "'openssl genpkey -algorithm ed25519' printed"
            )
        return _ED25519 + self.private.sign(_message(event_hash)).hex()

    def verify(self, event_hash: str, signature: str) -> bool:
        """See ``Verifier.verify``."""
        from cryptography.exceptions import InvalidSignature

        try:
            made = bytes.fromhex(signature.removeprefix(_ED25519))
            self.public.verify(made, _message(event_hash))
        except (ValueError, InvalidSignature):
            return False
        return signature == _ED25519 + made.hex()  # one way to write it, so that no bit is free


@dataclass(frozen=True, kw_only=True, slots=True)
class _AnyOf:
    """Accepts what one of several keys accepts, for a chain whose key was changed."""

    verifiers: tuple[Verifier, ...]

    def verify(self, event_hash: str, signature: str) -> bool:
        """See ``Verifier.verify``."""
        return any(one.verify(event_hash, signature) for one in self.verifiers)


def read_signer(text: str) -> HmacKey | Ed25519Key:
    """The key in a text: a private ed25519 key in PEM, anything else is the secret of an HMAC.

    Args:
        text: What ``openssl genpkey -algorithm ed25519`` or ``openssl rand -hex 32`` prints.

    Raises:
        UsageError: It is a public key, a key of another kind, or a secret that is too short.
        MissingExtraError: An ed25519 key needs the package ``cryptography``.
    """
    key = _read(text)
    key.sign("")  # refuses a public key
    return key


def read_verifier(texts: Iterable[str]) -> Verifier:
    """Checks with any of the keys in the texts, private or public.

    Raises:
        UsageError: One is not such a key, or a secret that is too short.
        MissingExtraError: An ed25519 key needs the package ``cryptography``.
    """
    return _AnyOf(verifiers=tuple(_read(text) for text in texts))


def key_texts(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The key that the environment gives: one text, or none.

    Raises:
        UsageError: Both variables are set, or the file cannot be read.
    """
    text, file = environment.get(KEY_VARIABLE, ""), environment.get(KEY_FILE_VARIABLE, "")
    if text and file:
        raise UsageError(
            f"{KEY_VARIABLE} and {KEY_FILE_VARIABLE} are both set; keep the one that is meant"
        )
    found = key_text(file) if file else text
    return (found,) if found else ()


def key_text(file: str | os.PathLike[str]) -> str:
    """Read a key file.

    Raises:
        UsageError: It cannot be read, or is not a text.
    """
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"the audit key in {os.fspath(file)} cannot be read: {error}") from error


def environment_signer(environment: Mapping[str, str] = os.environ) -> Signer | None:
    """The signer whose key the environment gives; None when it gives none.

    Raises:
        UsageError: There is a key and it cannot be used.
        MissingExtraError: An ed25519 key needs the package ``cryptography``.
    """
    texts = key_texts(environment)
    return read_signer(texts[0]) if texts else None


def _message(event_hash: str) -> bytes:
    """The message to sign: never the bare hash, so that no signature serves another purpose."""
    return f"agentkit library event {event_hash}".encode()


_PEM = "-----BEGIN"
_KEY_FILE = re.compile(
    r"(?i)\bbegin\b|public key|^(?:ecdsa|sk|ssh)-|^untrusted comment|^MC(?:ow|4CAQAw)BQYDK2Vw"
)
"""What no secret looks like, and files of keys do: OpenSSH, SSH2, minisign, DER in base64."""


def _read(text: str) -> HmacKey | Ed25519Key:
    text = text.removeprefix("\ufeff").strip()
    pem = text[text.find(_PEM) :].encode()  # a comment, or attributes, may stand before it
    if _PEM not in text:
        if _KEY_FILE.search(text):  # as a secret, everybody who knows a public key could sign
            raise UsageError(
                "the audit key looks like the file of a key in another form than PEM; "
                "'openssl pkey' and 'ssh-keygen -e -m PKCS8' write PEM"
            )
        return HmacKey(secret=text.encode())
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise MissingExtraError(
            "signing by ed25519",
            package="cryptography",
            install='pip install "agentkit-evolve[sign]"',
        ) from error
    try:
        if b"PUBLIC KEY" in pem.splitlines()[0]:
            public = serialization.load_pem_public_key(pem)
            if isinstance(public, ed25519.Ed25519PublicKey):
                return Ed25519Key(public=public)
        else:
            private = serialization.load_pem_private_key(pem, password=None)
            if isinstance(private, ed25519.Ed25519PrivateKey):
                return Ed25519Key(public=private.public_key(), private=private)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise UsageError(f"the audit key cannot be read: {error}") from error
    raise UsageError(
        "the audit key is of another kind than ed25519; make one with: "
        "openssl genpkey -algorithm ed25519"
    )


# Checking a chain.

FaultCode = Literal[
    "gap",  # events are missing
    "order",  # an event stands in a place that is not its own, or twice
    "link",  # an event is not the one that the next was chained to
    "unreadable",  # an event holds what no store could have given
    "unsigned",  # a signature was asked for and is not there
    "signature",  # a signature is not that of the event
    "head",  # the chain lacks an event that was seen before
    "definition",  # the store holds another definition than an event says
    "clock",  # a note: the time went backwards
    "unchecked",  # a note: there are signatures that nobody looked at
    "untold",  # a note: a library version that no event tells of
]

NOTES: frozenset[FaultCode] = frozenset({"clock", "unchecked", "untold"})
"""Codes that do not indicate tampering: clocks go backwards, tools may be imported."""


def verify_chain(
    events: Iterable[LibraryEvent],
    *,
    verifier: Verifier | None = None,
    signed_from: int = 1,
    expected_head: ChainHead | None = None,
) -> tuple[StoreFault, ...]:
    """All faults of a chain, in the order of the events.

    A chain alone shows that an event before its last was changed, dropped, moved or repeated.
    It does not show that the last event was changed or that the end was cut off: give the head
    that you remember. Nor does it show that the whole chain was rewritten: give a verifier,
    whose key the store never held, or the head.

    Time and memory: one pass, one event at a time.

    Args:
        events: All events of a store, as ``EventStore.events`` gives them.
        verifier: Checks the signatures; None leaves them alone.
        signed_from: The first event that has to be signed, for a chain that began without.
        expected_head: Where the chain ended at an earlier time. It may have grown since.

    Returns:
        Faults and notes; see ``StoreFault.is_note``.

    Example:
        >>> from agentkit.library.events import Author, EventDraft, chained
        >>> draft = EventDraft(kind="pinned", author=Author(kind="person", name="Ada"))
        >>> events = chained(None, [draft] * 4, at="2026-11-21T10:00:00+00:00")
        >>> verify_chain(events)
        ()
        >>> for fault in verify_chain([events[0], *events[2:]], expected_head=ChainHead.parse(
        ...     "9:" + "0" * 64
        ... )):
        ...     print(fault.code, fault.message)
        gap event 2 is missing: event 3 follows event 1
        head the chain ends with event 4, but event 9 was seen before: its end was cut off
    """
    return tuple(_faults(events, verifier, signed_from, expected_head))


def _faults(
    events: Iterable[LibraryEvent],
    verifier: Verifier | None,
    signed_from: int,
    expected_head: ChainHead | None,
) -> Iterator[StoreFault]:
    unchecked, seen = 0, ""
    before: LibraryEvent | None = None
    for event in events:
        if not _hash(event):
            yield _fault_of(event, "unreadable", "holds what JSON cannot, so it has no hash")
        yield from _misplaced(before, event)
        if verifier is None:
            unchecked += bool(event.signature)
        elif not event.signature:
            if event.sequence >= signed_from:
                yield _fault_of(event, "unsigned", "carries no signature")
        elif not verifier.verify(_hash(event), event.signature):
            words = "carries a signature that was made with another key, or for another content"
            yield _fault_of(event, "signature", words)
        if expected_head is not None and event.sequence == expected_head.sequence:
            seen = _hash(event)
        before = event
    yield from _at_end(0 if before is None else before.sequence, unchecked, seen, expected_head)


def _at_end(
    last: int, unchecked: int, seen: str, expected_head: ChainHead | None
) -> Iterator[StoreFault]:
    """Faults only the end shows: a head that differs from the expected one, and unchecked keys."""
    if expected_head is not None and expected_head.sequence and seen != expected_head.hash:
        expected = expected_head.sequence
        message = f"event {expected} is another than the one that was seen before"
        if last < expected:
            end = f"ends with event {last}" if last else "is empty"
            message = f"the chain {end}, but event {expected} was seen before: its end was cut off"
        yield _fault(expected, "head", message)
    if unchecked:
        message = f"signatures that nobody checked, because no key was given: {unchecked:,}"
        yield _fault(last, "unchecked", message)


def _misplaced(before: LibraryEvent | None, event: LibraryEvent) -> Iterator[StoreFault]:
    """Whether an event follows the one before it, in place, by hash and in time."""
    last = 0 if before is None else before.sequence
    if event.sequence > last + 1:
        lost = f"events {last + 1} to {event.sequence - 1} are"
        lost = f"event {last + 1} is" if event.sequence == last + 2 else lost
        where = f"follows event {last}" if before is not None else "is the first"
        message = f"{lost} missing: event {event.sequence} {where}"
        yield _fault(last + 1, "gap", message)
    elif event.sequence <= last:
        yield _fault_of(
            event, "order", f"stands behind event {last}: it was moved, or is there twice"
        )
    elif before is None and event.previous:
        yield _fault_of(event, "link", "is the first and names one before it: it was changed")
    elif before is not None and event.previous != _hash(before):
        words = (
            f"is not the one that event {event.sequence} was chained to: one of the two was "
            "changed after it was written"
        )
        yield _fault_of(before, "link", words)
    earlier, later = None if before is None else moment_of(before.at), moment_of(event.at)
    if before is not None and earlier and later and later < earlier:
        words = f"is of {event.at}, before event {before.sequence} ({before.at}): a clock was set"
        yield _fault_of(event, "clock", words)


def _fault_of(event: LibraryEvent, code: FaultCode, words: str) -> StoreFault:
    return _fault(event.sequence, code, f"event {event.sequence} {words}")


def _fault(sequence: int, code: FaultCode, message: str) -> StoreFault:
    place = f"event {sequence}" if sequence else "events"
    return StoreFault(place=place, code=code, message=message, is_note=code in NOTES)


def _hash(event: LibraryEvent) -> str:
    try:
        return event.hash
    except (ValueError, TypeError, RecursionError):
        return ""


# Checking a library.

_WRITES: frozenset[EventKind] = frozenset({"written", "active", "rolled_back"})
"""Kinds of events that come with definitions, whose facts may tell of several."""


def verify_library(store: ToolStore, events: Iterable[LibraryEvent]) -> tuple[StoreFault, ...]:
    """Where a store differs from its events, in the order of the events.

    An event says which digests tools had at its library version: its own tool in ``digest_after``;
    those of a change of several tools in the facts ``tools``, and of very many one digest over all
    of them (``count``, ``digest``); composites that got new pins in the fact ``repinned``; and in
    ``removed``, which are gone. Digests are recomputed from what the store holds, so that a
    definition that was changed behind the store's back is found. A whole chain comes first: see
    ``verify_chain``.

    Library versions without an event are a note: they were written around the Tool Manager.

    Args:
        store: Where the definitions are kept.
        events: All events of the same store.

    Example:
        >>> from agentkit import ToolDefinition, open_store
        >>> from agentkit.library import LibraryChange
        >>> store = open_store("memory:")
        >>> add = LibraryChange(proposal_id="1", upserts=(ToolDefinition(name="ping"),))
        >>> store.commit(add, expected_version=0)
        1
        >>> [note.message for note in verify_library(store, store.events())]
        ['no event tells of library version 1']
    """
    kept = tuple(events)
    histories: dict[str, Sequence[ToolRevision]] = {}
    found: list[StoreFault] = []
    for event in kept:
        if event.library_version:
            try:
                found += _contradictions(event, store, histories)
            except StoreFormatError as error:
                words = f"tells of what the store does not read: {error}"
                found.append(_fault_of(event, "definition", words))
    return (*found, *_unrecorded_versions(kept, store.versions()))


def _contradictions(
    event: LibraryEvent, store: ToolStore, histories: dict[str, Sequence[ToolRevision]]
) -> Iterator[StoreFault]:
    """Where the store contradicts an event; each history is read once."""
    version = event.library_version
    for name, stated in event_digests(event):
        if name not in histories:
            histories[name] = store.history(name)
        earlier = [one.definition for one in histories[name] if one.version <= version]
        held = earlier[-1] if earlier else None
        actual = "" if held is None else actual_digest(held)
        if actual != stated:
            had, holds = (
                f"the definition with digest {one[:12]}" if one else "none"
                for one in (stated, actual)
            )
            words = f"says that {name!r} had {had} at library version {version}, but the store "
            yield _fault_of(event, "definition", f"{words}holds {holds}")
    bulk = bulk_of(event)
    if bulk is not None:
        applied = next(iter(store.changes(after=version - 1)), None)
        is_it = applied is not None and applied.version == version
        upserts = applied.change.upserts if applied is not None and is_it else ()
        made = {one.name: actual_digest(one) for one in upserts}
        if (len(made), digest(made)) != bulk:
            words = (
                f"says that library version {version} brought {bulk[0]:,} definitions with a "
                f"digest over all of them, but the store holds {len(made):,}, or others"
            )
            yield _fault_of(event, "definition", words)


def bulk_of(event: LibraryEvent) -> tuple[int, object] | None:
    """The number of definitions in a very large change, and the digest over all of theirs."""
    count = event.facts.get("count")
    if event.kind != "written" or not isinstance(count, int):
        return None
    return count, event.facts.get("digest")


def event_digests(event: LibraryEvent) -> Iterator[tuple[str, str]]:
    """The tools that an event names, with the digest of each; empty for a removed one.

    Those of a very large change are not among them: see ``bulk_of``.
    """
    if event.digest_after:
        yield event.tool_name, event.digest_after
    if event.kind not in _WRITES:
        return
    for part in ("tools", "repinned"):
        digests = event.facts.get(part)
        if isinstance(digests, Mapping):
            yield from (pair for pair in digests.items() if isinstance(pair[1], str))
    removed = event.facts.get("removed")
    if isinstance(removed, list):
        yield from ((name, "") for name in removed if isinstance(name, str))


def _unrecorded_versions(
    events: Iterable[LibraryEvent], versions: Iterable[int]
) -> Iterator[StoreFault]:
    """A note on versions without an event."""
    stated = {
        event.library_version for event in events if event.digest_after or event.kind == "written"
    }
    untold = [version for version in versions if version not in stated]
    if untold:
        more = f" and {len(untold) - 1:,} others" if len(untold) > 1 else ""
        message = f"no event tells of library version {untold[0]}{more}"
        yield _fault(0, "untold", message)
