"""``Observer``: is told of runs once they have been answered."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from agentkit.agent.refine import RefineSettings
from agentkit.agent.result import RunResult
from agentkit.library.library import Library
from agentkit.models.base import ChatModel, ModelRequest

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class FinishedRun:
    """A run that gave a result, with what it takes to ask the same once more.

    Attributes:
        result: What the caller gets.
        library: The snapshot that the run was pinned to.
        model: The model that answered.
        request: What the model was asked first, but for the results of calls; None for a run that
            was resumed in the middle.
        refinement: How calls were refined.
        ends_loop: Whether the event loop ends with this run, as it does for ``run_sync``: what an
            observer starts on it would be cancelled right away.
    """

    result: RunResult
    library: Library
    model: ChatModel
    request: ModelRequest | None
    refinement: RefineSettings
    ends_loop: bool = False


class Observer(Protocol):
    """Is told of every run that gave a result. ``agentkit.evolution.serving`` holds some."""

    def observe(self, run: FinishedRun) -> None:
        """Take notice, on the event loop of the run and before its caller goes on.

        So nothing may be waited for here: put the run on a queue and return. An exception is
        logged and counted (``Agent.observer_errors``), and the run goes on as if nothing was.
        """
        ...


class Observers:
    """Tells several observers, and keeps their errors from the run.

    Args:
        observers: In the order in which they are told.

    Attributes:
        errors: How often an observer raised.
    """

    def __init__(self, observers: Iterable[Observer]) -> None:
        self._observers = tuple(observers)
        self.errors = 0

    def __bool__(self) -> bool:
        return bool(self._observers)

    def tell(self, run: FinishedRun) -> None:
        """Tell each observer."""
        for observer in self._observers:
            try:
                observer.observe(run)
            except Exception as error:
                self.errors += 1
                logger.exception(
                    "the observer %s failed (%s) on episode %s, which was answered all the same",
                    type(observer).__name__,
                    type(error).__name__,
                    run.result.episode.episode_id,
                )
