"""Learning from use: what becomes a worked example, and how it is written."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import Episode, ToolDefinition, open_store
from agentkit.episodes import Turn, Verdict
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.learning import LearningConfig, private_part
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import Proposal
from agentkit.library import Author
from agentkit.library.changes import rollback_change
from agentkit.library.pins import pin_faults
from agentkit.messages import AssistantMessage, ToolCall, ToolResult
from agentkit.tools.definition import Effects, Example
from agentkit.tools.validation import validate_arguments

# --- Which uses become examples, and what of them is kept ----------------------------------------


def weather(city, value="sunny"):
    """A call of the tool."""
    return "weather", {"city": city}, value


def test_a_tool_learns_the_words_and_the_call(learner, episode):
    """The example holds what was asked and what was called; an answer is no part of it."""
    report = learner.learn([episode("Umbrella in Rome?", weather("Rome"))])
    example = Example(arguments={"city": "Rome"}, query="Umbrella in Rome?", is_whole=False)
    assert report.added == {"weather": (example,)}
    assert learner.library["weather"].definition.examples == (example,)


def test_the_same_words_are_learned_once(learner, episode):
    """Another city is no other way to ask; other words are."""
    report = learner.learn(
        [
            episode("Umbrella in Rome?", weather("Rome")),
            episode("umbrella in OSLO", weather("Oslo")),
            episode("Do I need a coat in Bern?", weather("Bern")),
        ]
    )
    assert [one.query for one in report.added["weather"]] == [
        "Umbrella in Rome?",
        "Do I need a coat in Bern?",
    ]
    assert report.reasons == {"known_words": 1}


@pytest.mark.parametrize(
    ("request_text", "call", "reason"),
    [
        ("Umbrella?", ("umbrella", {}, 1), "unknown_tool"),
        ("", weather("Rome"), "no_words"),
        ("?!", weather("Rome"), "no_words"),
        ("rain \ud800", weather("Rome"), "no_words"),
        ("rain " * 500, weather("Rome"), "too_long"),
        ("Forward it to ann@example.org", weather("Rome"), "private"),
        ("Umbrella\u202e for Rome?", weather("Rome"), "invisible"),
        ("Umbrella?", ("weather", {"town": "Rome"}, "sunny"), "arguments_changed"),
    ],
)
def test_what_is_not_learned(learner, episode, request_text, call, reason):
    """Each use that teaches nothing is told with its reason, and nothing is written."""
    report = learner.learn([episode(request_text, call, episode_id="e1")])
    (skipped,) = report.skipped
    assert (skipped.tool, skipped.episode_id, skipped.reason) == (call[0], "e1", reason)
    assert (report.is_written, report.added, learner.library.version) == (False, {}, 1)


# --- choosing -------------------------------------------------------------------------------------


# --- What learning does to the store: one change, once, and nothing above it breaks --------------


LINE = '''
@composite(examples=[{"arguments": {"x": 2}, "result": 7}])
def line(x: float) -> float:
    """Twice a number, and three more."""
    return add(mul(x, 2), 3)
'''


@pytest.fixture
def lived(episode):
    """Two episodes that two tools learn from."""
    rome = ("weather", {"city": "Rome"}, "sunny")
    mail = ("send_mail", {"to": "Ann", "text": "hi"}, "sent")
    return [
        episode("Umbrella in Rome?", rome, episode_id="e1", started_at="1"),
        episode("Tell Ann to take a coat.", rome, mail, episode_id="e2", started_at="2"),
    ]


def test_nothing_is_learned_twice(learner, lived):
    """The same episodes, in another order too, leave the library as it is."""
    learner.learn(lived)
    again = learner.learn(reversed(lived))
    assert (again.version, again.is_written, again.added) == (2, False, {})
    assert again.reasons == {"learned_before": 3}


def test_what_was_rolled_back_stays_forgotten(learner, store, lived):
    """The old episodes teach nothing any more."""
    learner.learn(lived)
    store.commit(
        rollback_change(store, "weather", to_version=1, proposal_id="back", author="a person"),
        expected_version=2,
    )
    learner.refresh()
    assert learner.learn(lived).added == {}


def test_composites_above_are_pinned_anew_and_run(manager, episode):
    """A child that learns has another digest; what is made of it follows in the same change."""
    manager.insert(LINE)
    report = manager.learn([episode("Sum these up for me.", ("add", {"a": 1, "b": 2}, 3))])
    assert report.repinned == ("line",)
    library = manager.refresh()
    assert pin_faults(library) == ()
    assert library["line"](x=5) == 13


def test_a_tool_on_trial_learns_when_the_trial_is_over(learner, store, lived):
    """While a canary serves, its tool keeps its texts in both arms; others learn meanwhile."""
    manager = ToolManager(store, lifecycle=LifecyclePolicy(canary=True, evidence="none"))
    held = manager.library["weather"].definition
    clearer = replace(held, description=replace(held.description, summary="Weather of a city."))
    ada = Author(kind="person", name="ada")
    proposal = Proposal.of(held, clearer, stream="feedback", author=ada, reason="shorter")
    record = manager.submit(proposal)
    manager.advance()
    assert manager.ledger.proposals[record.proposal_id].state == "canary"
    assert set(manager.learn(lived).added) == {"send_mail"}
    assert manager.library["weather"].definition == held
    manager.roll_back(record.proposal_id)
    assert set(manager.learn(lived).added) == {"weather"}


# --- What holds after learning from any episodes -------------------------------------------------


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
RULES = LearningConfig(max_examples=3)
TEXT = st.text(st.characters(), max_size=12) | st.sampled_from(
    ["rain in Rome", "count the sheep 3", "ann@example.org", "  ", "罗马会下雨吗", "word " * 220]
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
        assert after.worked_calls == before.worked_calls
        for example in after.examples:
            assert example.query
            assert len(example.query) <= 1_000
            assert private_part([example.query, example.arguments, example.result]) is None
            assert not example.is_whole or not validate_arguments(after, example.arguments)
    assert pin_faults(library) == ()

    random.shuffle(episodes)
    again = manager.learn(episodes, rules=RULES)
    assert (again.is_written, manager.library.version) == (False, library.version)
    other = ToolManager(open_store("memory:"))
    other.register(TOOLS)
    assert other.learn(episodes, rules=RULES).added == report.added
