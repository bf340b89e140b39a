"""Programs to closures over a frame: each node once, when a composite is first run.

Closures of operations try the case of plain numbers and short texts first, which cannot fail and
cost nothing to speak of; anything else goes to the guarded functions, and only what these raise is
given a place. A statement's closure returns None when the next statement follows, or a signal: the
loop is left, its next turn begins, or the program has its result.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any, TypeAlias

from agentkit.composites.functions import FUNCTIONS, iterable, method_of, text_of
from agentkit.composites.guards import (
    BINARY,
    COMPARE,
    FAILURES,
    FIRST_SLOT,
    METER,
    NUMBERS,
    RESULT,
    SCALARS,
    SIGNS,
    Evaluate,
    Frame,
    GuardError,
    fail,
    item_of,
    look_at_key,
    slice_of,
)
from agentkit.composites.language import (
    Block,
    Comprehension,
    arguments_of,
    calls,
    child_of,
    names_in,
    parts,
    targets_of,
    within,
)
from agentkit.composites.syntax import OPERATORS
from agentkit.composites.waiting import side_by_side, waited
from agentkit.errors import UsageError

Bind: TypeAlias = Callable[[Frame, Any], None]
Signal: TypeAlias = str | None
Run: TypeAlias = Callable[[Frame], Signal]

BREAK, CONTINUE, RETURN = "break", "continue", "return"

_SHORT = 64
"""Texts up to here are compared without counting."""

_QUICK = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
_ORDERINGS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class FrameLayout:
    """The places of a program's variables in its frame.

    Those of comprehensions stand among them: the checks refuse one that hides another variable.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._places: dict[str, int] = {}
        for name in names:
            self.of(name)

    @property
    def size(self) -> int:
        """How long the frame is by now."""
        return FIRST_SLOT + len(self._places)

    def of(self, name: str) -> int:
        """The place of a variable, a new one for a name not seen before."""
        return self._places.setdefault(name, self.size)

    def hidden(self) -> int:
        """A place that no variable has."""
        return self.of(f"({self.size})")


class Lowering:
    """Lowers one program over one frame layout.

    Attributes:
        slots: The layout.
        nodes: Nodes lowered since the count was last taken: what a block or the turn of a
            comprehension costs.
    """

    def __init__(self, slots: FrameLayout, children: Mapping[str, Any] | None = None) -> None:
        self.slots = slots
        self.nodes = 0
        self._children = children or {}

    def lower(self, node: ast.expr) -> Evaluate:
        """A closure that gives the value of an expression."""
        self.nodes += 1
        return _EXPRESSIONS[type(node)](self, node)

    def all(self, nodes: Iterable[ast.expr]) -> tuple[Evaluate, ...]:
        """The closures of several expressions, not all of which need be evaluated."""
        return tuple(self.lower(node) for node in nodes)

    def operands(self, nodes: Iterable[ast.expr]) -> tuple[Evaluate, ...]:
        """The closures of expressions that are evaluated one after the other, all of them.

        Calls next to each other may run side by side: the first one then runs all of them.
        """
        made: list[Evaluate] = []
        for overlap, group in groupby(nodes, self._overlaps):
            calls: list[Any] = list(group)
            if not overlap or len(calls) == 1:
                made += map(self.lower, calls)
                continue
            places = [self.slots.hidden() for _ in calls]
            made.append(_first(self._together(calls, places), places[0]))
            made += map(itemgetter, places[1:])
        return tuple(made)

    def _overlaps(self, node: ast.AST | None) -> bool:
        """Whether a call may run beside others: it changes nothing, nor do its arguments."""
        child = self._children.get(child_of(node))
        return node is not None and child is not None and child.overlaps and calls(node) == (node,)

    def _together(self, group: Sequence[ast.Call], places: Sequence[int]) -> Run:
        """A closure that makes calls side by side, and puts their results in these places."""
        begins = []
        for call in group:
            self.nodes += 1
            values = self.operands(value for _, value in arguments_of(call))
            begins.append(self._children[child_of(call)].beginning(call, values))

        def run(frame: Frame) -> None:
            results = waited(side_by_side(begin(frame) for begin in begins))
            for place, result in zip(places, results, strict=True):
                frame[place] = result

        return run

    def call(self, node: ast.Call) -> Evaluate:
        """A call of a child; an expression that stands in no composite makes none."""
        child = child_of(node)
        if child not in self._children:
            raise UsageError(f"an expression calls no tools, but this one calls {child!r}")
        values = self.operands(value for _, value in arguments_of(node))
        lowered: Evaluate = self._children[child].lower(node, values)
        return lowered

    def iterate(self, node: ast.expr) -> Callable[[Frame], Iterable[Any]]:
        """A closure that gives what a loop or a comprehension runs over."""
        source = self.lower(node)

        def run(frame: Frame) -> Iterable[Any]:
            value = source(frame)
            if type(value) is list:
                return value
            try:
                return iterable(value)
            except FAILURES as error:
                fail(frame, node, error)

        return run

    def bind(self, targets: Sequence[str], node: ast.expr) -> Bind:
        """A closure that assigns an item to loop variables."""
        places = tuple(map(self.slots.of, targets))
        if len(places) == 1:
            place = places[0]

            def bind_one(frame: Frame, item: Any) -> None:
                frame[place] = item

            return bind_one

        def bind_several(frame: Frame, item: Any) -> None:
            try:
                values = _unpacked(item, len(places))
            except FAILURES as error:
                fail(frame, node, error)
            for place, value in zip(places, values, strict=True):
                frame[place] = value

        return bind_several

    def block(self, block: Block) -> Run:
        """Statements one after the other, paid for as a whole when the first one begins."""
        outside, self.nodes = self.nodes, 0
        steps = tuple(
            self._overlapping(group) if len(group) > 1 else self.statement(group[0])
            for group in self._grouped(block)
        )
        cost = 1 + len(block) + self.nodes
        self.nodes = outside
        place = next((found for found in map(_first_expression, block) if found), None)

        def run(frame: Frame) -> Signal:
            meter = frame[METER]
            meter.fuel -= cost
            if meter.fuel < 0:
                fail(frame, place, meter.over("fuel"))
            for step in steps:
                signal = step(frame)
                if signal is not None:
                    return signal
            return None

        return run

    def _grouped(self, block: Block) -> Iterator[list[ast.stmt]]:
        """The statements one by one, and as a group those whose calls may run side by side."""
        group: list[ast.stmt] = []
        assigned: set[str] = set()
        for node in block:
            overlaps = self._overlaps(_call_of(node))
            if group and not (overlaps and assigned.isdisjoint(names_in(node))):
                yield group
                group, assigned = [], set()
            if overlaps:
                group.append(node)
                assigned.update(targets_of(node))
            elif not isinstance(node, ast.Pass):
                yield [node]
        if group:
            yield group

    def _overlapping(self, group: Sequence[ast.stmt]) -> Run:
        places = [
            self.slots.of(*names) if (names := targets_of(node)) else self.slots.hidden()
            for node in group
        ]
        return self._together([call for node in group if (call := _call_of(node))], places)

    def statement(self, node: ast.stmt) -> Run:
        """One statement."""
        return _STATEMENTS[type(node)](self, node)


def _call_of(node: ast.stmt) -> ast.Call | None:
    """The call that a statement makes, alone or for one variable; None for another statement."""
    match node:
        case ast.Expr(value=ast.Call() as call):
            return call
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
            return call
    return None


def _first(run: Run, place: int) -> Evaluate:
    """The value that stands in a place once something was run."""

    def value(frame: Frame) -> Any:
        run(frame)
        return frame[place]

    return value


def _first_expression(node: ast.stmt) -> ast.expr | None:
    """The expression that a statement begins with: what it assigns, tests or runs over."""
    return next((part for part in parts(node) if isinstance(part, ast.expr)), None)


def _unpacked(item: Any, count: int) -> Sequence[Any]:
    """The values that several targets are given; Python's own errors when they do not fit."""
    if type(item) is tuple or type(item) is list:
        values: Sequence[Any] = item
    else:  # one item more is enough to know that there are too many
        values = tuple(islice(iterable(item), count + 1))
    if len(values) > count:
        message = f"too many values to unpack (expected {count})"
        raise ValueError(message)
    if len(values) < count:
        message = f"not enough values to unpack (expected {count}, got {len(values)})"
        raise ValueError(message)
    return values


# --- names, numbers, comparisons ------------------------------------------------------------------


def _constant(_lowering: Lowering, node: ast.Constant) -> Evaluate:
    value = node.value
    return lambda _frame: value


def _name(lowering: Lowering, node: ast.Name) -> Evaluate:
    return itemgetter(lowering.slots.of(node.id))


def _binary(lowering: Lowering, node: ast.BinOp) -> Evaluate:
    left, right = lowering.operands((node.left, node.right))
    return _arithmetic(node, OPERATORS[type(node.op)], left, right)


def _arithmetic(node: ast.expr, name: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """Arithmetic on two lowered operands; plain numbers go the quick way."""
    operate, quick, is_linear = BINARY[name], _QUICK.get(name), name in "+-"

    def run(frame: Frame) -> Any:
        one, two = left(frame), right(frame)
        kind = type(one)
        if quick is not None and type(two) is kind:
            if kind is float and (two or is_linear or name == "*"):
                return quick(one, two)
            if kind is int and is_linear:
                value = quick(one, two)
                if frame[METER].low <= value <= frame[METER].high:
                    return value
        try:
            return operate(frame[METER], one, two)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _unary(lowering: Lowering, node: ast.UnaryOp) -> Evaluate:
    operand = lowering.lower(node.operand)
    if isinstance(node.op, ast.Not):
        return lambda frame: not operand(frame)
    return _applied(node, SIGNS[OPERATORS[type(node.op)]], (operand,))


def _compare(lowering: Lowering, node: ast.Compare) -> Evaluate:
    names = [OPERATORS[type(op)] for op in node.ops]
    values = (node.left, *node.comparators)
    if len(names) == 1:
        return _compare_two(node, names[0], *lowering.operands(values))
    operands = lowering.all(values)
    steps = tuple(_comparison(node, name) for name in names)

    def run(frame: Frame) -> Any:
        left, value = operands[0](frame), True
        for step, operand in zip(steps, operands[1:], strict=True):
            right = operand(frame)
            value = step(frame, left, right)
            if not value:
                return value
            left = right
        return value

    return run


def _comparison(node: ast.expr, name: str) -> Callable[[Frame, Any, Any], bool]:
    """One comparison of two values."""
    operate = COMPARE[name]

    def run(frame: Frame, left: Any, right: Any) -> bool:
        try:
            found: bool = operate(frame[METER], left, right)
        except FAILURES as error:
            fail(frame, node, error)
        return found

    return run


def _compare_two(node: ast.expr, name: str, left: Evaluate, right: Evaluate) -> Evaluate:
    compare, quick = _comparison(node, name), _ORDERINGS.get(name)
    if quick is None:
        return lambda frame: compare(frame, left(frame), right(frame))

    def run(frame: Frame) -> bool:
        one, two = left(frame), right(frame)
        kind = type(one)
        if kind is str:
            if type(two) is str and len(two) < _SHORT:
                return quick(one, two)
        elif kind in NUMBERS and type(two) in NUMBERS:
            return quick(one, two)
        return compare(frame, one, two)

    return run


def _boolean(lowering: Lowering, node: ast.BoolOp) -> Evaluate:
    first, *rest = lowering.all(node.values)
    stop = isinstance(node.op, ast.Or)

    def run(frame: Frame) -> Any:
        value = first(frame)
        for operand in rest:
            if bool(value) is stop:
                return value
            value = operand(frame)
        return value

    return run


def _conditional(lowering: Lowering, node: ast.IfExp) -> Evaluate:
    test, then, otherwise = lowering.all((node.test, node.body, node.orelse))
    return lambda frame: then(frame) if test(frame) else otherwise(frame)


# --- containers, functions, texts -----------------------------------------------------------------


def _list_literal(lowering: Lowering, node: ast.List | ast.Tuple) -> Evaluate:
    items = lowering.operands(node.elts)
    if isinstance(node, ast.Tuple):
        return lambda frame: tuple([item(frame) for item in items])
    return lambda frame: [item(frame) for item in items]


def _dict_literal(lowering: Lowering, node: ast.Dict) -> Evaluate:
    pairs: Any = zip(node.keys, node.values, strict=True)
    values = lowering.operands(chain.from_iterable(pairs))
    entries = tuple(zip(values[::2], values[1::2], strict=True))

    def run(frame: Frame) -> Any:
        made: dict[Any, Any] = {}
        for key, value in [(key(frame), value(frame)) for key, value in entries]:
            _put(frame, node, made, key, value)
        return made

    return run


def _put(frame: Frame, node: ast.expr, made: dict[Any, Any], key: Any, value: Any) -> None:
    """One entry of a dict that is being built."""
    try:
        if type(key) is not str:
            look_at_key(frame[METER], key, made)
        made[key] = value
    except FAILURES as error:
        fail(frame, node, error)


def _index(lowering: Lowering, node: ast.Subscript) -> Evaluate:
    if isinstance(node.slice, ast.Slice):
        absent = ast.Constant(value=None)
        bounds = [one or absent for one in (node.slice.lower, node.slice.upper, node.slice.step)]
        return _applied(node, slice_of, lowering.operands((node.value, *bounds)))
    value_of, index_of = lowering.operands((node.value, node.slice))

    def run(frame: Frame) -> Any:
        value, place = value_of(frame), index_of(frame)
        try:
            if type(value) is dict and type(place) is str:
                return value[place]
            return item_of(frame[METER], value, place)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _applied(node: ast.expr, operate: Callable[..., Any], operands: Sequence[Evaluate]) -> Evaluate:
    """A guarded function of lowered operands."""

    def run(frame: Frame) -> Any:
        values = [operand(frame) for operand in operands]
        try:
            return operate(frame[METER], *values)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _call(lowering: Lowering, node: ast.Call) -> Evaluate:
    match node.func:
        case ast.Attribute(value=receiver, attr=name):
            return _method(lowering, node, receiver, name)
        case ast.Name(id=name) if name in FUNCTIONS:
            return _builtin(lowering, node, name)
    return lowering.call(node)


def _builtin(lowering: Lowering, node: ast.Call, name: str) -> Evaluate:
    function, keywords, positional = FUNCTIONS[name], arguments_of(node), len(node.args)
    arguments = lowering.operands([*node.args, *(value for _, value in keywords)])
    if not keywords:
        return _applied(node, function, arguments)
    names = tuple(name for name, _ in keywords)

    def operate(meter: Any, *values: Any) -> Any:
        named = dict(zip(names, values[positional:], strict=True))
        return function(meter, *values[:positional], **named)

    return _applied(node, operate, arguments)


def _method(lowering: Lowering, node: ast.Call, inner: ast.expr, name: str) -> Evaluate:
    receiver, arguments = lowering.lower(inner), lowering.operands(node.args)

    def run(frame: Frame) -> Any:
        value = receiver(frame)
        try:
            method = method_of(value, name)  # before the arguments, as Python does
        except FAILURES as error:
            fail(frame, node, error)
        values = [argument(frame) for argument in arguments]
        try:
            return method(frame[METER], value, *values)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _format(lowering: Lowering, node: ast.JoinedStr) -> Evaluate:
    def formatted(meter: Any, *parts: Any) -> str:
        texts = [text_of(meter, part) for part in parts]
        meter.make_text(sum(map(len, texts)))
        return "".join(texts)

    values: Any = parts(node)  # which are expressions
    return _applied(node, formatted, lowering.operands(values))


# --- comprehensions -------------------------------------------------------------------------------


def _comprehension(lowering: Lowering, node: Comprehension) -> Evaluate:
    clause = node.generators[0]
    source = lowering.iterate(clause.iter)
    before = lowering.nodes
    bind = lowering.bind(targets_of(node), clause.iter)
    conditions = lowering.all(clause.ifs)
    *keys, element = lowering.all(within(node)[len(conditions) :])
    cost, lowering.nodes = 1 + lowering.nodes - before, before

    def turns(frame: Frame, items: Iterable[Any]) -> Iterator[None]:
        """Runs over the items, binds the variables, and stops at those that fit."""
        meter = frame[METER]
        for item in items:
            meter.fuel -= cost
            if meter.fuel < 0:
                fail(frame, node, meter.over("fuel"))
            bind(frame, item)
            for condition in conditions:
                if not condition(frame):
                    break
            else:
                yield None

    def generate(frame: Frame, items: Iterator[Any]) -> Iterator[Any]:
        for _ in turns(frame, items):
            yield element(frame)

    def run(frame: Frame) -> list[Any]:
        most = frame[METER].limits.collection_items
        fitting = turns(frame, source(frame))
        items = [element(frame) for _ in islice(fitting, most + 1)]
        if len(items) > most:
            fail(frame, node, frame[METER].over("collection_items"))
        return items

    def run_with_keys(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        most = frame[METER].limits.collection_items
        for _ in turns(frame, source(frame)):
            name = keys[0](frame)
            _put(frame, node, made, name, element(frame))
            if len(made) > most:
                fail(frame, node, frame[METER].over("collection_items"))
        return made

    if isinstance(node, ast.GeneratorExp):
        return lambda frame: generate(frame, iter(source(frame)))
    return run_with_keys if keys else run


_EXPRESSIONS: Mapping[type, Callable[[Lowering, Any], Evaluate]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Call: _call,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.IfExp: _conditional,
    ast.List: _list_literal,
    ast.Tuple: _list_literal,
    ast.Dict: _dict_literal,
    ast.Subscript: _index,
    ast.JoinedStr: _format,
    ast.ListComp: _comprehension,
    ast.DictComp: _comprehension,
    ast.GeneratorExp: _comprehension,
}


# --- statements -----------------------------------------------------------------------------------


def _assign(lowering: Lowering, node: ast.Assign) -> Run:
    value, names = lowering.lower(node.value), targets_of(node)
    if len(names) == 1:
        place = lowering.slots.of(*names)

        def run_one(frame: Frame) -> None:
            frame[place] = value(frame)

        return run_one
    bind = lowering.bind(names, node.value)

    def run(frame: Frame) -> None:
        bind(frame, value(frame))

    return run


def _update(lowering: Lowering, node: ast.AugAssign) -> Run:
    (name,), sign = targets_of(node), OPERATORS[type(node.op)]
    place = lowering.slots.of(name)
    written = ast.BinOp(left=ast.Name(id=name), op=node.op, right=node.value)

    def current(frame: Frame) -> Any:
        if type(frame[place]) is list and sign in ("+", "*"):
            message = (
                f"`{name} {sign}= ...` would change a list that others may hold; "
                f"write `{name} = {name} {sign} ...`"
            )
            fail(frame, written, GuardError("in_place_list", message))
        return frame[place]

    changed = _arithmetic(written, sign, current, lowering.lower(node.value))

    def run(frame: Frame) -> None:
        frame[place] = changed(frame)

    return run


def _do(lowering: Lowering, node: ast.Expr) -> Run:
    call = lowering.lower(node.value)

    def run(frame: Frame) -> None:
        call(frame)

    return run


def _if(lowering: Lowering, node: ast.If) -> Run:
    test = lowering.lower(node.test)
    then = lowering.block(node.body)
    if not node.orelse:
        return lambda frame: then(frame) if test(frame) else None
    otherwise = lowering.block(node.orelse)
    return lambda frame: then(frame) if test(frame) else otherwise(frame)


def _for(lowering: Lowering, node: ast.For) -> Run:
    source = lowering.iterate(node.iter)
    bind = lowering.bind(targets_of(node), node.iter)
    body = lowering.block(node.body)

    def run(frame: Frame) -> Signal:
        for item in source(frame):
            bind(frame, item)
            signal = body(frame)
            if signal is BREAK:
                break
            if signal is RETURN:
                return signal
        return None

    return run


def _return(lowering: Lowering, node: ast.Return) -> Run:
    returned = node.value or ast.Constant(value=None)
    value = lowering.lower(returned)

    def run(frame: Frame) -> Signal:
        result = frame[RESULT] = value(frame)
        if type(result) not in SCALARS:
            try:
                frame[METER].cross(result)
            except FAILURES as error:
                fail(frame, returned, error)
        return RETURN

    return run


_STATEMENTS: Mapping[type, Callable[[Lowering, Any], Run]] = {
    ast.Assign: _assign,
    ast.AugAssign: _update,
    ast.Expr: _do,
    ast.If: _if,
    ast.For: _for,
    ast.Return: _return,
    ast.Break: lambda _lowering, _node: lambda _frame: BREAK,
    ast.Continue: lambda _lowering, _node: lambda _frame: CONTINUE,
}
