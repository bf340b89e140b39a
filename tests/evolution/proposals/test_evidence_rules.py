"""Rules that the evidence proposer learns from what tools refuse, and how surely."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from agentkit import Episode, Library, ToolDefinition
from agentkit.episodes import Turn
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult
from agentkit.tools.rules import Between, Condition, Form, OneOf

TERMS = "!periods must be one of 36, 48, 60, got "


async def learned(library, *episodes, knobs=None):
    """The rules of all proposals."""
    proposer = EvidenceProposer() if knobs is None else EvidenceProposer(knobs)
    found = await proposer.propose(Observations(library=library, episodes=episodes))
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


async def test_the_two_ends_of_a_range_come_together(library, refused):
    """Refusals that state one bound each add up; a bound that was stated once is left out."""
    low, high = "!periods must be at least 36", "!periods must be at most 20"
    more = refused("!31 is less than the minimum of 36", low)
    [found] = await learned(library, *more, *refused(high))
    assert found == Between(parameter="periods", minimum=36)


async def test_a_refusal_with_the_schema_is_read_as_data(library, make_episode):
    """What the executor says as data needs no reading of words."""
    failure = ToolFailure(
        kind="invalid_arguments",
        rule="`periods` is wrong",
        path="periods",
        cause="enum",
        schema_excerpt={"type": "integer", "enum": [36, 48, 60]},
    )
    call = ("calculate_loan", {"total_price": 8.5, "periods": 31}, failure)
    episodes = [make_episode("e1", call), make_episode("e2", call)]
    assert await learned(library, *episodes) == [OneOf(parameter="periods", values=(36, 48, 60))]


async def test_the_reason_holds_the_numbers(library, refused, make_episode):
    """A person who reads the proposal sees what it rests on; the evidence is its episodes."""
    kept = make_episode("ok", ("calculate_loan", {"total_price": 8.5, "periods": 36}, 250.0))
    found = await EvidenceProposer().propose(
        Observations(library=library, episodes=(*refused(TERMS + "31", TERMS + "31"), kept))
    )
    [one] = found
    assert one.evidence == ("e0", "e1")
    assert "when it refuses a call (2 failed calls in 2 conversations)." in one.reason
    assert one.author.kind == "program"
    assert one.stream == "evidence"


async def test_one_episode_is_not_enough(library, refused, make_episode):
    """Neither one refusal nor many in one episode make a rule."""
    assert await learned(library, *refused(TERMS + "31")) == []
    call = ("calculate_loan", {"total_price": 8.5, "periods": 31}, TERMS + "31")
    assert await learned(library, make_episode("e", call, call, call)) == []
    lenient = EvidenceConfig(min_failures=1, min_episodes=1)
    assert await learned(library, *refused(TERMS + "31"), knobs=lenient)


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


async def test_lists_that_differ_are_no_rule(library, refused):
    """What is allowed depends on something else, such as the car; nothing general is known."""
    other = "!periods must be one of 12, 24, got 31"
    assert await learned(library, *refused(TERMS + "31", TERMS + "31", other, other)) == []


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
    call = ToolCall(call_id="1", name="meet", arguments=arguments)
    failure = ToolFailure(kind="tool_error", rule=f"ValueError: {text}", cause="ValueError")
    result = ToolResult(call_id="1", name="meet", status="failed", failure=failure)
    turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
    episodes = [Episode(episode_id=name, request="", turns=(turn,)) for name in "ab"]
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


async def test_a_contract_that_is_not_read_is_said_in_words(make_episode):
    """When the schema has the list and calls break it all the same, the text repeats it."""
    schema = {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["metric", "imperial"], "description": "The unit"}
        },
    }
    library = Library([ToolDefinition.from_schema("weather", "Weather.", schema)])
    failure = ToolFailure(
        kind="invalid_arguments",
        rule="`unit` must be one of 'metric', 'imperial', got the string 'C'",
        path="unit",
        cause="enum",
        schema_excerpt=schema["properties"]["unit"],
    )
    episodes = [make_episode(name, ("weather", {"unit": "C"}, failure)) for name in "ab"]
    [one] = await EvidenceProposer().propose(
        Observations(library=library, episodes=tuple(episodes))
    )
    words = one.candidate.description.parameters["unit"]
    assert words == 'The unit. Must be one of "metric", "imperial".'
    assert one.candidate.specification.rules == ()


async def test_a_rule_that_refuses_what_is_right_is_dropped(loan, make_episode, wrong_value):
    """The model kept to a learned rule and was wrong for it: the rule goes."""
    from dataclasses import replace

    rule = OneOf(parameter="periods", values=(36, 48))
    strict = replace(loan, specification=replace(loan.specification, rules=(rule,)))
    verdict = wrong_value("calculate_loan", "periods", expected=[72], actual=48)
    arguments = {"total_price": 8.5, "periods": 48}
    episodes = [
        make_episode(name, ("calculate_loan", arguments, 250.0), verdict=verdict) for name in "ab"
    ]
    [one] = await EvidenceProposer().propose(
        Observations(library=Library([strict]), episodes=tuple(episodes))
    )
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
        call = ToolCall(call_id="1", name="wait", arguments={"days": days})
        shown = ", ".join(map(str, allowed))
        failure = ToolFailure(
            kind="retry_requested", rule=f"days must be one of {shown}, got {days}"
        )
        result = (
            ToolResult(call_id="1", name="wait", status="ok", value=days)
            if days in allowed
            else ToolResult(call_id="1", name="wait", status="failed", failure=failure)
        )
        turn = Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,))
        episodes.append(Episode(episode_id=str(at), request="", turns=(turn,)))
    refusals = sum(days not in allowed for days in tried)
    expected = [OneOf(parameter="days", values=tuple(allowed))] if refusals >= 2 else []
    assert await learned(Library([wait]), *episodes) == expected


@pytest.mark.parametrize(
    ("keyword", "schema"),
    [
        ("minimum", {"minimum": 10**400}),
        ("maximum", {"maximum": float("nan")}),
        ("enum", {"enum": ["\ud800", 10**400]}),
        ("enum", {"enum": [float("nan")]}),
    ],
)
async def test_a_schema_that_can_not_be_written_teaches_nothing(
    library, make_episode, keyword, schema
):
    """Numbers that no float holds, no numbers, and halves of characters make no rule."""
    failure = ToolFailure(
        kind="invalid_arguments",
        rule="`note` is wrong",
        path="note",
        cause=keyword,
        schema_excerpt=schema,
    )
    call = ("calculate_loan", {"total_price": 8.5, "periods": 31, "note": "x"}, failure)
    assert await learned(library, make_episode("e1", call), make_episode("e2", call)) == []
