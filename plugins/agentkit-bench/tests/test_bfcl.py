"""Reading the questions, gold answers and tool definitions of BFCL."""

import shutil
from collections import Counter

import pytest

from agentkit.errors import DatasetError
from agentkit.evaluation import AllowedCalls, AnyCall, NoCall
from agentkit.messages import AssistantMessage, SystemMessage, UserMessage
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
