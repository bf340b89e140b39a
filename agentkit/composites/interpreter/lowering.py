"""Expressions to closures: each node once, when a composite is made.

Every closure takes the frame. Those of operations try the case of plain numbers and short texts
first, which can not fail and cost nothing to speak of; anything else goes to the guarded functions,
and only what these raise is given a place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from agentkit.composites import ir
from agentkit.composites.checking.calls import builtin_faults
from agentkit.composites.faults import placed, refusal
from agentkit.composites.interpreter.failures import FAILURES, fail
from agentkit.composites.interpreter.frames import (
    FIRST_SLOT,
    METER,
    Evaluate,
    Frame,
)
from agentkit.composites.interpreter.functions import FUNCTIONS, iterable, text_of
from agentkit.composites.interpreter.meter import out_of_fuel
from agentkit.composites.interpreter.methods import method_of
from agentkit.composites.interpreter.operations import (
    BINARY,
    COMPARE,
    item_of,
    look_at_key,
    negative,
    positive,
    slice_of,
)
from agentkit.composites.interpreter.weights import NUMBERS
from agentkit.composites.language import ORDERINGS

CallLowering = Callable[[ir.Call, Sequence[Evaluate]], Evaluate]
Bind = Callable[[Frame, Any], None]

_SHORT = 64
"""Texts up to here are compared without counting."""

_LINEAR = {"+": operator.add, "-": operator.sub}


class Slots:
    """Where the variables of a program stand in its frame; a comprehension has its own."""

    def __init__(self, names: Iterable[str]) -> None:
        self._places: dict[str, int] = {}
        self.size = FIRST_SLOT
        for name in names:
            self.of(name)

    def of(self, name: str) -> int:
        """The place of a variable, a new one for a name not seen before."""
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = self.fresh()
        return place

    def fresh(self) -> int:
        """A place of no name."""
        self.size += 1
        return self.size - 1

    def shadow(self, names: Sequence[str]) -> dict[str, int]:
        """Give names new places; returns what ``restore`` needs."""
        before = self._places.copy()
        for name in names:
            self._places[name] = self.fresh()
        return before

    def restore(self, places: dict[str, int]) -> None:
        """Back to the places of an outer scope."""
        self._places = places


class ExpressionLowering:
    """Lowers expressions over one frame layout.

    Attributes:
        slots: The layout.
        nodes: Nodes lowered since the count was last taken: what a block or the turn of a
            comprehension costs.
    """

    def __init__(self, slots: Slots, lower_call: CallLowering) -> None:
        self.slots = slots
        self.nodes = 0
        self._lower_call = lower_call

    def lower(self, node: ir.Expression) -> Evaluate:
        """A closure that gives the value of an expression."""
        self.nodes += 1
        return _LOWERINGS[type(node)](self, node)

    def all(self, nodes: Iterable[ir.Expression]) -> tuple[Evaluate, ...]:
        """The closures of several expressions."""
        return tuple(self.lower(node) for node in nodes)

    def call(self, node: ir.Call) -> Evaluate:
        """A call of a child."""
        return self._lower_call(node, self.all(argument.value for argument in node.arguments))

    def iterate(self, node: ir.Expression) -> Callable[[Frame], Iterable[Any]]:
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

    def bind(self, targets: Sequence[str], node: ir.Expression) -> Bind:
        """A closure that assigns an item to loop variables."""
        places = tuple(map(self.slots.of, targets))
        if len(places) == 1:
            place = places[0]

            def bind_one(frame: Frame, item: Any) -> None:
                frame[place] = item

            return bind_one

        def bind_several(frame: Frame, item: Any) -> None:
            try:
                values = unpacked(item, len(places))
            except FAILURES as error:
                fail(frame, node, error)
            for place, value in zip(places, values, strict=True):
                frame[place] = value

        return bind_several


def unpacked(item: Any, count: int) -> Sequence[Any]:
    """The values that several targets are given.

    Raises:
        ValueError: There are more or fewer of them.
        TypeError: It is no iterable.
    """
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


def _constant(_lowering: ExpressionLowering, node: ir.Constant) -> Evaluate:
    value = node.value
    return lambda _frame: value


def _name(lowering: ExpressionLowering, node: ir.Name) -> Evaluate:
    return itemgetter(lowering.slots.of(node.name))


def _binary(lowering: ExpressionLowering, node: ir.Binary) -> Evaluate:
    left, right = lowering.lower(node.left), lowering.lower(node.right)
    return binary(node, node.operator, left, right)


def binary(node: ir.Expression, name: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """Arithmetic on two lowered operands."""
    if name in _LINEAR:
        return _linear(node, name, left, right)
    if name == "*":
        return _product(node, left, right)
    operate = BINARY[name]

    def run(frame: Frame) -> Any:
        one, two = left(frame), right(frame)
        if type(one) is float and type(two) is float and two and name == "/":
            return one / two
        try:
            return operate(frame[METER], one, two)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _linear(node: ir.Expression, name: str, left: Evaluate, right: Evaluate) -> Evaluate:
    quick, operate = _LINEAR[name], BINARY[name]

    def run(frame: Frame) -> Any:
        one, two = left(frame), right(frame)
        kind = type(one)
        if type(two) is kind:
            if kind is float:
                return quick(one, two)
            if kind is int:
                value = quick(one, two)
                if frame[METER].low <= value <= frame[METER].high:
                    return value
        try:
            return operate(frame[METER], one, two)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _product(node: ir.Expression, left: Evaluate, right: Evaluate) -> Evaluate:
    operate = BINARY["*"]

    def run(frame: Frame) -> Any:
        one, two = left(frame), right(frame)
        if type(one) is float and type(two) is float:
            return one * two
        try:
            return operate(frame[METER], one, two)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _unary(lowering: ExpressionLowering, node: ir.Unary) -> Evaluate:
    operand = lowering.lower(node.operand)
    if node.operator == "not":
        return lambda frame: not operand(frame)
    operate = negative if node.operator == "-" else positive

    def run(frame: Frame) -> Any:
        value = operand(frame)
        try:
            return operate(frame[METER], value)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _compare(lowering: ExpressionLowering, node: ir.Compare) -> Evaluate:
    operands = lowering.all(node.operands)
    steps = tuple(comparison(node, name) for name in node.operators)
    if len(steps) == 1:
        return compare_two(node, node.operators[0], *operands)

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


def comparison(node: ir.Expression, name: str) -> Callable[[Frame, Any, Any], bool]:
    """One comparison of two values."""
    operate = COMPARE[name]

    def run(frame: Frame, left: Any, right: Any) -> bool:
        try:
            found: bool = operate(frame[METER], left, right)
        except FAILURES as error:
            fail(frame, node, error)
        return found

    return run


def compare_two(node: ir.Expression, name: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """A comparison of two lowered operands."""
    compare, quick = comparison(node, name), ORDERINGS.get(name)
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


# --- branches -------------------------------------------------------------------------------------


def _boolean(lowering: ExpressionLowering, node: ir.Boolean) -> Evaluate:
    operands = lowering.all(node.operands)
    first, rest, stop = operands[0], operands[1:], node.operator == "or"

    def run(frame: Frame) -> Any:
        value = first(frame)
        for operand in rest:
            if bool(value) is stop:
                return value
            value = operand(frame)
        return value

    return run


def _conditional(lowering: ExpressionLowering, node: ir.Conditional) -> Evaluate:
    test, then, otherwise = lowering.all((node.test, node.then, node.otherwise))
    return lambda frame: then(frame) if test(frame) else otherwise(frame)


# --- containers -----------------------------------------------------------------------------------


def _list_literal(lowering: ExpressionLowering, node: ir.ListLiteral) -> Evaluate:
    items = lowering.all(node.items)
    return lambda frame: [item(frame) for item in items]


def _tuple_literal(lowering: ExpressionLowering, node: ir.TupleLiteral) -> Evaluate:
    items = lowering.all(node.items)
    return lambda frame: tuple([item(frame) for item in items])


def _dict_literal(lowering: ExpressionLowering, node: ir.DictLiteral) -> Evaluate:
    keys, values = lowering.all(node.keys), lowering.all(node.values)
    entries = tuple(zip(keys, values, strict=True))

    def run(frame: Frame) -> Any:
        made: dict[Any, Any] = {}
        for key, value in [(key(frame), value(frame)) for key, value in entries]:
            put(frame, node, made, key, value)
        return made

    return run


def put(frame: Frame, node: ir.Expression, made: dict[Any, Any], key: Any, value: Any) -> None:
    """One entry of a dict that is being built."""
    try:
        if type(key) is not str:
            look_at_key(frame[METER], key, made)
        made[key] = value
    except FAILURES as error:
        fail(frame, node, error)


def _index(lowering: ExpressionLowering, node: ir.Index) -> Evaluate:
    return index(node, lowering.lower(node.value), lowering.lower(node.index))


def index(node: ir.Expression, value_of: Evaluate, index_of: Evaluate) -> Evaluate:
    """``value[index]`` of two lowered operands."""

    def run(frame: Frame) -> Any:
        value, place = value_of(frame), index_of(frame)
        try:
            if type(value) is dict and type(place) is str:
                return value[place]
            return item_of(frame[METER], value, place)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _slice(lowering: ExpressionLowering, node: ir.Slice) -> Evaluate:
    absent = ir.Constant(value=None)
    bounds = (node.start or absent, node.stop or absent, node.step or absent)
    return applied(node, slice_of, lowering.all((node.value, *bounds)))


def applied(
    node: ir.Expression, operate: Callable[..., Any], operands: Sequence[Evaluate]
) -> Evaluate:
    """A guarded function of lowered operands."""

    def run(frame: Frame) -> Any:
        values = [operand(frame) for operand in operands]
        try:
            return operate(frame[METER], *values)
        except FAILURES as error:
            fail(frame, node, error)

    return run


# --- functions, methods, texts --------------------------------------------------------------------


def _builtin(lowering: ExpressionLowering, node: ir.Builtin) -> Evaluate:
    function = _known_function(node)
    arguments = lowering.all(node.arguments)
    if node.keywords:
        names = tuple(keyword.name for keyword in node.keywords)
        operate = with_keywords(function, len(arguments), names)
        return applied(node, operate, arguments + lowering.all(k.value for k in node.keywords))
    if len(arguments) != 1:
        return applied(node, function, arguments)
    argument = arguments[0]

    def run(frame: Frame) -> Any:
        value = argument(frame)
        try:
            return function(frame[METER], value)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _known_function(node: ir.Builtin) -> Callable[..., Any]:
    function = FUNCTIONS.get(node.function)
    if function is None:  # of a program that nobody has checked
        raise refusal("", placed(builtin_faults(node), lambda _: (1, 1)))
    return function


def with_keywords(
    function: Callable[..., Any], positional: int, names: Sequence[str]
) -> Callable[..., Any]:
    """The function with its last arguments given by name."""

    def run(meter: Any, *values: Any) -> Any:
        keywords = dict(zip(names, values[positional:], strict=True))
        return function(meter, *values[:positional], **keywords)

    return run


def _method(lowering: ExpressionLowering, node: ir.Method) -> Evaluate:
    receiver, arguments = lowering.lower(node.receiver), lowering.all(node.arguments)

    def run(frame: Frame) -> Any:
        value = receiver(frame)
        try:
            method = method_of(value, node.method)  # before the arguments, as Python does
        except FAILURES as error:
            fail(frame, node, error)
        values = [argument(frame) for argument in arguments]
        try:
            return method(frame[METER], value, *values)
        except FAILURES as error:
            fail(frame, node, error)

    return run


def _format(lowering: ExpressionLowering, node: ir.Format) -> Evaluate:
    return applied(node, formatted, lowering.all(node.parts))


def formatted(meter: Any, *parts: Any) -> str:
    """The text of an f-string."""
    texts = [text_of(meter, part) for part in parts]
    meter.make_text(sum(map(len, texts)))
    return "".join(texts)


# --- comprehensions -------------------------------------------------------------------------------


def _comprehension(lowering: ExpressionLowering, node: ir.Comprehension) -> Evaluate:
    source = lowering.iterate(node.source)
    outer, before = lowering.slots.shadow(node.targets), lowering.nodes
    bind = lowering.bind(node.targets, node.source)
    conditions = lowering.all(node.conditions)
    key = None if node.key is None else lowering.lower(node.key)
    element = lowering.lower(node.element)
    cost, lowering.nodes = 1 + lowering.nodes - before, before
    lowering.slots.restore(outer)
    turns = _turns(node, bind, conditions, cost)
    if key is not None:
        return _dict_of(node, source, turns, key, element)
    if node.kind == "generator":
        return lambda frame: _generated(frame, turns(frame, iter(source(frame))), element)

    def run(frame: Frame) -> list[Any]:
        most = frame[METER].limits.collection_items
        fitting = turns(frame, source(frame))
        items = [element(frame) for _ in islice(fitting, most + 1)]
        if len(items) > most:
            fail(frame, node, frame[METER].too_many_items())
        return items

    return run


def _turns(
    node: ir.Comprehension, bind: Bind, conditions: Sequence[Evaluate], cost: int
) -> Callable[[Frame, Iterable[Any]], Iterator[None]]:
    """Runs over the items, binds the variables, and stops at those that fit."""

    def run(frame: Frame, items: Iterable[Any]) -> Iterator[None]:
        meter = frame[METER]
        for item in items:
            meter.fuel -= cost
            if meter.fuel < 0:
                fail(frame, node, out_of_fuel(meter))
            bind(frame, item)
            for condition in conditions:
                if not condition(frame):
                    break
            else:
                yield None

    return run


def _generated(frame: Frame, turns: Iterator[None], element: Evaluate) -> Iterator[Any]:
    for _ in turns:
        yield element(frame)


def _dict_of(
    node: ir.Comprehension,
    source: Callable[[Frame], Iterable[Any]],
    turns: Callable[[Frame, Iterable[Any]], Iterator[None]],
    key: Evaluate,
    element: Evaluate,
) -> Evaluate:
    def run(frame: Frame) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        most = frame[METER].limits.collection_items
        for _ in turns(frame, source(frame)):
            name = key(frame)
            put(frame, node, made, name, element(frame))
            if len(made) > most:
                fail(frame, node, frame[METER].too_many_items())
        return made

    return run


_LOWERINGS: Mapping[type, Callable[..., Evaluate]] = {
    ir.Constant: _constant,
    ir.Name: _name,
    ir.Call: ExpressionLowering.call,
    ir.Builtin: _builtin,
    ir.Method: _method,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Compare: _compare,
    ir.Boolean: _boolean,
    ir.Conditional: _conditional,
    ir.ListLiteral: _list_literal,
    ir.TupleLiteral: _tuple_literal,
    ir.DictLiteral: _dict_literal,
    ir.Index: _index,
    ir.Slice: _slice,
    ir.Format: _format,
    ir.Comprehension: _comprehension,
}
