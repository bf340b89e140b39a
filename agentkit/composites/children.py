"""Calling one child, primitive or composite.

A child's arguments are JSON data that the program holds; its result becomes such data. A child that
touches the world (it declares to read, write, destroy, or talk to other systems) is protected from
arguments that break its schema; one that declares nothing of the kind runs in this process on
values, raises on wrong ones itself, and is called without a check. Runs that check contracts
check everything. Learned rules of a child are checked in every run, as they are when a model calls
it (``call_before`` is not: a program knows nothing of the conversation, see ``tools.rules``).
"""

from __future__ import annotations

import ast
import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from types import CoroutineType
from typing import Any, TypeAlias

from agentkit.composites.contracts import Conditions, RuleChecker
from agentkit.composites.guards import (
    ACTIVATION,
    FAILURES,
    METER,
    SCALARS,
    Evaluate,
    Frame,
    GuardError,
    fail_on,
    repeated_signal,
    run_error,
)
from agentkit.composites.language import arguments_of, child_of
from agentkit.composites.waiting import run_waiting, waited
from agentkit.errors import ContractViolation, DefinitionError, ToolSignal
from agentkit.messages import JsonObject
from agentkit.tools.invocation import (
    TOOL_ERRORS,
    UnserialisableError,
    described,
    encode_shown,
    is_tool_error,
    note_media,
    run_in_daemon_thread,
)
from agentkit.tools.tool import Tool
from agentkit.tools.validation import ArgumentValidator

Begin: TypeAlias = Callable[[Frame], Coroutine[Any, Any, Any]]


class Child:
    """A tool that a composite calls.

    Attributes:
        needs_event_loop: Whether it can only be called by waiting for it.
        overlaps: Whether calls of it may run beside others: it is waited for, and is known to
            change nothing.
    """

    def __init__(self, tool: Tool, composite: Any = None) -> None:
        """Take a tool; ``composite`` is its function when that is one."""
        effects = tool.definition.signature.effects
        touches_world = effects.reads or effects.writes or effects.destructive or effects.open_world
        self._tool = tool
        self._composite = composite
        self._function: Callable[..., Any] = tool.function or tool  # which says that it has none
        self.needs_event_loop = (
            tool.is_async
            or tool.timeout_seconds is not None
            or (composite is None and bool(effects.reads or effects.open_world))
            or (composite is not None and composite.needs_event_loop)
        )
        self.overlaps = self.needs_event_loop and effects.is_read_only
        self._is_validated = composite is None and bool(touches_world)
        self._validator = ArgumentValidator(tool.definition)
        self._conditions = Conditions(tool.definition)
        has_rules = bool(tool.definition.specification.rules)
        self._rules = RuleChecker(tool.definition) if has_rules else None

    # --- a call that answers at once --------------------------------------------------------------

    def lower(self, node: ast.Call, arguments: Sequence[Evaluate]) -> Evaluate:
        """A closure that calls the child and gives its result."""
        if self.needs_event_loop and (self._composite is None or self._tool.timeout_seconds):
            begin = self.beginning(node, arguments)
            return lambda frame: waited(begin(frame))
        gather, function = _gathering(node, arguments), self._function
        is_plain = self._composite is None and not self._is_validated and self._rules is None
        is_plain = is_plain and not self._tool.converts

        def run(frame: Frame) -> Any:
            values = gather(frame)
            _pay(frame, node, values)
            if frame[ACTIVATION].checking:
                with self._checked(frame, node, values) as returned:
                    returned.append(self._invoke(frame, node, values))
                return returned[0]
            if not is_plain:
                return self._invoke(frame, node, values)
            try:  # the usual case, spelled out: a function of values, in this process
                result = function(**values)
            except TOOL_ERRORS as error:
                raise _raised(frame, node, error) from error
            return result if type(result) in SCALARS else _adopted(frame, node, result)

        return run

    def _invoke(self, frame: Frame, node: ast.Call, arguments: JsonObject) -> Any:
        arguments = self._prepared(frame, node, arguments)
        if self._composite is not None:
            return self._composite.enter(arguments, frame[METER], frame[ACTIVATION])
        try:
            result = self._function(**arguments)
        except TOOL_ERRORS as error:
            raise _raised(frame, node, error) from error
        return _adopted(frame, node, result)

    # --- a call that is waited for ----------------------------------------------------------------

    def beginning(self, node: ast.Call, arguments: Sequence[Evaluate]) -> Begin:
        """A closure that counts a call; the coroutine that it makes gives the result."""
        gather = _gathering(node, arguments)

        def begin(frame: Frame) -> Coroutine[Any, Any, Any]:
            values = gather(frame)
            _pay(frame, node, values)
            return self._answer(frame, node, values)

        return begin

    async def _answer(self, frame: Frame, node: ast.Call, arguments: JsonObject) -> Any:
        if not frame[ACTIVATION].checking:
            return await self._wait(frame, node, arguments)
        with self._checked(frame, node, arguments) as returned:
            returned.append(await self._wait(frame, node, arguments))
        return returned[0]

    async def _wait(self, frame: Frame, node: ast.Call, arguments: JsonObject) -> Any:
        """The child's result; a permit is held only while a function runs, never in a queue."""
        arguments = self._prepared(frame, node, arguments)
        if self._composite is not None:
            enter = partial(self._composite.enter, arguments, frame[METER], frame[ACTIVATION])
            return await self._in_time(run_waiting(enter), frame, node)
        async with frame[METER].permits:
            result = await self._in_time(self._function_answer(frame, node, arguments), frame, node)
        return result if type(result) in SCALARS else _adopted(frame, node, result)

    async def _in_time(self, work: Coroutine[Any, Any, Any], frame: Frame, node: ast.Call) -> Any:
        """The outcome of the work, unless it takes longer than the child's own timeout."""
        seconds = self._tool.timeout_seconds
        if seconds is None:
            return await work
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                return await work
        except TimeoutError as error:
            if not timeout.expired():
                raise
            frame[METER].interrupted.clear()
            what = f"it was stopped after {seconds:g} seconds"
            raise run_error(_path(frame, node), node, "child_timeout", what) from error

    async def _function_answer(self, frame: Frame, node: ast.Call, arguments: JsonObject) -> Any:
        """The function's answer; a function that blocks runs in a thread of its own."""
        try:
            if self._tool.is_async:
                return await self._tool(**arguments)
            result = await run_in_daemon_thread(lambda: self._tool(**arguments))
            return await result if isinstance(result, Awaitable) else result
        except TOOL_ERRORS as error:
            if isinstance(error, asyncio.CancelledError) and not is_tool_error(error):
                frame[METER].interrupted.append((_path(frame, node), node))
            raise _raised(frame, node, error) from error

    # --- checks -----------------------------------------------------------------------------------

    def _prepared(self, frame: Frame, node: ast.Call, arguments: JsonObject) -> JsonObject:
        """The arguments as the child expects them, or the refusal of those that do not fit."""
        if self._is_validated:
            self._validate(frame, node, arguments)
        failure = None if self._rules is None else self._rules.refusal(arguments)
        path = _path(frame, node)
        if failure is not None:  # in the words that a model would read
            raise ContractViolation(
                f"{' → '.join(path)}: {failure.rule}",
                code="precondition",
                tool_name=self._tool.name,
                condition=failure.rule,
                values=dict(arguments),
                path=path,
            )
        if self._composite is not None:
            return arguments
        try:
            return self._tool.convert(arguments)
        except Exception as error:
            raise run_error(path, node, "invalid_arguments", described(error)) from error

    def _validate(self, frame: Frame, node: ast.Call, arguments: JsonObject) -> None:
        """Refuse arguments that break the child's schema."""
        try:
            problems = self._validator.check(arguments)
            why = problems[0].rule if problems else ""
        except DefinitionError as error:
            why = str(error)
        if why:
            raise run_error(_path(frame, node), node, "invalid_arguments", why)

    @contextmanager
    def _checked(self, frame: Frame, node: ast.Call, arguments: JsonObject) -> Iterator[list[Any]]:
        """Check a call before, and after its result is put into the list."""
        path, returned = _path(frame, node), list[Any]()
        self._validate(frame, node, arguments)
        raise_violation(self._conditions.before(arguments, path=path))
        yield returned
        raise_violation(self._conditions.after(arguments, returned[0], path=path))


def _gathering(node: ast.Call, arguments: Sequence[Evaluate]) -> Callable[[Frame], dict[str, Any]]:
    """A closure that evaluates the arguments of a call in order, by name."""
    names = (name for name, _ in arguments_of(node))
    named = tuple(zip(names, arguments, strict=True))
    if len(named) == 1:
        ((name, value),) = named
        return lambda frame: {name: value(frame)}
    if len(named) == 2:
        (name, value), (other_name, other) = named
        return lambda frame: {name: value(frame), other_name: other(frame)}
    return lambda frame: {name: argument(frame) for name, argument in named}


def _path(frame: Frame, node: ast.Call) -> tuple[str, ...]:
    """Names of the tools down to the child that a call is about."""
    return (*frame[ACTIVATION].path, child_of(node))


def raise_violation(violation: ContractViolation | None) -> None:
    """Raise what a contract found, if anything."""
    if violation is not None:
        raise violation


def _pay(frame: Frame, node: ast.Call, arguments: JsonObject) -> None:
    """Pay for a call and for the arguments that have contents."""
    meter = frame[METER]
    meter.calls -= 1
    if meter.calls < 0 or monotonic() > meter.ends_at:
        error = meter.over("child_calls") if meter.calls < 0 else meter.over("deadline")
        fail_on(_path(frame, node), node, error)
    for value in arguments.values():
        if type(value) not in SCALARS:
            try:
                meter.cross(value)
            except FAILURES as error:
                fail_on(_path(frame, node), node, error)


def _raised(frame: Frame, node: ast.Call, error: BaseException) -> BaseException:
    """Convert a child's error into the run's; anything but a tool error stays as it is."""
    if not is_tool_error(error):
        raise error
    path = _path(frame, node)
    if isinstance(error, ToolSignal):
        return repeated_signal(path, error)
    return run_error(path, node, "child_failed", described(error))


def _adopted(frame: Frame, node: ast.Call, result: Any) -> Any:
    """A child's result as JSON data, paid for at an eighth of its weight."""
    meter, path = frame[METER], _path(frame, node)
    try:
        try:
            meter.cross(result)
        except GuardError as error:
            if error.code != "opaque_value":
                raise
            result = plain(result)
            meter.cross(result)
    except UnserialisableError as error:
        raise run_error(path, node, "unserialisable_result", str(error)) from error
    except FAILURES as error:
        fail_on(path, node, error)
    return result


def plain(result: Any) -> Any:
    """Data of exactly the types of JSON, as a model would see them.

    Raises:
        UnserialisableError: JSON cannot hold the result.
    """
    if isinstance(result, CoroutineType):
        result.close()
        raise UnserialisableError("It returned a coroutine, but is not declared async")
    try:
        data, text, media = encode_shown(result)
        note_media(media)
        return json.loads(json.dumps(data) if media or isinstance(data, str) else text)
    except UnserialisableError:
        raise
    except Exception as error:
        message = f"It returned a {type(result).__name__} that cannot be read: {described(error)}"
        raise UnserialisableError(message) from error
