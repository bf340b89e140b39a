"""Learning from use: what becomes a worked example, and how it is written."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.learning import private_part
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import Proposal
from agentkit.library import Author
from agentkit.library.changes import rollback_change
from agentkit.library.pins import pin_faults
from agentkit.tools.definition import Example

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


# --- What looks private, and what only looks like it ---------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "mail ann.b+c@example.co.uk now",
        "use sk-abcdefghijklmnop1234",
        "ghp_" + "a1" * 12,
        "my password is hunter2",
        "call +44 20 7946 0958",
        "call me at (555) 123-4567",
        "or 555.123.4567.",
        "my number is 219-09-9999.",
        "pay to DE89 3704 0044 0532 0130 00",
        "card 4111 1111 1111 1111",
        "token Zx8Kq2Lm9Pv4Rt7Yw1Nb6Hc3",
        "x-" + "eyJhbGciOiJI." * 2 + "c2lnbmF0dXJl",
    ],
)
def test_formats_that_are_private(text):
    """An address, a key or a number of an account is known by its look."""
    assert private_part(text) == "private data"
    assert private_part({"deep": [{"in": text}]}) == "private data"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Flights from Rome to Oslo on 2026-08-15, two adults",
        "area of a 10 x 20.5 rectangle",
        "order 12345678901234",
        "part 1-555-123-4567-9 of ISBN 978-0-306-40615-7",
        "how do I change my password?",
        "https://example.org/a/long/path/that/goes/on",
        "the method calculateTheAreaOfAVeryLargeTriangle",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "@ann said so",
        "罗马会下雨吗",
    ],
)
def test_formats_that_are_not(text):
    """Dates, orders, names of functions and places in the web stay."""
    assert private_part(text) is None


@pytest.mark.parametrize("name", ["password", "api_key", "accessToken", "Authorization"])
def test_fields_that_say_so(name):
    """A field that is called like a secret is one, unless it is empty."""
    assert private_part({"login": {name: "x"}}) == "a field that holds a secret"
    assert private_part({"login": {name: ""}}) is None
