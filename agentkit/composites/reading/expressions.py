"""Expressions other than calls."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from types import EllipsisType

from agentkit.composites import advice, ir
from agentkit.composites.decoding import is_text
from agentkit.composites.faults import HOLE
from agentkit.composites.reading.calls import dotted
from agentkit.composites.reading.context import ReadExpression, Reading

BINARY: Mapping[type[ast.operator], ir.BinaryOperator] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
}
_UNARY: Mapping[type[ast.unaryop], ir.UnaryOperator] = {
    ast.UAdd: "+",
    ast.USub: "-",
    ast.Not: "not",
}
_COMPARE: Mapping[type[ast.cmpop], ir.CompareOperator] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
FOREIGN_OPERATORS: Mapping[type[ast.operator | ast.unaryop], tuple[str, str]] = {
    ast.BitAnd: ("&", "Use `and`, or a comprehension with `in` for what two lists share."),
    ast.BitOr: ("|", "Use `or`, or build the joined dict or list with a comprehension."),
    ast.BitXor: ("^", "Use `!=` between truth values, or `**` for a power."),
    ast.LShift: ("<<", "Multiply by a power of two: `x * 2 ** n`."),
    ast.RShift: (">>", "Divide by a power of two: `x // 2 ** n`."),
    ast.MatMult: ("@", "Use `sum(a * b for a, b in zip(xs, ys))`."),
    ast.Invert: ("~", "Use `not x` for a truth value, `-x - 1` for a number."),
}
"""Operators of Python that the language does not have: their spelling, and what to write."""


def foreign_operator(
    reading: Reading, node: ast.expr | ast.stmt, operator: ast.operator | ast.unaryop
) -> ir.Name:
    """Refuse an operator on bits or matrices."""
    spelling, hint = FOREIGN_OPERATORS[type(operator)]
    return reading.refuse(
        node, "unknown_construct", f"the operator `{spelling}` is not in the language", hint
    )


def _constant(reading: Reading, node: ast.Constant) -> ir.Expression:
    value = node.value
    complaint = None if value is None else _literal_complaint(reading, value)
    if complaint is not None or isinstance(value, bytes | complex | EllipsisType):
        return reading.refuse(node, "literal", *(complaint or _FOREIGN_LITERALS[type(value)]))
    return ir.Constant(value=value)


def _literal_complaint(reading: Reading, value: object) -> tuple[str, str] | None:
    """What is wrong with a literal, and what to write; None when it may stand."""
    limits = reading.limits
    if isinstance(value, str):
        if len(value) > limits.string_chars:
            what = f"a text of {len(value)} characters is longer than {limits.string_chars}"
            return what, "Pass long texts in as arguments."
        if not is_text(value):
            what = "a text with half of a surrogate pair is no JSON"
            return what, "Write the whole character."
    elif isinstance(value, int):
        if value.bit_length() > limits.integer_bits:
            what = f"an integer of {value.bit_length()} bits is larger than {limits.integer_bits}"
            return what, "Use a smaller number, or a float such as 1e300."
    elif isinstance(value, float) and not math.isfinite(value):
        return "a number is beyond the range of floats", "Use a number up to 1.7e308."
    return None


_FOREIGN_LITERALS: Mapping[type, tuple[str, str]] = {
    bytes: ("bytes are no JSON", "Write a text, without the b in front."),
    complex: ("a complex number is no JSON", "Use real numbers."),
    EllipsisType: ("`...` stands for nothing that can run", "Write the code, or `pass`."),
}


def _name(_: Reading, node: ast.Name) -> ir.Expression:
    return ir.Name(name=node.id)


def _unary(reading: Reading, node: ast.UnaryOp) -> ir.Expression:
    operator = _UNARY.get(type(node.op))
    if operator is None:
        return foreign_operator(reading, node, node.op)
    return ir.Unary(operator=operator, operand=reading.expression(node.operand))


def _binary(reading: Reading, node: ast.BinOp) -> ir.Expression:
    operator = BINARY.get(type(node.op))
    if operator is None:
        return foreign_operator(reading, node, node.op)
    left = reading.expression(node.left)
    return ir.Binary(operator=operator, left=left, right=reading.expression(node.right))


def _compare(reading: Reading, node: ast.Compare) -> ir.Expression:
    operators = tuple([_COMPARE[type(operator)] for operator in node.ops])
    operands = reading.expressions([node.left, *node.comparators])
    return ir.Compare(operators=operators, operands=operands)


def _boolean(reading: Reading, node: ast.BoolOp) -> ir.Expression:
    operator: ir.BooleanOperator = "and" if isinstance(node.op, ast.And) else "or"
    return ir.Boolean(operator=operator, operands=reading.expressions(node.values))


def _conditional(reading: Reading, node: ast.IfExp) -> ir.Expression:
    test = reading.expression(node.test)
    then = reading.expression(node.body)
    return ir.Conditional(test=test, then=then, otherwise=reading.expression(node.orelse))


def _list(reading: Reading, node: ast.List) -> ir.Expression:
    return ir.ListLiteral(items=reading.expressions(node.elts))


def _tuple(reading: Reading, node: ast.Tuple) -> ir.Expression:
    return ir.TupleLiteral(items=reading.expressions(node.elts))


def _dict(reading: Reading, node: ast.Dict) -> ir.Expression:
    keys, values = [], []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            reading.refuse(
                value,
                "unknown_construct",
                "`**` inside a dict literal is not in the language",
                "List the entries one by one, or use a dict comprehension over .items().",
            )
        else:
            keys.append(reading.expression(key))
            values.append(reading.expression(value))
    return ir.DictLiteral(keys=tuple(keys), values=tuple(values))


def _subscript(reading: Reading, node: ast.Subscript) -> ir.Expression:
    value = reading.expression(node.value)
    index = node.slice
    if not isinstance(index, ast.Slice):
        return ir.Index(value=value, index=reading.expression(index))
    start, stop, step = (
        None if bound is None else reading.expression(bound)
        for bound in (index.lower, index.upper, index.step)
    )
    return ir.Slice(value=value, start=start, stop=stop, step=step)


def _fstring(reading: Reading, node: ast.JoinedStr) -> ir.Expression:
    made: list[ir.Expression] = []
    text = ""
    for value in node.values:
        part = _part(reading, value)
        if isinstance(part, ir.Constant):
            text += str(part.value)
            continue
        if text:
            made.append(_text(reading, text, node))
        text = ""
        made.append(part)
    if not made:
        return ir.Constant(value=text)
    if text:
        made.append(_text(reading, text, node))
    return ir.Format(parts=tuple(made))


def _text(reading: Reading, text: str, node: ast.JoinedStr) -> ir.Constant:
    made = ir.Constant(value=text)
    reading.nodes[id(made)] = node
    return made


def _part(reading: Reading, node: ast.expr) -> ir.Expression:
    if not isinstance(node, ast.FormattedValue):
        return reading.expression(node)
    if node.conversion != -1:
        _refuse_format(reading, node, f"the conversion `!{chr(node.conversion)}`")
    if node.format_spec is not None:
        _refuse_format(reading, node, "a format after `:`")
    return reading.expression(node.value)


def _refuse_format(reading: Reading, node: ast.expr, what: str) -> None:
    reading.refuse(
        node,
        "format_specification",
        f"an f-string holds {what}",
        "Write plain {value}; for digits after the point use {round(value, 2)}.",
    )


def _list_comprehension(reading: Reading, node: ast.ListComp) -> ir.Expression:
    return _comprehension(reading, node, "list", node.elt, None)


def _dict_comprehension(reading: Reading, node: ast.DictComp) -> ir.Expression:
    return _comprehension(reading, node, "dict", node.value, node.key)


def _generator(reading: Reading, node: ast.GeneratorExp) -> ir.Expression:
    return _comprehension(reading, node, "generator", node.elt, None)


def _comprehension(
    reading: Reading,
    node: ast.ListComp | ast.DictComp | ast.GeneratorExp,
    kind: ir.ComprehensionKind,
    element: ast.expr,
    key: ast.expr | None,
) -> ir.Expression:
    clause = node.generators[0]
    if len(node.generators) > 1:
        return reading.refuse(
            node,
            "nested_comprehension",
            "a comprehension has more than one `for`",
            "Use one `for`, and a for statement around it.",
        )
    if clause.is_async:
        return reading.refuse(
            node, "unknown_construct", "`async for` is not in the language", "Use a plain `for`."
        )
    targets = targets_of(reading, clause.target)
    return ir.Comprehension(
        kind=kind,
        targets=targets,
        source=reading.expression(clause.iter),
        conditions=reading.expressions(clause.ifs),
        key=None if key is None else reading.expression(key),
        element=reading.expression(element),
    )


def targets_of(reading: Reading, target: ast.expr) -> tuple[str, ...]:
    """The names that a loop or an assignment sets."""
    if type(target) is ast.Name:
        return (target.id,)
    if not isinstance(target, ast.Tuple | ast.List):
        return (_target(reading, target),)
    if len(target.elts) < 2:
        reading.refuse(
            target,
            "unknown_construct",
            f"`{reading.quote(target)}` unpacks fewer than two items",
            "Take the one item by its index, `xs[0]`.",
        )
        return (HOLE,)
    return tuple([_target(reading, item) for item in target.elts])


def _target(reading: Reading, item: ast.expr) -> str:
    if isinstance(item, ast.Name):
        return item.id
    message, hint = _TARGETS[type(item)]
    reading.refuse(item, "unknown_construct", message, hint)
    reading.lost.update(
        node.id
        for node in ast.walk(item)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    return HOLE


_TARGETS: Mapping[type[ast.expr], tuple[str, str]] = {
    ast.Attribute: (
        "an attribute can not be assigned",
        "Values are JSON: build a new dict, `{'key': value}`.",
    ),
    ast.Subscript: (
        "an item can not be assigned: nothing in the language changes a value",
        "Build the list or dict in one go, with a comprehension or a literal.",
    ),
    ast.Starred: (
        "a star can not take the rest",
        "Take items by index and slice: `first = xs[0]`, `rest = xs[1:]`.",
    ),
    ast.Tuple: ("targets can not be nested", "Unpack in two steps."),
    ast.List: ("targets can not be nested", "Unpack in two steps."),
}


def _attribute(reading: Reading, node: ast.Attribute) -> ir.Expression:
    root = node.value
    while isinstance(root, ast.Attribute):  # one complaint for the whole walk
        root = root.value
    reading.expression(root)
    hint = advice.NAMES.get(dotted(node))
    return reading.refuse(
        node,
        "unknown_construct",
        f"`{reading.quote(node)}` reads an attribute",
        hint or f"Read an entry of a dict: `{reading.quote(node.value)}[{node.attr!r}]`.",
    )


def _foreign(reading: Reading, node: ast.expr) -> ir.Expression:
    """Refuse what is not in the language, known to us or not."""
    reading.lost.update(
        part.id
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    )
    unknown = f"`{reading.quote(node)}` is", "Use the expressions of the language."
    what, hint = advice.EXPRESSIONS.get(type(node).__name__, unknown)
    return reading.refuse(node, "unknown_construct", f"{what} not in the language", hint)


READERS: Mapping[type[ast.AST], ReadExpression] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.UnaryOp: _unary,
    ast.BinOp: _binary,
    ast.Compare: _compare,
    ast.BoolOp: _boolean,
    ast.IfExp: _conditional,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.JoinedStr: _fstring,
    ast.ListComp: _list_comprehension,
    ast.DictComp: _dict_comprehension,
    ast.GeneratorExp: _generator,
    ast.Attribute: _attribute,
    ast.expr: _foreign,
}
"""The reader of each kind of expression but calls; that of ``ast.expr`` is for all the others."""
