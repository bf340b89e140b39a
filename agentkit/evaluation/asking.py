"""``Asking``: one question under one condition, from the agent to the judged answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from agentkit.agent.agent import Agent
from agentkit.agent.limits import Limits
from agentkit.agent.recording import new_episode_id
from agentkit.episodes import Episode, Verdict
from agentkit.errors import RunError
from agentkit.evaluation.expectations import AllowedCalls
from agentkit.evaluation.job import MainJob
from agentkit.evaluation.judging import JudgingStore
from agentkit.evaluation.report import Answer, Condition
from agentkit.evaluation.scoring import Score, score_calls, upstream_name
from agentkit.evaluation.task import Task
from agentkit.library import Library, Store
from agentkit.models.base import ChatModel
from agentkit.retrieval.retriever import Retriever
from agentkit.tools.definition import ToolDefinition

MOST_FAILURES = 3
"""Failed runs in a row after which the model is taken for broken."""


class Asking:
    """The agents of one job, and the judgement of their episodes.

    Args:
        library: The catalogue.
        sample: The questions that will be asked.
        model: Proposes the calls.
        store: Keeps the episodes, each with its verdict.
        retriever: Chooses tools from the catalogue.
        job: How to ask.

    Attributes:
        run_id: Label of the episodes.
    """

    def __init__(
        self,
        library: Library,
        sample: Sequence[Task],
        *,
        model: ChatModel,
        store: Store,
        retriever: Retriever,
        job: MainJob,
    ) -> None:
        self.run_id = new_episode_id()
        self._library = library
        self._model = model
        self._job = job
        self._store = JudgingStore(store, self._verdict)
        self._tasks = {task.task_id: task for task in sample}
        self._retrieving = self._agent(library, retriever)
        self._failures = 0

    async def ask(self, task: Task, condition: Condition) -> Answer:
        """Ask one question under one condition; the episode is kept, whatever happens.

        Raises:
            RunError: The model failed for the third time in a row; asking on would be in vain.
        """
        agent = self._retrieving if condition == "retrieved" else self._given(task)
        metadata = {
            "run": self.run_id,
            "task": task.task_id,
            "category": task.category,
            "condition": condition,
        }
        try:
            result = await agent.run(task.request, history=task.history, metadata=metadata)
        except RunError as error:
            self._failures += 1
            if self._failures == MOST_FAILURES:
                raise
            episode = cast("Episode", error.episode)
            return self._answer(task, condition, episode, error=str(error))
        self._failures = 0
        return self._answer(task, condition, result.episode)

    def _given(self, task: Task) -> Agent:
        """An agent that is offered the benchmark's own tools, under the benchmark's own names."""
        _, definitions = self._as_given(task)
        return self._agent(Library(definitions, version=self._library.version), None)

    def _agent(self, library: Library, retriever: Retriever | None) -> Agent:
        return Agent(
            self._model,
            library=library,
            store=self._store,
            retriever=retriever,
            search_tool=False,  # one answer is judged, and it is to be the call
            refine=self._job.refine,
            max_refinements=self._job.max_refinements,
            limits=Limits(max_steps=1),
            tool_choice=self._job.tool_choice,
            settings=self._job.settings,
            name="main-job",
        )

    def _answer(
        self, task: Task, condition: Condition, episode: Episode, *, error: str = ""
    ) -> Answer:
        turn = episode.turns[-1] if episode.turns else None
        trace = None if turn is None else turn.refine
        offered = _offered(episode, task)
        return Answer(
            task_id=task.task_id,
            category=task.category,
            condition=condition,
            score=self._score(task, episode),
            gold_offered=all(call.name in offered for call in task.gold),
            offered=len(offered),
            refinements=0 if trace is None else trace.iterations,
            converged=None if trace is None else trace.converged,
            usage=episode.usage,
            seconds=episode.seconds,
            stop_reason=episode.stop_reason,
            episode_id=episode.episode_id,
            error=error,
        )

    def _verdict(self, episode: Episode) -> Verdict | None:
        if episode.stop_reason == "cancelled":
            return None  # nobody knows what the model would have said
        task = self._tasks[episode.metadata["task"]]
        return self._score(task, episode).to_verdict()

    def _score(self, task: Task, episode: Episode) -> Score:
        if episode.metadata["condition"] == "given":
            return score_calls(episode.calls, *self._as_given(task))
        needed = {call.name for call in episode.calls} | {call.name for call in task.gold}
        definitions = [self._library[name].definition for name in needed if name in self._library]
        return score_calls(episode.calls, task, definitions)

    def _as_given(self, task: Task) -> tuple[Task, list[ToolDefinition]]:
        """The task and its tools under the benchmark's own names."""
        definitions = {name: _as_upstream(self._library[name].definition) for name in task.offered}
        if not task.gold:
            return task, list(definitions.values())
        gold = tuple(replace(call, name=definitions[call.name].name) for call in task.gold)
        return replace(task, expects=(AllowedCalls(calls=gold),)), list(definitions.values())


def _as_upstream(definition: ToolDefinition) -> ToolDefinition:
    return replace(definition, name=upstream_name(definition))


def _offered(episode: Episode, task: Task) -> tuple[str, ...]:
    """Names, in the catalogue, of the tools that the model was offered."""
    if episode.metadata["condition"] == "given" or not episode.turns:
        return task.offered
    trace = episode.turns[0].retrieval
    return () if trace is None else trace.offered
