"""The questions of BFCL, and values as its languages write them."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from agentkit.errors import DatasetError
from agentkit.evaluation import AllowedCalls, AnyCall, NoCall
from agentkit.messages import AssistantMessage, SystemMessage, ToolCall, UserMessage
from agentkit.metrics import AllowedCall, match_allowed_values
from agentkit.tools import definition_from_json
from agentkit_bench import JAVA, JAVASCRIPT
from agentkit_bench.bfcl import CATEGORIES, load_bfcl


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


def test_a_renamed_definition_keeps_its_upstream_name(sample):
    """The origin holds the upstream name where it changed, the source and its licence."""
    by_name = {d.name: d for d in sample.definitions}
    assert by_name["set_lamp__2"].origin.original_name == "set_lamp"
    assert by_name["set_lamp"].origin.original_name is None
    assert by_name["set_lamp"].origin.licence == "Apache-2.0"
    assert by_name["set_lamp"].origin.reference.startswith("bfcl_eval ")


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


def test_dialects_are_normalised_and_the_original_is_kept(sample):
    """``dict`` and ``float`` become JSON Schema words, and what was received stays."""
    kettle = next(d for d in sample.definitions if d.name == "kettle.boil")
    assert kettle.signature.parameters["type"] == "object"
    assert kettle.signature.properties["litres"]["type"] == "number"
    assert kettle.origin.original["properties"]["litres"]["type"] == "float"


def test_an_empty_folder_is_named(tmp_path):
    """A folder without questions is an error that says what to give instead."""
    with pytest.raises(DatasetError, match="holds no BFCL questions"):
        load_bfcl(tmp_path)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"id": "simple_python_9", "question": [[{"role": "user"', "Invalid JSON"),
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
    ("value", "allowed", "language", "schema"),
    [
        ("42L", [42], JAVA, LONG),
        ("0.5", [0.5], JAVA, DOUBLE),
        ("new ArrayList<>(Arrays.asList(1L, 2L))", [[1, 2]], JAVA, LONGS),
        ('new HashMap<>() {{ put("limit", 50); }}', [{"limit": [50]}], JAVA, MAP),
        ("aVariable", ["aVariable"], JAVA, MAP),
        ("NEW Path( a )", ["new Path(a)"], JAVA, ANY),
        ("true", [True], JAVASCRIPT, BOOLEAN),
        ("3", [3.0], JAVASCRIPT, FLOAT),
        ("'Moss, Norway'", ["moss norway"], JAVASCRIPT, {"type": "String"}),
    ],
)
def test_source_text_is_read_by_the_declared_type(value, allowed, language, schema):
    """Then the rules are those of plain values: variables to the letter, strings leniently."""
    assert passes(value, allowed, language, schema)


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema"),
    [
        ("42", [42], JAVA, LONG),
        ("0.5f", [0.5], JAVA, DOUBLE),
        ("avariable", ["aVariable"], JAVA, MAP),
        ("True", [True], JAVASCRIPT, BOOLEAN),
        ("42L", [42], None, LONG),
    ],
)
def test_text_of_another_type_fails(value, allowed, language, schema):
    """A long wants its letter; where values are plain JSON, text is no number."""
    assert not passes(value, allowed, language, schema)


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema"),
    [
        (42, [42], JAVA, LONG),
        (3, [3.0], JAVA, DOUBLE),
        ([1, 2], [[1, 2]], JAVA, LONGS),
        ({"limit": 50}, [{"limit": [50]}], JAVA, MAP),
        (50, ["50"], JAVA, ANY),
        (True, ["true"], JAVA, ANY),
        (None, ["null"], JAVA, ANY),
        (True, [True], JAVASCRIPT, BOOLEAN),
    ],
)
def test_a_json_value_stands_for_its_literal(value, allowed, language, schema):
    """A model that calls by JSON need not write source text."""
    assert passes(value, allowed, language, schema)


@pytest.mark.parametrize(
    ("value", "allowed", "language", "schema"),
    [
        (42.0, [42], JAVA, LONG),
        (True, [1], JAVA, LONG),
        pytest.param(10**400, [0.5], JAVA, DOUBLE, id="beyond any float"),
        pytest.param(10**5000, ["5"], JAVA, ANY, id="thousands of digits"),
        (1, [True], JAVASCRIPT, BOOLEAN),
        (["1"], [[1]], JAVA, LONGS),
    ],
)
def test_a_json_value_of_another_kind_fails(value, allowed, language, schema):
    """Kinds are those of the declared type."""
    assert not passes(value, allowed, language, schema)


def test_types_of_json_schema_stand_for_the_nearest():
    """A tool whose schema was never written in the language's types is judged all the same."""
    assert passes("true", [True], JAVA, {"type": "boolean"})
    assert passes("[1, 2]", [[1, 2]], JAVASCRIPT, {"type": "array", "items": {"type": "integer"}})
    assert passes("0.5", [0.5], JAVA, {"type": "number"})
    assert passes("x", ["X"], JAVA, {"type": "string"})
