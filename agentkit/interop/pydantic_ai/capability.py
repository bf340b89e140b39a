# mypy: disallow-subclassing-any=False
"""``library_capability`` and ``library_toolset``: our tools in an agent of pydantic-ai."""

from __future__ import annotations

from typing import Any

from agentkit.interop.pydantic_ai.framework import require
from agentkit.interop.pydantic_ai.runs import Runs
from agentkit.interop.pydantic_ai.toolset import toolset_class
from agentkit.interop.toolset import Toolset
from agentkit.library.library import Library


def library_capability(toolset: Toolset | Library | str) -> Any:
    """A capability that offers our tools and records each run: ``Agent(capabilities=[...])``.

    The tools of each step are those that retrieval chose for the request, and those that the model
    searched for since. Calls that need approval become the framework's deferred requests, so that
    ``DeferredToolRequests`` has to be among the agent's output types, unless
    ``Toolset(approve=...)`` asks.

    Args:
        toolset: The tools with their policies; or a library, or the URL of a store, for defaults.

    Raises:
        MissingExtraError: pydantic-ai is not installed.
    """
    framework = require()
    runs = Runs(toolset)
    tools = toolset_class(framework)(runs, None, is_shared=True)

    class LibraryCapability(framework.capabilities.AbstractCapability):  # type: ignore[name-defined]
        """Our tools with the record of each run."""

        def get_toolset(self) -> Any:
            return tools

        async def prepare_output_tools(self, ctx: Any, tool_defs: list[Any]) -> list[Any]:
            (await runs.of(ctx)).outputs.update(tool.name for tool in tool_defs)
            return tool_defs

        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            try:
                await runs.of(ctx)  # from now on there is an episode, whatever fails
                result = await handler()
            except BaseException as error:
                runs.broken(ctx, error)
                raise
            await runs.finished(ctx, result)
            return result

    return LibraryCapability()


def library_toolset(toolset: Toolset | Library | str, *, name: str | None = None) -> Any:
    """Our tools as an ``AbstractToolset``, for code that composes toolsets.

    It chooses and executes, and records nothing: a toolset is not told how a run ended.
    ``library_capability`` is.

    Args:
        toolset: As for ``library_capability``.
        name: The toolset's ``id``.

    Raises:
        MissingExtraError: pydantic-ai is not installed.
    """
    return toolset_class(require())(Runs(toolset), name, is_shared=False)
