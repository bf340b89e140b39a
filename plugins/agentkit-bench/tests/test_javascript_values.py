"""Values written as JavaScript source text."""

from __future__ import annotations

import pytest

from agentkit_bench.bfcl_values import read_javascript


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("'a'", "String", "a"),
        ('"a"', "String", "a"),
        ("a", "String", "a"),
        ("\"a'", "String", "\"a'"),
        ("7", "integer", 7),
        ("7.5", "integer", "7.5"),
        ("7.5", "float", 7.5),
        ("7", "float", 7.0),
        ("1e3", "float", "1e3"),
        ("7n", "Bigint", 7),
        ("7", "Bigint", "7"),
        ("true", "Boolean", True),
        ("True", "Boolean", "True"),
        ("'a'", "any", "'a'"),
    ],
)
def test_scalars(text, kind, value):
    """Each type has its spelling; what is spelled otherwise stays text."""
    assert repr(read_javascript(text, kind)) == repr(value)


@pytest.mark.parametrize(
    ("text", "item", "value"),
    [
        ("[1, 2]", "integer", [1, 2]),
        (" new Array(1, 2) ", "integer", [1, 2]),
        ("['a', \"b\", c]", "String", ["a", "b", "c"]),
        ("[1, 'a', true, 1.5]", None, [1, "a", True, 1.5]),
        ("[]", "String", []),
        ("[1, 2] and more", "integer", [1, 2]),
        ("['a, b']", "String", ["'a", "b'"]),
        ("[1,\n2]", "integer", "[1,\n2]"),
        ("[[1, 2], [3]]", "array", [[1, 2], [3]]),
        ("[ [1],\n [2] ]", "array", [[1], [2]]),
        ("new Array([1], [2])", "array", [[1], [2]]),
        ("[[]]", "array", [[""]]),
        ("[{a: 1}, {a: 2}]", "dict", [{"a": 1}, {"a": 2}]),
        ("names", "String", "names"),
        ("[1", "integer", "[1"),
    ],
)
def test_arrays(text, item, value):
    """Up to the first closing bracket, parted at every comma."""
    assert read_javascript(text, "array", item) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, 'b': \"x\"}", {"a": 1, "b": "x"}),
        ("{}", {}),
        ("{a: '5', b: 'true'}", {"a": 5, "b": True}),
        ("{a: [1, 'x'], b: c}", {"a": [1, "x"], "b": "c"}),
        ("{a: x, y, b: 1}", {"a": "x, y", "b": 1}),
        ("{a: 'http://x'}", {"a": "http://x"}),
        ("{a: {b: 1}}", {"a": "{b: 1"}),
        ("{: 1}", {}),
        ("{a: 1,\nb: 2}", "{a: 1,\nb: 2}"),
        ("options", "options"),
    ],
)
def test_objects(text, value):
    """Pairs end at a comma that a further key follows; quotes around values do not count."""
    assert read_javascript(text, "dict") == value
