"""Values in the source text of Java and JavaScript."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from agentkit_bench.bfcl_values import JAVA_TYPES, read_java, read_javascript


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("-7", "integer", -7),
        ("7L", "long", 7),
        ("7", "long", "7"),
        ("2.5f", "double", "2.5f"),
        ("2.5f", "float", 2.5),
        ("2.5", "float", "2.5"),
        ("True", "boolean", "True"),
        ("'a'", "char", "'a'"),
        ('"a"', "String", '"a"'),
        ("7", "any", "7"),
    ],
)
def test_scalars(text, kind, value):
    """Each type has its spelling; what is spelled otherwise stays text."""
    assert repr(read_java(text, kind)) == repr(value)


@pytest.mark.parametrize(
    ("text", "item", "value"),
    [
        ("new ArrayList<>(Arrays.asList(1, 2))", "integer", [1, 2]),
        ('new ArrayList<String>(Arrays.asList("a", "b"))', "String", ["a", "b"]),
        ('new ArrayList<>(Arrays.asList("a", 1, true, 2L, 1.5f))', None, ["a", 1, True, 2, 1.5]),
        ("new ArrayList<Long>() {{ add(1L); add(2L); }}", "long", [1, 2]),
        ("new ArrayList<>() {{\n  add(1);\n  add(2);\n}}", "integer", [1, 2]),
        ('new ArrayList<>(Arrays.asList("a, b"))', "String", ["", ""]),
        ("new ArrayList<List<String>>()", "any", "new ArrayList<List<String>>()"),
    ],
)
def test_array_lists(text, item, value):
    """Three forms, elements parted at every comma, also inside quotes."""
    assert read_java(text, "ArrayList", item) == value


@pytest.mark.parametrize(
    ("text", "item", "value"),
    [
        ("new int[]{1, 2}", "integer", [1, 2]),
        ('new String[]{"a", "b"}', "String", ['"a"', '"b"']),
    ],
)
def test_arrays(text, item, value):
    """Strings keep their quotes, as upstream."""
    assert read_java(text, "Array", item) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('new HashMap<String, Object>() {{ put("a", 1); put("b", "x"); }}', {"a": 1, "b": "x"}),
        ('new HashMap<>() { put("a", true); }', {"a": True}),
        ('new HashMap<>() {{ put("a", f(1)); }}', {"a": "f(1"}),
        ("new HashMap<>() {{ put(a, 1); }}", {}),
    ],
)
def test_hash_maps(text, value):
    """Values end at the first bracket and are what their form says."""
    assert read_java(text, "HashMap") == value


@given(
    st.lists(
        st.sampled_from(
            [
                *("new ", "ArrayList<>(", "Arrays.asList(", "HashMap<>()", "{", "}", "))", "[]"),
                *("add(", 'put("a",', "1", "2L", '"', ",", " ", "\n", "int", "9" * 5000),
            ]
        ),
        max_size=12,
    ).map("".join),
    st.sampled_from(sorted(JAVA_TYPES)),
    st.none() | st.sampled_from(sorted(JAVA_TYPES)),
)
def test_any_text_gives_a_value(text, kind, item):
    """Of the declared type, or the text itself."""
    found = read_java(text, kind, item)
    assert type(found) is JAVA_TYPES[kind] or found == text


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("'a'", "String", "a"),
        ("\"a'", "String", "\"a'"),
        ("7", "integer", 7),
        ("1e3", "float", "1e3"),
        ("7n", "Bigint", 7),
        ("True", "Boolean", "True"),
        ("'a'", "any", "'a'"),
    ],
)
def test_scalars_javascript(text, kind, value):
    """Each type has its spelling; what is spelled otherwise stays text."""
    assert repr(read_javascript(text, kind)) == repr(value)


@pytest.mark.parametrize(
    ("text", "item", "value"),
    [
        ("[1, 2]", "integer", [1, 2]),
        (" new Array(1, 2) ", "integer", [1, 2]),
        ("['a', \"b\", c]", "String", ["a", "b", "c"]),
        ("[1, 'a', true, 1.5]", None, [1, "a", True, 1.5]),
        ("[1, 2] and more", "integer", [1, 2]),
        ("['a, b']", "String", ["'a", "b'"]),
        ("[1,\n2]", "integer", "[1,\n2]"),
        ("[[1, 2], [3]]", "array", [[1, 2], [3]]),
        ("[ [1],\n [2] ]", "array", [[1], [2]]),
        ("[{a: 1}, {a: 2}]", "dict", [{"a": 1}, {"a": 2}]),
    ],
)
def test_arrays_javascript(text, item, value):
    """Up to the first closing bracket, parted at every comma."""
    assert read_javascript(text, "array", item) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, 'b': \"x\"}", {"a": 1, "b": "x"}),
        ("{a: '5', b: 'true'}", {"a": 5, "b": True}),
        ("{a: [1, 'x'], b: c}", {"a": [1, "x"], "b": "c"}),
        ("{a: x, y, b: 1}", {"a": "x, y", "b": 1}),
        ("{a: {b: 1}}", {"a": "{b: 1"}),
        ("{a: 1,\nb: 2}", "{a: 1,\nb: 2}"),
    ],
)
def test_objects(text, value):
    """Pairs end at a comma that a further key follows; quotes around values do not count."""
    assert read_javascript(text, "dict") == value
