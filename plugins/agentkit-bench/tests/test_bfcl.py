"""BFCL: its files, and values that are source text."""

import shutil
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from agentkit.errors import DatasetError
from agentkit.evaluation import AllowedCalls, AnyCall, NoCall
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, UserMessage
from agentkit.metrics import AllowedCall, match_allowed_values
from agentkit.tools import definition_from_json
from agentkit_bench import JAVA, JAVASCRIPT
from agentkit_bench.bfcl import CATEGORIES, load_bfcl
from agentkit_bench.bfcl_values import JAVA_TYPES, read_java, read_javascript


def task(benchmark, task_id):
    """The task of that id."""
    return next(task for task in benchmark.tasks if task.task_id == task_id)


def test_every_category_is_read_in_order(sample):
    """Tasks come category by category, with what each category expects."""
    assert Counter(t.category for t in sample.tasks) == {
        "simple_python": 3,
        "multiple": 2,
        "parallel": 1,
        "live_simple": 1,
        "simple_java": 1,
        "irrelevance": 1,
        "live_relevance": 1,
    }
    wanted = {"calls": AllowedCalls, "any_call": AnyCall, "no_call": NoCall}
    assert all(type(t.expects[0]) is wanted[CATEGORIES[t.category]] for t in sample.tasks)
    assert all(bool(t.gold) == (CATEGORIES[t.category] == "calls") for t in sample.tasks)


def test_equal_definitions_are_merged_and_others_get_a_counter(sample):
    """One name with two contents becomes two tools; the same content twice becomes one."""
    names = [d.name for d in sample.definitions]
    assert names.count("set_lamp") == 1
    assert names.count("set_lamp__2") == 1
    assert "set_lamp__3" not in names
    assert len(names) == len(set(names)) == 8


def test_questions_point_at_the_exact_definition(sample):
    """Offered names and gold calls follow the definition, not the upstream name."""
    dim = task(sample, "simple_python_2")
    assert dim.offered == ("set_lamp__2",)
    assert dim.gold[0].name == "set_lamp__2"
    assert dim.gold[0].allowed == {"room": ["hall"], "brightness": [30]}


def test_earlier_messages_become_history(sample):
    """All but the last message are history; the last one is the request."""
    live = task(sample, "live_simple_0-0-0")
    assert live.request == "And in feet?"
    assert live.history == (
        SystemMessage(text="You know the sea."),
        UserMessage(text="High water at Aker?"),
        AssistantMessage(text="At six, two metres."),
    )


def test_an_empty_folder_is_named(tmp_path):
    """A folder without questions is an error that says what to give instead."""
    with pytest.raises(DatasetError, match="holds no BFCL questions"):
        load_bfcl(tmp_path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"id": "simple_python_9", "question": [[{"role": "user"', "not JSON"),
        ('{"id": "simple_python_9", "question": "?", "function": []}', "question"),
        (
            '{"id": "x", "question": [[{"role": "assistant", "content": "Hi"}]], "function": []}',
            "does not end with what the user says",
        ),
        (
            '{"id": "x", "question": [[{"role": "user", "content": "Hi"}]], "function": []}',
            "'x' has no gold answer",
        ),
    ],
)
def test_a_broken_question_is_named(sample_folder, tmp_path, line, complaint):
    """A line that is cut short or has another shape raises an error that names it."""
    folder = shutil.copytree(sample_folder, tmp_path / "copy")
    with (folder / "BFCL_v4_simple_python.json").open("a") as stream:
        stream.write(line)
    with pytest.raises(DatasetError, match=complaint):
        load_bfcl(folder)


def passes(value, allowed, language, schema):
    """Whether one argument with this value passes; the schema is written as upstream writes it."""
    tool = definition_from_json(
        {
            "name": "f",
            "description": "F.",
            "parameters": {"type": "dict", "properties": {"x": schema}},
        }
    )
    gold = AllowedCall(name="f", allowed={"x": allowed})
    call = ToolCall(call_id="1", name="f", arguments={"x": value})
    return match_allowed_values([call], [gold], [tool], language=language).passed


LONG, DOUBLE, ANY = {"type": "long"}, {"type": "double"}, {"type": "any"}
LONGS = {"type": "ArrayList", "items": {"type": "long"}}
MAP, FLOAT, BOOLEAN = {"type": "HashMap"}, {"type": "float"}, {"type": "Boolean"}


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema", "right"),
    [
        ("42L", [42], JAVA, LONG, True),
        ("42", [42], JAVA, LONG, False),
        ("42L", [42], None, LONG, False),
        ("0.5", [0.5], JAVA, {"type": "number"}, True),
        ("0.5f", [0.5], JAVA, DOUBLE, False),
        ("new ArrayList<>(Arrays.asList(1L, 2L))", [[1, 2]], JAVA, LONGS, True),
        ('new HashMap<>() {{ put("limit", 50); }}', [{"limit": [50]}], JAVA, MAP, True),
        ("aVariable", ["aVariable"], JAVA, MAP, True),
        ("avariable", ["aVariable"], JAVA, MAP, False),
        ("NEW Path( a )", ["new Path(a)"], JAVA, ANY, True),
        ("true", [True], JAVASCRIPT, BOOLEAN, True),
        ("True", [True], JAVASCRIPT, BOOLEAN, False),
        ("3", [3.0], JAVASCRIPT, FLOAT, True),
        ("'Moss, Norway'", ["moss norway"], JAVASCRIPT, {"type": "String"}, True),
    ],
)
def test_source_text_is_read_by_the_declared_type(value, allowed, language, schema, right):
    """Then the rules are those of plain values: variables to the letter, strings leniently."""
    assert passes(value, allowed, language, schema) is right


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema", "right"),
    [
        (42, [42], JAVA, LONG, True),
        (42.0, [42], JAVA, LONG, False),
        (True, [1], JAVA, LONG, False),
        (3, [3.0], JAVA, DOUBLE, True),
        pytest.param(10**400, [0.5], JAVA, DOUBLE, False, id="beyond any float"),
        ([1, 2], [[1, 2]], JAVA, LONGS, True),
        (["1"], [[1]], JAVA, LONGS, False),
        ({"limit": 50}, [{"limit": [50]}], JAVA, MAP, True),
        (50, ["50"], JAVA, ANY, True),
        pytest.param(10**5000, ["5"], JAVA, ANY, False, id="thousands of digits"),
        (True, ["true"], JAVA, ANY, True),
        (None, ["null"], JAVA, ANY, True),
        (1, [True], JAVASCRIPT, BOOLEAN, False),
    ],
)
def test_a_json_value_stands_for_its_literal(value, allowed, language, schema, right):
    """A model that calls by JSON need not write source text; kinds are those declared."""
    assert passes(value, allowed, language, schema) is right


@pytest.mark.parametrize(
    ("text", "types", "value"),
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
        ("new ArrayList<>(Arrays.asList(1, 2))", "ArrayList integer", [1, 2]),
        ('new ArrayList<String>(Arrays.asList("a", "b"))', "ArrayList String", ["a", "b"]),
        ('new ArrayList<>(Arrays.asList("a", 1, true, 2L, 1.5f))', "ArrayList", ["a", 1, True, 2, 1.5]),
        ("new ArrayList<Long>() {{ add(1L); add(2L); }}", "ArrayList long", [1, 2]),
        ("new ArrayList<>() {{\n  add(1);\n  add(2);\n}}", "ArrayList integer", [1, 2]),
        ('new ArrayList<>(Arrays.asList("a, b"))', "ArrayList String", ["", ""]),
        ("new ArrayList<List<String>>()", "ArrayList any", "new ArrayList<List<String>>()"),
        ("new int[]{1, 2}", "Array integer", [1, 2]),
        ('new String[]{"a", "b"}', "Array String", ['"a"', '"b"']),
        ('new HashMap<String, Object>() {{ put("a", 1); put("b", "x"); }}', "HashMap", {"a": 1, "b": "x"}),
        ('new HashMap<>() { put("a", true); }', "HashMap", {"a": True}),
        ('new HashMap<>() {{ put("a", f(1)); }}', "HashMap", {"a": "f(1"}),
        ("new HashMap<>() {{ put(a, 1); }}", "HashMap", {}),
    ],
)  # fmt: skip
def test_java(text, types, value):
    """Each type has its spelling; what is spelled otherwise stays text.

    Lists have three forms, elements parted at every comma, also inside quotes; strings in arrays
    keep their quotes, as upstream; values of maps end at the first bracket.
    """
    assert repr(read_java(text, *types.split())) == repr(value)


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
    ("text", "types", "value"),
    [
        ("'a'", "String", "a"),
        ("\"a'", "String", "\"a'"),
        ("7", "integer", 7),
        ("1e3", "float", "1e3"),
        ("7n", "Bigint", 7),
        ("True", "Boolean", "True"),
        ("'a'", "any", "'a'"),
        ("[1, 2]", "array integer", [1, 2]),
        (" new Array(1, 2) ", "array integer", [1, 2]),
        ("['a', \"b\", c]", "array String", ["a", "b", "c"]),
        ("[1, 'a', true, 1.5]", "array", [1, "a", True, 1.5]),
        ("[1, 2] and more", "array integer", [1, 2]),
        ("['a, b']", "array String", ["'a", "b'"]),
        ("[1,\n2]", "array integer", "[1,\n2]"),
        ("[[1, 2], [3]]", "array array", [[1, 2], [3]]),
        ("[ [1],\n [2] ]", "array array", [[1], [2]]),
        ("[{a: 1}, {a: 2}]", "array dict", [{"a": 1}, {"a": 2}]),
        ("{a: 1, 'b': \"x\"}", "dict", {"a": 1, "b": "x"}),
        ("{a: '5', b: 'true'}", "dict", {"a": 5, "b": True}),
        ("{a: [1, 'x'], b: c}", "dict", {"a": [1, "x"], "b": "c"}),
        ("{a: x, y, b: 1}", "dict", {"a": "x, y", "b": 1}),
        ("{a: {b: 1}}", "dict", {"a": "{b: 1"}),
        ("{a: 1,\nb: 2}", "dict", "{a: 1,\nb: 2}"),
    ],
)
def test_javascript(text, types, value):
    """Each type has its spelling; what is spelled otherwise stays text.

    Arrays end at the first closing bracket and are parted at every comma; pairs end at a comma that
    a further key follows, and quotes around their values do not count.
    """
    assert repr(read_javascript(text, *types.split())) == repr(value)
