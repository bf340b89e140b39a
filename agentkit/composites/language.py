"""The composite language: its words, the form of its programs, and what is plain from one.

A program is the syntax of Python's own ``ast``, in one form that all texts of the same meaning
share: docstring, annotations and ``await`` are gone, every child call names its arguments, in the
order of evaluation, and ``ast.unparse`` gives the text that is stored.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from textwrap import indent
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from unicodedata import normalize

if TYPE_CHECKING:
    from agentkit.tools.tool import Tool

Scalar: TypeAlias = bool | int | float | str | None
Block: TypeAlias = Sequence[ast.stmt]
Comprehension: TypeAlias = ast.ListComp | ast.DictComp | ast.GeneratorExp


class Default(NamedTuple):
    """What a parameter is when the caller leaves it out."""

    value: Scalar


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter of the program.

    Attributes:
        name: Its name.
        default: What it is when the caller leaves it out; None when it is required.
    """

    name: str
    default: Default | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """The body of a composite. Programs of the same text are equal.

    Attributes:
        parameters: In declared order.
        body: The statements; every path ends in a ``return``.
    """

    parameters: tuple[Parameter, ...]
    body: tuple[ast.stmt, ...]

    @cached_property
    def text(self) -> str:
        """Its canonical text, as a function named ``composite``."""
        return render(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Program) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"Program({self.text!r})"


# --- nodes ----------------------------------------------------------------------------------------


def child_of(node: object) -> str:
    """The child that a node calls, by its name in the library; empty for any other node."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name not in BUILTINS:
            return name
        case ast.Call(func=ast.Subscript(slice=ast.Constant(value=str(name)))):
            return name
    return ""


def arguments_of(call: ast.Call) -> tuple[tuple[str, ast.expr], ...]:
    """The named arguments of a call, in order."""
    return tuple(map(_argument, call.keywords))


def _argument(keyword: ast.keyword) -> tuple[str, ast.expr]:
    match keyword:
        case ast.keyword(value=ast.Dict(keys=[ast.Constant(value=name)], values=[value]), arg=None):
            return str(name), value  # one that Python cannot write
    return keyword.arg or "", keyword.value


def child_call(child: str, arguments: Iterable[tuple[str, ast.expr]] = ()) -> ast.Call:
    """A call of a child; names that Python cannot write are quoted."""
    function: ast.expr = ast.Name(id=child)
    if not (is_dotted(child) or (is_identifier(child) and child not in RESERVED)):
        function = ast.Subscript(value=ast.Name(id=TOOLS), slice=ast.Constant(value=child))
    keywords = [
        ast.keyword(arg=name, value=value)
        if is_identifier(name)
        else ast.keyword(value=ast.Dict(keys=[ast.Constant(value=name)], values=[value]))
        for name, value in arguments
    ]
    return ast.Call(func=function, args=[], keywords=keywords)


def assign(targets: Sequence[str], value: ast.expr) -> ast.Assign:
    """``x = value``, or ``x, y = value`` with several targets."""
    return ast.Assign(targets=[target_of(targets)], value=value, lineno=0)


def target_of(names: Sequence[str]) -> ast.expr:
    """What is assigned to these names."""
    made: list[ast.expr] = [ast.Name(id=name) for name in names]
    return made[0] if len(made) == 1 else ast.Tuple(elts=made)


def targets_of(node: ast.AST) -> tuple[str, ...]:
    """The variables that a statement, a comprehension or a target sets."""
    match node:
        case ast.Assign(targets=[target]) | ast.For(target=target) | ast.AugAssign(target=target):
            return targets_of(target)
        case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
            return targets_of(node.generators[0].target)
        case ast.Tuple(elts=items):
            return tuple(name for item in items for name in targets_of(item))
        case ast.Name(id=name):
            return (name,)
    return ()


def parts(node: Program | ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """The expressions and statements directly inside a node, in the order in which they count."""
    match node:
        case Program():
            yield from node.body
        case ast.Call():
            if isinstance(node.func, ast.Attribute):
                yield node.func.value
            yield from node.args
            yield from (value for _, value in arguments_of(node))
        case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
            conditions = node.generators[0].ifs
            yield node.generators[0].iter
            yield from (*reversed(within(node)[len(conditions) :]), *conditions)
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            yield value
        case ast.For():
            yield node.iter
            yield from node.body
        case _:
            for part in ast.iter_child_nodes(node):
                if isinstance(part, ast.FormattedValue):
                    yield part.value
                elif isinstance(part, ast.Slice):
                    bounds = (part.lower, part.upper, part.step)
                    yield from (bound for bound in bounds if bound is not None)
                elif isinstance(part, ast.expr | ast.stmt):
                    yield part


def walk(node: Program | ast.AST) -> Iterator[Program | ast.AST]:
    """``node`` and every node inside it, parents first."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(tuple(parts(current))))


def calls(node: Program | ast.AST) -> tuple[ast.Call, ...]:
    """Every child call inside ``node``, in the order in which they are written."""
    return tuple(one for one in walk(node) if isinstance(one, ast.Call) and child_of(one))


def names_in(node: Program | ast.AST) -> set[str]:
    """The variables that are read inside a node."""
    return {one.id for one in walk(node) if isinstance(one, ast.Name)}


def statements(node: Program | ast.AST) -> Iterator[ast.stmt]:
    """Every statement inside a node, also of the blocks inside it, in the order written."""
    return (one for one in walk(node) if isinstance(one, ast.stmt))


def within(node: Comprehension) -> tuple[ast.expr, ...]:
    """The expressions a comprehension evaluates for each item, in order."""
    made = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
    return (*node.generators[0].ifs, *made)


# --- text -----------------------------------------------------------------------------------------


def render(
    program: Program,
    name: str = "composite",
    *,
    docstring: str = "",
    annotations: Mapping[str, str] | None = None,
    returns: str = "",
) -> str:
    """A program as a Python function.

    ``parse`` reads the same program back from it, with the same digest. Names that Python cannot
    write are quoted: ``tools["get user"](**{"user-id": x})``.

    Args:
        program: The program.
        name: The function's name.
        docstring: Its documentation, without indentation.
        annotations: Type of each parameter, as text.
        returns: Type of the result, as text.

    Example:
        >>> from agentkit.composites.parser import parse
        >>> text = "def twice( x ) :  return (2*x)  # a number"
        >>> print(render(parse(text, {}).program, name="twice", annotations={"x": "int"}), end="")
        def twice(x: int):
            return 2 * x
    """
    documentation = ast.Constant(value=indent(docstring.strip(), "    ").strip())
    words = [ast.Expr(value=documentation)] if docstring else []
    function = ast.FunctionDef(
        name=written(name),
        args=_head(program.parameters, annotations or {}),
        body=[*words, *(program.body or [ast.Pass()])],
        decorator_list=[],
        returns=ast.Name(id=returns) if returns else None,
        lineno=0,
    )
    return f"{ast.unparse(function)}\n"


def _head(parameters: Sequence[Parameter], annotations: Mapping[str, str]) -> ast.arguments:
    """Python wants what has no default first, except behind a star."""
    at = next((at for at, one in enumerate(parameters) if one.default), len(parameters))
    split = next((at + n for n, one in enumerate(parameters[at:]) if not one.default), None)
    made = []
    for one in parameters:
        text = annotations.get(one.name)
        made.append(ast.arg(arg=one.name, annotation=ast.Name(id=text) if text else None))
    defaults: list[ast.expr | None] = [
        None if one.default is None else ast.Constant(value=one.default.value) for one in parameters
    ]
    return ast.arguments(
        posonlyargs=[],
        args=made[:split],
        defaults=[default for default in defaults[:split] if default],
        kwonlyargs=[] if split is None else made[split:],
        kw_defaults=[] if split is None else defaults[split:],
    )


# --- words ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Arity:
    """How a function may be called.

    Attributes:
        least: Fewest positional arguments.
        most: Most positional arguments; None for any number.
        keywords: Keywords that it knows.
    """

    least: int
    most: int | None
    keywords: tuple[str, ...] = ()


def _arities(*groups: tuple[Arity, str]) -> Mapping[str, Arity]:
    made = {word: arity for arity, words in groups for word in words.split()}
    return {word: made[word] for word in sorted(made)}


_NONE, _ONE = Arity(least=0, most=0), Arity(least=1, most=1)
_BOUNDED = Arity(least=1, most=None, keywords=("default",))

BUILTINS = _arities(
    (_ONE, "abs all any bool float int isfinite len list str"),
    (Arity(least=1, most=2, keywords=("start",)), "enumerate"),
    (Arity(least=2, most=2, keywords=("tolerance",)), "is_close"),
    (_BOUNDED, "max min"),
    (Arity(least=1, most=3), "range"),
    (Arity(least=1, most=2), "round sum"),
    (Arity(least=1, most=1, keywords=("reverse",)), "sorted"),
    (Arity(least=2, most=None), "zip"),
)
"""Pure functions. ``isfinite`` is ``math.isfinite``; ``is_close(a, b, tolerance=1e-9)`` compares
with a tolerance that is relative for large numbers and absolute near zero."""

METHODS = _arities(
    (_NONE, "capitalize isalpha isdigit items keys lower splitlines title upper values"),
    (_ONE, "count endswith find index join startswith"),
    (Arity(least=0, most=1), "lstrip rstrip split strip"),
    (Arity(least=1, most=2), "get"),
    (Arity(least=2, most=2), "replace"),
)
"""Pure methods of text, of lists and tuples (``count``, ``index``) and
dicts (``get``, ``items``, ``keys``, ``values``)."""


ITERATORS = frozenset({"range", "zip", "enumerate"})
"""Builtins whose value Python hands out piece by piece. They, the dict views (``items``, ``keys``,
``values``) and generators may only stand where they are consumed at once: as the source of a loop
or a comprehension, or as the argument of one of ``CONSUMERS``."""

VIEWS = frozenset({"items", "keys", "values"})

CONSUMERS = frozenset(
    {"all", "any", "enumerate", "list", "max", "min", "sorted", "sum", "zip", "join"}
)
"""Functions that accept an iterator; ``len`` also takes a range or a view."""

TOOLS = "tools"
"""``tools["get user"](...)`` calls a tool whose name Python cannot write."""

RESERVED = frozenset(BUILTINS)
"""Names that a variable, parameter or child may not take."""


# --- names ----------------------------------------------------------------------------------------


def written(name: str) -> str:
    """An identifier for any name: ``_`` stands for each character that Python does not allow.

    A name that starts with a digit gets a ``_`` in front; a keyword, or a function that the
    language knows, one behind.

    Example:
        >>> written("get user"), written("3d-plot"), written("from"), written("weather_now")
        ('get_user', '_3d_plot', 'from_', 'weather_now')
    """
    if is_plain(name):
        return name
    plain = normalize("NFKC", name)
    if not plain.isidentifier():
        plain = "".join(char if f"_{char}".isidentifier() else "_" for char in plain)
        plain = plain if plain.isidentifier() else f"_{plain}"
    return f"{plain}_" if iskeyword(plain) or plain in RESERVED else plain


def is_plain(name: str) -> bool:
    """Whether a name is an ASCII identifier that means nothing else in the language."""
    is_free = name not in RESERVED and not iskeyword(name)
    return is_free and name.isascii() and name.isidentifier()


def is_identifier(name: str) -> bool:
    """Whether Python reads ``name`` as a name, and as that name."""
    return name.isidentifier() and not iskeyword(name) and normalize("NFKC", name) == name


def is_text(value: object) -> bool:
    """Whether a value is a text that JSON can carry: one without half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def is_dotted(name: str) -> bool:
    """Whether a name is two or more identifiers with dots between, such as ``weather.now``."""
    if "." not in name:
        return False
    head, *rest = name.split(".")
    return written(head) == head and all(map(is_identifier, rest))


# --- unused results -------------------------------------------------------------------------------


def dead_calls(program: Program, children: Mapping[str, Tool]) -> Iterator[ast.Call]:
    """Calls of children that change nothing, whose results nothing reads.

    Args:
        program: The program.
        children: Its children by their name in the library; of others nothing is known.
    """
    idle = {
        name for name, tool in children.items() if tool.definition.signature.effects.is_read_only
    }
    read = names_in(program) if idle else set()
    for node in statements(program) if idle else ():
        call = node.value if isinstance(node, ast.Expr | ast.Assign | ast.AugAssign) else None
        if isinstance(call, ast.Call) and child_of(call) in idle:
            yield from [call] if read.isdisjoint(targets_of(node)) else []


# --- the shortest way -----------------------------------------------------------------------------

Weigh = Callable[[str], int]
"""The number of primitive calls behind a child, by its name."""


@dataclass(frozen=True, slots=True)
class _Path:
    """A way through a part of a program: what its calls weigh, and the calls in order."""

    weight: int = 0
    calls: tuple[str, ...] = ()

    def then(self, other: _Path) -> _Path:
        return _Path(self.weight + other.weight, self.calls + other.calls)


_NOTHING = _Path()


def shortest_path(program: Program, weigh: Weigh) -> tuple[str, ...]:
    """The calls of children on the lightest way through a program, in order of evaluation.

    Only what cannot be avoided counts, so that no composite gains by code that seldom runs:

    * a sequence adds up;
    * of the branches of ``if``, and of a conditional expression, the lighter one is taken;
      ``return``, ``break`` and ``continue`` end a way where they stand;
    * ``and``, ``or`` and a chain of comparisons stop as early as they may: after the first
      operand, or after the first two;
    * the body of a loop, and the element of a comprehension, counts once, but not at all when
      there is plainly nothing to go over; a condition of a comprehension is an ``if`` around what
      follows it.

    CoCoDA (section 3.1) counts straight-line bodies only, where this is the same.

    Args:
        program: The body of a composite.
        weigh: The number of primitive calls behind a child.

    Returns:
        The calls; of several equally light ways, that of the branch which is written first.

    Example:
        >>> from agentkit.composites.parser import read_source
        >>> text = "def h(x): return f() if x else g()"
        >>> program = read_source(text, None, stored_as="h").program
        >>> shortest_path(program, {"f": 3, "g": 1}.__getitem__)
        ('g',)

    Cost: one visit of each node.
    """
    return _Measure(weigh).block(program.body, _NOTHING, _NOTHING).calls


def _lighter(one: _Path, other: _Path) -> _Path:
    return other if other.weight < one.weight else one


class _Measure:
    """One walk over a program."""

    def __init__(self, weigh: Weigh) -> None:
        self._weigh = weigh

    def block(self, block: Block, after: _Path, behind_loop: _Path) -> _Path:
        """The lightest way from the start of a block to the end of the program.

        Args:
            block: Statements one after the other.
            after: The way from behind the block on.
            behind_loop: The way from behind the loop around it, or from its next turn, on.
        """
        for statement in reversed(block):
            after = self._statement(statement, after, behind_loop)
        return after

    def _statement(self, statement: ast.stmt, after: _Path, behind_loop: _Path) -> _Path:
        match statement:
            case ast.Return(value=ast.expr() as value):
                return self.expression(value)
            case ast.If(body=then, orelse=otherwise):
                ways = [self.block(one, after, behind_loop) for one in (then, otherwise)]
                return self.expression(statement.test).then(_lighter(*ways))
            case ast.For():
                source = self.expression(statement.iter)
                if _is_empty(statement.iter):
                    return source.then(after)
                return source.then(self.block(statement.body, after, after))
            case ast.Break() | ast.Continue():
                return behind_loop
        return self._all(parts(statement)).then(after)

    def expression(self, expression: ast.expr) -> _Path:
        """The lightest way to the value of an expression."""
        match expression:
            case ast.Call() if child := child_of(expression):
                inputs = self._all(parts(expression))
                return inputs.then(_Path(self._weigh(child), (child,)))
            case ast.BoolOp():
                return self.expression(expression.values[0])
            case ast.Compare():
                return self._all([expression.left, expression.comparators[0]])
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                return _lighter(self._all([test, then]), self._all([test, otherwise]))
            case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
                clause, inside = expression.generators[0], within(expression)
                if _is_empty(clause.iter):
                    return self.expression(clause.iter)
                return self._all([clause.iter, *(inside[:1] if clause.ifs else inside)])
            case ast.Dict(keys=keys, values=values):
                return self._all(one for pair in zip(keys, values, strict=True) for one in pair)
            case _:
                return self._all(parts(expression))

    def _all(self, expressions: Iterable[ast.AST | None]) -> _Path:
        path = _NOTHING
        for expression in expressions:
            if isinstance(expression, ast.expr):
                path = path.then(self.expression(expression))
        return path


def _is_empty(source: ast.expr) -> bool:
    """Whether a loop plainly has nothing to go over: such calls do not count."""
    match source:
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]) | ast.Constant(value=""):
            return True
    return False
