"""Bearer keys: comparing, reading, rotating, and never showing."""

import logging

import pytest

from agentkit.errors import UsageError
from agentkit.server import Keys

A, B = "sk-aaaaaaaaaaaaaaaa", "sk-bbbbbbbbbbbbbbbb"


def test_each_key_has_its_name():
    """Several keys are good at a time; anything else is nobody's."""
    keys = Keys({"old": A, "new": B})
    assert (keys.holder(A), keys.holder(B)) == ("old", "new")
    for wrong in ("", "sk-", A[:-1], A + "x", A.upper(), "ключ", "\udcff", "x" * 100_000):
        assert keys.holder(wrong) is None


def test_every_key_is_compared_in_constant_time(monkeypatch):
    """The comparison is hmac.compare_digest over digests, for all keys, also after a hit."""
    import hmac

    seen = []
    real = hmac.compare_digest
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: seen.append(len(a)) or real(a, b))
    Keys({"a": A, "b": B}).holder(A)
    assert seen == [32, 32]


def test_a_key_is_never_shown():
    """Neither repr nor the object's state holds a key."""
    keys = Keys({"shop": A})
    assert repr(keys) == "Keys(shop)"
    assert A not in str(vars(keys))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (f"shop={A},desk={B}", ("shop", "desk")),
        (f" shop={A}\n desk={B} ", ("shop", "desk")),
        (A, ("default",)),
        ("c2VjcmV0c2VjcmV0c2VjcmV0==", ("default",)),
        ("me=c2VjcmV0c2VjcmV0c2VjcmV0==", ("me",)),
    ],
)
def test_keys_come_from_a_variable(monkeypatch, text, names):
    """Pairs between commas or blanks; one key may stand alone."""
    monkeypatch.setenv("SERVER_KEYS", text)
    assert Keys.from_environment("SERVER_KEYS").names == names


@pytest.mark.parametrize(
    "text",
    ["", ",", "short", "shop=short", f"a b={A}", f"a={A},a={B}", f"ü={A}", "a=ключключключключ"],
)
def test_unusable_keys_are_refused_without_showing_them(monkeypatch, text):
    """The message names the place and not the key."""
    monkeypatch.setenv("SERVER_KEYS", text)
    with pytest.raises(UsageError, match="SERVER_KEYS") as caught:
        Keys.from_environment("SERVER_KEYS")
    assert A not in str(caught.value)
    assert "short" not in str(caught.value)


def test_a_key_file_is_read_again_when_it_changes(tmp_path):
    """A key is added, then the old one is taken away, without a restart."""
    now = [0.0]
    path = tmp_path / "keys"
    path.write_text(f"# keys of the shop\nold={A}\n")
    keys = Keys.from_file(path, clock=lambda: now[0])
    assert (keys.holder(A), keys.holder(B)) == ("old", None)
    path.write_text(f"old={A}\nnew={B}  # since today\n")
    assert keys.holder(B) is None  # not looked at again yet
    now[0] = 2.0
    assert (keys.holder(A), keys.holder(B)) == ("old", "new")
    replacement = tmp_path / "keys.new"
    replacement.write_text(f"new={B}\n")
    replacement.replace(path)
    now[0] = 4.0
    assert (keys.holder(A), keys.holder(B)) == (None, "new")


def test_a_broken_key_file_changes_nothing(tmp_path, caplog):
    """While the file is absent or empty the known keys stay, and the log says so without them."""
    now = [0.0]
    path = tmp_path / "keys"
    path.write_text(f"old={A}\n")
    keys = Keys.from_file(path, clock=lambda: now[0])
    with caplog.at_level(logging.WARNING):
        for at, spoil in enumerate([lambda: path.write_text(f"{A} {A}"), path.unlink], start=1):
            spoil()
            now[0] = at * 2.0
            assert keys.holder(A) == "old"
    assert len(caplog.records) == 2
    assert A not in caplog.text


def test_a_file_that_is_not_there_is_an_error_at_the_start(tmp_path):
    """Nobody serves without keys by accident."""
    with pytest.raises(UsageError, match="can not be read"):
        Keys.from_file(tmp_path / "keys")
