"""A store that judges is still a store."""

import pytest

from agentkit.episodes import Episode, Verdict
from agentkit.evaluation.judging import JudgingStore
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
