"""Files that were half written or damaged: an error or the truth, never a wrong answer."""

from __future__ import annotations

import shutil
from contextlib import closing

import pytest

from agentkit import open_store
from agentkit.errors import AgentKitError
from agentkit.library.chain_check import verify_chain, verify_library
from agentkit.testing.conformance.writer import commit_many

pytestmark = pytest.mark.faults

DAMAGES = {
    "empty": lambda content: content[:0],
    "half": lambda content: content[: len(content) // 2],
    "without its last byte": lambda content: content[:-1],
    "with a tail": lambda content: content + b"\x00" * 100,
    "zeroes in the middle": lambda content: _with(content, b"\x00" * 64),
    "noise in the middle": lambda content: _with(content, bytes(range(128, 192))),
}


def _with(content, noise):
    middle = len(content) // 2
    return content[:middle] + noise + content[middle + len(noise) :]


@pytest.fixture
def filled(url_in, tmp_path):
    """A closed store of three versions, and what they are."""
    folder = tmp_path / "whole"
    folder.mkdir()
    with closing(open_store(url_in(folder))) as store:
        commit_many(store, "p", 3)
        digests = [store.load(version).digest for version in (1, 2, 3)]
    return folder, digests


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_told_or_does_no_harm(url_in, filled, tmp_path, damage):
    """Whichever file is damaged: old versions are as they were, or somebody says what is wrong."""
    folder, digests = filled
    silent = []
    for place, path in enumerate(sorted(one for one in folder.rglob("*") if one.is_file())):
        copy = tmp_path / str(place)
        shutil.copytree(folder, copy)
        broken = copy / path.relative_to(folder)
        broken.write_bytes(DAMAGES[damage](path.read_bytes()))
        try:
            found = read(url_in(copy))
        except AgentKitError:
            continue
        if found != digests:
            silent.append(str(path.relative_to(folder)))
    assert silent == []


def read(url):
    """The digests of the first three versions; raises what is wrong with them."""
    with closing(open_store(url)) as store:
        events = store.events()
        faults = [*verify_chain(events), *verify_library(store, events), *store.check()]
        if faults:
            raise AgentKitError(f"{faults[0]}")
        return [store.load(version).digest for version in (1, 2, 3)]
