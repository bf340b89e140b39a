"""Calling one child, primitive or composite, that answers at once.

A child's arguments are JSON data that the program holds; its result becomes such data. A child that
touches the world (it declares to read, write, destroy, or talk to other systems) is protected from
arguments that break its schema; one that declares nothing of the kind runs in this process on
values, fails by itself on wrong ones, and is called without a check. Runs that check contracts
check everything. Learned rules of a child are checked in every run, as they are when a model calls
it (``call_before`` is not: a program knows nothing of the conversation, see ``tools.rules``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from time import monotonic, time_ns
from types import CoroutineType
from typing import Any, NoReturn, Protocol

from agentkit.composites import ir
from agentkit.composites.contracts import Conditions
from agentkit.composites.interpreter.failures import (
    FAILURES,
    fail_on,
    repeated_signal,
    run_error,
)
from agentkit.composites.interpreter.frames import (
    ACTIVATION,
    METER,
    ORDER,
    Activation,
    Evaluate,
    Frame,
)
from agentkit.composites.interpreter.guard import Guard
from agentkit.composites.interpreter.meter import Meter
from agentkit.composites.interpreter.trace import TracedCall
from agentkit.composites.interpreter.weights import SCALARS
from agentkit.composites.rule_checker import RuleChecker
from agentkit.errors import ContractViolation, DefinitionError, ToolSignal
from agentkit.messages import JsonObject
from agentkit.tools.definition import Effects
from agentkit.tools.invocation import UnserialisableError, described, encode_result
from agentkit.tools.tool import Tool
from agentkit.tools.validation import ArgumentValidator

Place = tuple[int, ...]
Gather = Callable[[Frame], dict[str, Any]]
Invoke = Callable[[Frame, JsonObject, Place], Any]


class Nested(Protocol):
    """A composite, as the composite sees it that calls it."""

    needs_event_loop: bool

    def enter(
        self, arguments: Mapping[str, Any], meter: Meter, caller: Activation, place: Place
    ) -> Any:
        """Run inside another run."""

    async def enter_async(
        self, arguments: Mapping[str, Any], meter: Meter, caller: Activation, place: Place
    ) -> Any:
        """The same, waiting for children."""


def touches_world(effects: Effects) -> bool:
    """Whether a tool declares that it does more than compute."""
    return bool(effects.reads or effects.writes or effects.destructive or effects.open_world)


class Child:
    """A tool that a composite calls.

    Attributes:
        tool: The tool.
        composite: Its function, when that is a composite that shares the run.
        needs_event_loop: Whether it can only be called by waiting for it.
        is_read_only: Whether it is known to change nothing.
        function: What is called with the arguments as keywords.
        always_validated: Whether its arguments are checked against its schema in every run.
    """

    def __init__(self, tool: Tool, composite: Nested | None) -> None:
        effects = tool.definition.signature.effects
        self.tool = tool
        self.composite = composite
        self.needs_event_loop = (
            tool.is_async
            or tool.timeout_seconds is not None
            or (composite is None and bool(effects.reads or effects.open_world))
            or (composite is not None and composite.needs_event_loop)
        )
        self.is_read_only = effects.is_read_only
        self.always_validated = composite is None and touches_world(effects)
        self.function: Callable[..., Any] = tool.function or tool  # which says that it has none
        self._validator = ArgumentValidator(tool.definition)
        self._conditions = Conditions(tool.definition)
        has_rules = bool(tool.definition.specification.rules)
        self._rules = RuleChecker(tool.definition) if has_rules else None

    @property
    def has_rules(self) -> bool:
        """Whether something was learned about how it is called."""
        return self._rules is not None

    def lower(self, node: ir.Call, arguments: Sequence[Evaluate]) -> Evaluate:
        """A closure that calls the child and gives its result."""
        gather = gathering([argument.name for argument in node.arguments], arguments)
        is_plain = self.composite is None and not self.always_validated and not self.has_rules
        if is_plain and not self.tool.converts:
            return self._plain_call(node, gather)
        invoke = self._invocation(node)

        def run(frame: Frame) -> Any:
            given = gather(frame)
            begin_call(frame, node, given)
            if frame[ACTIVATION].watched:
                return self._watched(frame, node, given, invoke)
            return invoke(frame, given, ())

        return run

    def _plain_call(self, node: ir.Call, gather: Gather) -> Evaluate:
        """The usual case, spelled out: a function of values, in this process."""
        function, invoke = self.function, self._invocation(node)

        def run(frame: Frame) -> Any:
            given = gather(frame)
            meter = frame[METER]
            meter.calls -= 1
            if meter.calls < 0 or monotonic() > meter.ends_at:
                refuse_call(frame, node)
            for value in given.values():
                if type(value) not in SCALARS:
                    hand_over(frame, node, value)
            if frame[ACTIVATION].watched:
                return self._watched(frame, node, given, invoke)
            try:
                result = function(**given)
            except (Exception, SystemExit) as error:
                raise child_error(frame, node, error) from error
            return result if type(result) in SCALARS else adopted(frame, node, result)

        return run

    def _invocation(self, node: ir.Call) -> Invoke:
        function, composite, convert = self.function, self.composite, self.tool.convert
        has_rules = self.has_rules

        def enter(frame: Frame, arguments: JsonObject, place: Place) -> Any:
            assert composite is not None
            if has_rules:
                self.check_rules(frame, node, arguments)
            return composite.enter(arguments, frame[METER], frame[ACTIVATION], place)

        def call(frame: Frame, arguments: JsonObject, _place: Place) -> Any:
            if self.always_validated:
                self.validate(frame, node, arguments)
            if has_rules:
                self.check_rules(frame, node, arguments)
            arguments = converted(frame, node, convert, arguments)
            try:
                result = function(**arguments)
            except (Exception, SystemExit) as error:
                raise child_error(frame, node, error) from error
            return result if type(result) in SCALARS else adopted(frame, node, result)

        return call if composite is None else enter

    def validate(self, frame: Frame, node: ir.Call, arguments: JsonObject) -> None:
        """Refuse arguments that break the child's schema."""
        path = child_path(frame, node)
        try:
            problems = self._validator.check(arguments)
        except DefinitionError as error:
            raise run_error(path, node, "invalid_arguments", str(error)) from error
        if problems:
            raise run_error(path, node, "invalid_arguments", problems[0].rule)

    def check_rules(self, frame: Frame, node: ir.Call, arguments: JsonObject) -> None:
        """Refuse arguments that break a learned rule, in the words that a model would read."""
        failure = None if self._rules is None else self._rules.refusal(arguments)
        if failure is not None:
            path = child_path(frame, node)
            raise ContractViolation(
                f"{' → '.join(path)}: {failure.rule}",
                code="precondition",
                tool_name=self.tool.name,
                condition=failure.rule,
                values=dict(arguments),
                path=path,
            )

    def _watched(self, frame: Frame, node: ir.Call, arguments: JsonObject, invoke: Invoke) -> Any:
        watch = Watch(self, frame, node, arguments)
        try:
            watch.before()
            result = invoke(frame, arguments, watch.place)
            watch.after(result)
        except Exception as error:
            watch.tell(error=error)
            raise
        watch.tell(result=result)
        return result

    def check_before(self, frame: Frame, node: ir.Call, arguments: JsonObject) -> None:
        """Refuse arguments that break the schema or a precondition."""
        self.validate(frame, node, arguments)
        violation = self._conditions.before(arguments, path=child_path(frame, node))
        if violation is not None:
            raise violation

    def check_after(self, frame: Frame, node: ir.Call, arguments: JsonObject, result: Any) -> None:
        """Refuse a result that breaks a postcondition."""
        violation = self._conditions.after(arguments, result, path=child_path(frame, node))
        if violation is not None:
            raise violation


def gathering(names: Sequence[str], arguments: Sequence[Evaluate]) -> Gather:
    """A closure that evaluates the arguments of a call in order, by name."""
    if len(names) == 1:
        (name,), (value,) = names, arguments
        return lambda frame: {name: value(frame)}
    if len(names) == 2:
        (name, other_name), (value, other) = names, arguments
        return lambda frame: {name: value(frame), other_name: other(frame)}
    named = tuple(zip(names, arguments, strict=True))
    return lambda frame: {name: argument(frame) for name, argument in named}


class Watch:
    """One call that is checked, traced, or both.

    Attributes:
        place: Where the call stands in program order.
    """

    def __init__(self, child: Child, frame: Frame, node: ir.Call, arguments: JsonObject) -> None:
        self._child = child
        self._frame = frame
        self._node = node
        self._arguments = arguments
        self._activation: Activation = frame[ACTIVATION]
        self.place: Place = frame[ORDER].take()
        self._began_ns = time_ns()

    def before(self) -> None:
        """Check what the call is given."""
        if self._activation.checking:
            self._child.check_before(self._frame, self._node, self._arguments)

    def after(self, result: Any) -> None:
        """Check what it returned."""
        if self._activation.checking:
            self._child.check_after(self._frame, self._node, self._arguments, result)

    def tell(self, *, result: Any = None, error: BaseException | None = None) -> None:
        """Tell the caller of the run."""
        if self._activation.trace is not None:
            self._activation.trace(
                TracedCall(
                    path=child_path(self._frame, self._node),
                    arguments=self._arguments,
                    result=result,
                    error=error,
                    sequence=self.place,
                    began_ns=self._began_ns,
                    ended_ns=time_ns(),
                )
            )


def child_path(frame: Frame, node: ir.Call) -> tuple[str, ...]:
    """Names of the tools down to the child that a call is about."""
    return (*frame[ACTIVATION].path, node.child)


def begin_call(frame: Frame, node: ir.Call, arguments: JsonObject) -> None:
    """Count a call, look at the clock, and pay for arguments that have contents."""
    meter = frame[METER]
    meter.calls -= 1
    if meter.calls < 0 or monotonic() > meter.ends_at:
        refuse_call(frame, node)
    for value in arguments.values():
        if type(value) not in SCALARS:
            hand_over(frame, node, value)


def refuse_call(frame: Frame, node: ir.Call) -> NoReturn:
    """Say why there can be no further call: there were too many, or it is too late."""
    meter = frame[METER]
    error = meter.too_many_calls() if meter.calls < 0 else meter.too_late()
    fail_on(child_path(frame, node), node, error)


def hand_over(frame: Frame, node: ir.Call, value: Any) -> None:
    """Pay for an argument that has contents."""
    try:
        frame[METER].cross(value)
    except FAILURES as error:
        fail_on(child_path(frame, node), node, error)


def converted(
    frame: Frame, node: ir.Call, convert: Callable[[JsonObject], JsonObject], arguments: JsonObject
) -> JsonObject:
    """The arguments as the Python values that the child's function expects."""
    try:
        return convert(arguments)
    except Exception as error:
        path = child_path(frame, node)
        raise run_error(path, node, "invalid_arguments", described(error)) from error


def child_error(frame: Frame, node: ir.Call, error: BaseException) -> BaseException:
    """What a run raises for what a child raised."""
    path = child_path(frame, node)
    if isinstance(error, ToolSignal):
        return repeated_signal(path, error)
    return run_error(path, node, "child_failed", described(error))


def adopted(frame: Frame, node: ir.Call, result: Any) -> Any:
    """A child's result as JSON data, paid for at an eighth of its weight."""
    meter = frame[METER]
    try:
        try:
            meter.cross(result)
        except Guard as error:
            if error.code != "opaque_value":
                raise
            result = _made_plain(result)
            meter.cross(result)
    except UnserialisableError as error:
        path = child_path(frame, node)
        raise run_error(path, node, "unserialisable_result", str(error)) from error
    except FAILURES as error:
        fail_on(child_path(frame, node), node, error)
    return result


def _made_plain(result: Any) -> Any:
    try:
        return plain(result)
    except UnserialisableError:
        raise
    except Exception as error:
        message = f"It returned a {type(result).__name__} that can not be read: {described(error)}"
        raise UnserialisableError(message) from error


def plain(result: Any) -> Any:
    """Data of exactly the types of JSON, as a model would see them.

    Raises:
        UnserialisableError: JSON can not hold the result.
    """
    if isinstance(result, CoroutineType):
        result.close()
        raise UnserialisableError("It returned a coroutine, but is not declared async")
    data, text = encode_result(result)
    return json.loads(json.dumps(data) if isinstance(data, str) else text)
