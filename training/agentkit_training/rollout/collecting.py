"""``collect``: rollouts of a policy, made by the runtime's own agent, executor and verifiers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from agentkit import open_store
from agentkit.episodes import Episode
from agentkit.evaluation import (
    Benchmark,
    EvaluationProgress,
    EvaluationSettings,
    episodes_of_run,
    evaluate,
)
from agentkit.evaluation.settings import EvaluationLabels
from agentkit.library import Library
from agentkit.models.base import ChatModel
from agentkit.retrieval import Retriever
from agentkit_training.rollout.samples import Rollout, token_sequences

_RUN = "rollout"


@runtime_checkable
class RolloutModel(ChatModel, Protocol):
    """A model that answers the requests of many runs together: ``PolicyModel``, or a wrapper."""

    def expect(self, runs: int) -> None:
        """Say how many runs are under way; 0 when it is not known."""
        ...

    def forget(self) -> None:
        """Drop what is kept of earlier answers."""
        ...


async def collect(
    model: ChatModel,
    benchmark: Benchmark,
    *,
    library: Library | None = None,
    attempts: int = 8,
    temperature: float = 1.0,
    seed: int | None = 0,
    settings: EvaluationSettings | None = None,
    retriever: Retriever | None = None,
    concurrency: int | None = None,
) -> tuple[Rollout, ...]:
    """Let the policy try every task ``attempts`` times, all at once.

    The prompt of each rollout is rendered from ``library``, the version that is current when the
    rollouts begin (ToolDNA, Algorithm 1, lines 3 and 4). Training and evaluation differ in the
    temperature alone.

    Args:
        model: The policy, or any other.
        benchmark: The tasks, their tools and how they are judged.
        library: What the tools are called and described as; None for the benchmark's own texts.
        attempts: Rollouts of each task: the group's size G.
        temperature: Of sampling; 0 evaluates.
        seed: Of the first attempt; each further one has the next. None asks for none.
        settings: How to ask; attempts, temperature and seed are those given here.
        retriever: Finds tools, where ``settings`` want that; None for the default one.
        concurrency: Attempts under way at a time; all of them for None, so that a policy answers
            them together.

    Returns:
        The rollouts, ordered by task as in the benchmark and then by attempt. Rewards are not
        given yet.
    """
    wanted = settings or EvaluationSettings()
    generation = replace(wanted.settings, temperature=temperature, seed=seed)
    asked = replace(wanted, attempts=attempts, settings=generation)
    batching = model if isinstance(model, RolloutModel) else None
    total = len(benchmark.tasks) * attempts
    store = open_store("memory:")

    def listen(progress: EvaluationProgress) -> None:
        if batching is not None:
            batching.expect(total - progress.done - progress.unfinished)

    try:
        await evaluate(
            benchmark,
            model=model,
            store=store,
            run=_RUN,
            library=library,
            settings=asked,
            concurrency=concurrency or total,
            listen=listen,
            retriever=retriever,
        )
        episodes = tuple(episodes_of_run(store, _RUN))
    finally:
        if batching is not None:
            batching.expect(0)
            batching.forget()
        store.close()
    return _rollouts(benchmark, episodes, 0 if library is None else library.version)


def _rollouts(
    benchmark: Benchmark, episodes: Iterable[Episode], version: int
) -> tuple[Rollout, ...]:
    """One rollout for each attempt, in the order of tasks and attempts."""
    found: defaultdict[tuple[str, int], list[tuple[int, Episode]]] = defaultdict(list)
    for episode in episodes:
        labels = EvaluationLabels.of(episode)
        assert labels is not None  # it comes from evaluate, which labels every episode
        found[labels.task, labels.attempt].append((labels.user_turn, episode))
    place = {task.task_id: number for number, task in enumerate(benchmark.tasks)}
    keys = sorted(found, key=lambda key: (place[key[0]], key[1]))
    return tuple(_rollout(key, found[key], version) for key in keys)


def _rollout(key: tuple[str, int], turns: Iterable[tuple[int, Episode]], version: int) -> Rollout:
    task, attempt = key
    episodes = tuple(episode for _, episode in sorted(turns, key=lambda one: one[0]))
    return Rollout(
        task_id=task,
        attempt=attempt,
        episodes=episodes,
        sequences=token_sequences(episodes),
        library_version=version,
        fault=_fault(episodes),
    )


def _fault(episodes: Sequence[Episode]) -> str:
    """Why the rollout says nothing about the policy; empty when it does.

    A prompt that does not fit is a fault where nothing was answered yet. Later it is the policy
    that has filled its window, and what it did is judged: a fault would take the failure out.
    """
    is_answered = any(episode.turns for episode in episodes)
    for episode in episodes:
        if episode.verdict is not None and episode.verdict.fault is not None:
            return episode.verdict.fault
        if episode.stop_reason == "error" and not is_answered:
            return episode.error or "error"
    return ""
