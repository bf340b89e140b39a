"""A run can end in a value of a given type instead of text."""

from __future__ import annotations

from pydantic import BaseModel

from agentkit import Agent
from agentkit.testing import ScriptedModel


class Car(BaseModel):
    make: str
    year: int


async def test_pydantic_model():
    """The output is an instance of the model; the episode holds plain data."""
    model = ScriptedModel(['{"make": "Toyota", "year": 2020}'])

    result = await Agent(model, output_type=Car).run("Which car?")

    assert result.output == Car(make="Toyota", year=2020)
    assert result.episode.output == {"make": "Toyota", "year": 2020}


async def test_json_schema():
    """A bare schema gives plain data."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    result = await Agent(ScriptedModel(['{"n": 3}']), output_type=schema).run("?")

    assert result.output == {"n": 3}


async def test_code_fence_is_tolerated():
    """Models like to wrap JSON in a fence."""
    fenced = 'Here you are:\n```json\n{"make": "Toyota", "year": 2020}\n```'

    assert (await Agent(ScriptedModel([fenced]), output_type=Car).run("?")).output.year == 2020


async def test_a_wrong_answer_is_sent_back_with_the_reason():
    """The model reads what is wrong and answers again; the record shows the correction."""
    model = ScriptedModel(['{"make": "Toyota"}', "not json", '{"make": "Toyota", "year": 2020}'])

    result = await Agent(model, output_type=Car).run("?")

    assert result.output.year == 2020
    assert "year" in model.requests[1].messages[-1].text
    assert "not JSON" in model.requests[2].messages[-1].text
    assert [m.role for m in result.episode.messages()] == [m.role for m in result.messages]


async def test_an_answer_that_never_fits_ends_the_run():
    """After two corrections the run stops without an output, and the text is still there."""
    result = await Agent(ScriptedModel(["no"] * 3), output_type=Car).run("?")

    assert (result.stop_reason, result.output, result.text) == ("output_invalid", None, "no")
