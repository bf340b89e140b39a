"""``LibraryRunner``: runs agents of openai-agents with our tools."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from agentkit.interop.openai_agents.framework import require
from agentkit.interop.openai_agents.hooks import hooks_class
from agentkit.interop.openai_agents.messages import request_of
from agentkit.interop.openai_agents.objects import FunctionTools
from agentkit.interop.openai_agents.run import Run
from agentkit.interop.toolset import Toolset
from agentkit.library.library import Library


class LibraryRunner:
    """Runs the framework's agents with our tools, and records each run.

    The agent is cloned for each run; the clone has its own tools and those that retrieval chose for
    the input, and gets those that the model searches for. An agent that it hands off to keeps its
    own tools, which may be those of ``to_openai_agents``; what it does is a part of the same run.

    Args:
        toolset: The tools with their policies; or a library, or the URL of a store, for defaults.

    Raises:
        MissingExtraError: openai-agents is not installed.
    """

    def __init__(self, toolset: Toolset | Library | str) -> None:
        self._hooks = hooks_class(require())
        self.toolset = Toolset.of(toolset)
        self._tools = FunctionTools(self.toolset)

    async def run(self, agent: Any, input: Any, **options: Any) -> Any:  # noqa: A002 - its name there
        """``Runner.run`` with our tools.

        A run that is interrupted, because a call needs approval, is gone on with by handing its
        state (``result.to_state()``, with the decisions made on it) in the place of the input.

        Args:
            agent: The framework's agent.
            input: A text, a list of input items, or the state of an interrupted run.
            **options: Those of ``Runner.run``.

        Returns:
            The framework's result.
        """
        run = await self._started(agent, input, options)
        try:
            with run.current():
                result = await require().Runner.run(run.agent, input, **run.options)
        except BaseException as error:
            run.broken(error)
            raise
        await run.finish(result)
        return result

    @asynccontextmanager
    async def stream(self, agent: Any, input: Any, **options: Any) -> AsyncIterator[Any]:  # noqa: A002 - as above
        """``Runner.run_streamed`` with our tools: a context that gives the streaming result.

        The episode is made when the context is left; leaving it early cancels the run.

        Args:
            agent: The framework's agent.
            input: As for ``run``.
            **options: Those of ``Runner.run_streamed``.
        """
        run = await self._started(agent, input, options)
        try:
            with run.current():
                result = require().Runner.run_streamed(run.agent, input, **run.options)
            yield result
        except BaseException as error:
            run.broken(error)
            raise
        if not result.is_complete:
            result.cancel()
        await run.finish(result, error=result.run_loop_exception)

    async def _started(self, agent: Any, given: Any, options: Mapping[str, Any]) -> Run:
        request, history = request_of(given, self.toolset.names)
        waiting = given.get_interruptions() if hasattr(given, "get_interruptions") else []
        session = options.get("session")
        ours = await self.toolset.start(
            request,
            history=history,
            session_id=options.get("conversation_id") or getattr(session, "session_id", None),
            model=_model_name(agent),
            answers=[one.raw_item.call_id for one in waiting],
        )
        run = Run(toolset=self.toolset, ours=ours, agent=agent, tools=self._tools)
        run.options = {**options, "hooks": self._hooks(run, options.get("hooks"))}
        run.agent = agent.clone(tools=[*agent.tools])
        run.offer(run.agent)
        if waiting:
            run.go_on(waiting)
        return run


def _model_name(agent: Any) -> str:
    model = agent.model
    return model if isinstance(model, str) else str(getattr(model, "model", "") or "")
