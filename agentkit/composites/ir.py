"""The form of a composite: a small program as data, made of frozen nodes.

The nodes carry no positions and no names of their own, so that two texts with the same meaning
are the same program. Every child call names its arguments; the order of arguments is the order
of evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

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
