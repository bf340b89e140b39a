"""The labels of evaluation episodes, written and read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from agentkit import Episode, open_store
from agentkit.evaluation import RecordedAnswers, summarise
from agentkit.evaluation.runner import evaluate
from agentkit.evaluation.settings import EvaluationLabels

numbers = st.integers(0, 10**6)


def episode_with(metadata):
    """An episode that has nothing but labels."""
    return Episode(episode_id="1", request="?", stop_reason="finished", metadata=metadata)


@given(
    st.builds(
        EvaluationLabels,
        run=st.text(),
        benchmark=st.text(),
        settings=st.text(),
        task=st.text(),
        category=st.text(),
        attempt=numbers,
        user_turn=numbers,
        user_turns=st.integers(1, 100),
        ends=st.booleans(),
    )
)
def test_what_is_written_is_read(labels):
    """Every record comes back from the metadata as it was."""
    assert EvaluationLabels.of(episode_with(labels.to_metadata())) == labels


@pytest.mark.parametrize("text", ["x", "", "-1", "1.0", "²", "٣", " 1", "9" * 5_000])
def test_what_is_no_number_stands_for_the_first(text):
    """Labels are foreign text: numbers that can not be read are no error."""
    metadata = {"task": "t", "attempt": text, "user_turn": text, "user_turns": text}
    assert EvaluationLabels.of(episode_with(metadata)) == EvaluationLabels(task="t")


def test_an_episode_without_a_task_has_no_labels():
    """Metadata of something else is no evaluation."""
    assert EvaluationLabels.of(episode_with({"run": "r", "attempt": "0", "ends": "true"})) is None


async def test_strangers_of_the_same_name_do_not_disturb_a_run(lamps, good, store):
    """An episode that only shares the run's name is no finished attempt, no answer, no number."""
    store.append(episode_with({"run": "r", "ends": "true", "settings": "{"}))
    outcome = await evaluate(lamps, model=good, store=store, run="r")
    assert (outcome.resumed, outcome.finished) == (0, 4)
    episodes = list(store.select())
    assert len(RecordedAnswers.of(episodes).episodes) == 4
    assert summarise(episodes).strangers == 1


async def test_labels_that_can_not_be_read_mean_the_same_everywhere(lamps, good, store):
    """An attempt named ``x`` is the first one: in a report, as an answer, and when going on."""
    await evaluate(lamps, model=good, store=store, run="r")
    other = open_store("memory:")
    for episode in store.select():
        other.append(replace(episode, metadata={**episode.metadata, "attempt": "x"}))
    outcome = await evaluate(lamps, model=good, store=other, run="r")
    assert (outcome.resumed, outcome.finished) == (4, 4)
    assert RecordedAnswers.of(other.select()).episodes.keys() == {
        (task.task_id, 0) for task in lamps.tasks
    }
    assert summarise(other.select()).finished == 4
