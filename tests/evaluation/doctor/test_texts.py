"""Texts and names: missing, empty, unclean, in each other's way."""

from __future__ import annotations

import pytest

from agentkit.evaluation.doctor.texts import markup, repeats
from agentkit.tools.invisible import invisible

GOOD = {"city": {"type": "string", "description": "Name of the place, as on a map."}}


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
    (found,) = look(*tools, codes=["shared_opening"])
    assert found.kind.code == "shared_opening"
    assert found.tools == ("fill_tank", "lock_doors", "start_engine")
    assert found.tokens > 20
    assert not look(*tools[:2], codes=["shared_opening"])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Find\u200b a city", ("\u200b",)),
        ("Find a city\U000e0041\U000e0042", ("\U000e0041", "\U000e0042")),
        ("user\u202etxt.exe", ("\u202e",)),
        ("bell\x07", ("\x07",)),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", ()),
        ("family \U0001f468\u200d\U0001f469\u200d\U0001f467", ()),
        ("line\n\tindented\r\n", ()),
    ],
)
def test_invisible_characters(text, found):
    """Zero-width, direction, tag and control characters are found; scripts and emoji keep theirs."""
    assert invisible(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<p>Find a <b>city</b>.</p>", {"<p>", "</p>", "<b>", "</b>"}),
        ("Fish &amp; chips<br/>to go<!-- or not -->", {"&amp;", "<br/>", "<!-- or not -->"}),
        ("a < b and c > d, R&D budget", set()),
        ("Path /users/<user_id>/posts", set()),
        ("Give {system}|<code>, as <a>", set()),
    ],
)
def test_html_is_found_and_placeholders_are_not(text, found):
    """Tags of HTML are told, other words in angle brackets are the author's."""
    assert set(markup(text)) == found


def test_repeated_sentences_are_found():
    """Word for word, from four words on."""
    assert repeats("Get the weather of a city. Give it. Get the weather of a city.") == (
        "Get the weather of a city.",
    )
    assert repeats("Yes. No. Yes. No.") == ()


@pytest.mark.parametrize("piece", ["<b>", "<!--", "&amp;", "<a ", "\n", "a. B "])
def test_hostile_texts_are_read_in_time(piece):
    """A hundred thousand characters of one piece do no harm, opened and never closed."""
    text = piece * (100_000 // len(piece))
    markup(text)
    repeats(text)


NAMES = ["same_name", "alike_names", "reserved_name"]


@pytest.mark.parametrize(
    ("names", "code"),
    [
        (["get_user", "getUser"], "alike_names"),
        (["get.user", "get_user"], "alike_names"),
        (["GET_USER", "get_user"], "alike_names"),
        (["get_user", "get_users"], "alike_names"),
        (["sum"], "reserved_name"),
        (["class"], "reserved_name"),
        (["null"], "reserved_name"),
        (["web_search"], "reserved_name"),
    ],
)
def test_names_in_the_way(a_tool, look, names, code):
    """Each way of being in the way has its code."""
    assert [one.kind.code for one in look(*map(a_tool, names), codes=NAMES)] == [code]


@pytest.mark.parametrize(
    "names",
    [
        ["get_user", "get_order"],
        ["search", "search_flights"],
        ["get_weather", "get_weather_forecast", "get_weather_history", "get_weather_map"],
        ["search_web", "print", "class_list"],
        ["get_gene_functions", "get_genes_by_function"],
        ["读取", "写入"],
    ],
)
def test_names_that_are_fine(a_tool, look, names):
    """Names that begin alike are how catalogues are made."""
    assert look(*map(a_tool, names), codes=NAMES) == []


def test_one_name_from_several_servers(a_tool, look):
    """Each gets a name of its own, and the finding says what they came in as."""
    tools = [a_tool("search", f"Search {what} by words.") for what in ("mails", "files", "songs")]
    found = look(*tools, codes=["same_name"])
    assert [one.tools for one in found] == [("search", "search__2", "search__3")]
    assert "'search'" in found[0].what
