"""The doctor: what it finds in definitions, near duplicates, and the whole checkup."""

import random
from dataclasses import replace

import pytest
from support.episodes import episode_of

from agentkit import ToolDefinition
from agentkit.episodes import RetrievalTrace
from agentkit.evaluation.doctor import CHECKS, KINDS, PROVIDER_RULES, Catalogue, examine
from agentkit.evaluation.doctor.catalogue import near_duplicates
from agentkit.evaluation.doctor.schemas import markup
from agentkit.messages import ToolFailure
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
    parameters = {"city": {"type": "string", "description": text}}
    assert ("placeholder" in codes(a_tool(properties=parameters))) == is_placeholder


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
def test_invisible_characters(a_tool, codes, text, found):
    """Zero-width, direction, tag and control characters are found; scripts and emoji keep theirs."""
    assert invisible(text) == found
    assert ("invisible" in codes(a_tool(text=f"Find a city. {text}"))) == bool(found)


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
    found = look(*tools, codes=NAMES)
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
    assert codes(definition) <= {"refused_array", "refused_keyword", "refused_type"}


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
    ],
)
def test_each_provider_has_its_rules(a_tool, look, provider, schema, code):
    """A schema that breaks a rule is found for the provider whose rule it is."""
    refusals = {rule.kind.code for rule in PROVIDER_RULES}
    found = look(a_tool(**schema), codes=sorted(refusals))
    assert [provider in one.what for one in found if one.kind.code == code] == [True]


def test_names_are_told_with_what_is_sent(a_tool, look):
    """A name that no provider takes is one finding, with the name on the wire."""
    found = look(a_tool("math.factorial"), a_tool("math_factorial"), codes=["refused_name"])
    assert [one.tools for one in found] == [("math.factorial",)]
    assert "openai, anthropic, gemini" in found[0].what
    assert "math_factorial_" in found[0].what
    (long,) = look(a_tool("x" * 65), codes=["refused_name"])
    assert "(openai, gemini)" in long.what


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


PHENOTYPES = [
    tool("id_by_phenotype", "Retrieve the code of a phenotype or symptom."),
    tool("phenotype_symptom_code", "Retrieve a phenotype, a symptom or a code by its code."),
    tool("send_mail", "Send a mail to a person."),
    tool("list_files", "List the files of a folder."),
]


def test_a_tool_outranked_on_its_own_words_is_told_with_them(look):
    """The finding names the rival and the request."""
    (found,) = look(*PHENOTYPES, codes=["confused", "not_found"])
    assert found.tools == ("id_by_phenotype", "phenotype_symptom_code")
    assert "for 'Retrieve the code of a phenotype or symptom.' id_by_phenotype" in found.what
    assert "send_mail" not in found.what


def test_near_duplicates_are_not_called_confused(look):
    """No word tells them apart, and the check for duplicates reports them."""
    tools = [tool(f"get_weather__{number}", "The weather in a city today.") for number in range(4)]
    assert look(*tools, codes=["confused", "not_found"]) == []


def sick_tools():
    """Tools with many findings, of different names."""
    schema = {"properties": {"x": {}, "y": {"type": "array"}}, "required": ["z"]}
    opening = "This tool belongs to a system of many tools."
    return [
        ToolDefinition.from_schema(name, text, schema)
        for name, text in [
            ("get_user", "Get user."),
            ("getUser", ""),
            ("print", f"{opening} <p>Prints a text</p> on paper."),
            ("find_river", f"{opening} Rivers of a country by their length."),
            ("find_song", f"{opening} Songs of an artist, by the year."),
            ("find_song_2", f"{opening} Songs of an artist, by the year."),
        ]
    ]


def test_the_order_of_the_tools_changes_nothing():
    """Every permutation gives the same check-up."""
    tools = sick_tools()
    expected = examine(Catalogue.of(tools)).to_json()
    for seed in range(4):
        random.Random(seed).shuffle(tools)
        assert examine(Catalogue.of(tools)).to_json() == expected


def test_the_worst_come_first():
    """Errors stand before warnings, these before notes."""
    severities = [one.kind.severity for one in examine(Catalogue.of(sick_tools())).findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)
    assert set(severities) == {"error", "warning", "note"}


def test_every_kind_is_explained_and_belongs_to_one_check():
    """Codes are unique; each says why it matters and what to do."""
    listed = [code for codes in CHECKS.values() for code in codes]
    assert len(listed) == len(set(listed)) == len(KINDS)
    for kind in KINDS.values():
        assert kind.title
        assert kind.why.endswith(".")
        assert kind.advice.endswith(".")


def test_deep_and_recursive_schemas_are_survived():
    """References are not followed, and depth costs no stack."""
    deep = {"type": "string"}
    for _ in range(90):
        deep = {"type": "object", "properties": {"inner": deep}}
    tree = {"$ref": "#/$defs/T"}
    schema = {
        "type": "object",
        "properties": {"deep": deep, "tree": tree},
        "$defs": {"T": {"type": "object", "properties": {"tree": tree}}},
    }
    checkup = examine(Catalogue.of([ToolDefinition.from_schema("t", "Walk a tree.", schema)]))
    assert checkup.tokens > 0


def test_unaffordable_tools_are_told(a_tool, look):
    """A tool above the default budget can never be offered."""
    huge = a_tool("huge", properties={"p": {"type": "string", "description": "word " * 2000}})
    found = look(a_tool("small"), a_tool("heavy", "word " * 600), huge, codes=["unaffordable"])
    assert [one.tools for one in found] == [("huge",)]


CODES = ["always_fails", "passed_over", "never_used"]


def episode(number, name, *, fails=False, shortlist=()):
    """A run that called one tool."""
    outcome = ToolFailure(kind="invalid_arguments", rule="`city` must be a string")
    made = episode_of(
        (name, {}, outcome if fails else None), episode_id=f"e{number}", request=f"request {number}"
    )
    trace = RetrievalTrace(query="q", shortlist=tuple(shortlist), offered=())
    return replace(made, turns=(replace(made.turns[0], retrieval=trace),))


@pytest.fixture
def tools(a_tool):
    """Three tools."""
    return [a_tool(name) for name in ("used", "shown", "idle")]


def test_tools_nobody_called(look, tools):
    """One that was found and never called is told apart from one that was never found."""
    episodes = [episode(number, "used", shortlist=["used", "shown"]) for number in range(20)]
    found = look(*tools, codes=CODES, episodes=episodes)
    assert [(one.kind.code, one.tools) for one in found] == [
        ("passed_over", ("shown",)),
        ("never_used", ("idle",)),
    ]
    assert "20 episodes" in found[0].what


@pytest.mark.parametrize("number", [0, 1, 19])
def test_few_episodes_prove_nothing(look, tools, number):
    """Below twenty episodes no tool is called unused."""
    episodes = [episode(at, "used") for at in range(number)]
    assert look(*tools, codes=CODES, episodes=episodes) == []


def test_tools_that_always_fail(look, tools):
    """Three failures and no success is an error, told with the rule that was broken most."""
    episodes = [episode(number, "used", fails=True) for number in range(3)]
    (found,) = look(*tools, codes=CODES, episodes=episodes)
    assert found.kind.code == "always_fails"
    assert "`city` must be a string" in found.what
    assert look(*tools, codes=CODES, episodes=[*episodes, episode(4, "used")]) == []


def test_requests_that_a_tool_answered_are_its_own_words(look, a_tool):
    """Where another tool ranks above for such a request, the two are confused."""
    tools = [
        a_tool("order_food", "Order a meal."),
        a_tool("landlord_letters", "Letters to a landlord, by request."),
    ]
    answered = replace(episode(1, "order_food"), request="letters landlord request")
    (found,) = look(*tools, codes=["confused", "not_found"], episodes=[answered])
    assert found.tools == ("order_food", "landlord_letters")
