"""The composite language: its nodes and words, and what is plain from a program.

A program is data, made of frozen nodes. The nodes carry no positions and no names of their own, so
that two texts with the same meaning are the same program. Every child call names its arguments; the
order of arguments is the order of evaluation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from keyword import iskeyword
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args
from unicodedata import normalize

if TYPE_CHECKING:
    from agentkit.tools.tool import Tool


Scalar: TypeAlias = bool | int | float | str | None

BinaryOperator = Literal["+", "-", "*", "/", "//", "%", "**"]
UnaryOperator = Literal["+", "-", "not"]
BooleanOperator = Literal["and", "or"]
CompareOperator = Literal["==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"]
ComprehensionKind = Literal["list", "dict", "generator"]


# --- expressions ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Constant:
    """A literal number, text, truth value or None."""

    value: Scalar


@dataclass(frozen=True, kw_only=True, slots=True)
class Name:
    """A parameter or a variable."""

    name: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Argument:
    """One argument of a child call, or one keyword of a builtin."""

    name: str
    value: Expression


@dataclass(frozen=True, kw_only=True, slots=True)
class Call:
    """A call of a child: an edge of the DAG.

    Attributes:
        child: The child's name in the library.
        arguments: By parameter name, in the order of evaluation.
    """

    child: str
    arguments: tuple[Argument, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Builtin:
    """A call of one of the pure functions that the language knows, such as ``sum``."""

    function: str
    arguments: tuple[Expression, ...] = ()
    keywords: tuple[Argument, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A call of one of the pure methods that the language knows, such as ``text.lower()``."""

    receiver: Expression
    method: str
    arguments: tuple[Expression, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Unary:
    """``-x``, ``+x`` or ``not x``."""

    operator: UnaryOperator
    operand: Expression


@dataclass(frozen=True, kw_only=True, slots=True)
class Binary:
    """Arithmetic on two operands."""

    operator: BinaryOperator
    left: Expression
    right: Expression


@dataclass(frozen=True, kw_only=True, slots=True)
class Compare:
    """A chain of comparisons, ``a < b <= c``: one operator less than operands."""

    operators: tuple[CompareOperator, ...]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Boolean:
    """``and`` / ``or`` over two or more operands, with Python's short circuit and value."""

    operator: BooleanOperator
    operands: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Conditional:
    """``then if test else otherwise``."""

    test: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, kw_only=True, slots=True)
class ListLiteral:
    """``[a, b]``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TupleLiteral:
    """``(a, b)``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class DictLiteral:
    """``{key: value}``; as many values as keys."""

    keys: tuple[Expression, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Index:
    """``value[index]``."""

    value: Expression
    index: Expression


@dataclass(frozen=True, kw_only=True, slots=True)
class Slice:
    """``value[start:stop:step]``."""

    value: Expression
    start: Expression | None = None
    stop: Expression | None = None
    step: Expression | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """A plain f-string: constants are copied, anything else goes through ``str``."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comprehension:
    """A comprehension with one ``for``, and any number of conditions.

    Attributes:
        kind: What it makes; a generator is only ever the one argument of a builtin that consumes
            it (``any``, ``sum``, ...) or of ``join``.
        targets: The loop variables; more than one unpacks each item.
        source: What is iterated over.
        conditions: Items for which one is false are left out.
        element: The item, or the value of a dict entry.
        key: The key of a dict entry; None for the other kinds.
    """

    kind: ComprehensionKind
    targets: tuple[str, ...]
    source: Expression
    element: Expression
    key: Expression | None = None
    conditions: tuple[Expression, ...] = ()


Expression: TypeAlias = (
    Constant
    | Name
    | Call
    | Builtin
    | Method
    | Unary
    | Binary
    | Compare
    | Boolean
    | Conditional
    | ListLiteral
    | TupleLiteral
    | DictLiteral
    | Index
    | Slice
    | Format
    | Comprehension
)


# --- statements -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Assign:
    """``x = value``, or ``x, y = value`` with several targets."""

    targets: tuple[str, ...]
    value: Expression


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """``x += value``. Refused at run time on a list, which Python would change in place."""

    target: str
    operator: BinaryOperator
    value: Expression


@dataclass(frozen=True, kw_only=True, slots=True)
class Do:
    """A child call whose result is not used."""

    call: Call


@dataclass(frozen=True, kw_only=True, slots=True)
class If:
    """Two blocks that join again; ``elif`` is an If alone in ``otherwise``."""

    test: Expression
    then: Block
    otherwise: Block = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class For:
    """``for targets in source``; several targets unpack each item."""

    targets: tuple[str, ...]
    source: Expression
    body: Block


@dataclass(frozen=True, kw_only=True, slots=True)
class Break:
    """Leave the innermost loop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Continue:
    """Go on with the next item of the innermost loop."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Return:
    """End the program with a value."""

    value: Expression


Statement: TypeAlias = Assign | Update | Do | If | For | Break | Continue | Return
Block: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """A parameter of the program.

    Attributes:
        name: Its name.
        default: What it is when the caller leaves it out; None when it is required. The default
            None is ``Constant(value=None)``.
    """

    name: str
    default: Constant | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """The body of a composite.

    Attributes:
        parameters: In declared order.
        body: The statements; every path ends in a ``Return``.
    """

    parameters: tuple[Parameter, ...]
    body: Block


Node: TypeAlias = Expression | Statement | Argument | Parameter | Program

EXPRESSIONS: tuple[type, ...] = get_args(Expression)
STATEMENTS: tuple[type, ...] = get_args(Statement)


_FIELDS: Mapping[type, tuple[str, ...]] = {
    kind: tuple(field.name for field in fields(kind))
    for kind in (*EXPRESSIONS, *STATEMENTS, Argument, Parameter, Program)
}


def parts(node: Node) -> Iterator[Node]:
    """The nodes directly inside ``node``, in the order of their fields."""
    for name in _FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            for item in value:
                if type(item) in _FIELDS:
                    yield item
        elif type(value) in _FIELDS:
            yield value


def walk(node: Node) -> Iterator[Node]:
    """``node`` and every node inside it, parents first."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(tuple(parts(current))))


def calls(node: Node) -> tuple[Call, ...]:
    """Every child call inside ``node``, in the order in which they are written."""
    return tuple(found for found in walk(node) if isinstance(found, Call))


def statements(block: Block) -> Iterator[Statement]:
    """Every statement of a block, also of the blocks inside it, in the order written."""
    waiting = list(reversed(block))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, If):
            waiting.extend(reversed(node.then + node.otherwise))
        elif isinstance(node, For):
            waiting.extend(reversed(node.body))


def within(node: Comprehension) -> tuple[Expression, ...]:
    """The expressions a comprehension evaluates for each item, in order."""
    key = () if node.key is None else (node.key,)
    return (*node.conditions, *key, node.element)


def operands(node: Expression) -> Iterator[Expression]:
    """The expressions that an operation evaluates first, in order of evaluation."""
    if isinstance(node, Comprehension):  # whose items are at hand once its source is
        yield node.source
    elif isinstance(node, DictLiteral):
        for entry in zip(node.keys, node.values, strict=True):
            yield from entry
    else:
        for part in parts(node):
            yield part.value if isinstance(part, Argument) else part  # type: ignore[misc]  # an expression holds expressions and arguments only


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


# --- constants and unused results -----------------------------------------------------------------


def is_constant(node: Expression) -> bool:
    """Whether an expression comes out the same in every run: it reads nothing and calls nothing."""
    return not any(isinstance(part, Name | Call) for part in walk(node))


def dead_calls(program: Program, children: Mapping[str, Tool]) -> Iterator[Call]:
    """Calls of children that change nothing, whose results nobody needs.

    A variable is needed when it is read where it matters: by a result, a test, the source of a
    loop, a call that may change something, or an assignment to another variable that is needed.

    Args:
        program: The program.
        children: Its children by their name in the library; of others nothing is known.
    """
    idle = {name for name, tool in children.items() if _is_read_only(tool)}
    if not idle:
        return
    needed: set[str] = set()
    assignments: list[tuple[tuple[str, ...], set[str], list[Call]]] = []
    for node in statements(program.body):
        value = _value(node)
        if value is None:
            continue
        parts = [*walk(value)]
        reads = {part.name for part in parts if isinstance(part, Name)}
        calls = [part for part in parts if isinstance(part, Call)]
        is_idle = all(call.child in idle for call in calls)
        if is_idle and isinstance(node, Assign | Update):
            targets = node.targets if isinstance(node, Assign) else (node.target,)
            assignments.append((targets, reads, calls))
        elif isinstance(node, Do) and node.call.child in idle:
            yield from calls if is_idle else [node.call]
            needed |= set() if is_idle else reads
        else:
            needed |= reads
    before = None
    while before != needed:
        before = set(needed)
        for targets, reads, _ in assignments:
            if not needed.isdisjoint(targets):
                needed |= reads
    for targets, _, calls in assignments:
        if needed.isdisjoint(targets):
            yield from calls


def _is_read_only(tool: Tool) -> bool:
    return tool.definition.signature.effects.is_read_only


def _value(node: Statement) -> Expression | None:
    """The expression that a statement evaluates itself."""
    match node:
        case Assign(value=value) | Update(value=value) | Return(value=value):
            return value
        case If(test=value) | For(source=value) | Do(call=value):
            return value
    return None


# --- the shortest way -----------------------------------------------------------------------------

Weigh = Callable[[str], int]
"""The number of primitive calls behind a child, by its name."""


@dataclass(frozen=True, slots=True)
class _Path:
    """A way through a part of a program: what its calls weigh, and the calls in order."""

    weight: int = 0
    calls: tuple[Call, ...] = ()

    def then(self, other: _Path) -> _Path:
        if not self.calls:
            return other
        return _Path(self.weight + other.weight, self.calls + other.calls)


_NOTHING = _Path()
_Ways: TypeAlias = dict[str, _Path]
"""The shortest way to each end that a block can come to: ``through``, ``returned``, ``broken``,
``continued``."""


def shortest_path(program: Program, weigh: Weigh) -> tuple[Call, ...]:
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
        >>> from agentkit.composites.language import Conditional, Name, Parameter, Return
        >>> f, g = Call(child="f"), Call(child="g")
        >>> choice = Conditional(test=Name(name="x"), then=f, otherwise=g)
        >>> program = Program(parameters=(Parameter(name="x"),), body=(Return(value=choice),))
        >>> [call.child for call in shortest_path(program, {"f": 3, "g": 1}.__getitem__)]
        ['g']

    Cost: one visit of each node; joins are merged, not multiplied.
    """
    ways = _Measure(weigh).block(program.body)
    path = _lightest([ways.get("returned"), ways.get("through")])
    return () if path is None else path.calls


def _lightest(paths: Iterable[_Path | None]) -> _Path | None:
    found = [path for path in paths if path is not None]
    return min(found, key=lambda path: path.weight) if found else None


def _joined(many: Iterable[_Ways]) -> _Ways:
    """The lightest way to each end."""
    joined: _Ways = {}
    for ways in many:
        for end, path in ways.items():
            joined[end] = min(joined.get(end, path), path, key=lambda one: one.weight)
    return joined


def _behind(passed: _Path, ways: _Ways) -> _Ways:
    """The ways with what is passed before them."""
    return {end: passed.then(path) for end, path in ways.items()}


class _Measure:
    """One walk over a program."""

    def __init__(self, weigh: Weigh) -> None:
        self._weigh = weigh

    def block(self, block: Block) -> _Ways:
        """The ways through statements one after the other."""
        ways: _Ways = {"through": _NOTHING}
        for statement in block:
            before = ways.pop("through", None)
            if before is None:
                break
            ways = _joined([ways, _behind(before, self._statement(statement))])
        return ways

    def _statement(self, statement: Statement) -> _Ways:
        match statement:
            case Assign(value=value) | Update(value=value) | Do(call=value):
                return {"through": self.expression(value)}
            case Return(value=value):
                return {"returned": self.expression(value)}
            case If():
                return self._if(statement)
            case For():
                return self._for(statement)
            case Break():
                return {"broken": _NOTHING}
            case Continue():
                return {"continued": _NOTHING}

    def _if(self, statement: If) -> _Ways:
        """A chain of elifs is walked in a loop: it may be longer than the stack is deep."""
        passed = _NOTHING
        ends: list[_Ways] = []
        rest: Block = (statement,)
        while len(rest) == 1 and isinstance(rest[0], If):
            passed = passed.then(self.expression(rest[0].test))
            ends.append(_behind(passed, self.block(rest[0].then)))
            rest = rest[0].otherwise
        ends.append(_behind(passed, self.block(rest)))
        return _joined(ends)

    def _for(self, statement: For) -> _Ways:
        source = self.expression(statement.source)
        if _is_empty(statement.source):
            return {"through": source}
        body = self.block(statement.body)
        once = _lightest([body.get("through"), body.get("continued"), body.get("broken")])
        ends = {"through": once, "returned": body.get("returned")}
        return _behind(source, {end: path for end, path in ends.items() if path is not None})

    def expression(self, expression: Expression) -> _Path:
        """The lightest way to the value of an expression."""
        match expression:
            case Call(child=child):
                inputs = self._all(operands(expression))
                return inputs.then(_Path(self._weigh(child), (expression,)))
            case Boolean():
                return self.expression(expression.operands[0])
            case Compare():
                return self._all(expression.operands[:2])
            case Conditional(test=test, then=then, otherwise=otherwise):
                ways = [self._all([test, then]), self._all([test, otherwise])]
                return min(ways, key=lambda path: path.weight)
            case Comprehension(source=source):
                inside = within(expression)
                if _is_empty(source):
                    return self.expression(source)
                return self._all([source, *(inside[:1] if expression.conditions else inside)])
            case _:
                return self._all(operands(expression))

    def _all(self, expressions: Iterable[Expression]) -> _Path:
        path = _NOTHING
        for expression in expressions:
            path = path.then(self.expression(expression))
        return path


def _is_empty(source: Expression) -> bool:
    """Whether a loop plainly has nothing to go over: such calls do not count."""
    match source:
        case ListLiteral(items=()) | TupleLiteral(items=()) | DictLiteral(keys=()):
            return True
    return source == Constant(value="")
