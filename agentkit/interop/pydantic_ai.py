# mypy: disallow-subclassing-any=False
"""pydantic-ai: our tools as a capability.

Written against pydantic-ai 2.68. The framework's classes exist once it is imported, which happens
when ``library_capability`` is called; hence ours are made there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agentkit.episodes import StopReason
from agentkit.interop.toolset import Toolset, ToolsetRun, framework_module, stop_reason
from agentkit.library.library import Library
from agentkit.messages import (
    AssistantMessage,
    Message,
    ResultStatus,
    ToolMessage,
    Usage,
    UserMessage,
)
from agentkit.models.wire import WireNames, decode_call
from agentkit.tools.schema import copied

_OUTCOMES: dict[str, ResultStatus] = {"success": "ok", "denied": "denied"}
"""Outcomes of calls that the framework ran; anything else is a failure."""


class Run:
    """One run: ours, and how many of the framework's messages it has seen."""

    def __init__(self, ours: ToolsetRun, messages: list[Any], known: int) -> None:
        self.ours = ours
        self.outputs: set[str] = set()
        self._messages = messages
        self._known = known

    @classmethod
    async def started(cls, toolset: Toolset, ctx: Any) -> Run:
        """Begin a run where the framework is; one without a prompt goes on with calls that wait."""
        request = text_of(ctx.prompt)
        before = [message for message in ctx.messages if message.run_id != ctx.run_id]
        ours = await toolset.start(
            request,
            history=tuple(said(before, toolset.names)),
            session_id=ctx.conversation_id if toolset.store is not None else None,
            model=ctx.model.model_name,
        )
        responses = [at for at, message in enumerate(before) if message.kind == "response"]
        goes_on = bool(responses) and not request
        if goes_on:  # with the answer whose calls waited, and the results that it has had so far
            ours.answered(_answer(before[responses[-1]], ours.names), seconds=0.0)
        run = cls(ours, ctx.messages, responses[-1] + 1 if goes_on else len(before))
        run.catch_up(before)
        return run

    def catch_up(self, messages: list[Any] | None = None) -> None:
        """Record the answers and foreign results since the last time."""
        self._messages = self._messages if messages is None else messages
        for message in self._messages[self._known :]:
            if message.kind == "response":
                answer = _answer(message, self.ours.names, self.outputs)
                self.ours.answered(answer, usage=usage_of(message.usage))
                continue
            for part in message.parts:
                if part.part_kind == "tool-return":
                    status = _OUTCOMES.get(part.outcome, "failed")
                    self.ours.observed(part.tool_call_id, part.content, status=status)
        self._known = len(self._messages)

    async def call(self, signals: Any, name: str, arguments: dict[str, Any], ctx: Any) -> Any:
        """Run a call; a failure and a call that waits are raised as the framework's signals."""
        call = self.ours.as_call(ctx.tool_call_id or "", name, arguments)
        result = await self.ours.call(call, approval=True if ctx.tool_call_approved else None)
        if result.status == "ok":
            return result.text
        if result.status != "deferred":
            raise signals.ToolFailed(result.text)
        tool = self.ours.tool(call.name)
        needs_approval = tool is not None and tool.needs_approval and not ctx.tool_call_approved
        raise signals.ApprovalRequired if needs_approval else signals.CallDeferred

    async def finished(self, result: Any) -> None:
        """The framework has a result."""
        self.catch_up(result.all_messages())
        waits = type(result.output).__name__ == "DeferredToolRequests"
        reason: StopReason = "deferred" if waits else "finished"
        await self.ours.finish(None if waits else result.output, stop_reason=reason)

    def broken(self, error: BaseException) -> None:
        """The run ended by an error, or was cancelled."""
        self.catch_up()
        limit: StopReason = "token_limit" if "token" in str(error) else "step_limit"
        reason = stop_reason(error, {"UsageLimitExceeded": limit})
        self.ours.finish_now(stop_reason=reason, error=error)


def _answer(message: Any, names: WireNames, outputs: Sequence[str] | set[str] = ()) -> Any:
    """An answer; calls by which the framework takes a structured answer are its text."""
    texts = [part.content for part in message.parts if part.part_kind == "text"]
    calls = [part for part in message.parts if part.part_kind == "tool-call"]
    texts += [part.args_as_json_str() for part in calls if part.tool_name in outputs]
    made = (
        decode_call(part.tool_call_id, part.tool_name, part.args or {}, names)
        for part in calls
        if part.tool_name not in outputs
    )
    return AssistantMessage(text="".join(texts), tool_calls=tuple(made))


def usage_of(usage: Any) -> Usage:
    """The usage of an answer."""
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
    """A conversation; the application's own instructions are not part of it."""
    for message in messages:
        if message.kind == "response":
            yield _answer(message, names)
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
    """Replaces the framework's validation: our validator words the problems of arguments."""

    def validate_json(self, data: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        text = data if isinstance(data, str) else bytes(data).decode(errors="replace")
        return dict(decode_call("", "", text, _NO_NAMES).arguments)

    def validate_python(self, data: Any, **_: Any) -> Any:
        return data if isinstance(data, dict) else {}


_ANY_ARGUMENTS = _AnyArguments()


def _toolset(framework: Any, run: Run) -> Any:
    """The tools of one run as a toolset of the framework's: what retrieval chose in each step."""
    abstract = framework.toolsets.abstract

    class LibraryToolset(abstract.AbstractToolset):  # type: ignore[name-defined]
        @property
        def id(self) -> None:
            return None

        async def get_tools(self, ctx: Any) -> dict[str, Any]:
            run.catch_up(ctx.messages)
            tools = {}
            for definition in run.ours.offered:
                name = run.ours.names.encode(definition.name)
                tools[name] = abstract.ToolsetTool(
                    toolset=self,
                    tool_def=framework.tools.ToolDefinition(
                        name=name,
                        description=definition.text,
                        parameters_json_schema=copied(definition.parameters_schema),
                    ),
                    max_retries=1,
                    args_validator=_ANY_ARGUMENTS,
                )
            return tools

        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            run.catch_up(ctx.messages)
            return await run.call(framework.exceptions, name, tool_args, ctx)

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
    framework = framework_module(
        "pydantic_ai",
        "pydantic_ai.capabilities",
        "pydantic_ai.toolsets.abstract",
        feature="the adapter for pydantic-ai",
        install='pip install "pydantic-ai-slim[openai]"',
    )
    ours = Toolset.of(toolset)

    class LibraryCapability(framework.capabilities.AbstractCapability):  # type: ignore[name-defined]
        """Our tools with the record of each run."""

        def __init__(self, run: Run | None = None) -> None:
            self._run = run

        async def for_run(self, ctx: Any) -> LibraryCapability:
            return LibraryCapability(await Run.started(ours, ctx))

        def get_toolset(self) -> Any:
            return None if self._run is None else _toolset(framework, self._run)

        async def prepare_output_tools(self, ctx: Any, tool_defs: list[Any]) -> list[Any]:
            if self._run is not None:
                self._run.outputs.update(tool.name for tool in tool_defs)
            return tool_defs

        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            assert self._run is not None  # the framework runs what ``for_run`` returned
            try:
                result = await handler()
            except BaseException as error:
                self._run.broken(error)
                raise
            await self._run.finished(result)
            return result

    return LibraryCapability()
