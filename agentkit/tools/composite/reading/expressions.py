"""Expressions other than calls."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping

from agentkit.tools.composite import ir
from agentkit.tools.composite.reading.context import ReadExpression, Reading

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
    spelling, advice = FOREIGN_OPERATORS[type(operator)]
    return reading.refuse(
        node, "unknown_construct", f"the operator `{spelling}` is not in the language", advice
    )


def _constant(reading: Reading, node: ast.Constant) -> ir.Expression:
    value = node.value
    if value is None or type(value) is bool:
        return ir.Constant(value=value)
    complaint = _literal_complaint(reading, value)
    if complaint is None:
        return ir.Constant(value=value)
    return reading.refuse(node, "literal", *complaint)


def _literal_complaint(reading: Reading, value: object) -> tuple[str, str] | None:
    """What is wrong with a literal, and what to write; None when it may stand."""
    limits = reading.limits
    match value:
        case str() if len(value) > limits.string_chars:
            what = f"a text of {len(value)} characters is longer than {limits.string_chars}"
            return what, "Pass long texts in as arguments."
        case str() if not value.isascii() and not value.isprintable() and _surrogate(value):
            return "a text with half of a surrogate pair is no JSON", "Write the whole character."
        case int() if value.bit_length() > limits.integer_bits:
            what = f"an integer of {value.bit_length()} bits is larger than {limits.integer_bits}"
            return what, "Use a smaller number, or a float such as 1e300."
        case float() if not math.isfinite(value):
            return "a number beyond the range of floats", "Use a number up to 1.7e308."
        case complex():
            return f"the complex number {value} is no JSON", "Use real numbers."
        case bytes():
            return "bytes are no JSON", "Write a text, without the b in front."
        case _ if value is ...:
            return "`...` stands for nothing that can run", "Write the code, or `pass`."
        case _:
            return None


def _surrogate(text: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in text)


def _name(reading: Reading, node: ast.Name) -> ir.Expression:
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
    operands = [node.left, *node.comparators]
    for place, operator in enumerate(operators):
        if operator in {"is", "is not"}:
            _check_identity(reading, node, operator, operands[place : place + 2])
    return ir.Compare(operators=operators, operands=reading.expressions(operands))


def _check_identity(
    reading: Reading, node: ast.Compare, operator: str, sides: list[ast.expr]
) -> None:
    if any(isinstance(side, ast.Constant) and side.value is None for side in sides):
        return
    equal = "==" if operator == "is" else "!="
    reading.refuse(
        node,
        "unknown_construct",
        f"`{operator}` compares with None only",
        f"Use `{equal}` to compare values.",
    )


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
    for value in node.values:
        part = _part(reading, value)
        if isinstance(part, ir.Constant) and made and isinstance(made[-1], ir.Constant):
            part = ir.Constant(value=f"{made.pop().value}{part.value}")
        if part != ir.Constant(value=""):
            reading.nodes[id(part)] = value
            made.append(part)
    if all(isinstance(part, ir.Constant) for part in made):
        return made[0] if made else ir.Constant(value="")
    return ir.Format(parts=tuple(made))


def _part(reading: Reading, node: ast.expr) -> ir.Expression:
    if not isinstance(node, ast.FormattedValue):
        return reading.expression(node)
    if node.conversion != -1:
        _refuse_format(reading, node, f"the conversion `!{chr(node.conversion)}`")
    if node.format_spec is not None:
        _refuse_format(reading, node, "a format after `:`")
    part = reading.expression(node.value)
    return ir.Constant(value=str(part.value)) if isinstance(part, ir.Constant) else part


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
    targets = loop_targets(reading, clause.target)
    return ir.Comprehension(
        kind=kind,
        targets=targets,
        source=reading.expression(clause.iter),
        conditions=reading.expressions(clause.ifs),
        key=None if key is None else reading.expression(key),
        element=reading.expression(element),
    )


def loop_targets(reading: Reading, target: ast.expr) -> tuple[str, ...]:
    """The names that a loop or an assignment sets."""
    items = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
    return tuple([_target(reading, item) for item in items])


def _target(reading: Reading, item: ast.expr) -> str:
    if isinstance(item, ast.Name):
        return item.id
    message, advice = _TARGETS.get(type(item), _TARGETS[ast.Tuple])
    reading.refuse(item, "unknown_construct", message, advice)
    return "?"


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
}

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
}
"""The reader of each kind of expression but calls."""
