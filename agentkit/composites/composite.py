"""``Composite``: a program bound to its children, ready to run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from typing import Any, NoReturn, TypeAlias

from agentkit.composites.children import Child, raise_violation
from agentkit.composites.contracts import Conditions
from agentkit.composites.guards import (
    ACTIVATION,
    METER,
    RESULT,
    Activation,
    Frame,
    Meter,
    run_error,
)
from agentkit.composites.interpreter import FrameLayout, Lowering
from agentkit.composites.language import (
    Program,
    calls,
    child_of,
    render,
)
from agentkit.composites.parser import read_source
from agentkit.composites.problems import (
    READING_LIMITS,
    STYLE_CODES,
    CompositeLimits,
    ContractMode,
    Fault,
    refusal,
)
from agentkit.composites.waiting import run_waiting
from agentkit.errors import CompositeError, DefinitionError, SourceProblem, UsageError
from agentkit.messages import JsonObject
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.tool import Tool, tools_by_name

# --- the stored form ------------------------------------------------------------------------------

FORMAT_VERSION = 2
"""Version of the stored form: 2 is text, 1 a tree of nodes in JSON."""

_Found: TypeAlias = tuple[Program, tuple[SourceProblem, ...]]
_NO_PROGRAM = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors raised by a tree that is not a program."""


def program_to_json(program: Program, name: str = "composite") -> dict[str, Any]:
    """A program as a definition stores it: its canonical text, with the version of the format."""
    return {"format": FORMAT_VERSION, "source": render(program, name)}


def program_from_json(
    record: JsonObject,
    *,
    tools: Mapping[str, Tool] | None = None,
    name: str = "",
    limits: CompositeLimits | None = None,
    is_new: bool = False,
) -> Program:
    r"""The inverse of ``program_to_json``, for data of any origin.

    Args:
        record: The body of a definition.
        tools: The tools that it may call, by their name in the library; with None, the rules that
            need their signatures and effects are left out.
        name: The composite's name, for messages; it may not call itself.
        limits: Caps on the program.
        is_new: Whether it comes into the library now, and may make no dead calls; a program that
            was stored before may.

    Raises:
        CompositeError: The data is not a program (``malformed_program``), was written by a newer
            agentkit, or breaks a rule of the language.

    Example:
        >>> from agentkit.composites.parser import parse
        >>> program = parse("def twice(x): return 2 * x", {}).program
        >>> program_to_json(program, "twice")["source"]
        'def twice(x):\n    return 2 * x\n'
        >>> program_from_json(program_to_json(program)) == program
        True
    """
    try:
        program, problems = _read(_text(record), name, tools, limits or CompositeLimits())
    except CompositeError as error:
        raise refusal(name, error.problems) from None
    problems = tuple(one for one in problems if is_new or one.code not in STYLE_CODES)
    if problems:
        raise refusal(name, problems)
    return program


def program_of(definition: ToolDefinition) -> Program | None:
    """The program of a composite, under ``READING_LIMITS``; None when it has none that is valid."""
    if definition.body is None:
        return None
    try:
        return program_from_json(definition.body, limits=READING_LIMITS)
    except CompositeError:
        return None


def called_in(record: JsonObject) -> frozenset[str] | None:
    """The tools that a stored program calls, also one that breaks rules of the language.

    None when it cannot be read.
    """
    try:
        program, _ = _read(_text(record), "", None, READING_LIMITS)
    except CompositeError:
        return None
    return frozenset(map(child_of, calls(program)))


def _read(
    text: str, name: str, tools: Mapping[str, Tool] | None, limits: CompositeLimits
) -> _Found:
    """A stored text, read; a library asks for the same ones again and again."""
    if tools is None:
        return _read_alone(text, name, limits)
    read = read_source(text, tools, limits=_longer(limits), stored_as=name)
    return read.program, read.problems


@lru_cache(maxsize=4_096)
def _read_alone(text: str, name: str, limits: CompositeLimits) -> _Found:
    read = read_source(text, None, limits=_longer(limits), stored_as=name)
    return read.program, read.problems


def _longer(limits: CompositeLimits) -> CompositeLimits:
    """Limits for a canonical text, which may be longer than that of its author."""
    longer = min(8 * limits.source_bytes, READING_LIMITS.source_bytes)
    return replace(limits, source_bytes=max(limits.source_bytes, longer))


def _text(record: object) -> str:
    """The text of a stored program.

    Raises:
        CompositeError: There is none.
    """
    match record:
        case {"format": 2, "source": str(text)}:
            return text
        case {"format": bool()}:
            pass
        case {"format": int(version)} if version > FORMAT_VERSION:
            what = f"the program has format {version:.9g}, this agentkit reads 1 and 2"
            raise _malformed(what, advice="Upgrade agentkit-evolve.")
        case {"format": 1, **tree}:
            try:
                return _old_text(tree)
            except RecursionError:
                raise _malformed("the program is nested too deeply", "too_large") from None
            except _NO_PROGRAM as error:
                what = f"{type(error).__name__}: {error}"
                raise _malformed(f"the tree of nodes is not a program ({what:.200})") from error
    raise _malformed("a program has `format` 2 and its text in `source`")


def _malformed(
    message: str, code: str = "malformed_program", advice: str = "Compose it from its text."
) -> CompositeError:
    return refusal("", (SourceProblem(code=code, message=message, advice=advice),))


def _old_text(tree: Any) -> str:
    """A program of the older form as text; whether it makes sense is found out from that."""
    parameters = ", ".join(
        one["name"] if one["default"] is None else f"{one['name']}={_old(one['default'])}"
        for one in tree["parameters"]
    )
    star = "*, " if parameters else ""  # behind which defaults may stand before others
    lines = _old_lines(tree["body"], "    ")
    return "\n".join([f"def composite({star}{parameters}):", *lines, ""])


def _old_lines(block: Iterable[Any], indent: str) -> Iterator[str]:
    inner = f"{indent}    "
    for node in block:
        yield indent + _old(node)
        for key in _OLD_BLOCKS.get(node["kind"], ()):
            yield from [f"{indent}else:"] if key == "otherwise" else []
            yield from _old_lines(node[key], inner)
            yield f"{inner}pass"


_OLD_BLOCKS = {"If": ("then", "otherwise"), "For": ("body",)}
_OLD: Mapping[str, str] = {
    "If": "if {test}:",
    "For": "for {targets} in {source}:",
    "Assign": "{targets} = {value}",
    "Update": "{target} {operator}= {value}",
    "Do": "{call}",
    "Return": "return {value}",
    "Break": "break",
    "Continue": "continue",
    "Name": "{name}",
    "Argument": "**{{{name!r}: {value}}}",
    "Call": "tools[{child!r}]({arguments})",
    "Method": "{receiver}.{method}({arguments})",
    "Unary": "({operator} {operand})",
    "Binary": "({left} {operator} {right})",
    "Conditional": "({then} if {test} else {otherwise})",
    "ListLiteral": "[{items}]",
    "Index": "{value}[{index}]",
    "Slice": "{value}[{start}:{stop}:{step}]",
}
"""A statement, or an expression in parentheses where these may matter, with its parts in braces."""


def _old(node: Any) -> str:
    """A node of the older form as text."""
    if isinstance(node, str):
        return node

    def all_of(key: str) -> list[str]:
        return [_old(one) for one in node[key]]

    match node:
        case {"kind": "Constant", "value": None | bool() | int() | str() as value}:
            return f"({value!r})"
        case {"kind": "Constant", "float": str(text)}:
            return f"({float(text)!r})"
        case {"kind": "Constant", "integer": str(text)}:
            return f"({text})"
        case {"kind": "Builtin", "function": str(name)}:
            return f"{name}({', '.join([*all_of('arguments'), *all_of('keywords')])})"
        case {"kind": "Compare", "operators": [*signs]}:
            first, *others = all_of("operands")
            return f"({' '.join([first, *map(' '.join, zip(signs, others, strict=True))])})"
        case {"kind": "Boolean", "operator": str(word)}:
            return f"({f' {word} '.join(all_of('operands'))})"
        case {"kind": "TupleLiteral"}:
            return f"({''.join(f'{one}, ' for one in all_of('items'))})"
        case {"kind": "DictLiteral"}:
            pairs = zip(all_of("keys"), all_of("values"), strict=True)
            return f"{{{', '.join(map(': '.join, pairs))}}}"
        case {"kind": "Format"}:
            return f"({' + '.join(f'str({one})' for one in all_of('parts'))})"
        case {"kind": "Comprehension", "makes": str(kind)}:
            key = f"{_old(node['key'])}: " if kind == "dict" else ""
            tests = "".join(f" if {one}" for one in all_of("conditions"))
            each = f"for {', '.join(node['targets'])} in {_old(node['source'])}{tests}"
            whole = f"{key}{_old(node['element'])} {each}"
            return {"list": f"[{whole}]", "dict": f"{{{whole}}}", "generator": f"({whole})"}[kind]
        case {"kind": str(kind)} if kind in _OLD:
            return _OLD[kind].format_map(_OldParts(node))
    raise ValueError(f"there is no such node: {str(node)[:80]}")


class _OldParts(dict[str, Any]):
    """The parts of a node of the older form, as text; a list is several with commas."""

    def __getitem__(self, key: str) -> str:
        if key in ("start", "stop", "step"):
            return _old(self.get(key) or "")
        part = super().__getitem__(key)
        return ", ".join(map(_old, part)) if isinstance(part, list) else _old(part)


_MISSING = object()


class Composite:
    r"""A program bound to its children: the function of a composite tool.

    It holds no state of a run, so any number of runs may be active at once.

    Args:
        program: From ``parse`` or ``program_from_json``, which check it.
        children: The tools that it may call, by their name in the library.
        name: The composite's own name, for paths in errors.
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
        program: Program,
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
        is_checked = contracts == "always"
        self._usual = Activation(path=(name,), checking=is_checked, checks_itself=is_checked)

    @cached_property
    def _lowered(self) -> tuple[Callable[[Frame], Any], Mapping[str, int], Frame]:
        """The program as a closure, made at the first run: most composites of a library wait.

        With it come the places of the parameters, and a frame in which they have their defaults.
        """
        parameters = self.program.parameters
        slots = FrameLayout(parameter.name for parameter in parameters)
        body = Lowering(slots, self._children).block(self.program.body)
        template: Frame = [_MISSING] * slots.size
        for parameter in parameters:
            if parameter.default is not None:
                template[slots.of(parameter.name)] = parameter.default.value
        return body, {one.name: slots.of(one.name) for one in parameters}, template

    def __call__(self, *values: Any, **arguments: Any) -> Any:
        """Run as a function is called: with arguments by position, or as keywords."""
        if values:
            arguments = self._named(values, arguments)
        return self.run_async(arguments) if self.needs_event_loop else self.run(arguments)

    def run(self, arguments: Mapping[str, Any]) -> Any:
        """Run to the result.

        Args:
            arguments: By parameter name; JSON data.

        Raises:
            CompositeRunError: It could not be run to its end; ``code`` says why and ``path`` where.
            ContractViolation: A pre- or postcondition does not hold.
            ModelRetry: A child asks for other arguments; the message says which.
            ToolFailed: A child failed for good.
            UsageError: A child has to be waited for; use ``run_async``.
        """
        if self.needs_event_loop:
            waiting = [name for name, child in self._children.items() if child.needs_event_loop]
            raise UsageError(
                f"the composite {self.name!r} waits for {', '.join(map(repr, waiting))}, which is "
                "async, has a timeout or reads the world; use `await composite.run_async(...)`"
            )
        return self._begin(arguments, Meter(self.limits), self._usual)

    async def run_async(self, arguments: Mapping[str, Any]) -> Any:
        """Run to the result, waiting for children.

        ``waiting`` explains how calls are ordered. A composite that waits for nothing is run at
        once. Arguments and errors are those of ``run``.
        """
        if not self.needs_event_loop:
            return self.run(arguments)
        meter = Meter(self.limits, asyncio.Semaphore(self.limits.concurrency))
        timeout = asyncio.timeout(self.limits.deadline_seconds)
        try:
            async with timeout:
                return await run_waiting(partial(self._begin, arguments, meter, self._usual))
        except TimeoutError as error:
            if not timeout.expired():
                raise
            where, call = meter.interrupted[0] if meter.interrupted else (self._usual.path, None)
            what = meter.over("deadline")
            raise run_error(where, call, what.code, what.message) from error

    def enter(self, arguments: Mapping[str, Any], meter: Meter, caller: Activation) -> Any:
        """Run inside the run of another composite, on its meter."""
        path = (*caller.path, self.name)
        if len(path) > max(meter.limits.nesting, 1):
            what = f"composites in composites, more than {meter.limits.nesting} levels deep"
            raise run_error(path, None, "nesting", what)
        checking = caller.checking or self._usual.checking
        activation = Activation(
            path=path, checking=checking, checks_itself=checking and not caller.checking
        )
        return self._begin(arguments, meter, activation)

    def _begin(self, arguments: Mapping[str, Any], meter: Meter, activation: Activation) -> Any:
        """Check the preconditions of a run, run it, and check the postconditions."""
        body, places, template = self._lowered
        frame = template.copy()
        frame[METER] = meter
        frame[ACTIVATION] = activation
        for name, value in arguments.items():
            if name not in places:
                self._refuse_arguments(activation, f"it has no parameter {name!r}")
            frame[places[name]] = value
        if len(arguments) < len(places):
            for name, slot in places.items():
                if frame[slot] is _MISSING:
                    self._refuse_arguments(activation, f"missing required argument {name!r}")
        if activation.checks_itself and self._conditions is not None:
            raise_violation(self._conditions.before(arguments, path=activation.path))
        try:
            body(frame)
        except RecursionError as error:
            message = "composites and expressions are nested too deeply for Python's stack"
            raise run_error(activation.path, None, "nesting", message) from error
        result = frame[RESULT]
        if activation.checks_itself and self._conditions is not None:
            raise_violation(self._conditions.after(arguments, result, path=activation.path))
        return result

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

    def _refuse_arguments(self, activation: Activation, what: str) -> NoReturn:
        parameters = ", ".join(self._lowered[1]) or "none"
        what = f"{what}; its parameters are: {parameters}"
        raise run_error(activation.path, None, "invalid_arguments", what)


def _bound(program: Program, children: Mapping[str, Tool], name: str) -> dict[str, Child]:
    """The children of a program, ready to be called."""
    bound: dict[str, Child] = {}
    for child in dict.fromkeys(map(child_of, calls(program))):
        tool = children.get(child)
        if tool is None or not tool.is_bound:
            what = f"the child {child!r} is not given, or has no function in this process"
            raise refusal(name, (Fault(None, "unbound_child", what).at(),))
        function = tool.function
        bound[child] = Child(tool, function if isinstance(function, Composite) else None)
    return bound


# --- from a stored definition ---------------------------------------------------------------------


def composite_tool(
    definition: ToolDefinition,
    tools: Mapping[str, Tool] | Iterable[Tool],
    *,
    limits: CompositeLimits | None = None,
    contracts: ContractMode = "off",
) -> Tool:
    """Bind a composite to the tools that it calls.

    Args:
        definition: With a ``body``, as ``compose`` makes it or a store keeps it.
        tools: The tools of the library: a list, a ``Library``, or a mapping by name; only the
            pinned children are checked.
        limits: Caps on the program and on each run.
        contracts: When the composite's and its children's pre- and postconditions are checked.

    Returns:
        A tool that runs the program. It needs approval when one of its children does. When a
        child has no function in this process the composite has none either: it can be offered,
        and its calls are deferred.

    Raises:
        CompositeError: The body is not a program, a pinned child is missing or has changed, or the
            definition claims to do less than its children.
        DefinitionError: The definition is that of a primitive.
    """
    name = definition.name
    if definition.body is None:
        raise DefinitionError(
            f"{name!r} is a primitive: it has code of its own and nothing to bind; "
            "use Tool(definition=..., function=...)",
            tool_name=name,
        )
    tools = tools_by_name(tools)
    problems = tuple(fault.at() for fault in _unfit_children(definition, tools))
    if problems:
        raise refusal(name, problems)
    limits = limits or CompositeLimits()
    children = {child.name: tools[child.name] for child in definition.signature.children}
    if problems := tuple(fault.at() for fault in _claims(definition, children.values())):
        raise refusal(name, problems)
    program = program_from_json(definition.body, tools=children, name=name, limits=limits)
    needs_approval = any(child.needs_approval for child in children.values())
    if not all(child.is_bound for child in children.values()):
        return Tool(definition=definition, requires_approval=needs_approval)
    composite = Composite(
        program,
        children,
        name=name,
        limits=limits,
        contracts=contracts,
        definition=definition,
    )
    return Tool(
        definition=definition,
        function=composite,
        is_async=composite.needs_event_loop,
        requires_approval=needs_approval,
    )


def join_effects(effects: Iterable[Effects]) -> Effects:
    """The effects of running tools together.

    An effect holds when it holds for one of them, and is absent when it is absent from all;
    otherwise it stays undeclared. ``idempotent`` is the other way round: it holds when it holds
    for all. Nothing at all changes nothing.

    Example:
        >>> reads, deletes = Effects.of(["reads"]), Effects.of(["destructive"])
        >>> join_effects([reads, deletes]).to_json()
        {'reads': True, 'writes': True, 'destructive': True}
    """
    each = [one.to_json() for one in effects]

    def joined(name: str) -> bool | None:
        decides = name != "idempotent"
        declared = {one.get(name) for one in each}
        if decides in declared:
            return decides
        return None if None in declared else not decides

    names = ("reads", "writes", "destructive", "idempotent", "open_world")
    return Effects(**{name: joined(name) for name in names})


def _unfit_children(definition: ToolDefinition, tools: Mapping[str, Tool]) -> Iterator[Fault]:
    name = definition.name
    for pin in definition.signature.children:
        child = tools.get(pin.name)
        if child is None:
            what = f"{name!r} calls {pin.name!r}, which is not in the library"
            yield Fault(None, "missing_child", what)
        elif child.definition.digest != pin.digest:
            what = (
                f"{name!r} was validated with {pin.name!r} at digest {pin.digest[:12]}, but the "
                f"library holds {child.definition.digest[:12]}"
            )
            yield Fault(None, "changed_child", what)


def _claims(definition: ToolDefinition, children: Iterable[Tool]) -> Iterator[Fault]:
    """What a composite says of its effects that is not true of the tools that it calls."""
    below = join_effects(child.definition.signature.effects for child in children)
    if freer := sorted(definition.signature.effects.freer_than(below)):
        what = f"{definition.name!r} claims to do less than what it calls: {', '.join(freer)}"
        yield Fault(None, "effects", what, "Recompose it from its text.")
