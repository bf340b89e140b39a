"""What holds after learning from any episodes."""

from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn, Verdict
from agentkit.evolution import LearningConfig, ToolManager
from agentkit.evolution.usage import private_part
from agentkit.library.pins import pin_faults
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.tools.definition import Effects
from agentkit.tools.validation import validate_arguments

TOOLS = [
    ToolDefinition.from_schema("look", "Looks.", {"type": "object"}, effects=Effects(reads=True)),
    ToolDefinition.from_schema(
        "count",
        "Counts.",
        {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        },
    ),
]
RULES = LearningConfig(
    max_examples=3, max_results=2, longest_query=40, longest_argument=20, longest_result=20
)
TEXT = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["rain in Rome", "count the sheep 3", "ann@example.org", "  ", "罗马会下雨吗", "word " * 20]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=3,
)
CALLS = st.tuples(
    st.sampled_from(["look", "count", "gone"]),
    st.dictionaries(st.sampled_from(["n", "password", "x"]), VALUES, max_size=2),
    VALUES,
    st.sampled_from(["ok", "ok", "ok", "failed", "deferred"]),
)
LIVED = st.lists(st.tuples(TEXT, st.lists(CALLS, max_size=3), st.booleans()), max_size=6)


def episodes_of(lived):
    """Numbered episodes, all calls of each in one turn."""
    for number, (request, made, passed) in enumerate(lived):
        calls = tuple(
            ToolCall(call_id=str(at), name=name, arguments=arguments)
            for at, (name, arguments, _, _) in enumerate(made)
        )
        results = tuple(
            ToolResult(call_id=str(at), name=name, status=status, value=value)
            for at, (name, _, value, status) in enumerate(made)
        )
        turn = Turn(message=AssistantMessage(tool_calls=calls), results=results)
        yield Episode(
            episode_id=f"e{number:02}",
            request=request,
            turns=(turn,),
            verdict=Verdict(passed=passed),
        )


@given(LIVED, st.randoms())
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_learning_is_bounded_repeatable_and_changes_examples_only(lived, random):
    """Caps hold, nothing private or unreadable is kept, and a second time nothing changes."""
    episodes = list(episodes_of(lived))
    store = open_store("memory:")
    manager = ToolManager(store)
    manager.register(TOOLS)
    report = manager.learn(episodes, rules=RULES)
    library = manager.library

    assert report.is_written == bool(report.added) == (library.version == 2)
    passed = {one.episode_id for one in episodes if one.verdict.passed}
    assert set(report.evidence) <= passed
    assert len(report.skipped) + sum(map(len, report.added.values())) == report.uses
    for before in TOOLS:
        after = library[before.name].definition
        assert after.signature == before.signature
        assert after.description == before.description
        assert ToolDefinition.from_json(json.loads(json.dumps(after.to_json()))) == after
        assert len(after.examples) <= 3
        assert len(after.worked_calls) <= 2
        for example in after.examples:
            assert example.query
            assert len(example.query) <= 40
            assert private_part([example.query, example.arguments, example.result]) is None
            assert not example.is_whole or not validate_arguments(after, example.arguments)
    assert pin_faults(library) == ()

    random.shuffle(episodes)
    again = manager.learn(episodes, rules=RULES)
    assert (again.is_written, manager.library.version) == (False, library.version)
    other = ToolManager(open_store("memory:"))
    other.register(TOOLS)
    assert other.learn(episodes, rules=RULES).added == report.added
