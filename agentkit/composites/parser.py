"""Parse text into a program, with Python's own parser and never its evaluator.

The text is one function. It is parsed to syntax, read to the nodes of ``language``, and never
executed. A text outside the language is refused with all that is wrong with it, each problem with
its line, its column and what to write instead.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import TypeAlias

from agentkit.composites.calls import place_of, too_deep
from agentkit.composites.language import (
    Default,
    Parameter,
    Program,
    assign,
    calls,
    child_of,
    dead_calls,
    is_dotted,
    target_of,
    walk,
    written,
)
from agentkit.composites.problems import (
    STYLE_CODES,
    CompositeLimits,
    Fault,
    Place,
    placed,
    refusal,
)
from agentkit.composites.syntax import OPERATORS, ExpressionReader
from agentkit.errors import CompositeError, SourceProblem
from agentkit.tools.tool import Tool

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True, slots=True)
class ParsedSource:
    """A text of the composite language, read.

    Attributes:
        name: The function's name.
        program: Its body.
        tools: The tools that it calls, by library name.
        docstring: As written, with its indentation; empty when there is none.
        function: The syntax, for what is not the program's: annotations and decorators.
        text: The text; the nodes of ``program`` have their places in it.
        problems: What is wrong with it; ``program`` is whole when there is nothing.
    """

    problems: tuple[SourceProblem, ...]
    name: str
    program: Program
    tools: Mapping[str, Tool]
    docstring: str
    function: Function
    text: str

    @property
    def children(self) -> Mapping[str, Tool]:
        """The tools that it calls, by library name, in the order of first call."""
        called = dict.fromkeys(map(child_of, calls(self.program)))
        return {name: self.tools[name] for name in called}

    def place(self, node: object) -> Place:
        """Line and column of a node of ``program``, both from 1."""
        return place_of(node, self.text)


def parse(
    source: str, tools: Mapping[str, Tool], *, limits: CompositeLimits | None = None
) -> ParsedSource:
    """Read the text of a composite.

    Args:
        source: One function.
        tools: What it may call, by the name used in the text. A key that Python cannot write is
            written with ``_`` for each foreign character (``get_user`` for ``get user``), dots
            between names as they are (``weather.now(...)``).
        limits: Caps on the program.

    Raises:
        CompositeError: The text is outside the language; ``problems`` lists everything found, in
            the order of the text.

    Example:
        >>> from agentkit.errors import CompositeError
        >>> parsed = parse("def twice(x): return 2 * x", {})
        >>> parsed.name, parsed.program.parameters
        ('twice', (Parameter(name='x', default=None),))
        >>> try:
        ...     parse("def twice(x): return lambda: x", {})
        ... except CompositeError as error:
        ...     print(error.problems[0].message, error.problems[0].column)
        `lambda: x` is not in the language 22
    """
    parsed = read_source(source, tools, limits=limits)
    if parsed.problems:
        raise refusal(parsed.name, parsed.problems)
    return parsed


def read_source(
    source: str,
    tools: Mapping[str, Tool] | None,
    *,
    limits: CompositeLimits | None = None,
    stored_as: str | None = None,
) -> ParsedSource:
    """``parse``, which tells what is wrong with a function and does not raise it.

    Args:
        source: One function.
        tools: What it may call; None only for a stored text, when nothing is known of them.
        limits: Caps on the program.
        stored_as: The composite's name, where the text is a stored one: its calls name tools and
            arguments as the library does.

    Raises:
        CompositeError: The text is not a function at all.
    """
    limits = limits or CompositeLimits()
    tree = syntax_tree(source, limits)
    functions = [node for node in tree.body if isinstance(node, Function)]
    if not functions:
        raise _no_text("not_one_function", "the text has no function")
    function, *_ = functions
    beside = (node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom))
    strays = [_stray(node) for node in beside if node is not function]
    return read_function(function, source, tools, limits=limits, strays=strays, stored_as=stored_as)


def read_function(
    function: Function,
    text: str,
    tools: Mapping[str, Tool] | None,
    *,
    limits: CompositeLimits | None = None,
    strays: Sequence[Fault] = (),
    stored_as: str | None = None,
) -> ParsedSource:
    """``read_source`` from the syntax of a text on.

    Args:
        function: The function.
        text: The text that contains it.
        tools: What it may call.
        limits: Caps on the program.
        strays: What is wrong with the text around it.
        stored_as: As for ``read_source``.
    """
    is_stored = stored_as is not None
    name = function.name if stored_as is None else stored_as
    limits = limits or CompositeLimits()
    reader = _Reader(
        text, tools=tools, limits=limits, root=function, name=name, is_stored=is_stored
    )
    reader.faults.extend(strays)
    program = reader.program(function)
    return ParsedSource(
        problems=reader.problems(),
        name=function.name,
        program=program,
        tools=reader.children,
        docstring=docstring_of(function) or "",
        function=function,
        text=text,
    )


def parse_expression(
    text: str, names: Sequence[str], *, limits: CompositeLimits | None = None
) -> ast.expr:
    """Read one expression over ``names``, without calls of tools: a condition.

    It may be a stored one, so it is not held to the rules on style.

    Raises:
        CompositeError: The text is outside the language, or uses another name.

    Example:
        >>> ast.unparse(parse_expression("(amount)>0", ["amount"]))
        'amount > 0'
    """
    limits = limits or CompositeLimits()
    tree = syntax_tree(text, limits)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
        advice = "Write one expression, such as `amount > 0 and currency == 'EUR'`."
        raise _no_text("syntax", "the text is not one expression", advice)
    found = tree.body[0].value
    reader = _Reader(text, tools={}, limits=limits, root=found)
    reader.variables, reader.bound = dict.fromkeys(names), set(names)
    try:
        found = reader.expression(found)
    except RecursionError:
        reader.faults.append(too_deep(found, limits))
    if problems := [one for one in reader.problems() if one.code not in STYLE_CODES]:
        raise refusal("", tuple(problems))
    return found


class _Reader(ExpressionReader):
    """Reads the statements of one text."""

    _loops = 0

    def problems(self) -> tuple[SourceProblem, ...]:
        """Syntax outside the language, or else violations of its rules, with places."""
        faults = self.faults or self.broken
        return placed(faults, lambda node: place_of(node, self.source))

    def program(self, function: Function) -> Program:
        """Read a function; faults are noted."""
        statements = function.body[docstring_of(function) is not None :]
        try:
            parameters = self._parameters(function)
            body, goes_on = self._block(statements)
            program = Program(parameters=parameters, body=tuple(body))
            most = self.limits.nodes
            if len(self.source) >= most and sum(1 for _ in walk(program)) > most:
                what = f"the program has more than {most} nodes"
                self.refuse(function, "too_large", what)
        except RecursionError:  # limits above what this process can hold
            self.faults.append(too_deep(function, self.limits))
            return Program(parameters=(), body=())
        if goes_on:
            what = "a way through the function ends without `return`"
            self.breaks((statements or [function])[-1], "missing_return", what)
        for child in self.called:
            name = child.partition(".")[0] if is_dotted(child) else written(child)
            if name in self.variables and child != self.name:
                what = f"`{name}` is a variable, and the tool {child!r} is called by that name"
                advice = f"Rename the variable, such as `{name}_result`."
                self.breaks(self.variables[name], "name_shadowing", what, advice)
        for call in dead_calls(program, self.children):
            what = f"the result of `{child_of(call)}` is never used, and the tool changes nothing"
            self.breaks(call, "dead_call", what)
        return program

    def _bind(self, names: Sequence[str], node: object, code: str = "underscore_name") -> None:
        """Variables are set from here on; a name is complained about once."""
        for name in names:
            if name not in self._seen:
                self._seen.add(name)
                self.check_name(name, node, code)
        self.bound.update(names)

    @cached_property
    def _seen(self) -> set[str]:
        return set()

    # --- parameters -------------------------------------------------------------------------------

    def _parameters(self, function: Function) -> tuple[Parameter, ...]:
        """The parameters with their defaults; a bare ``*`` among them changes nothing."""
        arguments = function.args
        for node, what in _foreign_parameters(function):
            self.refuse(node, "parameter", f"{what} is not in the language")
        plain = [*arguments.posonlyargs, *arguments.args]
        required = len(plain) - len(arguments.defaults)
        defaults = [*[None] * required, *arguments.defaults, *arguments.kw_defaults]
        made = []
        for argument, value in zip([*plain, *arguments.kwonlyargs], defaults, strict=True):
            default = None if value is None else self._default(value)
            made.append(Parameter(name=argument.arg, default=default))
            if argument.arg in self.bound:
                message = f"the parameter `{argument.arg}` is there twice"
                self.breaks(argument, "parameter", message)
            self._bind((argument.arg,), argument, "parameter")
        return tuple(made)

    def _default(self, node: ast.expr) -> Default:
        before = len(self.faults)
        self.expression(node)
        with suppress(ValueError):  # it is no constant
            value = ast.literal_eval(node)
            if value is None or isinstance(value, bool | int | float | str):
                return Default(value)
        if len(self.faults) == before:
            what = f"the default `{self.quote(node)}` is not a number, text, truth value or None"
            advice = "Use None, and set the value inside: `if xs is None: xs = []`."
            self.refuse(node, "parameter", what, advice)
        return Default(None)

    # --- statements -------------------------------------------------------------------------------

    def _block(self, nodes: Sequence[ast.stmt]) -> tuple[list[ast.stmt], bool]:
        """Read a block, and whether control can come out at its end.

        ``pass`` and what is refused leave nothing.
        """
        if not nodes:
            return [], True
        if self.depth >= self.limits.nesting:
            self.refuse_depth(nodes[0])
            return [], True
        self.depth += 1
        made: list[ast.stmt] = []
        goes_on, is_reported = True, False
        for node in nodes:
            statement, comes_out = self._statement(node)
            if statement is None:
                continue
            if not goes_on and not is_reported:
                is_reported = True
                what = "nothing comes here: all ways before end in return, break or continue"
                self.breaks(node, "unreachable_code", what)
            goes_on = goes_on and comes_out
            made.append(ast.copy_location(statement, node))
        self.depth -= 1
        return made, goes_on

    def _statement(self, node: ast.stmt) -> tuple[ast.stmt | None, bool]:
        """A statement, and whether control can come out at its end."""
        match node:
            case ast.If():
                return node, self._if(node)
            case ast.For():
                self._for(node)
                return node, True
            case ast.Return(value=ast.expr() as value):
                node.value = self.expression(value)
                return node, False
            case ast.Break() | ast.Continue():
                if not self._loops:
                    word = "break" if isinstance(node, ast.Break) else "continue"
                    advice = "Delete it, or return a value."
                    self.breaks(node, "syntax", f"`{word}` outside of a loop", advice)
                return node, False
        return self._simple(node), True

    def _if(self, node: ast.If) -> bool:
        node.test, before = self.expression(node.test), set(self.bound)
        then, through = self._block(node.body)
        after_then, self.bound = self.bound, before
        node.orelse, around = self._block(node.orelse)
        node.body = then or [ast.Pass()]
        if through and around:
            self.bound = self.bound & after_then
        elif through:
            self.bound = after_then
        return through or around

    def _for(self, node: ast.For) -> None:
        node.iter = self.expression(node.iter, is_consumed=True)
        targets, before = self.targets(node.target), set(self.bound)
        node.target = target_of(targets)
        self._bind(targets, node)
        self._loops += 1
        body, _ = self._block(node.body)
        node.body = body or [ast.Pass()]
        self._loops -= 1
        self.bound = before  # the loop may not run at all
        if node.orelse:
            advice = "Set a variable before the loop and test it afterwards."
            self.refuse_foreign(node.orelse[0], "`else` behind a for statement is", advice)

    def _assign(self, node: ast.stmt, target: ast.expr, value: ast.expr) -> ast.stmt:
        targets, read = self.targets(target), self.expression(value)
        self._bind(targets, node)
        return assign(targets, read)

    def _simple(self, node: ast.stmt) -> ast.stmt | None:
        match node:
            case ast.Assign(targets=[target], value=value):
                return self._assign(node, target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                return self._assign(node, target, value)
            case ast.AugAssign(target=target, op=op) if type(op) in OPERATORS:
                (name,) = self.targets(target)
                if name not in self.bound and isinstance(target, ast.Name):
                    message = f"`{name}` is not set on every way to here"
                    self.breaks(node, "possibly_unbound", message)
                node.value = self.expression(node.value)
                self._bind((name,), node)
                return node
            case ast.Expr(value=value):
                return self._bare(node, value)
            case ast.Pass():
                return None
            case _:
                self.refuse_foreign(node)
        return None

    def _bare(self, node: ast.Expr, value: ast.expr) -> ast.stmt | None:
        before = len(self.faults)
        node.value = self.expression(value)
        if child_of(node.value):
            return node
        if len(self.faults) == before:  # what was refused already needs no second complaint
            self.refuse_foreign(node, f"a value that is not used, `{self.quote(value)}`, is")
        return None


def _foreign_parameters(function: Function) -> Iterator[tuple[ast.arg | Function, str]]:
    arguments = function.args
    if arguments.posonlyargs:
        yield arguments.posonlyargs[0], "`/` in the parameters"
    if arguments.vararg is not None:
        yield arguments.vararg, f"`*{arguments.vararg.arg}`"
    if arguments.kwarg is not None:
        yield arguments.kwarg, f"`**{arguments.kwarg.arg}`"
    if vars(function).get("type_params"):  # from Python 3.12 on
        yield function, "a function with type parameters"


# --- from text to syntax --------------------------------------------------------------------------

_MAY_WARN = re.compile(r"\\|\d[A-Za-z]")
"""Syntax that Python's parser may warn about: ``"\\d"`` and ``1if x else y``."""

_ATTEMPTS = 20
"""Attempts at parsing before an internal error of Python is believed."""

_WARNINGS = Lock()
"""Silencing warnings is not safe for threads (before Python 3.14): one of ours at a time."""


def _no_text(code: str, message: str, advice: str = "", at: Place = (1, 1)) -> CompositeError:
    """The refusal of a text that is not even syntax, or not of the form that is asked for."""
    return refusal("", (Fault(None, code, message, advice).at(*at),))


def _stray(node: ast.stmt) -> Fault:
    what = f"another function, `{node.name}`," if isinstance(node, Function) else "a statement"
    return Fault(node, "not_one_function", f"{what} is beside the function")


def docstring_of(function: Function) -> str | None:
    """The docstring as written, with its indentation; None when there is none.

    Other than ``ast.get_docstring`` this loads nothing to clean it.
    """
    first = function.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        value = first.value.value
        return value if isinstance(value, str) else None
    return None


def syntax_tree(text: str, limits: CompositeLimits) -> ast.Module:
    """The syntax of a text.

    Raises:
        CompositeError: It has none, or is beyond the limits.
    """
    try:
        size, odd = len(text.encode()), text.find("\0")
    except UnicodeEncodeError as error:
        size, odd = len(text), error.start
    if size > limits.source_bytes:
        what = f"the text has {size} bytes, more than {limits.source_bytes}"
        raise _no_text("too_large", what)
    if odd >= 0:
        before = text[:odd]
        what = f"the character {text[odd]!r} is not allowed in a text"
        at = before.count("\n") + 1, odd - before.rfind("\n")
        raise _no_text("syntax", what, "Delete it, or write the whole character.", at)
    try:
        if not _MAY_WARN.search(text):
            return _tree(text)
        with _WARNINGS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _tree(text)
    except SyntaxError as error:
        raise _syntax_problem(error) from None
    except (RecursionError, MemoryError):
        what = "the text is nested too deeply for Python's parser"
        raise _no_text("too_large", what, "Assign inner parts to variables first.") from None
    except ValueError as error:  # null bytes and the like, in older versions of Python
        raise _no_text("syntax", str(error)) from None


def _tree(text: str) -> ast.Module:
    """``ast.parse``, again where another thread disturbed it.

    CPython 3.11 counts the depth of a tree under construction in one place for all threads (see
    python/cpython#106905, which is related); a parse that another thread interrupts may end in a
    SystemError although nothing is wrong.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


def _syntax_problem(error: SyntaxError) -> CompositeError:
    reason = error.msg or "invalid syntax"
    code = "syntax"
    advice = "Correct the syntax; the text must be one Python function."
    if "nested" in reason or "too many" in reason:
        code, advice = "too_large", "Assign inner parts to variables first."
    elif "integer string conversion" in reason:
        code, advice = "literal", "Use a smaller number, or a float such as 1e300."
        reason = reason.partition(";")[0]
    elif isinstance(error, IndentationError):
        advice = "Indent each block by four spaces, and start `def` at the left."
    line = (error.text or "").strip()
    quoted = f" in `{line[:80]}`" if line else ""
    what = f"Python cannot read this: {reason}{quoted}"
    at = max(error.lineno or 1, 1), max(error.offset or 1, 1)
    return _no_text(code, what, advice, at)
