"""Undocumented functions: what is learned from one question of each answers the other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agentkit import ToolDefinition, open_store
from agentkit.episodes import Episode, Turn
from agentkit.errors import DatasetError
from agentkit.library import Library
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import FunctionModel
from agentkit_bench import OpaqueTools
from agentkit_bench.opaque_command import Comparison

OPACITY = "noname_nodesc_noparams"
AREA = {
    "type": "object",
    "properties": {"base": {"type": "number"}, "height": {"type": "number"}},
    "required": ["base", "height"],
}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
FUNCTIONS = {"area": ("The area.", AREA), "weather": ("The weather.", CITY)}
QUESTIONS = [
    ("q0", "area", "A triangle, 3 wide and 4 high?", {"base": 3, "height": 4}, 6.0),
    ("q1", "area", "A triangle, 5 wide and 2 high?", {"base": 5, "height": 2}, 5.0),
    ("q2", "weather", "How warm is Oslo?", {"city": "Oslo"}, "cold"),
    ("q3", "weather", "How warm is Rome?", {"city": "Rome"}, "warm"),
]
ERRORS = {
    "area": "function_1() missing 2 required positional arguments: 'base' and 'height'",
    "weather": "function_1() missing 1 required positional argument: 'city'",
}


def write(folder: Path, name: str, rows: list[dict[str, object]]) -> None:
    """One file of the data."""
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path):
    """Two functions in the form of the data, with questions and recordings of ours."""
    questions, whole, bare, first, later, texts = [], [], [], [], [], []
    for key, name, request, gold, result in QUESTIONS:
        words, parameters = FUNCTIONS[name]
        tool = {"question": key, "original_name": name}
        questions.append(
            {
                "id": key,
                "question": request,
                "gold_calls": [{"name": name, "arguments": gold}],
                "gold_result": [result],
            }
        )
        whole.append(tool | {"name": name, "description": words, "parameters": parameters})
        bare.append(tool | {"name": "function_1", "description": "", "parameters": None})
        call = {"name": "function_1", "original_name": name}
        first.append(
            {
                "question": key,
                "method": "none",
                "version": 0,
                "calls": [call | {"arguments": {}, "error": ERRORS[name]}],
            }
        )
        later.append(
            {
                "question": key,
                "method": "tool_observer",
                "version": 1,
                "calls": [call | {"arguments": gold, "result": result}],
            }
        )
        text = f"Call as function_1({', '.join(gold)}), as for {key}."
        texts.append(
            tool
            | {"name": "function_1", "best": {"description": text}, "last": {"description": text}}
        )
    write(tmp_path, "questions", questions)
    write(tmp_path, "tools_original", whole)
    write(tmp_path, f"tools_{OPACITY}", bare)
    for model in ("gpt-5", "gpt-5-mini"):
        write(tmp_path, f"episodes_{OPACITY}_{model}", first)
        write(tmp_path, f"reruns_{OPACITY}_{model}", later)
    write(tmp_path, f"descriptions_{OPACITY}_tool_observer_gpt-5_gpt-5", texts)
    cache = [
        {"call": "area(base=3, height=4)", "result": 6.0},
        {"call": "area(base=4, height=3)", "result": 6.0},
        {"call": "area(base=1, height=1)", "result": 0.5},
        {"call": "area()", "error": "missing"},
    ]
    write(tmp_path, "function_call_cache", cache)
    return tmp_path


@pytest.fixture
def data(folder):
    """The sample, read."""
    return OpaqueTools(folder, OPACITY)


def test_each_half_has_one_question_of_each_function(data):
    """Nothing that is learned from the one half was asked in the other."""
    first, second = data.benchmark(0), data.benchmark(1)
    assert [task.task_id for task in first.tasks] == ["q0", "q2"]
    assert [task.task_id for task in second.tasks] == ["q1", "q3"]
    assert {one.request for one in data.attempts(0)} == {task.request for task in first.tasks}
    assert {one.request for one in data.attempts(1, later=True)} == {
        task.request for task in second.tasks
    }


def test_a_function_has_one_opaque_name_in_all_questions(data):
    """Upstream counts anew in every question; errors and descriptions are renamed as well."""
    assert [one.name for one in data.definitions] == ["function_1", "function_2"]
    weather = [one for one in data.attempts(0) if "Oslo" in one.request]
    assert {one.results[0].text for one in weather} == {
        "function_2() missing 1 required positional argument: 'city'"
    }
    text = data.observed(0, "best")["function_2"].definition.description.summary
    assert text == "Call as function_2(city), as for q2."


@pytest.mark.parametrize(
    ("calls", "valid", "right"),
    [
        ([("function_1", {"base": 3, "height": 4.0})], True, True),
        ([("function_1", {"base": "3", "height": "4"})], True, True),
        ([("function_1", {"base": 4, "height": 3})], True, True),  # recorded with gold's result
        ([("function_1", {"base": 1, "height": 1})], True, False),
        ([("function_1", {"base": 3})], False, False),
        ([("function_1", {"base": 3, "height": "four"})], False, False),
        ([("function_1", {"base": 3, "height": 4, "unit": "m"})], False, False),
        ([("area", {"base": 3, "height": 4})], False, False),
        ([("function_1", {"base": 3, "height": 4})] * 2, False, False),
        ([], False, False),
    ],
)
def test_a_call_is_judged_by_the_original_definition(data, calls, valid, right):
    """Valid is what the function takes; right is gold's arguments, or a call with its result."""
    [expected] = data.benchmark(0).tasks[0].expects
    made = [
        ToolCall(call_id=str(at), name=name, arguments=arguments)
        for at, (name, arguments) in enumerate(calls)
    ]
    message = AssistantMessage(text="", tool_calls=tuple(made))
    episode = Episode(episode_id="1", request="?", turns=(Turn(message=message),))
    verdict = asyncio.run(expected.verifier([]).verify(episode))
    assert (verdict.metrics["valid"], verdict.passed) == (float(valid), right)


def test_recovered_parameters_are_counted_by_name_and_by_type(data):
    """Opaque definitions have none of them, the original ones all; an integer is a number."""
    assert data.recovered(Library(data.definitions)) == (4, 0, 0)
    assert data.recovered(Library(data.originals)) == (4, 4, 4)
    partly = ToolDefinition.from_schema(
        "function_1",
        "",
        {"type": "object", "properties": {"base": {"type": "integer"}, "height": {}}},
    )
    assert data.recovered(Library([partly, data.definitions[1]])) == (4, 2, 1)


def by_schema(request):
    """Gives what the question says to the parameters that the schema names."""
    words = request.messages[-1].text.rstrip("?").split()
    numbers = [int(word) for word in words if word.isdigit()]
    values = {"base": numbers[:1], "height": numbers[1:], "city": words[-1:]}
    [tool] = request.tools
    known = tool.parameters_schema.get("properties", {})
    arguments = {name: values[name][0] for name in known if values.get(name)}
    return [ToolCall(call_id="1", name=tool.name, arguments=arguments)]


def test_libraries_are_compared_on_questions_that_they_did_not_learn_from(data):
    """A model that reads schemas answers right once refusals taught the parameters' names."""
    comparison = Comparison(
        models=[FunctionModel(by_schema, name="reader")], store=open_store("memory:")
    )
    asyncio.run(comparison.add(data, ["opaque", "evidence", "original"]))
    opaque, evidence, original = comparison.rows
    assert [sum(one.right for one in row.answers.values()) for row in comparison.rows] == [0, 4, 4]
    assert (opaque.names, evidence.names, original.names) == (0, 6, 8)  # `days` was never named
    assert evidence.gain(opaque, "right").value == 1.0
    assert evidence.to_json()["answers"]["q1"] == {"valid": True, "right": True}


def test_the_command_shows_what_was_recovered(invoke, folder):
    """Without a model nothing is asked; with an unknown library nothing is done."""
    shown = invoke("bench", "opaque", str(folder), "--opacity", OPACITY)
    assert shown.exit_code == 0, shown.output
    assert [line.split()[:3] for line in shown.stdout.splitlines() if "original" in line] == [
        ["original", "100%", "100%"]
    ]
    refused = invoke("bench", "opaque", str(folder), "--library", "best")
    assert refused.exit_code == 2
    assert "there is no library 'best'; use some of opaque, evidence" in refused.output


def test_a_folder_without_the_data_is_an_error(tmp_path):
    """The message names the file."""
    with pytest.raises(DatasetError, match=r"questions\.jsonl"):
        OpaqueTools(tmp_path, OPACITY)
    (tmp_path / "questions.jsonl").write_text("[]\n")
    with pytest.raises(DatasetError, match="line 1: expected a JSON object, got a list"):
        OpaqueTools(tmp_path, OPACITY)
