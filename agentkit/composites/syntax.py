"""Programs as text, the one text that parses back to a program, and expressions read from it."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from textwrap import indent
from types import EllipsisType
from typing import Any

from agentkit.composites import language as ir
from agentkit.composites.calls import REFUSED, CallReader, dotted
from agentkit.composites.language import (
    BUILTINS,
    RESERVED,
    TOOLS,
    is_constant,
    is_dotted,
    is_identifier,
    is_text,
    written,
)
from agentkit.composites.problems import INSTEAD, did_you_mean

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


# --- from syntax to nodes ------------------------------------------------------------------------

_OPERATOR_OF: Mapping[type[ast.AST], Any] = {type(sign): name for name, sign in OPERATORS.items()}
_SIGN_OF: Mapping[type[ast.AST], Any] = {type(sign): name for name, sign in SIGNS.items()}
_COMPREHENSIONS: Mapping[type[ast.expr], ir.ComprehensionKind] = {
    ast.ListComp: "list",
    ast.DictComp: "dict",
    ast.GeneratorExp: "generator",
}
_FOREIGN_LITERALS: Mapping[type, tuple[str, str]] = {
    bytes: ("bytes are no JSON", "Write a text, without the b in front."),
    complex: ("a complex number is no JSON", "Use real numbers."),
    EllipsisType: ("`...` stands for nothing that can run", "Write the code, or `pass`."),
}
_FOREIGN_TARGETS: Mapping[type[ast.expr], tuple[str, str]] = {
    ast.Starred: (
        "a star cannot take the rest",
        "Take items by index and slice: `first = xs[0]`, `rest = xs[1:]`.",
    ),
    ast.Tuple: ("targets cannot be nested", "Unpack in two steps."),
}
_OTHER_TARGET = (
    "only a name can be assigned: nothing in the language changes a value",
    "Build the list or dict in one go, with a comprehension or a literal.",
)


def operator_of(node: ast.operator | ast.cmpop) -> Any:
    """The sign of an operator of the language; None for those on bits and matrices."""
    return _OPERATOR_OF.get(type(node))


class ExpressionReader(CallReader):
    """Reads the expressions of one text, and holds them to the rules of the language."""

    # --- expressions ------------------------------------------------------------------------------

    def expression(self, node: ast.expr, *, is_consumed: bool = False) -> ir.Expression:
        """Read one expression, a hole when it is refused; an iterator has to be consumed."""
        depth = self.depth
        if depth >= self.limits.nesting:
            return self.refuse_depth(node)
        self.depth = depth + 1
        made = self._read(node, is_consumed=is_consumed)
        self.depth = depth
        self.nodes[id(made)] = node
        return made

    def test(self, node: ast.expr) -> ir.Expression:
        """Read an expression that decides which way to go."""
        made = self.expression(node)
        if is_constant(made):
            self.breaks(node, "constant_condition", "this condition always comes out the same")
        return made

    def _read(self, node: ast.expr, *, is_consumed: bool) -> ir.Expression:
        match node:
            case ast.Name(id=name):
                self._look_at_name(node, name)
                return ir.Name(name=name)
            case ast.Constant():
                return self._constant(node)
            case ast.Call():
                return self.call(node, is_consumed=is_consumed)
            case ast.BinOp(op=op) if operator_of(op):
                left, right = self.expression(node.left), self.expression(node.right)
                return ir.Binary(operator=operator_of(op), left=left, right=right)
            case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGN_OF:
                return ir.Unary(operator=_SIGN_OF[type(sign)], operand=self.expression(operand))
            case ast.Compare(left=first, ops=ops, comparators=others):
                return self._compare(node, [first, *others], [*map(operator_of, ops)])
            case ast.BoolOp(op=word, values=values):
                boolean = _OPERATOR_OF[type(word)]
                return ir.Boolean(operator=boolean, operands=self.expressions(values))
            case ast.IfExp():
                test, then = self.test(node.test), self.expression(node.body)
                otherwise = self.expression(node.orelse)
                return ir.Conditional(test=test, then=then, otherwise=otherwise)
            case ast.Subscript(value=value, slice=ast.Slice() as cut):
                whole, start = self.expression(value), self._if_given(cut.lower)
                stop, step = self._if_given(cut.upper), self._if_given(cut.step)
                return ir.Slice(value=whole, start=start, stop=stop, step=step)
            case ast.Subscript(value=value, slice=index):
                return ir.Index(value=self.expression(value), index=self.expression(index))
            case ast.List(elts=items):
                return ir.ListLiteral(items=self.expressions(items))
            case ast.Tuple(elts=items):
                return ir.TupleLiteral(items=self.expressions(items))
            case ast.Dict():
                return self._dict(node)
            case ast.JoinedStr():
                return self._fstring(node)
            case ast.ListComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node, is_consumed=is_consumed)
            case ast.Attribute(value=value, attr=name):
                advice = f"Read an entry of a dict: `{self.quote(value)}[{name!r}]`."
                what = f"`{self.quote(node)}` reads an attribute"
                advice = INSTEAD.get(dotted(node), advice)
                return self.refuse(node, "unknown_construct", what, advice)
            case ast.Await(value=value):
                return self._await(node, value)
        return self.refuse_foreign(node)

    def _if_given(self, node: ast.expr | None) -> ir.Expression | None:
        return None if node is None else self.expression(node)

    def targets(self, target: ast.expr) -> tuple[str, ...]:
        """The names that a loop or an assignment sets."""
        items = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        if len(items) < 2 and items != [target]:
            what = f"`{self.quote(target)}` unpacks fewer than two items"
            advice = "Take the one item by its index, `xs[0]`."
            self.refuse(target, "unknown_construct", what, advice)
        return tuple([self._target(item) for item in items])

    def _target(self, item: ast.expr) -> str:
        if isinstance(item, ast.Name):
            return item.id
        self.refuse(item, "unknown_construct", *_FOREIGN_TARGETS.get(type(item), _OTHER_TARGET))
        return "refused"

    def _look_at_name(self, node: ast.Name, name: str) -> None:
        if name in self.targets_around or name in self.bound:
            return
        if name in self.variables:
            self.breaks(node, "possibly_unbound", f"`{name}` is not set on every way to here")
        elif name in BUILTINS or name in self.tools:
            what = "function" if name in BUILTINS else "tool"
            advice = f"Call it, `{name}(...)`; {what}s are not values here."
            message = f"`{name}` is a {what} and can only be called"
            self.breaks(node, "unknown_name", message, advice)
        else:
            advice = did_you_mean(name, self.variables) or (
                f"Add it to the parameters, or write it in quotes if it is a text: '{name}'."
            )
            self.breaks(node, "unknown_name", f"there is no variable `{name}`", advice)

    def check_name(self, name: str, node: object, code: str = "underscore_name") -> bool:
        """Whether a name may be set."""
        if name[:1] == "_":
            message = f"the name `{name}` starts with an underscore"
            self.breaks(node, code, message, "Use a plain name, such as `item`.")
        elif name in RESERVED or name == self.name:
            what = "a function of the language" if name in RESERVED else "the composite's own name"
            self.breaks(node, "name_shadowing", f"`{name}` is {what}")
        else:
            return True
        return False

    def _compare(
        self, node: ast.Compare, operands: Sequence[ast.expr], operators: Sequence[Any]
    ) -> ir.Expression:
        none = [isinstance(one, ast.Constant) and one.value is None for one in operands]
        for at, operator in enumerate(operators):
            if operator in {"is", "is not"} and not any(none[at : at + 2]):
                equal = "==" if operator == "is" else "!="
                message = f"`{operator}` compares with None only"
                self.breaks(node, "unknown_construct", message, f"Use `{equal}` to compare values.")
        return ir.Compare(operators=tuple(operators), operands=self.expressions(operands))

    def _constant(self, node: ast.Constant) -> ir.Expression:
        value, limits = node.value, self.limits
        what, advice = _FOREIGN_LITERALS.get(type(value), ("", ""))
        match value:
            case str() if len(value) > limits.string_chars:
                what = f"a text of {len(value)} characters is longer than {limits.string_chars}"
                advice = "Pass long texts in as arguments."
            case str() if not is_text(value):
                what = "a text with half of a surrogate pair is no JSON"
                advice = "Write the whole character."
            case int() if value.bit_length() > limits.integer_bits:
                bits = value.bit_length()
                what = f"an integer of {bits} bits is larger than {limits.integer_bits}"
                advice = "Use a smaller number, or a float such as 1e300."
            case float() if not math.isfinite(value):
                what, advice = (
                    "a number is beyond the range of floats",
                    "Use numbers up to 1.7e308.",
                )
        if what:
            return self.refuse(node, "literal", what, advice)
        return ir.Constant(value=value)  # type: ignore[arg-type]  # others were refused

    def _dict(self, node: ast.Dict) -> ir.Expression:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                advice = "List the entries one by one, or use a dict comprehension over .items()."
                self.refuse_foreign(value, "`**` inside a dict literal is", advice)
        keys = self.expressions([key for key in node.keys if key is not None])
        return ir.DictLiteral(keys=keys, values=self.expressions(node.values))

    def _fstring(self, node: ast.JoinedStr) -> ir.Expression:
        """Texts side by side become one, and empty ones nothing."""
        parts: list[Any] = []
        for value in node.values:
            part: Any = self._formatted(value)
            if isinstance(part, ir.Constant):
                part = str(part.value)
                if parts and isinstance(parts[-1], str):
                    part = parts.pop() + part
            if part != "":
                parts.append(part)
        for at, part in enumerate(parts):
            if isinstance(part, str):
                parts[at] = ir.Constant(value=part)
                self.nodes[id(parts[at])] = node
        if all(isinstance(part, ir.Constant) for part in parts):
            return parts[0] if parts else ir.Constant(value="")
        return ir.Format(parts=tuple(parts))

    def _formatted(self, node: ast.expr) -> ir.Expression:
        if not isinstance(node, ast.FormattedValue):
            return self.expression(node)
        if node.conversion != -1 or node.format_spec is not None:
            what = "an f-string holds a conversion behind `!`, or a format behind `:`"
            self.refuse(node, "format_specification", what)
        return self.expression(node.value)

    def _comprehension(
        self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp, *, is_consumed: bool
    ) -> ir.Expression:
        """Its source belongs to the function, the rest to a scope of its own."""
        clause, kind = node.generators[0], _COMPREHENSIONS[type(node)]
        if len(node.generators) > 1:
            what = "a comprehension has more than one `for`"
            advice = "Use one `for`, and a for statement around it."
            return self.refuse(node, "nested_comprehension", what, advice)
        if clause.is_async:
            return self.refuse_foreign(node, "`async for` is", "Use a plain `for`.")
        if self._comprehensions:
            self.breaks(node, "nested_comprehension", "a comprehension is inside another one")
        elif kind == "generator" and not is_consumed:
            message = "a generator may only be used where it is consumed, as in `sum(...)`"
            advice = "Write a list comprehension, in square brackets."
            self.breaks(node, "iterator_escapes", message, advice)
        self._comprehensions += 1
        source = self.expression(clause.iter, is_consumed=True)
        targets = self.targets(clause.target)
        outer, self.targets_around = self.targets_around, self.targets_around + targets
        for target in targets:
            if self.check_name(target, node) and target in self.variables:
                message = f"the comprehension sets `{target}`, which is a variable of the function"
                advice = f"Use another name, such as `{target}_item`."
                self.breaks(node, "name_shadowing", message, advice)
        conditions = tuple([self.test(condition) for condition in clause.ifs])
        key, element = (
            (node.key, node.value) if isinstance(node, ast.DictComp) else (None, node.elt)
        )
        made = ir.Comprehension(
            kind=kind,
            targets=targets,
            source=source,
            conditions=conditions,
            key=self._if_given(key),
            element=self.expression(element),
        )
        self.targets_around = outer
        self._comprehensions -= 1
        return made

    def _await(self, node: ast.Await, value: ast.expr) -> ir.Expression:
        made = self.call(value) if isinstance(value, ast.Call) else None
        if isinstance(made, ir.Call) or made is REFUSED:
            return made
        what = "only a call of a tool is awaited"
        return self.refuse(node, "unknown_construct", what, "Drop the `await`.")
