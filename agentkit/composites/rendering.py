"""Programs as text: the one text that stands for a program, and that parses back to it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from textwrap import indent
from typing import Any

from agentkit.composites import language as ir
from agentkit.composites.language import RESERVED, TOOLS, is_dotted, is_identifier, written

OPERATORS: Mapping[str, Any] = {
    "+": ast.Add(),
    "-": ast.Sub(),
    "*": ast.Mult(),
    "/": ast.Div(),
    "//": ast.FloorDiv(),
    "%": ast.Mod(),
    "**": ast.Pow(),
    "==": ast.Eq(),
    "!=": ast.NotEq(),
    "<": ast.Lt(),
    "<=": ast.LtE(),
    ">": ast.Gt(),
    ">=": ast.GtE(),
    "in": ast.In(),
    "not in": ast.NotIn(),
    "is": ast.Is(),
    "is not": ast.IsNot(),
    "and": ast.And(),
    "or": ast.Or(),
}
SIGNS: Mapping[str, ast.unaryop] = {"+": ast.UAdd(), "-": ast.USub(), "not": ast.Not()}


def render(
    program: ir.Program,
    name: str = "composite",
    *,
    docstring: str = "",
    annotations: Mapping[str, str] | None = None,
    returns: str = "",
) -> str:
    """A program as a Python function.

    ``parse`` reads the same program back from it, with the same digest; only an f-string that
    Python 3.11 cannot write becomes a sum of texts. Names that Python cannot write are quoted:
    ``tools["get user"](**{"user-id": x})``.

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
        args=_parameters(program.parameters, annotations or {}),
        body=[*words, *_block(program.body)],
        decorator_list=[],
        returns=ast.Name(id=returns) if returns else None,
        lineno=0,
    )
    return f"{ast.unparse(function)}\n"


def render_expression(expression: ir.Expression) -> str:
    """An expression as text.

    Example:
        >>> from agentkit.composites.parser import parse_expression
        >>> render_expression(parse_expression("((a)+b)*2 >= (a)", ["a", "b"]))
        '(a + b) * 2 >= a'
    """
    return ast.unparse(_syntax(expression))


def _parameters(
    parameters: Sequence[ir.Parameter], annotations: Mapping[str, str]
) -> ast.arguments:
    """Python wants what has no default first, except behind a star."""
    at = next((at for at, one in enumerate(parameters) if one.default), len(parameters))
    split = next((at + n for n, one in enumerate(parameters[at:]) if not one.default), None)
    made = []
    for one in parameters:
        text = annotations.get(one.name)
        made.append(ast.arg(arg=one.name, annotation=ast.Name(id=text) if text else None))
    defaults = [None if one.default is None else _syntax(one.default) for one in parameters]
    return ast.arguments(
        posonlyargs=[],
        args=made[:split],
        defaults=[default for default in defaults[:split] if default],
        kwonlyargs=[] if split is None else made[split:],
        kw_defaults=[] if split is None else defaults[split:],
    )


def _block(statements: ir.Block) -> list[ast.stmt]:
    return [_statement(node) for node in statements] or [ast.Pass()]


def _statement(node: ir.Statement) -> ast.stmt:
    """A statement as Python's syntax."""
    match node:
        case ir.Assign(targets=targets, value=value):
            return ast.Assign(targets=[_target(targets)], value=_syntax(value), lineno=0)
        case ir.Update(target=target, operator=operator, value=value):
            sign = OPERATORS[operator]
            return ast.AugAssign(target=ast.Name(id=target), op=sign, value=_syntax(value))
        case ir.Do(call=call):
            return ast.Expr(value=_syntax(call))
        case ir.If(test=test, then=then, otherwise=otherwise):
            behind = _block(otherwise) if otherwise else []
            return ast.If(test=_syntax(test), body=_block(then), orelse=behind)
        case ir.For(targets=targets, source=source, body=body):
            return ast.For(
                target=_target(targets),
                iter=_syntax(source),
                body=_block(body),
                orelse=[],
                lineno=0,
            )
        case ir.Return(value=value):
            return ast.Return(value=_syntax(value))
        case ir.Break():
            return ast.Break()
        case ir.Continue():
            return ast.Continue()


def _target(names: Sequence[str]) -> ast.expr:
    made: list[ast.expr] = [ast.Name(id=name) for name in names]
    return made[0] if len(made) == 1 else ast.Tuple(elts=made)


def _all(nodes: Iterable[ir.Expression]) -> list[ast.expr]:
    return [_syntax(node) for node in nodes]


def _keywords(arguments: Iterable[ir.Argument]) -> list[ast.keyword]:
    made = []
    for argument in arguments:
        value, name = _syntax(argument.value), argument.name
        if is_identifier(name):
            made.append(ast.keyword(arg=name, value=value))
        else:
            made.append(
                ast.keyword(value=ast.Dict(keys=[ast.Constant(value=name)], values=[value]))
            )
    return made


def _syntax(node: ir.Expression) -> ast.expr:
    """An expression as Python's syntax."""
    match node:
        case ir.Constant(value=value):
            return ast.Constant(value=value)
        case ir.Name(name=name):
            return ast.Name(id=name)
        case ir.Call(child=child):
            is_plain = is_dotted(child) or (is_identifier(child) and child not in RESERVED)
            callee: ast.expr = ast.Name(id=child)
            if not is_plain:
                callee = ast.Subscript(value=ast.Name(id=TOOLS), slice=ast.Constant(value=child))
            return ast.Call(func=callee, args=[], keywords=_keywords(node.arguments))
        case ir.Builtin(function=function):
            arguments, named = _all(node.arguments), _keywords(node.keywords)
            return ast.Call(func=ast.Name(id=function), args=arguments, keywords=named)
        case ir.Method(receiver=receiver, method=method):
            attribute = ast.Attribute(value=_syntax(receiver), attr=method)
            return ast.Call(func=attribute, args=_all(node.arguments), keywords=[])
        case ir.Unary(operator=sign, operand=operand):
            return ast.UnaryOp(op=SIGNS[sign], operand=_syntax(operand))
        case ir.Binary(operator=operator):
            return ast.BinOp(
                left=_syntax(node.left), op=OPERATORS[operator], right=_syntax(node.right)
            )
        case ir.Compare(operands=(first, *others)):
            operators = [OPERATORS[operator] for operator in node.operators]
            return ast.Compare(left=_syntax(first), ops=operators, comparators=_all(others))
        case ir.Boolean(operator=word):
            return ast.BoolOp(op=OPERATORS[word], values=_all(node.operands))
        case ir.Conditional(test=test):
            return ast.IfExp(
                test=_syntax(test), body=_syntax(node.then), orelse=_syntax(node.otherwise)
            )
        case ir.ListLiteral(items=items):
            return ast.List(elts=_all(items))
        case ir.TupleLiteral(items=items):
            return ast.Tuple(elts=_all(items))
        case ir.DictLiteral(keys=keys, values=values):
            return ast.Dict(keys=[*_all(keys)], values=_all(values))
        case ir.Index(value=value):
            return ast.Subscript(value=_syntax(value), slice=_syntax(node.index))
        case ir.Slice(value=value):
            bounds = [None if b is None else _syntax(b) for b in (node.start, node.stop, node.step)]
            return ast.Subscript(value=_syntax(value), slice=ast.Slice(*bounds))
        case ir.Format(parts=parts):
            return _format(parts)
        case ir.Comprehension():
            return _comprehension(node)
        case _:
            raise TypeError(type(node).__name__)


def _format(parts: Sequence[ir.Expression]) -> ast.expr:
    """An f-string, or a sum of texts where Python 3.11 cannot write the quotes in its braces."""
    values = [(isinstance(part, ir.Constant), _syntax(part)) for part in parts]
    made: list[ast.expr] = [
        value if is_text else ast.FormattedValue(value=value, conversion=-1)
        for is_text, value in values
    ]
    try:
        ast.unparse(joined := ast.JoinedStr(values=made))
    except ValueError:
        texts: list[ast.expr] = [
            value if is_text else ast.Call(func=ast.Name(id="str"), args=[value], keywords=[])
            for is_text, value in values
        ]
        return reduce(lambda left, right: ast.BinOp(left=left, op=ast.Add(), right=right), texts)
    return joined


def _comprehension(node: ir.Comprehension) -> ast.expr:
    clause = ast.comprehension(
        target=_target(node.targets),
        iter=_syntax(node.source),
        ifs=[_syntax(condition) for condition in node.conditions],
        is_async=0,
    )
    if node.key is not None:
        return ast.DictComp(key=_syntax(node.key), value=_syntax(node.element), generators=[clause])
    kind = ast.GeneratorExp if node.kind == "generator" else ast.ListComp
    return kind(elt=_syntax(node.element), generators=[clause])
