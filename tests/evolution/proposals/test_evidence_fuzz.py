"""Whatever tools say and calls hold, the evidence proposer gives values."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings, strategies as st

from agentkit import Episode, Library, ToolDefinition
from agentkit.composites import rule_problems
from agentkit.episodes import Evidence, Turn, Verdict
from agentkit.evolution.proposer import Observations
from agentkit.evolution.proposers.evidence import EvidenceProposer
from agentkit.evolution.proposers.observed import EvidenceConfig
from agentkit.messages import AssistantMessage, ToolCall, ToolFailure, ToolResult

TOOL = ToolDefinition.from_schema(
    "book",
    "Book a room.",
    {
        "type": "object",
        "properties": {
            "day": {"type": "string", "description": "The day (MON/TUE)."},
            "nights": {"type": "integer"},
            "guest": {"type": "object", "properties": {"age": {"type": "number"}}},
            "tags": {"type": "array", "items": {"type": "string"}},
            "any": True,
            "a.b": {},
        },
        "required": ["day"],
    },
)
LIBRARY = Library([TOOL, ToolDefinition(name="find", description=TOOL.description)])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
DATA = st.recursive(
    SCALARS | st.sampled_from([5000]).map(lambda digits: 10**digits),
    lambda inside: (
        st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3)
    ),
    max_leaves=4,
)
NAMES = st.sampled_from(["day", "nights", "guest", "tags", "any", "a.b", "guest.age", "", "x"])
TEXTS = st.lists(
    st.sampled_from(
        [
            "must be one of ",
            "'MON', 'TUE'",
            "1, 2 or 3",
            " got ",
            "between 1 and 30 days",
            "YYYY-MM-DD",
            "nights",
            "`day`",
            "match the pattern ^(a+)+$",
            "day must be before any",
            "tags is required when day is given",
        ]
    )
    | st.text(max_size=15),
    max_size=5,
).map("".join)
FAILURES = st.builds(
    ToolFailure,
    kind=st.sampled_from(["invalid_arguments", "retry_requested", "tool_error", "tool_failed"]),
    rule=TEXTS,
    path=NAMES | st.text(max_size=8),
    cause=st.sampled_from(["enum", "minimum", "pattern", "format", "required", None, "x"]),
    schema_excerpt=st.none()
    | st.fixed_dictionaries({"enum": DATA, "minimum": DATA, "pattern": DATA, "format": DATA}),
)
CALLS = st.tuples(
    st.sampled_from(["book", "find", "unknown"]),
    st.dictionaries(NAMES, DATA, max_size=4),
    FAILURES | DATA,
)
EVIDENCE = st.builds(
    Evidence,
    kind=st.sampled_from(["wrong_value", "unexpected_call", "missing_call", "wrong_tool"]),
    message=st.just(""),
    tool=st.sampled_from(["book", "find", "", "unknown"]),
    parameter=NAMES,
    call_id=st.sampled_from(["0", "1", ""]),
    expected=DATA,
    actual=DATA,
)
VERDICTS = st.none() | st.builds(
    Verdict, passed=st.booleans(), evidence=st.lists(EVIDENCE, max_size=3).map(tuple)
)


def episode(at, calls, verdict):
    """An episode of one turn a call."""
    turns = []
    for number, (name, arguments, outcome) in enumerate(calls):
        call = ToolCall(call_id=str(number), name=name, arguments=arguments)
        is_failed = isinstance(outcome, ToolFailure)
        result = ToolResult(
            call_id=call.call_id,
            name=name,
            status="failed" if is_failed else "ok",
            failure=outcome if is_failed else None,
            value=None if is_failed else outcome,
        )
        turns.append(Turn(message=AssistantMessage(tool_calls=(call,)), results=(result,)))
    return Episode(episode_id=f"e{at}", request="A room?", turns=tuple(turns), verdict=verdict)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.lists(CALLS, max_size=3), VERDICTS), min_size=1, max_size=3))
def test_any_episodes_give_sound_proposals(made):
    """Nothing raises, and each rule that comes out fits the tool that it is for."""
    episodes = tuple(episode(at, calls, verdict) for at, (calls, verdict) in enumerate(made * 2))
    knobs = EvidenceConfig(min_failures=1, min_episodes=1, min_lookups=1)
    found = asyncio.run(
        EvidenceProposer(knobs).propose(Observations(library=LIBRARY, episodes=episodes))
    )
    for one in found:
        assert one.candidate.signature == LIBRARY[one.tool_name].definition.signature
        for rule in one.candidate.specification.rules:
            assert rule_problems(rule, one.candidate, LIBRARY) == ()
