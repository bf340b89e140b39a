"""What can be observed of a simulator: equal data where upstream finds no difference."""

from __future__ import annotations

import json
from types import SimpleNamespace

from hypothesis import given, strategies as st

from agentkit_bench.bfcl_simulators import MAX_DEPTH, MAX_VALUES, observed

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 2.5, -1.0])
    | st.sampled_from(["", "1", "[1", "[1]", "a"])
)
KEYS = st.integers(-1, 2) | st.sampled_from(["1", "[1]", "[[1]", "a", "", 1.0, 2.5, True])
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["a", "b", "_c"]),
    st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(KEYS, inner, max_size=2)
            | st.sets(st.integers(0, 12) | st.sampled_from([1.0, 10.0]), max_size=3)
        ),
        max_leaves=5,
    ),
    max_size=3,
)


def public(attributes):
    """What upstream compares: attribute by attribute, without private ones."""
    return {name: value for name, value in attributes.items() if not name.startswith("_")}


def without_sets(value):
    """Sets as lists: upstream has none where a list could be."""
    if isinstance(value, set):
        return sorted(value)
    if isinstance(value, dict):
        return {key: without_sets(item) for key, item in value.items()}
    return [without_sets(item) for item in value] if isinstance(value, list) else value


@given(ATTRIBUTES, ATTRIBUTES)
def test_equal_data_means_equal_attributes(one, other):
    """Two simulators give equal data exactly when their public attributes are equal."""
    ours = observed(SimpleNamespace(**one)) == observed(SimpleNamespace(**other))
    assert ours == (without_sets(public(one)) == without_sets(public(other)))


@given(ATTRIBUTES)
def test_the_data_is_json(attributes):
    """Whatever the attributes are, they can be written as JSON and read back."""
    state = observed(SimpleNamespace(**attributes))
    assert json.loads(json.dumps(state, allow_nan=False)) == state


def test_numbers_that_json_lacks_are_text():
    """NaN and infinity have a form, so that a state can always be kept."""
    state = observed(SimpleNamespace(a=float("nan"), b=float("-inf"), c={float("inf"): 1}))
    assert state == {"a": "nan", "b": "-inf", "c": {"[inf]": 1}}


def test_a_circle_ends():
    """An object inside itself is said to be so."""
    box = SimpleNamespace(name="box", content=[])
    box.content.append(box)
    state = observed(SimpleNamespace(box=box))
    assert state["box"]["content"] == ["(a directory that holds this)"]


def test_a_tree_without_end_is_cut_off():
    """Copies of copies make billions of values out of a few; their state is cut off."""
    tree = ["leaf"]
    for _ in range(40):
        tree = [tree, tree]
    state = observed(SimpleNamespace(tree=tree))
    assert "cut off" in json.dumps(state)
    assert json.dumps(state).count("leaf") < MAX_VALUES


def test_what_is_nested_too_deep_is_cut_off():
    """No depth of directories exhausts the interpreter's stack."""
    tree = "leaf"
    for _ in range(10 * MAX_DEPTH):
        tree = SimpleNamespace(inside=tree)
    assert "cut off" in json.dumps(observed(tree))


def test_objects_without_attributes_are_text():
    """A number of another kind, or a date, is what Python writes."""
    assert observed(SimpleNamespace(a=1j)) == {"a": "1j"}
