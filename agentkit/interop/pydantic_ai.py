# mypy: disallow-subclassing-any=False
"""pydantic-ai: our tools as a capability.

Written against pydantic-ai 2.68. The framework's classes exist once it is imported, which happens
when one of the functions below is called; hence ours are made there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from agentkit.episodes import StopReason
from agentkit.errors import MissingExtraError
from agentkit.interop.toolset import Toolset
from agentkit.interop.toolset_run import ToolsetRun, stop_reason
from agentkit.library.library import Library
from agentkit.messages import (
    AssistantMessage,
    Message,
    ResultStatus,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from agentkit.models.wire import WireNames, decode_call
from agentkit.tools.schema import copied


def require() -> Any:
    """The framework's package; an error that says what to install where it is not there."""
    try:
        import pydantic_ai
        import pydantic_ai.capabilities
        import pydantic_ai.toolsets.abstract
    except ImportError as error:
        raise MissingExtraError(
            "the adapter for pydantic-ai",
            package="pydantic_ai",
            install='pip install "pydantic-ai-slim[openai]"',
        ) from error
    framework: ModuleType = pydantic_ai
    return framework


_OUTCOMES: dict[str, ResultStatus] = {
    "success": "ok",
    "denied": "denied",
    "failed": "failed",
    "retried": "failed",
    "interrupted": "failed",
}


class Runs:
    """The runs that are under way, by the framework's run id."""

    def __init__(self, toolset: Toolset | Library | str) -> None:
        self.toolset = Toolset.of(toolset)
        self._runs: dict[str, asyncio.Task[Run]] = {}

    async def of(self, ctx: Any) -> Run:
        """The run of a context; started by who asks first, while others may ask beside."""
        task = self._runs.get(ctx.run_id)
        if task is None:
            task = asyncio.create_task(Run.started(self.toolset, ctx))
            self._runs[ctx.run_id] = task
        return await task

    async def finished(self, ctx: Any, result: Any) -> None:
        """The framework has a result."""
        run = await self.of(ctx)
        del self._runs[ctx.run_id]
        run.catch_up(result.all_messages())
        waits = type(result.output).__name__ == "DeferredToolRequests"
        reason: StopReason = "deferred" if waits else "finished"
        await run.ours.finish(None if waits else result.output, stop_reason=reason)

    def broken(self, ctx: Any, error: BaseException) -> None:
        """The run ended by an error, or was cancelled."""
        task = self._runs.pop(ctx.run_id, None)
        if task is None or not task.done() or task.cancelled() or task.exception():
            return  # it broke before the model was asked anything
        run = task.result()
        run.catch_up(run.messages)
        run.ours.finish_now(stop_reason=_reason_of(error), error=error)


class Run:
    """One run: ours, and how much of the framework's messages it has been told."""

    def __init__(self, ours: ToolsetRun, messages: list[Any], known: int) -> None:
        self.ours = ours
        self.messages = messages
        self.outputs: set[str] = set()
        self._known = known
        self._defined: dict[str, Any] = {}

    @classmethod
    async def started(cls, toolset: Toolset, ctx: Any) -> Run:
        """Begin a run where the framework is; one without a prompt goes on with calls that wait."""
        request = text_of(ctx.prompt)
        before = [message for message in ctx.messages if message.run_id != ctx.run_id]
        run = await toolset.start(
            request,
            history=tuple(said(before, toolset.names)),
            session_id=ctx.conversation_id if toolset.store is not None else None,
            model=ctx.model.model_name,
        )
        one = cls(run, ctx.messages, len(before))
        if not request:
            one._go_on(before)
        return one

    def _go_on(self, before: list[Any]) -> None:
        """Begin with the answer whose calls waited, and the results that it has had so far."""
        asked = [at for at, message in enumerate(before) if message.kind == "response"]
        if asked:
            self.ours.answered(self._answer(before[asked[-1]]), seconds=0.0)
            for message in before[asked[-1] + 1 :]:
                self._results(message)

    def catch_up(self, messages: list[Any]) -> None:
        """Record the answers and foreign results since the last time."""
        self.messages = messages
        for message in messages[self._known :]:
            if message.kind == "response":
                self.ours.answered(self._answer(message), usage=usage_of(message.usage))
            else:
                self._results(message)
        self._known = len(messages)

    def definitions(self, framework: Any) -> Iterator[Any]:
        """The tools of the next step, in the framework's form, made once a run."""
        for definition in self.ours.offered:
            if definition.name not in self._defined:
                self._defined[definition.name] = framework.tools.ToolDefinition(
                    name=self.ours.names.encode(definition.name),
                    description=definition.text,
                    parameters_json_schema=copied(definition.parameters_schema),
                )
            yield self._defined[definition.name]

    async def call(self, framework: Any, name: str, arguments: dict[str, Any], ctx: Any) -> Any:
        """Run a call; a failure and a call that waits are raised as the framework's signals."""
        call = self.ours.as_call(ctx.tool_call_id or "", name, arguments)
        result = await self.ours.call(call, approval=True if ctx.tool_call_approved else None)
        tool = self.ours.tool(call.name)
        signals = framework.exceptions
        if result.status == "ok":
            return result.text
        if result.status != "deferred":
            raise signals.ToolFailed(result.text)
        needs_approval = tool is not None and tool.needs_approval and not ctx.tool_call_approved
        raise signals.ApprovalRequired if needs_approval else signals.CallDeferred

    def _answer(self, message: Any) -> AssistantMessage:
        """The answer; calls by which the framework takes a structured answer are its text."""
        calls = [part for part in message.parts if part.part_kind == "tool-call"]
        texts = [part.content for part in message.parts if part.part_kind == "text"]
        texts += [part.args_as_json_str() for part in calls if part.tool_name in self.outputs]
        others = (self._call(part) for part in calls if part.tool_name not in self.outputs)
        return AssistantMessage(text="".join(texts), tool_calls=tuple(others))

    def _call(self, part: Any) -> ToolCall:
        return self.ours.as_call(part.tool_call_id, part.tool_name, part.args or {})

    def _results(self, message: Any) -> None:
        for part in message.parts:
            if part.part_kind == "tool-return":
                self.ours.observed(part.tool_call_id, part.content, status=_OUTCOMES[part.outcome])


def _reason_of(error: BaseException) -> StopReason:
    which: StopReason = "token_limit" if "token" in str(error) else "step_limit"
    return stop_reason(error, {"UsageLimitExceeded": which})


def usage_of(usage: Any) -> Usage:
    """What an answer cost."""
    return Usage(
        requests=1,
        prompt_tokens=usage.input_tokens,
        cached_tokens=usage.cache_read_tokens,
        completion_tokens=usage.output_tokens,
    )


def text_of(content: Any) -> str:
    """The words of a prompt; pictures and files have none."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(part for part in content if isinstance(part, str))


def said(messages: Sequence[Any], names: WireNames) -> Iterator[Message]:
    """A conversation; the application's own instructions are no part of it."""
    for message in messages:
        if message.kind == "response":
            calls = [part for part in message.parts if part.part_kind == "tool-call"]
            texts = [part.content for part in message.parts if part.part_kind == "text"]
            yield AssistantMessage(
                text="".join(texts),
                tool_calls=tuple(
                    decode_call(part.tool_call_id, part.tool_name, part.args or {}, names)
                    for part in calls
                ),
            )
            continue
        for part in message.parts:
            if part.part_kind == "user-prompt":
                yield UserMessage(text=text_of(part.content))
            elif part.part_kind == "tool-return":
                name = names.decode(part.tool_name)
                text = part.model_response_str()
                yield ToolMessage(call_id=part.tool_call_id, name=name, text=text)


_NO_NAMES = WireNames(())


class _AnyArguments:
    """Stands where the framework validates: our validator words what is wrong with arguments."""

    def validate_json(self, data: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        text = data if isinstance(data, str) else bytes(data).decode(errors="replace")
        return dict(decode_call("", "", text, _NO_NAMES).arguments)

    def validate_python(self, data: Any, **_: Any) -> Any:
        return data if isinstance(data, dict) else {}


_ANY_ARGUMENTS = _AnyArguments()


def _toolset(framework: Any, runs: Runs) -> Any:
    """Our tools as a toolset of the framework's."""
    abstract = framework.toolsets.abstract

    class LibraryToolset(abstract.AbstractToolset):  # type: ignore[name-defined]
        """Our tools: what retrieval chose in each step, run by our executor."""

        @property
        def id(self) -> None:
            return None

        async def get_tools(self, ctx: Any) -> dict[str, Any]:
            run = await runs.of(ctx)
            run.catch_up(ctx.messages)
            return {
                tool.name: abstract.ToolsetTool(
                    toolset=self, tool_def=tool, max_retries=1, args_validator=_ANY_ARGUMENTS
                )
                for tool in run.definitions(framework)
            }

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            run = await runs.of(ctx)
            run.catch_up(ctx.messages)
            return await run.call(framework, name, tool_args, ctx)

    return LibraryToolset()


def library_capability(toolset: Toolset | Library | str) -> Any:
    """A capability that offers our tools and records each run: ``Agent(capabilities=[...])``.

    The tools of each step are those that retrieval chose for the request, and those that the model
    searched for since. Calls that need approval become the framework's deferred requests, so that
    ``DeferredToolRequests`` has to be among the agent's output types, unless
    ``ToolPolicy(approve=...)`` asks.

    Args:
        toolset: The tools with their policies; or a library, or the URL of a store, for defaults.

    Raises:
        MissingExtraError: pydantic-ai is not installed.
    """
    framework = require()
    runs = Runs(toolset)
    tools = _toolset(framework, runs)

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
