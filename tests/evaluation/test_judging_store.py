"""A store that judges is still a store."""

import pytest

from agentkit.episodes import Episode, Verdict
from agentkit.evaluation.judging import JudgingStore
from agentkit.library import Author, LibraryChange
from agentkit.library.chain import EventDraft, chained
from agentkit.library.opening import open_store
from agentkit.testing.store_conformance import EpisodeStoreConformance, ToolStoreConformance


class TestJudgingStore(ToolStoreConformance, EpisodeStoreConformance):
    """Whatever it passes on arrives; the judge here leaves each verdict as it is."""

    @pytest.fixture
    def store(self):
        """A judging store around an empty memory store."""
        return JudgingStore(open_store("memory:"), lambda episode: episode.verdict)


def test_episodes_are_judged_on_their_way_in():
    """The verdict is in the kept episode, and the store behind it has it too."""
    kept = open_store("memory:")
    judging = JudgingStore(kept, lambda episode: Verdict(passed=episode.request == "right"))
    judging.append(Episode(episode_id="1", request="right"))
    judging.append(Episode(episode_id="2", request="wrong"))
    assert [episode.verdict.passed for episode in kept.select()] == [False, True]


def test_events_go_through():
    """What was done to the library is told to the store behind it, and read from there."""
    kept = open_store("memory:")
    judging = JudgingStore(kept, lambda episode: episode.verdict)
    draft = EventDraft(kind="written", author=Author(kind="program", name="test"))
    events = chained(None, [draft, draft], at="2026-11-21T00:00:00Z")
    judging.commit(LibraryChange(proposal_id="p", events=events), expected_version=0)
    assert judging.events() == kept.events() == events
    assert [event.sequence for event in judging.events(after=1)] == [2]
