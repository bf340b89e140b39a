"""Going on with a run, and the labels of its episodes."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from agentkit import Episode, open_store
from agentkit.episodes.labels import as_imported
from agentkit.errors import ModelConnectionError, ModelStatusError, RunError, UsageError
from agentkit.evaluation import summarise
from agentkit.evaluation.runner import MOST_FAILURES, evaluate
from agentkit.evaluation.settings import EvaluationSettings, episodes_of_run
from agentkit.testing import FunctionModel


async def test_imported_answers_are_no_answers_of_the_run(lamps, good, store):
    """A file that names a run decides no task: each is asked, and none of its answers counts."""
    elsewhere = open_store("memory:")
    await evaluate(lamps, model=good, store=elsewhere, run="r")
    for episode in elsewhere.select():
        store.append(as_imported(episode, "theirs.jsonl"))
    assert list(episodes_of_run(store, "r")) == []
    outcome = await evaluate(lamps, model=good, store=store, run="r")
    assert (outcome.resumed, outcome.finished) == (0, 4)


async def test_finished_tasks_are_not_asked_again(lamps, good, store):
    """Cancelled after two tasks, the second start asks the other two only."""
    asked = []

    async def slow(request):
        asked.append(request.messages[-1].text)
        if len(asked) == 3:
            await asyncio.sleep(100)
        return await answer(request)

    async def answer(request):
        return (await good.complete(request)).message

    first = asyncio.create_task(
        evaluate(lamps, model=FunctionModel(slow, name="good"), store=store, run="r", concurrency=1)
    )
    while len(asked) < 3:
        await asyncio.sleep(0.001)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    before = len(good.requests)
    outcome = await evaluate(lamps, model=good, store=store, run="r", concurrency=1)
    assert (outcome.resumed, outcome.finished) == (2, 4)
    assert len(good.requests) - before == 2
    assert len(list(store.select())) == 4


async def test_other_settings_are_refused(lamps, good, store):
    """A run cannot be gone on with under other settings; the message names the difference."""
    await evaluate(replace(lamps, tasks=lamps.tasks[:1]), model=good, store=store, run="r")
    with pytest.raises(UsageError, match="refine was 'none', is 'adaptive'"):
        await evaluate(
            lamps, model=good, store=store, run="r", settings=EvaluationSettings(refine="adaptive")
        )


async def test_a_passing_error_is_tried_again(lamps, good, store):
    """A lost connection leaves the task unfinished, and the next start asks it again."""
    failures = iter([True])

    async def moody(request):
        if next(failures, False):
            raise ModelConnectionError("the line is dead")
        return (await good.complete(request)).message

    outcome = await evaluate(lamps, model=FunctionModel(moody, name="good"), store=store, run="r")
    assert (outcome.finished, outcome.unfinished) == (3, 1)
    outcome = await evaluate(lamps, model=good, store=store, run="r")
    assert (outcome.resumed, outcome.finished, outcome.unfinished) == (3, 4, 0)


async def test_what_a_model_raises_is_an_error_of_the_model(lamps, good, store):
    """An exception of a client's own leaves one task unfinished, and the others are asked."""
    failures = iter([True])

    async def buggy(request):
        if next(failures, False):
            raise OSError("no route to host")
        return (await good.complete(request)).message

    outcome = await evaluate(lamps, model=FunctionModel(buggy, name="good"), store=store, run="r")
    assert (outcome.finished, outcome.unfinished) == (3, 1)
    assert outcome.error == "good raised OSError: no route to host"
    outcome = await evaluate(lamps, model=good, store=store, run="r")
    assert (outcome.finished, outcome.error) == (4, "")


async def test_a_lasting_error_counts_as_failed(lamps, store):
    """A prompt that is too long would be too long again: the task is finished, and failed."""

    def refuse(request):
        raise ModelStatusError("too long", status=400, body="", retry_after=None)

    outcome = await evaluate(lamps, model=FunctionModel(refuse), store=store, run="r")
    assert (outcome.finished, outcome.unfinished) == (4, 0)
    assert not any(episode.verdict.passed for episode in store.select())


async def test_a_broken_model_ends_the_run(lamps, store):
    """After several errors in a row the run stops and says how to go on."""

    def broken(request):
        raise ModelConnectionError("the line is dead")

    settings = EvaluationSettings(attempts=5)
    with pytest.raises(RunError, match="the same command resumes from there"):
        await evaluate(
            lamps,
            model=FunctionModel(broken),
            store=store,
            run="r",
            settings=settings,
            concurrency=1,
        )
    assert len(list(store.select())) == MOST_FAILURES


def episode_with(metadata):
    """An episode that has nothing but labels."""
    return Episode(episode_id="1", request="?", stop_reason="finished", metadata=metadata)


async def test_strangers_of_the_same_name_do_not_disturb_a_run(lamps, good, store):
    """An episode that only shares the run's name is no finished attempt and in no number."""
    store.append(episode_with({"run": "r", "ends": "true", "settings": "{"}))
    outcome = await evaluate(lamps, model=good, store=store, run="r")
    assert (outcome.resumed, outcome.finished) == (0, 4)
    episodes = list(store.select())
    assert summarise(episodes).total.attempts == 4
