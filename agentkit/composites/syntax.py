"""Reading the expressions of a text, which become those of the canonical form."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from types import EllipsisType
from typing import Any

from agentkit.composites.calls import REFUSED, CallReader, dotted
from agentkit.composites.language import (
    BUILTINS,
    RESERVED,
    Comprehension,
    child_of,
    is_text,
    target_of,
)
from agentkit.composites.problems import INSTEAD, did_you_mean

OPERATORS: Mapping[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
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
    ast.And: "and",
    ast.Or: "or",
    ast.UAdd: "+",
    ast.USub: "-",
    ast.Not: "not",
}
"""The signs of the operators of the language; those on bits and matrices are not among them."""

_ONLY_NAMES = (
    "only a name can be assigned: nothing in the language changes a value",
    "Build a list or dict in one go, unpack in two steps, and take the rest by a slice.",
)


class ExpressionReader(CallReader):
    """Reads the expressions of one text, and holds them to the rules of the language."""

    def expression(self, node: ast.expr, *, is_consumed: bool = False) -> ast.expr:
        """Read one expression, a hole when it is refused; an iterator has to be consumed."""
        depth = self.depth
        if depth >= self.limits.nesting:
            return self.refuse_depth(node)
        self.depth = depth + 1
        made = self._read(node, is_consumed=is_consumed)
        self.depth = depth
        return made

    def expressions(self, nodes: Iterable[ast.expr]) -> list[ast.expr]:
        """Read several expressions."""
        return [self.expression(node) for node in nodes]

    def _read(self, node: ast.expr, *, is_consumed: bool) -> ast.expr:
        match node:
            case ast.Name(id=name):
                self._look_at_name(node, name)
            case ast.Constant():
                return self._constant(node)
            case ast.Call():
                return self.call(node, is_consumed=is_consumed)
            case ast.BinOp(op=op) if type(op) in OPERATORS:
                node.left, node.right = self.expression(node.left), self.expression(node.right)
            case ast.UnaryOp(op=op) if type(op) in OPERATORS:
                node.operand = self.expression(node.operand)
            case ast.Compare():
                self._check_identity(node)
                node.left = self.expression(node.left)
                node.comparators = self.expressions(node.comparators)
            case ast.BoolOp():
                node.values = self.expressions(node.values)
            case ast.IfExp():
                node.test, node.body = self.expression(node.test), self.expression(node.body)
                node.orelse = self.expression(node.orelse)
            case ast.Subscript(slice=ast.Slice() as cut):
                node.value, cut.lower = self.expression(node.value), self._if_given(cut.lower)
                cut.upper, cut.step = self._if_given(cut.upper), self._if_given(cut.step)
            case ast.Subscript():
                node.value, node.slice = self.expression(node.value), self.expression(node.slice)
            case ast.List() | ast.Tuple():
                node.elts = self.expressions(node.elts)
            case ast.Dict():
                self._dict(node)
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
            case _:
                return self.refuse_foreign(node)
        return node

    def _if_given(self, node: ast.expr | None) -> ast.expr | None:
        return None if node is None else self.expression(node)

    def targets(self, target: ast.expr) -> tuple[str, ...]:
        """The names that a loop or an assignment sets."""
        items = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        if len(items) < 2 and items != [target]:
            what = f"`{self.quote(target)}` unpacks fewer than two items"
            advice = "Take the one item by its index, `xs[0]`."
            self.refuse(target, "unknown_construct", what, advice)
        return tuple([self._target(item) for item in items]) or ("refused",)

    def _target(self, item: ast.expr) -> str:
        if isinstance(item, ast.Name):
            return item.id
        self.refuse(item, "unknown_construct", *_ONLY_NAMES)
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

    def _check_identity(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        none = [isinstance(one, ast.Constant) and one.value is None for one in operands]
        for at, operator in enumerate(OPERATORS[type(op)] for op in node.ops):
            if operator in {"is", "is not"} and not any(none[at : at + 2]):
                equal = "==" if operator == "is" else "!="
                message = f"`{operator}` compares with None only"
                self.breaks(node, "unknown_construct", message, f"Use `{equal}` to compare values.")

    def _constant(self, node: ast.Constant) -> ast.expr:
        value, limits = node.value, self.limits
        what = advice = ""
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
                what = "a number is beyond the range of floats"
                advice = "Use numbers up to 1.7e308."
            case bytes() | complex() | EllipsisType():
                what = f"`{self.quote(node)}` is no JSON"
                advice = "Write a text, a real number, True, False or None; `pass` for `...`."
        if what:
            return self.refuse(node, "literal", what, advice)
        node.kind = None
        return node

    def _dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                advice = "List the entries one by one, or use a dict comprehension over .items()."
                self.refuse_foreign(value, "`**` inside a dict literal is", advice)
        node.keys = [*self.expressions(key for key in node.keys if key is not None)]
        node.values = self.expressions(node.values)

    def _fstring(self, node: ast.JoinedStr) -> ast.expr:
        """Texts side by side become one, and empty ones nothing."""
        parts: list[Any] = []
        for value in node.values:
            part: Any = self._formatted(value)
            if isinstance(part, ast.Constant):
                part = str(part.value)
                if parts and isinstance(parts[-1], str):
                    part = parts.pop() + part
            if part != "":
                parts.append(part)
        made: list[ast.expr] = [
            ast.Constant(value=part)
            if isinstance(part, str)
            else ast.FormattedValue(value=part, conversion=-1)
            for part in parts
        ]
        found: ast.expr = ast.JoinedStr(values=made)
        if all(isinstance(part, str) for part in parts):
            found = made[0] if parts else ast.Constant(value="")
        else:
            try:
                ast.unparse(found)
            except ValueError:  # Python 3.11 cannot write the quotes in its braces
                found = _sum_of_texts(parts)
        return ast.copy_location(found, node)

    def _formatted(self, node: ast.expr) -> ast.expr:
        if not isinstance(node, ast.FormattedValue):
            return self.expression(node)
        if node.conversion != -1 or node.format_spec is not None:
            what = "an f-string holds a conversion behind `!`, or a format behind `:`"
            self.refuse(node, "format_specification", what)
        return self.expression(node.value)

    def _comprehension(self, node: Comprehension, *, is_consumed: bool) -> ast.expr:
        """Its source belongs to the function, the rest to a scope of its own."""
        clause = node.generators[0]
        if len(node.generators) > 1:
            what = "a comprehension has more than one `for`"
            advice = "Use one `for`, and a for statement around it."
            return self.refuse(node, "nested_comprehension", what, advice)
        if clause.is_async:
            return self.refuse_foreign(node, "`async for` is", "Use a plain `for`.")
        if self._comprehensions:
            self.breaks(node, "nested_comprehension", "a comprehension is inside another one")
        elif isinstance(node, ast.GeneratorExp) and not is_consumed:
            message = "a generator may only be used where it is consumed, as in `sum(...)`"
            advice = "Write a list comprehension, in square brackets."
            self.breaks(node, "iterator_escapes", message, advice)
        self._comprehensions += 1
        clause.iter = self.expression(clause.iter, is_consumed=True)
        targets = self.targets(clause.target)
        clause.target = target_of(targets)
        outer, self.targets_around = self.targets_around, self.targets_around + targets
        for target in targets:
            if self.check_name(target, node) and target in self.variables:
                message = f"the comprehension sets `{target}`, which is a variable of the function"
                advice = f"Use another name, such as `{target}_item`."
                self.breaks(node, "name_shadowing", message, advice)
        clause.ifs = self.expressions(clause.ifs)
        if isinstance(node, ast.DictComp):
            node.key, node.value = self.expression(node.key), self.expression(node.value)
        else:
            node.elt = self.expression(node.elt)
        self.targets_around = outer
        self._comprehensions -= 1
        return node

    def _await(self, node: ast.Await, value: ast.expr) -> ast.expr:
        made = self.call(value) if isinstance(value, ast.Call) else None
        if made is not None and (made is REFUSED or child_of(made)):
            return made
        what = "only a call of a tool is awaited"
        return self.refuse(node, "unknown_construct", what, "Drop the `await`.")


def _sum_of_texts(parts: Sequence[str | ast.expr]) -> ast.expr:
    texts: list[ast.expr] = [
        ast.Constant(value=part)
        if isinstance(part, str)
        else ast.Call(func=ast.Name(id="str"), args=[part], keywords=[])
        for part in parts
    ]
    return reduce(lambda left, right: ast.BinOp(left=left, op=ast.Add(), right=right), texts)
