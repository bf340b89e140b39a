"""Random types."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st

from agentkit.tools import ANY, NEVER, TypeSet

_BASES = st.sampled_from(["string", "number", "integer", "boolean", "null", "array", "object"])
_MEANINGS = st.sampled_from(
    ["", "moment", "date", "datetime", "place", "city", "id", "id:hotel", "id:user", "email"]
)
_VALUES = st.one_of(
    st.sampled_from(["km", "mile", "2024-08-15", "12"]),
    st.integers(0, 3),
    st.sampled_from([0.5, 1.0]),
    st.booleans(),
    st.none(),
)


def _plain():
    return st.builds(lambda base, meaning: TypeSet.of(base, meaning=meaning), _BASES, _MEANINGS)


def _listed():
    return st.builds(TypeSet.one_of, st.lists(_VALUES, min_size=1, max_size=3))


def _compound(parts):
    fields = st.dictionaries(st.sampled_from(["a", "b", "c"]), parts, max_size=3)
    return st.one_of(
        st.builds(TypeSet.list_of, parts),
        st.builds(TypeSet.object_with, fields),
        st.builds(lambda left, right: left | right, parts, parts),
    )


_TYPES = st.one_of(
    st.just(ANY),
    st.just(NEVER),
    st.recursive(st.one_of(_plain(), _listed()), _compound, max_leaves=6),
)


@pytest.fixture(scope="session")
def types():
    """A strategy for types of every form, ``ANY`` and ``NEVER`` included."""
    return _TYPES
