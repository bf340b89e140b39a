"""Near duplicates, and pairs that retrieval confuses."""

from __future__ import annotations

import pytest

from agentkit import ToolDefinition
from agentkit.evaluation.doctor.catalogue import near_duplicates
from agentkit.tools.definition import Example


def tool(name, text, *parameters):
    """A definition with untyped parameters."""
    return ToolDefinition.from_schema(
        name, text, {"properties": {parameter: {} for parameter in parameters}}
    )


def other_tools(count=40):
    """Tools of other subjects, so that words have a rarity."""
    return [
        tool(f"{noun}_{number}", f"The {noun} of place {number} and what belongs to it.", noun)
        for number, noun in enumerate(["river", "mountain", "song", "order"] * (count // 4))
    ]


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [
        (
            tool("get_weather", "The weather of a city today.", "city"),
            tool("get_weather", "The weather of a city, today", "city"),
            "duplicate",
        ),
        (
            tool("release.update", "Update the details of a release by its id.", "id", "date"),
            tool("release.update", "Updates details of a release by its id.", "id", "date"),
            "duplicate",
        ),
        (
            tool("gcd", "Greatest common divisor of two whole numbers.", "a", "b"),
            tool("math_gcd", "Greatest common divisor of two whole numbers.", "a", "b"),
            "near_duplicate",
        ),
    ],
)
def test_near_duplicates_are_found(look, first, second, code):
    """Case, small words and separators do not tell tools apart."""
    found = look(first, second, *other_tools(), codes=["duplicate", "near_duplicate", "siblings"])
    assert [one.kind.code for one in found] == [code]
    assert len(found[0].tools) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Delete a user by its id.", "Create a user with a name."),
        ("Convert an amount from euros to dollars.", "Convert an amount from dollars to euros."),
        ("The weather of a city today.", "The history of a city."),
    ],
)
def test_tools_that_share_words_are_not_near_duplicates(codes, first, second):
    """Another verb, another order or another object is another tool."""
    pair = tool("one", first, "x"), tool("two", second, "x")
    found = codes(*pair, *other_tools())
    assert not found & {"duplicate", "near_duplicate", "siblings"}


def test_tools_made_from_one_template_are_siblings(look):
    """What differs is in the name and in the first sentence: they are told apart, and noted."""
    text = (
        "Stop an active {} job of the laboratory. This changes the state of a remote computer and "
        "needs a confirmation; results that exist already can still be read afterwards. Pass the id "
        "that starting the job returned, and the word that confirms it."
    )
    tools = [
        tool(f"stop_{kind}_job", text.format(kind), "id", "confirm")
        for kind in ("protein", "molecule")
    ]
    (found,) = look(*tools, *other_tools(), codes=["duplicate", "near_duplicate", "siblings"])
    assert found.kind.code == "siblings"
    assert found.kind.severity == "note"


def test_tools_that_differ_in_a_word_each_cost_bounded_work():
    """Among thousands of variants of one text, the two that are the same are found."""
    text = "Read sensor {} of the plant, with its unit and the time at which it was read."
    tools = [tool(f"sensor_{number}", text.format(f"s{number}"), "at") for number in range(2000)]
    tools.append(tool("sensor_77", text.format("s77"), "at", "unit"))
    tools[-1] = ToolDefinition.from_json({**tools[-1].to_json(), "name": "sensor_77_again"})
    groups = near_duplicates(tools, min_likeness=0.6)
    assert ("sensor_77", "sensor_77_again") in [group.tools for group in groups]


def spoken(name, text, examples=()):
    """A definition without parameters."""
    definition = ToolDefinition.from_schema(name, text, {})
    return ToolDefinition(
        name=name,
        signature=definition.signature,
        description=definition.description,
        examples=tuple(Example(arguments={}, query=query) for query in examples),
    )


PHENOTYPES = [
    spoken("id_by_phenotype", "Retrieve the code of a phenotype or symptom."),
    spoken("phenotype_symptom_code", "Retrieve a phenotype, a symptom or a code by its code."),
    spoken("send_mail", "Send a mail to a person."),
    spoken("list_files", "List the files of a folder."),
]


def test_a_tool_outranked_on_its_own_words_is_told_with_them(look):
    """The finding names the rival and the request."""
    (found,) = look(*PHENOTYPES, codes=["confused", "not_found"])
    assert found.tools == ("id_by_phenotype", "phenotype_symptom_code")
    assert "for 'Retrieve the code of a phenotype or symptom.' id_by_phenotype" in found.what
    assert "send_mail" not in found.what


def test_near_duplicates_are_not_called_confused(look):
    """No word tells them apart, and the check for duplicates reports them."""
    tools = [
        spoken(f"get_weather__{number}", "The weather in a city today.") for number in range(4)
    ]
    assert look(*tools, codes=["confused", "not_found"]) == []
