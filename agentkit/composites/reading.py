"""Expressions of a text, from Python's syntax to nodes; what the language lacks is noted."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any

from agentkit.composites import language as ir
from agentkit.composites.calls import REFUSED, CallReader, dotted
from agentkit.composites.dataflow import is_constant
from agentkit.composites.language import BUILTINS, RESERVED, is_text
from agentkit.composites.problems import INSTEAD, did_you_mean
from agentkit.composites.rendering import OPERATORS, SIGNS

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
