"""Commands that write sign their events with the key of the environment."""

from __future__ import annotations

import pytest

from agentkit import open_store

SECRET = "0123456789abcdef0123456789abcdef"
PUBLIC = """-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PUBLIC KEY-----
"""
TOOLS = '''
from agentkit import tool

@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


@pytest.fixture(autouse=True)
def without_a_key(tmp_path, monkeypatch):
    """A file of tools, and no key but what a test sets."""
    for name in ("AGENTKIT_AUDIT_KEY", "AGENTKIT_AUDIT_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "own.py").write_text(TOOLS)


def signed(tmp_path):
    """Whether each event of the store is signed."""
    store = open_store(tmp_path / "library.db")
    try:
        return [bool(event.signature) for event in store.events()]
    finally:
        store.close()


@pytest.mark.parametrize("key", ["", SECRET])
def test_events_are_signed_where_there_is_a_key(invoke, tmp_path, monkeypatch, key):
    """What is written, and the kill switch; ``log --verify`` then wants all of it signed."""
    monkeypatch.setenv("AGENTKIT_AUDIT_KEY", key)
    assert invoke("tools", "add", "own.py:add").exit_code == 0
    assert invoke("rollback", "--pin", "1", "--reason", "to see").exit_code == 0
    monkeypatch.setenv("AGENTKIT_AUDIT_KEY", SECRET)
    assert signed(tmp_path) == [bool(key)] * 2
    assert invoke("log", "--verify").exit_code == (0 if key else 1)


def test_a_public_key_reads_and_does_not_write(invoke, tmp_path, monkeypatch):
    """Whoever can only check is told so before an unsigned event would break the chain."""
    pytest.importorskip("cryptography", reason="ed25519 needs the package cryptography")
    assert invoke("tools", "add", "own.py:add").exit_code == 0
    monkeypatch.setenv("AGENTKIT_AUDIT_KEY", PUBLIC)
    assert invoke("review", "list").exit_code == 0
    refused = invoke("rollback", "--pin", "1", "--reason", "to see")
    assert refused.exit_code == 2
    assert "a public key can check signatures and not make them" in refused.stderr
    assert signed(tmp_path) == [False]
