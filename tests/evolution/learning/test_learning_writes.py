"""What learning does to the store: one change, once, and nothing above it breaks."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agentkit.evolution import LearningConfig, ToolManager
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.proposal import Proposal
from agentkit.library import Author
from agentkit.library.pins import pin_faults
from agentkit.library.rollback import rollback_change
from agentkit.retrieval import CascadeRetriever

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


def test_all_tools_learn_in_one_change(learner, store, lived):
    """The history names the episodes."""
    report = learner.learn(lived)
    assert (report.version, report.is_written, report.evidence) == (2, True, ("e1", "e2"))
    for name in ("weather", "send_mail"):
        revision = store.history(name)[-1]
        assert (revision.version, revision.evidence) == (2, ("e1", "e2"))
        assert revision.reason == "learned from 2 episodes"


def test_nothing_is_learned_twice(learner, lived):
    """The same episodes, in another order too, leave the library as it is."""
    learner.learn(lived)
    again = learner.learn(reversed(lived))
    assert (again.version, again.is_written, again.added) == (2, False, {})
    assert again.reasons == {"learned_before": 3}


def test_a_dry_run_writes_nothing(learner, lived):
    """It tells what would be added."""
    report = learner.learn(lived, dry_run=True)
    assert (report.version, report.is_written) == (1, False)
    assert learner.refresh().version == 1
    assert learner.learn(lived).added == report.added


def test_what_was_rolled_back_stays_forgotten(learner, store, lived):
    """Further episodes teach, the old ones do not, unless the caller wants it."""
    learner.learn(lived)
    store.commit(
        rollback_change(store, "weather", to_version=1, proposal_id="back", author="a person"),
        expected_version=2,
    )
    learner.refresh()
    assert learner.learn(lived).added == {}
    report = learner.learn(lived, rules=LearningConfig(again=True))
    assert (report.version, len(report.added["weather"])) == (4, 2)


def test_composites_above_are_pinned_anew_and_run(manager, episode):
    """A child that learns has another digest; what is made of it follows in the same change."""
    manager.insert(LINE)
    report = manager.learn([episode("Sum these up for me.", ("add", {"a": 1, "b": 2}, 3))])
    assert report.repinned == ("line",)
    library = manager.refresh()
    assert pin_faults(library) == ()
    assert library["line"](x=5) == 13


def test_learning_finds_the_tool_by_the_words_of_the_user(learner, lived):
    """A query that no tool's text has a word of finds what served it before."""
    retriever = CascadeRetriever()
    before = asyncio.run(retriever.retrieve("umbrella", learner.library))
    learner.learn(lived)
    after = asyncio.run(retriever.retrieve("umbrella", learner.library))
    assert [hit.definition.name for hit in before.hits] == []
    assert [hit.definition.name for hit in after.hits][:1] == ["weather"]


def test_a_faster_writer_is_built_upon(learner, store, lived, catalogue):
    """What another writer changed in between is kept."""
    other = ToolManager(store)
    other.record({"weather": [lived_example()]})
    learner.learn(lived)
    examples = store.load()["weather"].definition.examples
    assert examples[0] == lived_example()
    assert len(examples) == 3


def lived_example():
    """A recorded call."""
    from agentkit.tools.definition import Example

    return Example(arguments={"city": "Bern"}, result="fog")


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
