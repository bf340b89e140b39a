"""What the doctor finds in texts, names and schemas."""

from __future__ import annotations

import pytest

from agentkit import ToolDefinition
from agentkit.evaluation.doctor import PROVIDER_RULES
from agentkit.evaluation.doctor.schemas import markup
from agentkit.tools.patterns import invisible

GOOD = {"city": {"type": "string", "description": "Name of the place, as on a map."}}


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


@pytest.mark.parametrize("piece", ["<b>", "<!--", "&amp;", "<a ", "\n", "a. B "])
def test_hostile_texts_are_read_in_time(piece):
    """A hundred thousand characters of one piece do no harm, opened and never closed."""
    text = piece * (100_000 // len(piece))
    markup(text)


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


def test_one_name_from_several_servers(a_tool, look):
    """Each gets a name of its own, and the finding says what they came in as."""
    tools = [a_tool("search", f"Search {what} by words.") for what in ("mails", "files", "songs")]
    found = look(*tools, codes=["same_name"])
    assert [one.tools for one in found] == [("search", "search__2", "search__3")]
    assert "'search'" in found[0].what


TEXT = {"description": "What people call it."}


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        ({}, "untyped_parameter"),
        ({"default": 3}, "untyped_parameter"),
        ({"type": "object"}, "open_object"),
        ({"type": ["object", "null"], "properties": {}}, "open_object"),
        ({"type": "array"}, "untyped_items"),
        ({"type": "array", "items": {}}, "untyped_items"),
        ({"$ref": "#/$defs/Nothing"}, "dangling_reference"),
        ({"$ref": "other.json"}, "dangling_reference"),
        ({"type": "string", "title": "Thing Name"}, "generated_titles"),
        ({"type": "object", "properties": {}, "required": ["x"]}, "ghost_required"),
    ],
)
def test_open_schemas_are_found(a_tool, codes, schema, code):
    """Each gap has its own name."""
    assert code in codes(a_tool(properties={"thing_name": {**TEXT, **schema}}))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"const": 3},
        {"type": "object", "additionalProperties": {"type": "number"}},
        {"type": "object", "properties": {"a": {"type": "string", **TEXT}}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"type": "string", "enum": ["a", "b"]},
        {"enum": ["a", 1, None]},
        {"$ref": "#/$defs/Place"},
        {"type": "string", "title": "City, as people call it"},
        {"type": "object", "required": ["x"], "allOf": [{"$ref": "#/$defs/Place"}]},
        {
            "type": "object",
            "properties": {"a": {"type": "string", **TEXT}},
            "required": ["x"],
            "allOf": [{"$ref": "#/$defs/Place"}],
        },
    ],
)
def test_declared_schemas_are_left_alone(a_tool, codes, schema):
    """What is declared in one way or another is no finding."""
    place = {"type": "object", "properties": {"x": {"type": "number", **TEXT}}}
    definition = a_tool(properties={"thing": {**TEXT, **schema}}, **{"$defs": {"Place": place}})
    assert not codes(definition, providers=["anthropic"])


def test_results_that_are_not_declared(a_tool, codes):
    """A note, since few sources declare results."""
    silent = ToolDefinition.from_schema("find", "Find a city.", {})
    assert "untyped_result" in codes(silent)
    assert "untyped_result" not in codes(a_tool())


@pytest.mark.parametrize(
    ("provider", "schema", "code"),
    [
        ("openai", {"oneOf": [{"required": ["name"]}]}, "refused_root"),
        ("openai", {"enum": [{}]}, "refused_root"),
        ("anthropic", {"anyOf": [{"required": ["name"]}]}, "refused_root"),
        ("anthropic", {"properties": {"filter[id]": {"type": "string"}}}, "refused_parameter_name"),
        ("anthropic", {"properties": {"x" * 65: {"type": "string"}}}, "refused_parameter_name"),
        ("openai", {"properties": {"a": {"type": "array"}}}, "refused_array"),
        ("gemini", {"properties": {"a": {"type": "array"}}}, "refused_array"),
        ("gemini", {"properties": {"a": {"$ref": "#/$defs/A"}}}, "refused_keyword"),
        ("gemini", {"additionalProperties": False}, "refused_keyword"),
        ("gemini", {"properties": {"a": {"type": ["string", "null"]}}}, "refused_type"),
        ("gemini", {"properties": {"a": {"type": "integer", "enum": [1]}}}, "refused_type"),
        ("gemini", {"properties": {"a": {"type": "string", "format": "uri"}}}, "refused_type"),
        ("openai-strict", {"allOf": [{"required": ["name"]}]}, "refused_keyword"),
        ("openai-strict", {"properties": {"a": {"type": "object"}}}, "refused_object"),
        ("openai-strict", {"additionalProperties": True}, "refused_object"),
    ],
)
def test_each_provider_has_its_rules(a_tool, look, provider, schema, code):
    """A schema that breaks a rule is found for the provider whose rule it is."""
    refusals = {rule.kind.code for rule in PROVIDER_RULES}
    found = look(a_tool(**schema), codes=sorted(refusals), providers=[provider])
    assert [one.kind.code for one in found] == [code]
    assert provider in found[0].what


def test_names_are_told_with_what_is_sent(a_tool, look):
    """A name that no provider takes is one finding, with the name on the wire."""
    found = look(a_tool("math.factorial"), a_tool("math_factorial"), codes=["refused_name"])
    assert [one.tools for one in found] == [("math.factorial",)]
    assert "openai, anthropic, gemini" in found[0].what
    assert "math_factorial_" in found[0].what
    assert look(a_tool("x" * 65), codes=["refused_name"], providers=["anthropic"]) == []
