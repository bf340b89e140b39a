"""Any history is copied from any store to any other, whole, and in parts."""

import tempfile
from contextlib import closing

import pytest
from hypothesis import given, settings, strategies as st
from support.histories import BareStore, HistoryStep, all_told, write_history

from agentkit import open_store
from agentkit.library.chain_check import verify_chain
from agentkit.library.copying import copy_store
from agentkit.library.signing import read_signer

KEY = read_signer("0123456789abcdef0123456789abcdef")

STEPS = st.lists(
    st.builds(
        HistoryStep,
        wishes=st.dictionaries(
            st.sampled_from("abcdeé"),
            st.none() | st.tuples(st.sampled_from(["", "x", "y"]), st.sampled_from(["", "here"])),
            max_size=5,
        ),
        events=st.integers(0, 3),
        reason=st.text(max_size=3),
        episodes=st.integers(0, 2),
    ),
    max_size=6,
)

KINDS = ["memory:", "sqlite:///{folder}/{name}.db", "dir:{folder}/{name}"]
PAIRS = [(source, target) for source in KINDS for target in KINDS]

few = settings(deadline=None, max_examples=8)


def url_of(kind, folder, name):
    """The URL of a store of that kind."""
    return kind.format(folder=folder, name=name)


@pytest.mark.parametrize(("source_kind", "target_kind"), PAIRS)
@pytest.mark.parametrize("is_bare", [False, True])
@given(steps=STEPS)
@few
def test_a_copy_tells_the_same(source_kind, target_kind, is_bare, steps):
    """Versions, order, origins, times, events, signatures and episodes are the same afterwards."""
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(open_store(url_of(source_kind, folder, "source"))) as source,
        closing(open_store(url_of(target_kind, folder, "target"))) as target,
    ):
        write_history(source, steps, signer=KEY)
        asked = BareStore(source) if is_bare else source
        report = copy_store(asked, target)
        assert all_told(target) == all_told(source)
        assert not list(verify_chain(target.events(), verifier=KEY, signed_from=10**6))
        assert report.compared.is_equal
        assert report.compared.versions == report.copied.versions == len(source.versions())
        assert not report.is_behind
