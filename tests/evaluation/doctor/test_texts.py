"""Texts that are missing, say nothing, or say too much."""

import pytest

GOOD = {"city": {"type": "string", "description": "Name of the place, as on a map."}}


def test_good_texts_are_left_alone(a_tool, codes):
    """A tool that says what it is for and what its parameters mean has nothing to find."""
    assert codes(a_tool("get_weather", "How warm it is, and whether it rains.", GOOD)) == set()


def test_a_missing_description_is_an_error(a_tool, look):
    """Without a description the retriever has only the name."""
    (found,) = look(a_tool(text=" "), codes=["no_description"])
    assert found.kind.severity == "error"
    assert found.where == ("summary",)


def test_parameters_without_texts_are_listed_with_their_paths(a_tool, look):
    """Nested ones too; allowed values and references speak for themselves."""
    definition = a_tool(
        properties={
            "city": {"type": "string"},
            "unit": {"enum": ["C", "F"]},
            "place": {"$ref": "#/$defs/Place"},
            "by_code": {
                "type": "object",
                "description": "Limits by the code of a place.",
                "patternProperties": {"^[A-Z]{3}$": {"type": "number"}},
            },
            "filters": {
                "type": "object",
                "description": "What to leave out.",
                "properties": {"kind": {"type": "string"}},
            },
        },
        **{"$defs": {"Place": {"type": "object", "properties": {"lat": {"type": "number"}}}}},
    )
    (found,) = look(definition, codes=["no_parameter_text"])
    assert found.where == ("parameters.city", "parameters.filters.kind")


@pytest.mark.parametrize(
    ("name", "text", "is_echo"),
    [
        ("get_user", "Get user.", True),
        ("getUser", "Gets the given user", True),
        ("run_query", "Runs a query", True),
        ("get_user", "Get a user by mail address.", False),
        ("count_words", "Count the words of a text.", False),
        ("translate", "翻译文本", False),
    ],
)
def test_descriptions_that_repeat_the_name(a_tool, codes, name, text, is_echo):
    """A text without a word that is not in the name says nothing; one more word is enough."""
    found = codes(a_tool(name, text, GOOD), codes=["echo_description"])
    assert ("echo_description" in found) == is_echo


@pytest.mark.parametrize(
    ("text", "is_echo"),
    [("The city.", True), ("city name", False), ("City, such as Oslo", False)],
)
def test_parameter_texts_that_repeat_the_name(a_tool, codes, text, is_echo):
    """The same for parameters."""
    definition = a_tool(properties={"city": {"type": "string", "description": text}})
    assert ("echo_parameter_text" in codes(definition)) == is_echo


@pytest.mark.parametrize(
    ("text", "is_placeholder"),
    [
        ("TODO", True),
        ("No description available.", True),
        ("N/A", True),
        ("...", True),
        ("Description of a place.", False),
        ("Test whether a number is prime.", False),
    ],
)
def test_placeholders(a_tool, codes, text, is_placeholder):
    """What somebody meant to write later is told apart from what is written."""
    assert ("placeholder" in codes(a_tool("x1", text, GOOD))) == is_placeholder


@pytest.mark.parametrize(
    ("text", "is_broken"),
    [
        ("DEPRECATED: use find_place.", True),
        ("This endpoint is no longer available.", True),
        ("Permanently unavailable: always returns an error.", True),
        ("List deprecated packages of a project.", False),
        ("Check whether a domain is available.", False),
    ],
)
def test_tools_that_warn_of_themselves(a_tool, codes, text, is_broken):
    """A description that begins with a warning against its tool is told; others are not."""
    assert ("says_broken" in codes(a_tool(text=text))) == is_broken


def test_long_texts(a_tool, codes):
    """A description over 1,024 characters and a parameter's text over 500 are long."""
    definition = a_tool(
        text="word " * 250, properties={"p": {"type": "string", "description": "word " * 120}}
    )
    assert {"long_description", "long_parameter_text"} <= codes(definition)
    assert not codes(a_tool(text="word " * 200), codes=["long_description"])


def test_a_sentence_that_opens_several_descriptions_is_told_once(a_tool, look):
    """Three tools are enough, when they are no doubles; all copies but one are counted."""
    opening = "This tool belongs to the vehicle control system of the car."
    tools = [
        a_tool(name, f"{opening} {text}")
        for name, text in [
            ("lock_doors", "Locks or unlocks the doors."),
            ("start_engine", "Starts the engine with a key code."),
            ("fill_tank", "Fills fuel into the tank, in litres."),
        ]
    ]
    (found,) = look(*tools, codes=["shared_opening", "shared_sentence"])
    assert found.kind.code == "shared_opening"
    assert found.tools == ("fill_tank", "lock_doors", "start_engine")
    assert found.tokens > 20
    assert not look(*tools[:2], codes=["shared_opening", "shared_sentence"])


def test_a_sentence_that_stands_later_is_a_note(a_tool, look):
    """Where each begins with its own sentence, the repeated one only costs tokens."""
    shared = "Results are paginated; pass the cursor of the last answer to go on."
    tools = [
        a_tool(name, f"{text} {shared}")
        for name, text in [
            ("list_songs", "Songs of an artist."),
            ("list_rivers", "Rivers that flow through a country."),
            ("list_orders", "Orders which a customer placed."),
        ]
    ]
    assert [one.kind.code for one in look(*tools, codes=["shared_opening", "shared_sentence"])] == [
        "shared_sentence"
    ]
