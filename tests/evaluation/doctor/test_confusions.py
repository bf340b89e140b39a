"""Pairs that retrieval confuses, with the words that cause it."""

import pytest

from agentkit import ToolDefinition
from agentkit.retrieval import Hit, Retrieval
from agentkit.tools.definition import Example


def tool(name, text, examples=()):
    """A definition without parameters."""
    definition = ToolDefinition.from_schema(name, text, {})
    return ToolDefinition(
        name=name,
        signature=definition.signature,
        description=definition.description,
        examples=tuple(Example(arguments={}, query=query) for query in examples),
    )


PHENOTYPES = [
    tool("id_by_phenotype", "Retrieve the code of a phenotype or symptom."),
    tool("phenotype_symptom_code", "Retrieve a phenotype, a symptom or a code by its code."),
    tool("send_mail", "Send a mail to a person."),
    tool("list_files", "List the files of a folder."),
]


def test_a_tool_outranked_on_its_own_words_is_told_with_them(look):
    """The finding names the rival, the request, the shared words and those that would help."""
    (found,) = look(*PHENOTYPES, codes=["confused", "not_found"])
    assert found.tools == ("id_by_phenotype", "phenotype_symptom_code")
    words = found.confusion
    assert words.query == "Retrieve the code of a phenotype or symptom."
    assert {"symptom", "code"} <= set(words.shared)
    assert words.own == ("id",)
    assert "send_mail" not in found.what


def test_tools_with_words_of_their_own_are_not_confused(look):
    """Four tools about different things are found for what they say."""
    tools = [
        tool("get_weather", "How warm it is in a city."),
        tool("send_mail", "Send a mail to a person."),
        tool("list_files", "List the files of a folder."),
        tool("add_numbers", "Add two numbers."),
    ]
    assert look(*tools, codes=["confused", "not_found"]) == []


def test_requests_of_worked_calls_are_tried(look):
    """What a person asked counts as the tool's own words."""
    mail = tool("send_mail", "", examples=["write to my landlord please"])
    rival = tool("landlord_letters", "")
    retriever = _Fixed("landlord_letters", "send_mail")
    (found,) = look(mail, rival, codes=["confused", "not_found"], retriever=retriever)
    assert found.tools == ("send_mail", "landlord_letters")
    assert found.confusion.query == "write to my landlord please"
    assert found.confusion.shared == ("landlord",)


def test_words_are_told_as_they_are_written(look):
    """Words that the index cuts are shown as the request has them, so that they can be searched."""
    mail = tool("send_mail", "", examples=["which cities get my letters"])
    rival = tool("cities_letters", "")
    retriever = _Fixed("cities_letters", "send_mail")
    (found,) = look(mail, rival, codes=["confused"], retriever=retriever)
    assert found.confusion.shared == ("cities", "letters")


def test_doubles_are_not_called_confused(look):
    """No word tells them apart, and the check for doubles reports them."""
    tools = [tool(f"get_weather__{number}", "The weather in a city today.") for number in range(4)]
    assert look(*tools, codes=["confused", "not_found"]) == []


def test_an_opening_that_others_share_is_no_request(look):
    """The first sentence that is the tool's own is tried in its place."""
    opening = "This tool belongs to the vehicle control system of the car."
    tools = [
        tool("adjust_climate", f"{opening} Adjusts temperature and fan."),
        tool("vehicle_control", f"{opening} Opens a menu of what can be steered."),
        tool("lock_doors", f"{opening} Locks the doors or unlocks them."),
    ]
    assert look(*tools, codes=["confused", "not_found"]) == []


class _Fixed:
    """A retriever that finds the same tools for every query."""

    def __init__(self, *names):
        self._names = names

    async def retrieve(self, query, library):
        hits = tuple(
            Hit(definition=library[name].definition, score=float(-at))
            for at, name in enumerate(self._names)
        )
        return Retrieval(query=query, hits=hits, offered=(), cards="", tokens=0)


def test_any_retriever_can_be_asked(look):
    """The retriever of the application is the one that counts."""
    tools = [
        tool("add_numbers", "Add two or more numbers."),
        tool("send_mail", "Send a mail to a person."),
    ]
    found = look(*tools, codes=["confused", "not_found"], retriever=_Fixed("send_mail"))
    assert [(one.kind.code, one.tools) for one in found] == [
        ("not_found", ("add_numbers", "send_mail"))
    ]


@pytest.mark.parametrize("texts", [[], ["Find."], ["", " "], ["的", "🎉🎉 🎉 🎉"]])
def test_odd_texts_are_no_requests(look, texts):
    """Nothing to ask for is nothing to find."""
    tools = [tool(f"tool{number}", text) for number, text in enumerate(texts)]
    assert look(*tools, codes=["confused"]) == []
