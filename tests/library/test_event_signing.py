"""Keys: from a file or the environment, two kinds, and clear words when one will not do."""

from __future__ import annotations

import sys

import pytest

from agentkit.errors import MissingExtraError, UsageError
from agentkit.library.chain_check import verify_chain
from agentkit.library.events import Author, EventDraft, chained
from agentkit.library.signing import environment_signer, key_texts, read_signer, read_verifier

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
    drafts = [EventDraft(kind="pinned", author=Author(kind="person", name="Ada"))] * 3
    return chained(None, drafts, at="2026-11-21T10:00:00+00:00", signer=signer)


def codes(events, *texts):
    """What is wrong for somebody who has these keys."""
    return {fault.code for fault in verify_chain(events, verifier=read_verifier(texts))}


def test_a_secret_signs_and_checks():
    """What was signed with a secret is checked with the same one, and with no other."""
    events = signed(read_signer(f"{SECRET}\n"))
    assert all(event.signature.startswith("hmac-sha256:") for event in events)
    assert codes(events, SECRET) == set()
    assert codes(events, SECRET[::-1]) == {"signature"}


def test_the_public_half_checks(pem):
    """What was signed by ed25519 is checked with either half, and with no other key."""
    private, public = pem
    events = signed(read_signer(private))
    assert all(event.signature.startswith("ed25519:") for event in events)
    assert codes(events, public) == codes(events, private) == set()
    assert codes(events, SECRET) == {"signature"}


def test_a_chain_whose_key_was_changed_is_checked_with_both(pem):
    """Several keys may be given; each event needs one of them."""
    first = signed(read_signer(SECRET))
    draft = EventDraft(kind="unpinned", author=Author(kind="person", name="Ada"))
    at = "2026-11-21T11:00:00+00:00"
    events = first + chained(first[-1], [draft], at=at, signer=read_signer(pem[0]))
    assert codes(events, SECRET, pem[1]) == set()
    assert codes(events, pem[1]) == {"signature"}


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
        ("-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----", "can not be read"),
        ("-----BEGIN CERTIFICATE-----", "can not be read"),
    ],
)
def test_what_is_no_key_is_refused(text, complaint):
    """A text that can not be a key says why."""
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


def test_an_environment_that_contradicts_itself_is_refused(tmp_path):
    """Two keys at once, or a file that is not there, are errors and not "no key"."""
    with pytest.raises(UsageError, match="both set"):
        key_texts({"AGENTKIT_AUDIT_KEY": SECRET, "AGENTKIT_AUDIT_KEY_FILE": "x"})
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(UsageError, match="can not be read"):
            environment_signer({"AGENTKIT_AUDIT_KEY_FILE": str(path)})
