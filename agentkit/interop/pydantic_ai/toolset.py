# mypy: disallow-subclassing-any=False
"""Our tools as one of pydantic-ai's toolsets."""

from __future__ import annotations

from typing import Any

from agentkit.interop.pydantic_ai.runs import Runs
from agentkit.models.wire.names import WireNames
from agentkit.models.wire.response import decode_call

_NO_NAMES = WireNames(())


class _AnyArguments:
    """Stands where the framework validates: our validator words what is wrong with arguments."""

    def validate_json(self, data: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        text = data if isinstance(data, str) else bytes(data).decode(errors="replace")
        return dict(decode_call("", "", text, _NO_NAMES).arguments)

    def validate_python(self, data: Any, **_: Any) -> Any:
        return data if isinstance(data, dict) else {}


_ANY_ARGUMENTS = _AnyArguments()


def toolset_class(framework: Any) -> Any:
    """``LibraryToolset``, a subclass of the framework's."""
    abstract = framework.toolsets.abstract

    class LibraryToolset(abstract.AbstractToolset):  # type: ignore[name-defined]
        """Our tools: what retrieval chose in each step, run by our executor."""

        def __init__(self, runs: Runs, name: str | None, *, is_shared: bool) -> None:
            self._runs, self._name, self._is_shared = runs, name, is_shared

        @property
        def id(self) -> str | None:
            return self._name

        async def for_run(self, ctx: Any) -> LibraryToolset:
            """With a capability runs are shared with it, which ends them; else they end here."""
            if self._is_shared:
                return self
            return LibraryToolset(Runs(self._runs.toolset), self._name, is_shared=True)

        async def get_tools(self, ctx: Any) -> dict[str, Any]:
            run = await self._runs.of(ctx)
            run.catch_up(ctx.messages)
            return {
                tool.name: abstract.ToolsetTool(
                    toolset=self, tool_def=tool, max_retries=1, args_validator=_ANY_ARGUMENTS
                )
                for tool in run.definitions(framework)
            }

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            run = await self._runs.of(ctx)
            run.catch_up(ctx.messages)
            return await run.call(framework, name, tool_args, ctx)

    return LibraryToolset
