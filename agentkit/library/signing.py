"""Signing events, so that a chain can not be written anew without the key.

HMAC-SHA256 needs the same key to sign and to check; ed25519 checks with the public half, which may
lie anywhere. Keys come from a file or the environment. They never lie in the store: whoever can
write there could sign there.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentkit.errors import MissingExtraError, UsageError
from agentkit.library.events import Signer, Verifier

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

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
        given = signature.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(self.sign(event_hash).encode(), given)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ed25519Key:
    """Checks signatures by ed25519 (RFC 8032), and signs where it has the private half.

    Attributes:
        public: What may be given to everybody who is to check.
        private: Makes signatures; None where only the public half is known.
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
class AnyOf:
    """Accepts what one of several keys accepts, for a chain whose key was changed.

    Attributes:
        verifiers: Of the keys, in any order.
    """

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
        UsageError: One is no such key, or a secret that is too short.
        MissingExtraError: An ed25519 key needs the package ``cryptography``.
    """
    return AnyOf(verifiers=tuple(_read(text) for text in texts))


def key_texts(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The key that the environment gives: one text, or none.

    Raises:
        UsageError: Both variables are set, or the file can not be read.
    """
    text, file = environment.get(KEY_VARIABLE, ""), environment.get(KEY_FILE_VARIABLE, "")
    if text and file:
        raise UsageError(
            f"{KEY_VARIABLE} and {KEY_FILE_VARIABLE} are both set; keep the one that is meant"
        )
    if file:
        return (key_text(file),)
    return (text,) if text else ()


def key_text(file: str | os.PathLike[str]) -> str:
    """What a key file holds.

    Raises:
        UsageError: It can not be read, or is no text.
    """
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(f"the audit key in {os.fspath(file)} can not be read: {error}") from error


def environment_signer(environment: Mapping[str, str] = os.environ) -> Signer | None:
    """The signer whose key the environment gives; None when it gives none.

    Raises:
        UsageError: There is a key and it can not be used.
        MissingExtraError: An ed25519 key needs the package ``cryptography``.
    """
    texts = key_texts(environment)
    return read_signer(texts[0]) if texts else None


def _message(event_hash: str) -> bytes:
    """What is signed: never the bare hash, so that no signature serves another purpose."""
    return f"agentkit library event {event_hash}".encode()


def _read(text: str) -> HmacKey | Ed25519Key:
    if text.lstrip().startswith("-----BEGIN"):
        return _read_pem(text.strip().encode())
    return HmacKey(secret=text.strip().encode())


def _read_pem(pem: bytes) -> Ed25519Key:
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
        raise UsageError(f"the audit key can not be read: {error}") from error
    raise UsageError(
        "the audit key is of another kind than ed25519; make one with: "
        "openssl genpkey -algorithm ed25519"
    )
