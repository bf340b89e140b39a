"""The evidence proposer: what errors state, and rules from refusals, look-ups and confusions."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from support.episodes import episode_of

from agentkit import Agent, Library, ToolDefinition, tool
from agentkit.episodes import Evidence, Verdict
from agentkit.evolution.proposal import Observations
from agentkit.evolution.proposers.constraints import stated_in_error
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.messages import ToolCall, ToolFailure
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import Specification
from agentkit.tools.rules import Between, CallBefore, Condition, Form, OneOf, Rule

SETS = [
    ("periods must be one of 36, 48 or 60, got 31", ["36", "48", "60"]),
    ("'F' is not one of ['celsius', 'kelvin']", ["celsius", "kelvin"]),
    ("Input should be 'a', 'b' or 'c' [type=literal_error, input_value='d']", ["a", "b", "c"]),
    ("Invalid enum value. Expected 'Salmon' | 'Tuna', received 'x'", ["Salmon", "Tuna"]),
    ("argument --foo: invalid choice: 'x' (choose from 'a', 'b')", ["a", "b"]),
    ("unsupported unit 'F'. Supported units: celsius, kelvin.", ["celsius", "kelvin"]),
    ("Allowed values: New York, Los Angeles. Please retry.", ["New York", "Los Angeles"]),
    ("periods must be 36, 48, or 60; other values cause errors.", ["36", "48", "60"]),
    ("size can only be 'S', 'M' or 'L'", ["S", "M", "L"]),
    ("must be one of low or mid or high", ["low", "mid", "high"]),
]

NO_SETS = [
    "must be an integer, got the string 'x'",
    "Valid options are: a, b, c and 4 more",
    "must be one of 'a', 'b', 'c' and 3 more, got 'x'",
    "must be one of: a, b, ...",
    "must be in [0, 100]",  # a range or two values: nobody knows
    "must be 1 or 2 characters long",
    "must be one of 36, 48, 60 months",
    "Allowed values: Parking, Food and Beverages, VIP Seating.",
    "such as 'PNG' or 'JPEG'",
    "must be one of " + ", ".join(f"'value {n}'" for n in range(60)),  # cut by the record below
]

RANGES = [
    ("must be between 1 and 30 days, got 45", (1, 30)),
    ("Input should be greater than or equal to 1", (1, None)),
    ("must not exceed 5,000", (None, 5000)),
    ("0 is less than the minimum of 1", (1, None)),
    ("31 is greater than the maximum of 30", (None, 30)),
    ("rating must be 1-5", (1, 5)),
    ("in the range [-90, 90]", (-90, 90)),
    ("cannot be negative", (0, None)),
    ("must be 5 or more", (5, None)),
]


FORMS = [
    ("the day must be given as YYYY-MM-DD", ("date", "")),
    ("time data '2' does not match format '%Y-%m-%d'", ("date", "")),
    ("must be a date such as 2026-05-31, got x", ("date", "")),
    ("use HH:MM", ("", r"^([01]\d|2[0-3]):[0-5]\d$")),
    ("must match the pattern ^[A-Z]{2}$, got the string 'x'", ("", "^[A-Z]{2}$")),
]


@pytest.mark.parametrize(("text", "values"), SETS)
def test_lists_of_values(text, values):
    """Lists in the words of validators in the wild, and of authors, are read whole."""
    [found] = [one.rule for one in stated_in_error(text) if isinstance(one.rule, OneOf)]
    assert list(found.values) == values


@pytest.mark.parametrize("text", NO_SETS)
def test_what_is_no_closed_list(text):
    """Examples, lists that go on, bounds and prose are no closed lists."""
    assert not [one for one in stated_in_error(text[:500]) if isinstance(one.rule, OneOf)]


@pytest.mark.parametrize(("text", "bounds"), RANGES)
def test_bounds(text, bounds):
    """Bounds are read whether the text asks for something or says what is wrong."""
    found = [one.rule for one in stated_in_error(text) if isinstance(one.rule, Between)]
    assert [(one.minimum, one.maximum) for one in found] == [bounds]


@pytest.mark.parametrize(("text", "form"), FORMS)
def test_forms(text, form):
    """Forms with a name, forms with a picture, and forms in words."""
    [found] = [one.rule for one in stated_in_error(text) if isinstance(one.rule, Form)]
    assert (found.format, found.pattern) == form


@pytest.mark.parametrize(
    "text",
    [
        *(
            f"area must be at most {number}"
            for number in (
                *("1.000.000", "1 000 000", "1'000'000", "1_000_000", "1 million", "2k"),
                *("0x10", "1/2", "10^6", "2 * 300"),
            )
        ),
        "area must be at most 12 per day",
        "area must be at most 3 when note is given",
        "if note is given, area must be at most 3",
        "area must be at most 3 on Sundays",
        "area must be at most 3 or at least 100",
        "unit must be one of 'a', 'b' unless note is given",
    ],
)
def test_numbers_in_other_forms_and_demands_of_some_calls_state_nothing(text):
    """A bound that was read wrong, or that holds for some calls alone, would refuse right calls."""
    assert stated_in_error(text) == ()


# --- Rules that the evidence proposer learns from what tools refuse, and how surely --------------


TERMS = "!periods must be one of 36, 48, 60, got "


async def proposals(library, *episodes, knobs=None):
    """All that is suggested."""
    proposer = EvidenceProposer() if knobs is None else EvidenceProposer(knobs)
    return await proposer.propose(Observations(library=library, episodes=episodes))


async def learned(library, *episodes, knobs=None):
    """The rules of all proposals."""
    found = await proposals(library, *episodes, knobs=knobs)
    return [rule for one in found for rule in one.candidate.specification.rules]


@pytest.fixture
def refused(make_episode):
    """Makes episodes in which the loan was refused, one for each text."""

    def make(*texts, **arguments):
        given = {"total_price": 8.5, "periods": 31, "note": "hello", **arguments}
        return [
            make_episode(f"e{at}", ("calculate_loan", given, text)) for at, text in enumerate(texts)
        ]

    return make


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (TERMS + "31", OneOf(parameter="periods", values=(36, 48, 60))),
        (
            "!periods must be between 36 and 60, got 31",
            Between(parameter="periods", minimum=36, maximum=60),
        ),
        (
            "!periods must be at least 36 months",
            Between(parameter="periods", minimum=36, unit="months"),
        ),
        ("!31 is not a multiple of 12", Between(parameter="periods", multiple_of=12)),
        ("!periods must be greater than 35", Between(parameter="periods", minimum=36)),
        (
            "!note must be given as YYYY-MM-DD",
            Form(parameter="note", format="date", example="2026-05-31"),
        ),
        (
            "!periods must be less than total_price",
            Condition(
                expression="periods < total_price", words="periods must be less than total_price"
            ),
        ),
    ],
)
async def test_what_the_tool_states_becomes_a_rule(library, refused, text, rule):
    """Two refusals in two episodes that state the same make the rule that they state."""
    assert await learned(library, *refused(text, text)) == [rule]


async def test_one_episode_is_not_enough(library, refused, make_episode):
    """Neither one refusal nor many in one episode make a rule."""
    assert await learned(library, *refused(TERMS + "31")) == []
    call = ("calculate_loan", {"total_price": 8.5, "periods": 31}, TERMS + "31")
    assert await learned(library, make_episode("e", call, call, call)) == []
    lenient = EvidenceConfig(min_failures=1, min_episodes=1)
    assert await learned(library, *refused(TERMS + "31"), knobs=lenient)


async def test_refusals_that_disagree_make_no_rule(library, refused):
    """A list that differs from call to call depends on the other arguments."""
    texts = (TERMS + "31", TERMS + "31", "!periods must be one of 24, 60, got 31")
    assert await learned(library, *refused(*texts)) == []


async def test_a_value_that_was_taken_forbids_the_rule(library, refused, make_episode):
    """The tool took 24 once, so the list that it states is not the whole truth."""
    taken = make_episode("ok", ("calculate_loan", {"total_price": 8.5, "periods": 24}, 250.0))
    assert await learned(library, *refused(TERMS + "31", TERMS + "31"), taken) == []


async def test_a_value_that_is_right_forbids_the_rule(library, refused, make_episode, wrong_value):
    """A verifier holds 24 for right, so no rule may refuse it."""
    verdict = wrong_value("calculate_loan", "periods", expected=[24], actual=36)
    arguments = {"total_price": 8.5, "periods": 36}
    judged = make_episode("j", ("calculate_loan", arguments, 250.0), verdict=verdict)
    assert await learned(library, *refused(TERMS + "31", TERMS + "31"), judged) == []


@pytest.mark.parametrize(
    "text",
    [
        "!invalid value 31 for periods",
        "!periods must be one of 36, 48 and others",
        "!periods such as 36 or 48",
        "!must be one of 'red', 'green'",
        "!periods must be one of 'short', 'long'",
        "!periods must be one of 30, 31, 32, got 31",
        "!total_price must be one of 36, 48",
    ],
)
async def test_what_explains_nothing_is_not_learned(library, refused, text):
    """Opaque refusals, open lists, values of another type, and lists that hold what was refused."""
    found = await learned(library, *refused(text, text))
    assert not [rule for rule in found if getattr(rule, "parameter", "") == "periods"]


@pytest.fixture
def corrected(make_episode):
    """Makes an episode whose call a person corrected by hand, in words and with what was right."""

    def make(number, value, right, words="that was wrong", kind="wrong_value", **about):
        parameter = about.pop("parameter", "periods")
        arguments = {"total_price": 8.5, "periods": 36, **({parameter: value} if value else {})}
        said = Evidence(
            kind=kind,
            message=words,
            call_id="c0",
            tool="calculate_loan",
            parameter=parameter,
            expected=right,
        )
        verdict = Verdict(passed=False, evidence=(said,), verifier=about.pop("verifier", "person"))
        call = ("calculate_loan", arguments, 250.0)
        return make_episode(f"p{number}", call, verdict=verdict)

    return make


@pytest.fixture
def taken(make_episode):
    """Makes episodes in which the loan was given for these terms, and nobody minded."""

    def make(*values):
        return [
            make_episode(
                f"t{at}", ("calculate_loan", {"total_price": 8.5, "periods": value}, 250.0)
            )
            for at, value in enumerate(values)
        ]

    return make


async def test_what_people_say_of_calls_becomes_a_rule(library, corrected, taken):
    """In words that state one, from as many conversations as of refusals, and as people's words."""
    words = TERMS[1:].removesuffix(", got ")
    two = [corrected(1, 12, 36, words), corrected(2, 30, 48, words)]
    [found] = await proposals(library, *two, *taken(36, 60))
    assert found.candidate.specification.rules == (OneOf(parameter="periods", values=(36, 48, 60)),)
    assert "People say so" in found.reason
    form = "note must be given as YYYY-MM-DD"
    dated = [corrected(at, "1 May", "2026-05-01", form, parameter="note") for at in range(2)]
    [found] = await proposals(library, *dated)
    assert [one.format for one in found.candidate.specification.rules] == ["date"]
    assert {one.kind for one in found.origins} <= {"person", "code"}
    assert await learned(library, two[0]) == []
    for nobody in ("exact", "feedback"):  # a verifier, or a user of whom nothing is known
        others = [corrected(at, 12, 36, words, verifier=nobody) for at in range(2)]
        assert await learned(library, *others) == []
    contradicted = [*two, *taken(12)]
    assert await learned(library, *contradicted) == []


async def test_a_rule_from_corrections_is_not_taken_away_for_the_calls_behind_it(
    library, corrected
):
    """The tool took them, and people said that it should not have been asked so."""
    words = TERMS[1:].removesuffix(", got ")
    two = [corrected(1, 12, 36, words), corrected(2, 30, 48, words)]
    [found] = await proposals(library, *two)
    after = library.with_tools([found.candidate])
    assert await proposals(after, *two) == []


async def test_the_quoted_value_tells_the_parameter():
    """Names of parameters are ordinary words; the value that a text quotes says more."""
    meet = ToolDefinition.from_schema(
        "meet",
        "A meeting.",
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("time", "format", "day")},
        },
    )
    text = "time data 'tomorrow' does not match format '%Y-%m-%d'"
    arguments = {"time": "noon or so", "format": "by phone", "day": "tomorrow"}
    failure = ToolFailure(kind="tool_error", rule=f"ValueError: {text}", cause="ValueError")
    episodes = [episode_of(("meet", arguments, failure), episode_id=name) for name in "ab"]
    [rule] = await learned(Library([meet]), *episodes)
    assert rule.parameter == "day"


async def test_the_case_study_of_the_loan(make_episode, wrong_value):
    """ToolDNA, appendix D: the text lists 36/48/60 in passing, the tool refuses 31 without a word.

    The list is the tool's own, the refused values are not in it, and the accepted ones are.
    """
    schema = {
        "type": "object",
        "properties": {"periods": {"type": "integer", "description": "Loan term (36/48/60)."}},
    }
    library = Library([ToolDefinition.from_schema("calculate_loan", "A loan.", schema)])
    failure = ToolFailure(kind="tool_failed", rule="The bank says no.")
    verdict = wrong_value("calculate_loan", "periods", expected=[36], actual=31)
    calls = [
        make_episode(f"e{at}", ("calculate_loan", {"periods": value}, failure), verdict=verdict)
        for at, value in enumerate((31, 40))
    ]
    assert await learned(library, *calls) == [OneOf(parameter="periods", values=(36, 48, 60))]


async def test_a_rule_that_refuses_what_is_right_is_dropped(loan, make_episode, wrong_value):
    """The model kept to a learned rule and was wrong for it: the rule goes."""
    rule = OneOf(parameter="periods", values=(36, 48))
    strict = replace(loan, specification=replace(loan.specification, rules=(rule,)))
    verdict = wrong_value("calculate_loan", "periods", expected=[72], actual=48)
    arguments = {"total_price": 8.5, "periods": 48}
    episodes = [
        make_episode(name, ("calculate_loan", arguments, 250.0), verdict=verdict) for name in "ab"
    ]
    [one] = await proposals(Library([strict]), *episodes)
    assert one.candidate.specification.rules == ()
    assert "refuses what is right" in one.reason


@settings(max_examples=30)
@given(
    allowed=st.lists(st.integers(0, 400), min_size=2, max_size=6, unique=True),
    tried=st.lists(st.integers(0, 400), min_size=4, max_size=12),
)
async def test_no_rule_refuses_what_the_tool_takes(allowed, tried):
    """Whatever calls are made, what is learned is the hidden list or nothing."""
    wait = ToolDefinition.from_schema(
        "wait", "Wait.", {"type": "object", "properties": {"days": {"type": "integer"}}}
    )
    episodes = []
    for at, days in enumerate(tried):
        shown = ", ".join(map(str, allowed))
        refusal = f"!days must be one of {shown}, got {days}"
        outcome = days if days in allowed else refusal
        episodes.append(episode_of(("wait", {"days": days}, outcome), episode_id=str(at)))
    refusals = sum(days not in allowed for days in tried)
    expected = [OneOf(parameter="days", values=tuple(allowed))] if refusals >= 2 else []
    assert await learned(Library([wait]), *episodes) == expected


# --- What the evidence proposer infers: look-ups, confused tools, when to ask or to answer -------


def text_tool(name, summary, *parameters):
    """A tool with text parameters, all of them required."""
    schema = {
        "type": "object",
        "properties": {parameter: {"type": "string"} for parameter in parameters},
        "required": list(parameters),
    }
    return ToolDefinition.from_schema(name, summary, schema)


@pytest.fixture
def tools():
    """Two tools that go together and one that is taken for the second."""
    return Library(
        [
            text_tool("find_station", "Find the id of a station.", "town"),
            text_tool("read_forecast", "Read the forecast of a station.", "station"),
            text_tool("read_archive", "Read past weather of a station.", "station"),
        ]
    )


def looked_up(make_episode, at):
    """The id came from the other tool."""
    station = f"ST-{at}"
    return make_episode(
        f"ok{at}",
        ("find_station", {"town": f"Town{at}"}, {"id": station}),
        ("read_forecast", {"station": station}, "rain"),
        request=f"Weather in Town{at}?",
    )


def guessed(make_episode, at):
    """The id was made up, and refused."""
    call = ("read_forecast", {"station": f"Town{at}"}, f"!no station 'Town{at}'")
    return make_episode(f"bad{at}", call, request=f"Weather in Town{at}?")


async def test_a_look_up_that_always_came_first_becomes_a_rule(tools, make_episode):
    """Ids came from one tool in every success, and calls with ids of their own failed."""
    good = [looked_up(make_episode, at) for at in range(3)]
    bad = [guessed(make_episode, at) for at in (7, 8)]
    rule = CallBefore(tool="find_station", parameter="station")
    # "no station 'Town7'" is a ModelRetry, which blames the argument whose value it quotes
    [found] = await proposals(tools, *good, *bad)
    assert (found.tool_name, found.candidate.specification.rules) == ("read_forecast", (rule,))
    assert found.candidate.description.usage_rules == ()


# --- What the evidence proposer does about a tool that has learned rules in an earlier round -----


def knows(definition: ToolDefinition, *rules: Rule) -> Library:
    """A library with the tool and what it learned before."""
    return Library([replace(definition, specification=Specification(rules=rules))])


@pytest.mark.parametrize("values", [(36, 48), (48, 36)])
async def test_what_is_known_is_not_suggested_again(loan, refused, values):
    """The episodes of the first round teach nothing in the second, in whatever order values come."""
    text = "!periods must be one of 36, 48, got 31"
    known = knows(loan, OneOf(parameter="periods", values=values))
    assert await proposals(known, *refused(text, text)) == []


async def loan_runs(library: Library, *periods: int):
    """Real runs of the loan with its learned rules, one for each term."""

    @tool
    def calculate_loan(total_price: float, periods: int, note: str = "") -> str:
        """What a loan costs a month."""
        return f"{total_price / periods:.2f}"

    bound = calculate_loan.with_definition(library["calculate_loan"].definition)
    found = []
    for number in periods:
        call = ToolCall(
            call_id="1", name="calculate_loan", arguments={"total_price": 8.5, "periods": number}
        )
        model = ScriptedModel([[call], "Done."])
        found.append((await Agent(model, tools=[bound]).run("A loan, please.")).episode)
    return found


async def test_our_own_refusals_teach_nothing(loan):
    """A call that a learned rule refused never came to the tool, so it is no evidence for the rule.

    The text of the parameter lists fewer terms; the refusals must not count for that list either.
    """
    texts = {**loan.description.parameters, "periods": "Loan term (36/48)."}
    listing = replace(loan, description=replace(loan.description, parameters=texts))
    library = knows(listing, OneOf(parameter="periods", values=(36, 48, 60)))
    runs = await loan_runs(library, 31, 31, 50)
    assert all(one.results[0].failure.cause == "one_of" for one in runs)
    assert await proposals(library, *runs) == []


# --- Rules that the proposer writes pass the checks that every suggestion passes ------------------
