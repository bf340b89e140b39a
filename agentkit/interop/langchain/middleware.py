# mypy: disallow-subclassing-any=False
"""``library_middleware`` and ``library_agent``: our tools in an agent of LangChain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NotRequired

from agentkit.agent.session import new_episode_id
from agentkit.interop.langchain.endings import chains
from agentkit.interop.langchain.framework import require, waited
from agentkit.interop.langchain.runs import RUN_KEY, Runs, answered
from agentkit.interop.toolset import Toolset
from agentkit.library.library import Library


def library_agent(toolset: Toolset | Library | str, model: Any, **options: Any) -> Any:
    """An agent of ``langchain.agents.create_agent`` that has our tools and records each run.

    It is ``create_agent`` with ``library_middleware`` before the other middleware.

    Args:
        toolset: The tools with their policies; or a library, or the URL of a store, for defaults.
        model: A chat model, or its name.
        **options: The others of ``create_agent``.

    Returns:
        The compiled graph.

    Raises:
        MissingExtraError: langchain or langgraph is not installed.
    """
    require()
    from langchain.agents import create_agent

    middleware = [library_middleware(toolset), *options.pop("middleware", ())]
    return create_agent(model, middleware=middleware, **options)


def library_middleware(toolset: Toolset | Library | str) -> Any:
    """A middleware for ``create_agent`` that offers, runs and records our tools.

    The tools of each step are those that retrieval chose for the request, and those that the model
    searched for since; the agent's own tools stay beside them. A call that needs approval
    interrupts the graph with a request in the form of LangChain's own (``tool_approval``) and is
    answered with ``{"type": "approve"}`` or ``{"type": "reject", "message": ...}``, unless
    ``Toolset(approve=...)`` asks. Interrupts need a checkpointer, as ever.

    Args:
        toolset: As for ``library_agent``.

    Raises:
        MissingExtraError: langchain or langgraph is not installed.
    """
    require()
    chains()  # from now on LangChain tells of graphs that begin
    return _middleware_class()(Runs(toolset))


def _middleware_class() -> Any:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import PrivateStateAttr
    from typing_extensions import TypedDict

    run_id = NotRequired[Annotated[str, PrivateStateAttr]]

    class LibraryMiddleware(AgentMiddleware):  # type: ignore[type-arg, unused-ignore]
        """Offers, runs and records the tools of a library."""

        state_schema = TypedDict("LibraryState", {RUN_KEY: run_id})  # type: ignore[misc, unused-ignore]

        def __init__(self, runs: Runs) -> None:
            super().__init__()
            self._runs = runs
            self.tools: list[Any] = []  # ours change from step to step

        def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {RUN_KEY: new_episode_id()}

        async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
            return {RUN_KEY: new_episode_id()}  # without it LangChain takes a thread for the other

        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run, asked = waited(self._runs.asking(request))
            response = handler(asked)
            answered(run, response)
            return response

        async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            run, asked = await self._runs.asking(request)
            response = await handler(asked)
            answered(run, response)
            return response

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            answer = waited(self._runs.called(request))
            return handler(request) if answer is None else answer

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            answer = await self._runs.called(request)
            return await handler(request) if answer is None else answer

        def after_agent(self, state: Any, runtime: Any) -> None:
            waited(self._runs.finish(state))

        async def aafter_agent(self, state: Any, runtime: Any) -> None:
            await self._runs.finish(state)

    return LibraryMiddleware
