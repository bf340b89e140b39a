"""Tool names on the wire."""

from __future__ import annotations

import random
import re

from hypothesis import given, strategies as st

from agentkit.models.wire import WireNames

names = st.one_of(
    st.text(min_size=1, max_size=80),
    st.sampled_from(["a.b", "a_b", "a-b", "a b", "a/b", "x" * 64, "x" * 65, "x" * 66, "é", "ü"]),
)


@given(st.sets(names, max_size=20), st.randoms())
def test_mapping_is_acceptable_and_reversible(
    given_names: set[str], shuffle: random.Random
) -> None:
    """Whatever tools are called, wire names are accepted, distinct, and lead back."""
    wire = WireNames(given_names)
    encoded = {name: wire.encode(name) for name in given_names}
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in encoded.values())
    assert len(set(encoded.values())) == len(given_names)
    assert {wire.decode(name) for name in encoded.values()} == given_names
    again = sorted(given_names)
    shuffle.shuffle(again)
    assert {name: WireNames(again).encode(name) for name in given_names} == encoded


def test_accepted_name_is_never_changed() -> None:
    """A name that providers accept wins over one that would become the same."""
    wire = WireNames(["math.sqrt", "math_sqrt"])
    assert wire.encode("math_sqrt") == "math_sqrt"
    assert re.fullmatch(r"math_sqrt_[0-9a-f]{8}", wire.encode("math.sqrt"))


def test_taken_digest_is_avoided() -> None:
    """Even a tool that is named like another one's digest form keeps the mapping reversible."""
    first = WireNames(["a.b", "a b"]).encode("a.b")
    wire = WireNames(["a.b", "a b", first])
    assert wire.decode(wire.encode("a.b")) == "a.b"
    assert wire.encode(first) == first


def test_unknown_names_pass() -> None:
    """A name that a model made up comes back as it is; one of an old turn is made acceptable."""
    wire = WireNames(["a.b"])
    assert wire.decode("made_up") == "made_up"
    assert wire.encode("gone.tool") == "gone_tool"
