"""Two ways to write the same arguments have one canonical form."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit.tools.bounded import UncheckableError
from agentkit.tools.canonical import canonical_json
from agentkit.tools.coercion import canonical_arguments

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "default": 1},
        "scale": {"type": "number"},
        "unit": {"enum": ["celsius", "kelvin"], "default": "celsius"},
        "after": {"type": "string", "default": None},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}}},
    },
    "required": ["city"],
}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"city": "Rome", "days": 2}, {"days": "2", "city": "Rome"}),
        ({"city": "Rome"}, {"city": "Rome", "days": 1, "unit": "Celsius", "after": None}),
        ({"city": "Rome", "scale": 3}, {"city": "Rome", "scale": 3.0}),
        ({"city": "Rome", "scale": "3.0"}, {"city": "Rome", "scale": 3}),
        ({"where": {"lat": 1, "z": 2}}, {"where": {"z": 2.0, "lat": "1"}}),
        ({"where": '{"lat": 1.5}'}, {"where": {"lat": 1.5}}),
    ],
)
def test_same_meaning_same_form(one, other) -> None:
    """Key order, number spelling, case of enums and written-out defaults make no difference."""
    left, right = canonical_arguments(one, SCHEMA), canonical_arguments(other, SCHEMA)
    assert left == right
    assert list(left) == list(right) == sorted(left)
    assert repr(left) == repr(right)
    assert canonical_json(left) == canonical_json(right)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"city": "Rome"}, {"city": "rome"}),
        ({"city": "Rome"}, {}),
        ({"city": "Rome", "days": 1}, {"city": "Rome", "days": 2}),
        ({"where": {}}, {}),
        ({"other": True}, {"other": 1}),
        ({"other": "1"}, {"other": 1}),
    ],
)
def test_other_meaning_other_form(one, other) -> None:
    """Free text, required values, extra arguments and JSON types do make a difference."""
    left, right = canonical_arguments(one, SCHEMA), canonical_arguments(other, SCHEMA)
    assert canonical_json(left) != canonical_json(right)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"], "extra"]), JSON))
def test_canonical_form_is_a_fixed_point(arguments) -> None:
    """The canonical form of a canonical form is itself, and key order never matters."""
    once = canonical_arguments(arguments, SCHEMA)
    assert repr(canonical_arguments(once, SCHEMA)) == repr(once)
    backwards = dict(reversed(arguments.items()))
    assert repr(canonical_arguments(backwards, SCHEMA)) == repr(once)


def test_arguments_that_are_nested_too_deeply_have_no_canonical_form() -> None:
    """Hundreds of levels end with a reason, in the value as well as in a default."""
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(UncheckableError, match="nested too deeply"):
        canonical_arguments({"city": deep}, SCHEMA)
    with pytest.raises(UncheckableError, match="nested too deeply"):
        canonical_arguments({}, {"properties": {"x": {"default": deep}}})
