"""Canonical JSON is RFC 8785, whichever encoder writes it."""

from __future__ import annotations

import enum
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, strategies as st

from agentkit.tools.canonical import canonical_json, is_json

EXACT = st.integers(-(2**53) + 1, 2**53 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    st.sampled_from('\x00\x08\x1f"\\/\x7f\x80\u2028\u2029\ud7ff\ue000\uffff\U00010000\U0010ffff')
)
SCALARS = st.none() | st.booleans() | EXACT | TEXTS
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def nested(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """JSON data over the given scalars; tuples among the arrays."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(TEXTS, inner),
        max_leaves=12,
    )


@given(nested(SCALARS))
@example({"\ue000": 1, "\U00010000": 2})
@example({"\U0001f600": {"\ufb33": "\u2028\x7f\x00"}})
def test_data_without_floats(data: Any) -> None:
    """Data without floats are written as the reference implementation writes them."""
    assert canonical_json(data) == rfc8785.dumps(data)


@given(nested(SCALARS | FLOATS))
@example([1.0, -0.0, 1e21, 1e-7, 0.1])
def test_data_with_floats(data: Any) -> None:
    """So are data with floats."""
    assert canonical_json(data) == rfc8785.dumps(data)


@given(st.integers(), st.lists(SCALARS, max_size=3))
def test_large_integers(number: int, beside: list[Any]) -> None:
    """An integer that doubles can not hold is written as JavaScript writes it, in any company."""
    is_exact = abs(number) < 2**53
    expected = number if is_exact else f"{number}n"
    assert canonical_json([number, *beside]) == rfc8785.dumps([expected, *beside])


class Colour(enum.StrEnum):
    """A text that is not of type str."""

    RED = "red"


class Level(enum.IntEnum):
    """A number that is not of type int."""

    HIGH = 3


def test_subclasses_of_json_types() -> None:
    """Members of text and number enumerations count as their values."""
    assert canonical_json({"colour": Colour.RED, "level": Level.HIGH}) == (
        b'{"colour":"red","level":3}'
    )


@pytest.mark.parametrize(
    "data",
    [
        "\ud800",
        ["x", "\udfff"],
        {"\ud800": 1},
        {1: "a"},
        {None: 1},
        {True: 1},
        [float("nan")],
        {"a": float("inf")},
        {"a": {1, 2}},
        object(),
    ],
    ids=lambda data: type(data).__name__ if type(data) is object else ascii(data),
)
def test_what_json_can_not_hold(data: Any) -> None:
    """Lone surrogates, keys that are no text, and values that are no JSON are refused."""
    with pytest.raises(ValueError, match=r"not JSON data|surrogates"):
        canonical_json(data)


@given(nested(SCALARS | FLOATS | st.integers()))
@example(10**4_300 - 1)
def test_what_is_json_has_a_canonical_form(data: Any) -> None:
    """Whatever counts as JSON data can be written; tuples do not, though they can."""
    if is_json(data):
        assert canonical_json(data)


@pytest.mark.parametrize("data", ["\ud800", ["\udfff"], {"\ud800": 1}, 10**5_000], ids=type)
def test_what_counts_as_no_json(data: object) -> None:
    """Half of a surrogate pair and integers that Python will not read are no JSON data."""
    assert not is_json(data)
