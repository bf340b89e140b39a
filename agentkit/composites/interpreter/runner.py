"""``Composite``: a program bound to its children, ready to run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from agentkit.composites import ir
from agentkit.composites.contracts import Conditions
from agentkit.composites.faults import refusal
from agentkit.composites.interpreter.awaiting import AwaitingLowering, unshared
from agentkit.composites.interpreter.children import Child, Place
from agentkit.composites.interpreter.failures import located, run_error
from agentkit.composites.interpreter.frames import (
    ACTIVATION,
    METER,
    ORDER,
    RESULT,
    Activation,
    Evaluate,
    Frame,
)
from agentkit.composites.interpreter.lowering import ExpressionLowering, Slots
from agentkit.composites.interpreter.meter import Meter
from agentkit.composites.interpreter.scheduling import SchedulingLowering
from agentkit.composites.interpreter.statements import StatementLowering
from agentkit.composites.interpreter.trace import Order, TracedCall
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.problems import ContractMode
from agentkit.errors import SourceProblem, UsageError
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

_MISSING = object()

Trace = Callable[[TracedCall], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lowered:
    """A program as closures.

    Attributes:
        places: Where each parameter stands in the frame.
        template: A frame in which the parameters have their defaults.
        body: Runs the statements on a frame; gives an awaitable when children are waited for.
    """

    places: Mapping[str, int]
    template: Frame
    body: Callable[[Frame], Any]


class Composite:
    r"""A program bound to its children: the function of a composite tool.

    It holds no state of a run, so any number of runs may go on at once.

    Args:
        program: From ``parse`` or ``program_from_json``, which check it.
        children: The tools that it may call, by their name in the library.
        name: The composite's own name, for paths in errors and traces.
        limits: Caps on each run; a composite that another one calls shares the caller's.
        contracts: When arguments, pre- and postconditions are checked: those of the children at
            each call, and the composite's own. Children that are composites are then checked
            inside as well.
        definition: The composite's own definition, for its own conditions.

    Raises:
        CompositeError: A child that the program calls is not given, or has no function.

    Attributes:
        program: The program.
        name: The composite's name.
        limits: Caps on each run.
        contracts: When conditions are checked.
        needs_event_loop: Whether a child has to be waited for (it is async, has a timeout, or
            reads the world), so that only ``run_async`` works.

    Example:
        >>> from agentkit.composites.parser import parse
        >>> from agentkit.tools.decorator import tool
        >>> @tool
        ... def double(x: float) -> float:
        ...     '''Twice a number.'''
        ...     return 2 * x
        >>> tools = {"double": double}
        >>> parsed = parse("def four_times(x):\n    return double(double(x))", tools)
        >>> Composite(parsed.program, tools, name=parsed.name).run({"x": 3})
        12
    """

    def __init__(
        self,
        program: ir.Program,
        children: Mapping[str, Tool],
        *,
        name: str,
        limits: CompositeLimits | None = None,
        contracts: ContractMode = "off",
        definition: ToolDefinition | None = None,
    ) -> None:
        self.program = program
        self.name = name
        self.limits = limits or CompositeLimits()
        self.contracts = contracts
        self._conditions = None if definition is None else Conditions(definition)
        self._children = _bound(program, children, name)
        self.needs_event_loop = any(child.needs_event_loop for child in self._children.values())
        self._usual = Activation(
            path=(name,), checking=contracts == "always", watched=contracts == "always"
        )

    @cached_property
    def _lowered(self) -> _Lowered:
        """The program as closures, made at the first run: most composites of a library wait."""
        program = unshared(self.program) if self.needs_event_loop else self.program
        slots = Slots(parameter.name for parameter in program.parameters)
        places = {parameter.name: slots.of(parameter.name) for parameter in program.parameters}
        body: Callable[[Frame], Any]
        if self.needs_event_loop:
            waiting = AwaitingLowering(slots, self._children)
            body = SchedulingLowering(waiting).program(program.body)
        else:
            at_once = ExpressionLowering(slots, self._lower_call)
            body = StatementLowering(at_once).block(program.body)
        template: Frame = [_MISSING] * slots.size
        template[ORDER] = None
        for parameter in program.parameters:
            if parameter.default is not None:
                template[places[parameter.name]] = parameter.default.value
        return _Lowered(places=places, template=template, body=body)

    def _lower_call(self, node: ir.Call, arguments: Sequence[Evaluate]) -> Evaluate:
        return self._children[node.child].lower(node, arguments)

    def __call__(self, *values: Any, **arguments: Any) -> Any:
        """Run as a function is called: with arguments by position, or as keywords."""
        if values:
            arguments = self._named(values, arguments)
        return self.run_async(arguments) if self.needs_event_loop else self.run(arguments)

    def traced(self, trace: Trace) -> Callable[..., Any]:
        """The function that it is, telling ``trace`` of each call of a child."""

        def call(**arguments: Any) -> Any:
            run = self.run_async if self.needs_event_loop else self.run
            return run(arguments, trace=trace)

        return call

    def _named(self, values: Sequence[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        names = [parameter.name for parameter in self.program.parameters]
        if len(values) > len(names):
            what = f"it takes {len(names)} arguments by position, got {len(values)}"
            self._refuse_arguments(self._usual, what)
        named = dict(zip(names, values, strict=False))
        for name in arguments:
            if name in named:
                self._refuse_arguments(self._usual, f"{name!r} is given by position and by name")
        return {**named, **arguments}

    def run(
        self, arguments: Mapping[str, Any], *, dry_run: bool = False, trace: Trace | None = None
    ) -> Any:
        """Run to the result.

        Args:
            arguments: By parameter name; JSON data.
            dry_run: Whether this is a validation run, in which contracts are checked unless they
                are ``off``.
            trace: Told of each call of a child, at any depth, when it is over.

        Raises:
            CompositeRunError: It could not be run to its end; ``code`` says why and ``path`` where.
            ContractViolation: A pre- or postcondition does not hold.
            ModelRetry: A child asks for other arguments; the message says which.
            ToolFailed: A child failed for good.
            UsageError: A child has to be waited for; use ``run_async``.
        """
        if self.needs_event_loop:
            self._refuse_to_block()
        activation = self._activation(dry_run=dry_run, trace=trace)
        return self._run(
            arguments, Meter(self.limits), activation, (), checks_itself=activation.checking
        )

    async def run_async(
        self, arguments: Mapping[str, Any], *, dry_run: bool = False, trace: Trace | None = None
    ) -> Any:
        """Run to the result, waiting for children; independent ones that change nothing overlap.

        How calls are ordered is told in ``scheduling``. A composite that waits for nothing is run
        at once. Arguments and errors are those of ``run``.
        """
        if not self.needs_event_loop:
            return self.run(arguments, dry_run=dry_run, trace=trace)
        activation = self._activation(dry_run=dry_run, trace=trace)
        meter = Meter(self.limits)
        meter.prepare_to_wait(asyncio.Semaphore(self.limits.concurrency))
        timeout = asyncio.timeout(self.limits.deadline_seconds)
        try:
            async with timeout:
                return await self._run_async(
                    arguments, meter, activation, (), checks_itself=activation.checking
                )
        except TimeoutError as error:
            if not timeout.expired():
                raise
            where, call = meter.interrupted[0] if meter.interrupted else (activation.path, None)
            raise located(where, call, meter.too_late()) from error

    def enter(
        self, arguments: Mapping[str, Any], meter: Meter, caller: Activation, place: Place
    ) -> Any:
        """Run inside the run of another composite, on its meter."""
        activation = self._inner_activation(caller, meter)
        own = activation.checking and not caller.checking  # else the caller has checked
        return self._run(arguments, meter, activation, place, checks_itself=own)

    async def enter_async(
        self, arguments: Mapping[str, Any], meter: Meter, caller: Activation, place: Place
    ) -> Any:
        """The same, waiting for children."""
        if not self.needs_event_loop:
            return self.enter(arguments, meter, caller, place)
        activation = self._inner_activation(caller, meter)
        own = activation.checking and not caller.checking
        return await self._run_async(arguments, meter, activation, place, checks_itself=own)

    async def _run_async(
        self,
        arguments: Mapping[str, Any],
        meter: Meter,
        activation: Activation,
        place: Place,
        *,
        checks_itself: bool,
    ) -> Any:
        frame = self._frame(arguments, meter, activation, place)
        if checks_itself:
            self._check_before(frame, arguments)
        try:
            await self._lowered.body(frame)
        except RecursionError as error:
            self._refuse_depth(activation, error)
        if checks_itself:
            self._check_after(frame, arguments)
        return frame[RESULT]

    def _run(
        self,
        arguments: Mapping[str, Any],
        meter: Meter,
        activation: Activation,
        place: Place,
        *,
        checks_itself: bool,
    ) -> Any:
        frame = self._frame(arguments, meter, activation, place)
        if checks_itself:
            self._check_before(frame, arguments)
        try:
            self._lowered.body(frame)
        except RecursionError as error:
            self._refuse_depth(activation, error)
        if checks_itself:
            self._check_after(frame, arguments)
        return frame[RESULT]

    def _frame(
        self, arguments: Mapping[str, Any], meter: Meter, activation: Activation, place: Place
    ) -> Frame:
        lowered = self._lowered
        frame = lowered.template.copy()
        frame[METER] = meter
        frame[ACTIVATION] = activation
        if activation.watched:
            frame[ORDER] = Order(place)
        places = lowered.places
        for name, value in arguments.items():
            if name not in places:
                self._refuse_arguments(activation, f"it has no parameter {name!r}")
            frame[places[name]] = value
        if len(arguments) < len(places):
            for name, slot in places.items():
                if frame[slot] is _MISSING:
                    self._refuse_arguments(activation, f"missing required argument {name!r}")
        return frame

    def _refuse_arguments(self, activation: Activation, what: str) -> NoReturn:
        parameters = ", ".join(self._lowered.places) or "none"
        what = f"{what}; its parameters are: {parameters}"
        raise run_error(activation.path, None, "invalid_arguments", what)

    def _refuse_depth(self, activation: Activation, error: RecursionError) -> NoReturn:
        message = "composites and expressions are nested too deeply for Python's stack"
        raise run_error(activation.path, None, "nesting", message) from error

    def _refuse_to_block(self) -> NoReturn:
        waiting = [name for name, child in self._children.items() if child.needs_event_loop]
        raise UsageError(
            f"the composite {self.name!r} waits for {', '.join(map(repr, waiting))}, which is "
            "async, has a timeout or reads the world; use `await composite.run_async(...)`"
        )

    def _checks(self, *, dry_run: bool) -> bool:
        return self.contracts == "always" or (dry_run and self.contracts == "dry_run")

    def _activation(self, *, dry_run: bool, trace: Trace | None) -> Activation:
        if not dry_run and trace is None:
            return self._usual
        checking = self._checks(dry_run=dry_run)
        return Activation(
            path=self._usual.path,
            dry_run=dry_run,
            checking=checking,
            trace=trace,
            watched=checking or trace is not None,
        )

    def _inner_activation(self, caller: Activation, meter: Meter) -> Activation:
        path = (*caller.path, self.name)
        if len(path) > meter.limits.nesting:
            what = f"composites in composites, more than {meter.limits.nesting} levels deep"
            raise run_error(path, None, "nesting", what)
        checking = caller.checking or self._checks(dry_run=caller.dry_run)
        return Activation(
            path=path,
            dry_run=caller.dry_run,
            checking=checking,
            trace=caller.trace,
            watched=checking or caller.trace is not None,
        )

    def _check_before(self, frame: Frame, arguments: Mapping[str, Any]) -> None:
        if self._conditions is not None:
            violation = self._conditions.before(arguments, path=frame[ACTIVATION].path)
            if violation is not None:
                raise violation

    def _check_after(self, frame: Frame, arguments: Mapping[str, Any]) -> None:
        if self._conditions is not None:
            path = frame[ACTIVATION].path
            violation = self._conditions.after(arguments, frame[RESULT], path=path)
            if violation is not None:
                raise violation


def _bound(program: ir.Program, children: Mapping[str, Tool], name: str) -> dict[str, Child]:
    called = tuple(dict.fromkeys(call.child for call in ir.calls(program)))
    problems = tuple(_unusable_children(called, children))
    if problems:
        raise refusal(name, problems)
    return {child: _child(children[child]) for child in called}


def _child(tool: Tool) -> Child:
    function = tool.function
    return Child(tool, function if isinstance(function, Composite) else None)


def _unusable_children(
    called: Sequence[str], children: Mapping[str, Tool]
) -> Iterator[SourceProblem]:
    for name in called:
        if name not in children:
            yield SourceProblem(
                code="missing_child",
                message=f"the program calls {name!r}, which is not among its children",
                advice="Give the tool by its name in the library.",
            )
        elif not children[name].is_bound:
            yield SourceProblem(
                code="unbound_child",
                message=f"the child {name!r} has no function in this process",
                advice="Bind it, or give a recorded stub in its place.",
            )
