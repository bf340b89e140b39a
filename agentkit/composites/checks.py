"""The static rules of the composite language, for programs of any origin.

What a text breaks by its grammar is refused where it is read (``parser``); what it breaks by its
meaning is found here, on the program, so that a program that came as data is held to the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice

from agentkit.composites import language as ir
from agentkit.composites.dataflow import dead_calls, is_constant
from agentkit.composites.language import (
    BUILTINS,
    CONSUMERS,
    ITERATORS,
    METHODS,
    RESERVED,
    VIEWS,
    Arity,
    is_dotted,
    written,
)
from agentkit.composites.problems import CompositeLimits, Fault, Place, did_you_mean, placed
from agentkit.errors import SourceProblem
from agentkit.tools.definition import Signature
from agentkit.tools.tool import Tool

_START: Place = (1, 1)
_WRAPPERS = (ir.Argument, ir.Parameter)

_HINTS = 3
"""For how many unknown names of one program similar ones are looked for."""

_LISTED = 40
"""Parameters of a child that a message names."""

_NO_KEY = (
    "There is no `key=`: sort tuples whose first item is the key, "
    "`sorted((row['age'], row['name']) for row in rows)`."
)
_WITH_ONE_ARGUMENT = {"enumerate": "start", "max": "default", "min": "default"}
"""Keywords that go only with a single positional argument."""


def check_program(
    program: ir.Program,
    tools: Mapping[str, Tool] | None = None,
    *,
    name: str = "",
    limits: CompositeLimits | None = None,
) -> tuple[SourceProblem, ...]:
    """What is wrong with a program; data has no lines, so each problem stands at the start.

    Args:
        program: From a text or from data.
        tools: The tools that it may call, by their name in the library; with None, the rules
            that need their signatures and effects are left out.
        name: The composite's own name, which it may not call.
        limits: Caps on the program.

    Example:
        >>> first, second = (ir.Return(value=ir.Name(name=name)) for name in "xy")
        >>> program = ir.Program(parameters=(), body=(first, second))
        >>> sorted(problem.message for problem in check_program(program))[1:]
        ['there is no variable `x`', 'there is no variable `y`']
    """
    faults = size_faults(program, limits or CompositeLimits())
    faults = faults or find_faults(program, tools, name=name)
    return placed(faults, lambda _: _START)


def size_faults(program: ir.Program, limits: CompositeLimits) -> list[Fault]:
    """What is too large about a program; stops at the first node beyond a limit.

    The depth of a node is the number of statements and expressions that it lies in, itself
    included. A node that hangs in several places counts once for each.
    """
    waiting: list[tuple[ir.Node, int]] = [(program, 0)]
    count = 0
    while waiting:
        node, depth = waiting.pop()
        count += 1
        if depth > limits.nesting:
            return [too_deep(node, limits)]
        if count > limits.nodes:
            return [Fault(program, "too_large", f"the program has more than {limits.nodes} nodes")]
        deeper = depth if isinstance(node, _WRAPPERS) else depth + 1
        waiting.extend((part, deeper) for part in ir.parts(node))
    return []


def too_deep(node: object, limits: CompositeLimits) -> Fault:
    """The fault of a node that is nested beyond the limit."""
    advice = (
        "Assign inner parts to variables first; use a dict literal and .get() for a long chain "
        "of elif."
    )
    return Fault(node, "too_large", f"nested more than {limits.nesting} deep", advice)


def recursive_call(node: object, own: str) -> Fault:
    """The fault of a composite that calls itself."""
    return Fault(node, "recursive_call", f"`{own}` calls itself")


def find_faults(
    program: ir.Program,
    children: Mapping[str, Tool] | None,
    *,
    name: str = "",
    tool_names: Collection[str] | None = None,
) -> list[Fault]:
    """What is wrong with a program that is not too large.

    Args:
        program: The program.
        children: The tools that it may call, by their name in the library.
        name: The composite's own name.
        tool_names: What else a tool may be called by, for messages.
    """
    variables: dict[str, ir.Node] = {}
    for parameter in program.parameters:
        variables.setdefault(parameter.name, parameter)
    for target, node in ir.assigned(program.body):
        variables.setdefault(target, node)
    callable_names = (children or ()) if tool_names is None else tool_names
    checker = _Checker(variables, children, name, callable_names, bound=())
    checker.parameters(program)
    if checker.block(program.body):
        end = program.body[-1] if program.body else program
        checker.fault(end, "missing_return", "a way through the function ends without `return`")
    checker.clashes(variables)
    for call in dead_calls(program, children or {}):
        message = f"the result of `{call.child}` is never used, and the tool changes nothing"
        checker.fault(call, "dead_call", message)
    return checker.faults


def find_expression_faults(expression: ir.Expression, names: Sequence[str]) -> list[Fault]:
    """What is wrong with an expression over ``names`` that calls no tool."""
    checker = _Checker(dict.fromkeys(names), None, "", (), bound=names)
    checker.visit(expression)
    return checker.faults


class _Checker:
    """Walks a program once and notes faults."""

    def __init__(
        self,
        variables: Mapping[str, ir.Node | None],
        children: Mapping[str, Tool] | None,
        own: str,
        tool_names: Collection[str],
        *,
        bound: Iterable[str],
    ) -> None:
        self.faults: list[Fault] = []
        self._variables = variables  # every name that is set anywhere
        self._bound = set(bound)  # names that are set on every way to here
        self._set: set[str] = set()  # names that were complained about, or need not be
        self._children = children
        self._own = own
        self._tool_names = tool_names
        self._called: set[str] = set()
        self._targets: tuple[str, ...] = ()  # loop variables of the comprehensions around
        self._comprehensions = self._loops = self._hints = 0

    def fault(self, node: object, code: str, message: str, advice: str = "") -> None:
        """Note a fault."""
        self.faults.append(Fault(node, code, message, advice))

    # --- names ------------------------------------------------------------------------------------

    def parameters(self, program: ir.Program) -> None:
        """Look at the parameters."""
        for name, count in Counter(one.name for one in program.parameters).items():
            if count > 1:
                last = next(one for one in reversed(program.parameters) if one.name == name)
                self.fault(last, "parameter", f"the parameter `{name}` is there twice")
        for parameter in program.parameters:
            self._bind(parameter, (parameter.name,))

    def clashes(self, variables: Mapping[str, ir.Node]) -> None:
        """Look for variables that have the name of a child that is called."""
        for child in self._called:
            name = child.partition(".")[0] if is_dotted(child) else written(child)
            if name in variables:
                message = f"`{name}` is a variable, and the tool {child!r} is called by that name"
                advice = f"Rename the variable, such as `{name}_result`."
                self.fault(variables[name], "name_shadowing", message, advice)

    def _bind(self, node: ir.Statement | ir.Parameter, targets: tuple[str, ...]) -> None:
        self._bound.update(targets)
        for target in targets:
            if target not in self._set:  # a name is complained about once
                self._set.add(target)
                self._check_name(target, node)

    def _check_name(self, name: str, node: ir.Node) -> bool:
        """Whether a name may be set."""
        if name[:1] == "_":
            code = "parameter" if isinstance(node, ir.Parameter) else "underscore_name"
            message = f"the name `{name}` starts with an underscore"
            self.fault(node, code, message, "Use a plain name, such as `item`.")
        elif name in RESERVED:
            self.fault(node, "name_shadowing", f"`{name}` is a function of the language")
        elif name == self._own:
            self.fault(node, "name_shadowing", f"`{name}` is the composite's own name")
        else:
            return True
        return False

    def _name(self, node: ir.Name) -> None:
        name = node.name
        if name in self._targets or name in self._bound:
            return
        if name in self._variables:
            self.fault(node, "possibly_unbound", f"`{name}` is not set on every way to here")
        elif name in BUILTINS or name in self._tool_names:
            what = "function" if name in BUILTINS else "tool"
            advice = f"Call it, `{name}(...)`; {what}s are no values here."
            self.fault(node, "unknown_name", f"`{name}` is a {what} and can only be called", advice)
        else:
            advice = did_you_mean(name, self._variables) or (
                f"Add it to the parameters, or write it in quotes if it is a text: '{name}'."
            )
            self.fault(node, "unknown_name", f"there is no variable `{name}`", advice)

    # --- statements -------------------------------------------------------------------------------

    def block(self, statements: ir.Block) -> bool:
        """Look at a block; whether control can come out at its end."""
        goes_on, is_reported = True, False
        for node in statements:
            if not goes_on and not is_reported:
                is_reported = True
                message = "nothing comes here: all ways before end in return, break or continue"
                self.fault(node, "unreachable_code", message)
            goes_on = self._statement(node) and goes_on
        return goes_on

    def _statement(self, node: ir.Statement) -> bool:
        match node:
            case ir.Assign(value=value, targets=targets):
                self.visit(value)
                self._bind(node, targets)
            case ir.Update(value=value, target=target):
                if target not in self._bound:
                    message = f"`{target}` is not set on every way to here"
                    self.fault(node, "possibly_unbound", message)
                self.visit(value)
                self._bind(node, (target,))
            case ir.Do(call=call):
                self.visit(call)
            case ir.Return(value=value):
                self.visit(value)
                return False
            case ir.If():
                return self._if(node)
            case ir.For():
                self._for(node)
            case ir.Break() | ir.Continue():
                if not self._loops:
                    word = "break" if isinstance(node, ir.Break) else "continue"
                    advice = "Delete it, or return a value."
                    self.fault(node, "syntax", f"`{word}` outside of a loop", advice)
                return False
        return True

    def _if(self, node: ir.If) -> bool:
        self._test(node.test)
        before = self._bound
        self._bound = set(before)
        through = self.block(node.then)
        after_then, self._bound = self._bound, before
        around = self.block(node.otherwise)
        if through and around:
            self._bound &= after_then
        elif through:
            self._bound = after_then
        return through or around

    def _for(self, node: ir.For) -> None:
        self.visit(node.source, is_consumed=True)
        before = set(self._bound)
        self._bind(node, node.targets)
        self._loops += 1
        self.block(node.body)
        self._loops -= 1
        self._bound = before  # the loop may not run at all

    # --- expressions ------------------------------------------------------------------------------

    def visit(self, node: ir.Expression, *, is_consumed: bool = False) -> None:
        """Look at an expression and all that is in it; an iterator has to be consumed at once."""
        match node:
            case ir.Name():
                self._name(node)
            case ir.Call():
                self._call(node)
            case ir.Builtin():
                self._builtin(node, is_consumed=is_consumed)
            case ir.Method():
                self._method(node, is_consumed=is_consumed)
            case ir.Comprehension():
                self._comprehension(node, is_consumed=is_consumed)
            case ir.Conditional(test=test, then=then, otherwise=otherwise):
                self._test(test)
                self.visit(then)
                self.visit(otherwise)
            case ir.Compare():
                self._compare(node)
            case _:
                for operand in ir.operands(node):
                    self.visit(operand)

    def _test(self, node: ir.Expression) -> None:
        """Look at an expression that decides which way to go."""
        self.visit(node)
        if is_constant(node):
            self.fault(node, "constant_condition", "this condition always comes out the same")

    def _compare(self, node: ir.Compare) -> None:
        none = [isinstance(one, ir.Constant) and one.value is None for one in node.operands]
        for at, operator in enumerate(node.operators):
            if operator in {"is", "is not"} and not any(none[at : at + 2]):
                equal = "==" if operator == "is" else "!="
                message = f"`{operator}` compares with None only"
                self.fault(node, "unknown_construct", message, f"Use `{equal}` to compare values.")
        for operand in node.operands:
            self.visit(operand)

    def _comprehension(self, node: ir.Comprehension, *, is_consumed: bool) -> None:
        """Its source belongs to the function, the rest to a scope of its own."""
        if self._comprehensions:
            self.fault(node, "nested_comprehension", "a comprehension stands inside another one")
        elif node.kind == "generator" and not is_consumed:
            message = "a generator may only stand where it is consumed, as in `sum(...)`"
            advice = "Write a list comprehension, in square brackets."
            self.fault(node, "iterator_escapes", message, advice)
        self._comprehensions += 1
        self.visit(node.source, is_consumed=True)
        outer, self._targets = self._targets, self._targets + node.targets
        for target in node.targets:
            if self._check_name(target, node) and target in self._variables:
                message = f"the comprehension sets `{target}`, which is a variable of the function"
                advice = f"Use another name, such as `{target}_item`."
                self.fault(node, "name_shadowing", message, advice)
        for condition in node.conditions:
            self._test(condition)
        for part in ir.within(node)[len(node.conditions) :]:
            self.visit(part)
        self._targets = outer
        self._comprehensions -= 1

    def _escapes(self, node: ir.Expression, what: str) -> None:
        """Refuse an iterator where a value is wanted."""
        message = f"{what} is handed out piece by piece and may only stand where it is consumed"
        advice = f"Write list(...) around {what} to keep it as a list."
        self.fault(node, "iterator_escapes", message, advice)

    # --- calls ------------------------------------------------------------------------------------

    def _builtin(self, node: ir.Builtin, *, is_consumed: bool) -> None:
        function, arity = node.function, BUILTINS.get(node.function)
        if arity is None:
            message = f"there is no function `{function}`"
            self.fault(node, "unknown_name", message, did_you_mean(function, BUILTINS))
        else:
            self._check_builtin(node, arity)
        if function in ITERATORS and not is_consumed:
            self._escapes(node, f"`{function}(...)`")
        for place, argument in enumerate(node.arguments):
            self.visit(argument, is_consumed=_consumes(node, place, argument))
        for keyword in node.keywords:
            if arity is not None and keyword.name in arity.keywords:
                self.visit(keyword.value)

    def _check_builtin(self, node: ir.Builtin, arity: Arity) -> None:
        function = node.function
        for given in node.keywords:
            if given.name not in arity.keywords:
                known = ", ".join(f"`{name}=`" for name in arity.keywords) or "no keywords"
                message = f"`{function}` does not take `{given.name}=`"
                advice = _NO_KEY if given.name == "key" else f"`{function}` takes {known}."
                self.fault(given, "wrong_arity", message, advice)
        self._check_repeated(node.keywords, function)
        self._check_count(node, function, arity, len(node.arguments))
        alone = _WITH_ONE_ARGUMENT.get(function)
        if alone in [given.name for given in node.keywords] and len(node.arguments) > 1:
            message = f"`{function}` takes `{alone}=` with one argument only"
            self.fault(node, "wrong_arity", message, "Drop the keyword, or give one list.")

    def _method(self, node: ir.Method, *, is_consumed: bool) -> None:
        arity = METHODS.get(node.method)
        if arity is None:
            message = f"there is no method `.{node.method}()`"
            self.fault(node, "unknown_method", message, did_you_mean(node.method, METHODS))
        else:
            self._check_count(node, f".{node.method}", arity, len(node.arguments))
        if node.method in VIEWS and not is_consumed:
            self._escapes(node, f"`.{node.method}()`")
        self.visit(node.receiver)
        for argument in node.arguments:
            self.visit(argument, is_consumed=node.method == "join")

    def _call(self, node: ir.Call) -> None:
        self._called.add(node.child)
        for argument in node.arguments:
            self.visit(argument.value)
        if node.child == self._own:
            self.faults.append(recursive_call(node, self._own))
            return
        self._check_repeated(node.arguments, node.child)
        if self._children is None:
            return
        tool = self._children.get(node.child)
        if tool is None:
            message = f"there is no tool {node.child!r}"
            self.fault(node, "missing_child", message, self._hint(node.child, self._children))
        else:
            self._check_arguments(node, tool.definition.signature)

    def _check_arguments(self, node: ir.Call, signature: Signature) -> None:
        properties, given = signature.properties, {argument.name for argument in node.arguments}
        takes = f"It takes {parameter_list(signature)}."
        missing = [f"`{name}`" for name in signature.required if name not in given]
        if missing:
            message = f"`{node.child}` needs {', '.join(missing)}"
            self.fault(node, "missing_argument", message, takes)
        schema = signature.parameters
        is_open = bool(schema.get("additionalProperties")) or "patternProperties" in schema
        for argument in () if is_open else node.arguments:
            if argument.name not in properties:
                message = f"`{node.child}` has no parameter `{argument.name}`"
                advice = f"{self._hint(argument.name, properties)} {takes}".lstrip()
                self.fault(argument, "unknown_argument", message, advice)

    def _check_repeated(self, arguments: tuple[ir.Argument, ...], name: str) -> None:
        for argument, count in Counter(given.name for given in arguments).items():
            if count > 1:
                last = next(given for given in reversed(arguments) if given.name == argument)
                message = f"`{name}` is given `{argument}` {count} times"
                self.fault(last, "repeated_argument", message, f"Give `{argument}` once.")

    def _check_count(self, node: object, name: str, arity: Arity, given: int) -> None:
        if arity.least <= given and (arity.most is None or given <= arity.most):
            return
        wanted = f"{arity.least} to {arity.most} arguments"
        if arity.most is None:
            wanted = f"{arity.least} or more arguments"
        elif arity.least == arity.most:
            wanted = f"{arity.least} argument{'s' if arity.least != 1 else ''}"
        message = f"`{name}` takes {wanted}, got {given}"
        self.fault(node, "wrong_arity", message, f"Call `{name}` with {wanted}.")

    def _hint(self, name: str, known: Collection[str]) -> str:
        """What a wrong name may have meant: for the first few only, because looking takes time."""
        self._hints += 1
        return did_you_mean(name, known) if self._hints <= _HINTS else ""


def _consumes(node: ir.Builtin, place: int, argument: ir.Expression) -> bool:
    """Whether an argument of a builtin is taken piece by piece."""
    function = node.function
    if function == "len":  # which a range and a view have
        return not isinstance(argument, ir.Comprehension) and not (
            isinstance(argument, ir.Builtin) and argument.function != "range"
        )
    alone = function in CONSUMERS and len(node.arguments) == 1
    return alone or function == "zip" or (place == 0 and function in {"sum", "enumerate"})


def parameter_list(signature: Signature) -> str:
    """The parameters of a child, for a message."""
    shown = islice(signature.properties, _LISTED)
    required = signature.required
    names = [name if name in required else f"{name} (optional)" for name in shown]
    if len(signature.properties) > _LISTED:
        names.append(f"and {len(signature.properties) - _LISTED} more")
    return ", ".join(names) or "no arguments"
