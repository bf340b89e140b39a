"""Expressions of a text, from Python's syntax to nodes; what the language lacks is noted."""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from types import EllipsisType
from typing import Any, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.checks import parameter_list, recursive_call, too_deep
from agentkit.composites.language import BUILTINS, METHODS, TOOLS, is_plain, is_text, written
from agentkit.composites.problems import (
    INSTEAD,
    CompositeLimits,
    Fault,
    Place,
    did_you_mean,
    instead_of,
)
from agentkit.composites.rendering import OPERATORS, SIGNS
from agentkit.tools.tool import Tool

Located: TypeAlias = ast.expr | ast.stmt | ast.arg | ast.keyword
"""Syntax that has a place in the text."""

_HINTS = 3
"""For how many unknown names similar tools are looked for, among any number of tools."""

_QUOTED = 60
_REFUSED = ir.Name(name="refused")

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
        "a star can not take the rest",
        "Take items by index and slice: `first = xs[0]`, `rest = xs[1:]`.",
    ),
    ast.Tuple: ("targets can not be nested", "Unpack in two steps."),
}
_OTHER_TARGET = (
    "only a name can be assigned: nothing in the language changes a value",
    "Build the list or dict in one go, with a comprehension or a literal.",
)


def operator_of(node: ast.operator | ast.cmpop) -> Any:
    """The sign of an operator of the language; None for those on bits and matrices."""
    return _OPERATOR_OF.get(type(node))


def place_of(node: Located, source: str) -> Place:
    """Where syntax starts; Python counts columns in bytes from 0, we in characters from 1."""
    if source.isascii():
        return node.lineno, node.col_offset + 1
    before = _line(source, node).encode("utf-8")[: node.col_offset]
    return node.lineno, len(before.decode("utf-8", "replace")) + 1


def _line(source: str, node: Located) -> str:
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")[node.lineno - 1]


def names_set(node: ast.AST) -> Iterator[str]:
    """The names that a piece of syntax assigns, parameters included."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id
        elif isinstance(part, ast.arg):
            yield part.arg


class ExpressionReader:
    """Reads the expressions of one text.

    Attributes:
        source: The text.
        tools: What a call may name; None where any tool may be called, arguments by name.
        limits: Caps on the program.
        name: The function's own name; empty for a condition, and for what was stored.
        children: The tools called so far, by their name in the library.
        faults: What is wrong so far.
        nodes: The syntax that each node was read from, by the node's ``id``.
    """

    def __init__(
        self,
        source: str,
        *,
        tools: Mapping[str, Tool] | None,
        limits: CompositeLimits,
        root: ast.expr | ast.stmt,
    ) -> None:
        self.source = source
        self.tools = tools or {}
        self._any_tool = tools is None
        self.limits = limits
        is_named = isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef) and tools is not None
        self.name = root.name if is_named else ""  # type: ignore[union-attr]  # just seen
        self.children: dict[str, Tool] = {}
        self.faults: list[Fault] = []
        self.nodes: dict[int, Located] = {}
        self.depth = 0
        self._root = root
        self._hints = 0
        self._is_too_deep = False

    # --- what was refused -------------------------------------------------------------------------

    def refuse(self, node: Located, code: str, message: str, advice: str = "") -> ir.Name:
        """Note a fault; gives what stands for the refused part, where nobody looks any more."""
        self.faults.append(Fault(node, code, message, advice))
        return _REFUSED

    def refuse_foreign(self, node: Any, what: str = "", advice: str = "") -> ir.Name:
        """Note what the language does not have."""
        message = f"{what or f'`{self.quote(node)}` is'} not in the language"
        return self.refuse(node, "unknown_construct", message, advice or instead_of(node))

    def refuse_depth(self, node: Located) -> ir.Name:
        """Refuse what is nested beyond the limit, once; what is in it stays unknown."""
        if not self._is_too_deep:
            self.faults.append(too_deep(node, self.limits))
        self._is_too_deep = True
        return _REFUSED

    def quote(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node, shortened."""
        line = _line(self.source, node).encode("utf-8")
        ends_here = node.end_lineno == node.lineno
        text = line[node.col_offset : node.end_col_offset if ends_here else None].decode("utf-8")
        return text if len(text) <= _QUOTED and ends_here else f"{text[:_QUOTED]} ..."

    # --- expressions ------------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> ir.Expression:
        """Read one expression; a hole when it is refused."""
        depth = self.depth
        if depth >= self.limits.nesting:
            return self.refuse_depth(node)
        self.depth = depth + 1
        made = self._read(node)
        self.depth = depth
        self.nodes[id(made)] = node
        return made

    def expressions(self, nodes: Sequence[ast.expr]) -> tuple[ir.Expression, ...]:
        """Read several expressions."""
        return tuple([self.expression(node) for node in nodes])

    def _read(self, node: ast.expr) -> ir.Expression:
        match node:
            case ast.Name(id=name):
                return ir.Name(name=name)
            case ast.Constant():
                return self._constant(node)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(op=op) if operator_of(op):
                left, right = self.expression(node.left), self.expression(node.right)
                return ir.Binary(operator=operator_of(op), left=left, right=right)
            case ast.UnaryOp(op=sign, operand=operand) if type(sign) in _SIGN_OF:
                return ir.Unary(operator=_SIGN_OF[type(sign)], operand=self.expression(operand))
            case ast.Compare(left=first, ops=ops, comparators=others):
                operands = self.expressions([first, *others])
                return ir.Compare(operators=tuple(map(operator_of, ops)), operands=operands)
            case ast.BoolOp(op=word, values=values):
                boolean = _OPERATOR_OF[type(word)]
                return ir.Boolean(operator=boolean, operands=self.expressions(values))
            case ast.IfExp():
                test, then, otherwise = self.expressions([node.test, node.body, node.orelse])
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
                return self._comprehension(node)
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

    def _comprehension(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> ir.Expression:
        clause = node.generators[0]
        if len(node.generators) > 1:
            what = "a comprehension has more than one `for`"
            advice = "Use one `for`, and a for statement around it."
            return self.refuse(node, "nested_comprehension", what, advice)
        if clause.is_async:
            return self.refuse_foreign(node, "`async for` is", "Use a plain `for`.")
        key, element = (
            (node.key, node.value) if isinstance(node, ast.DictComp) else (None, node.elt)
        )
        return ir.Comprehension(
            kind=_COMPREHENSIONS[type(node)],
            targets=self.targets(clause.target),
            source=self.expression(clause.iter),
            conditions=self.expressions(clause.ifs),
            key=self._if_given(key),
            element=self.expression(element),
        )

    # --- calls ------------------------------------------------------------------------------------

    @cached_property
    def _variables(self) -> frozenset[str]:
        """Names that are variables anywhere in the text, and parameters."""
        return frozenset(names_set(self._root))

    @cached_property
    def _keys(self) -> Mapping[str, Sequence[str]]:
        """Keys of tools that the text writes in another way, by that way."""
        found: dict[str, list[str]] = {}
        for key in self.tools:
            if not is_plain(key):
                found.setdefault(written(key), []).append(key)
        return found

    def _call(self, node: ast.Call) -> ir.Expression:
        match node.func:
            case ast.Name(id=name) if name in BUILTINS:
                arguments = self.expressions(self._positional(node))
                keywords = self._keywords(node, ())
                return ir.Builtin(function=name, arguments=arguments, keywords=keywords)
            case ast.Name(id=name):
                return self._named_child(node, name)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if (
                name == TOOLS
            ):
                return self._child(node, key)
            case ast.Attribute() as function:
                path = dotted(function)
                is_tool = path and path.partition(".")[0] not in self._variables
                if is_tool and (path in self.tools or self._any_tool):
                    return self._child(node, path)
                if is_tool and function.attr not in METHODS:
                    return self._unknown_tool(node, path)
                return self._method(node, function)
        what = f"`{self.quote(node.func)}` is not a name that can be called"
        advice = "Call a tool or a function of the language by its name."
        return self.refuse(node, "unknown_construct", what, advice)

    def _await(self, node: ast.Await, value: ast.expr) -> ir.Expression:
        made = self._call(value) if isinstance(value, ast.Call) else None
        if isinstance(made, ir.Call) or made is _REFUSED:
            return made
        what = "only a call of a tool is awaited"
        return self.refuse(node, "unknown_construct", what, "Drop the `await`.")

    def _method(self, node: ast.Call, function: ast.Attribute) -> ir.Expression:
        name = function.attr
        if name not in METHODS:
            what = f"`{self.quote(function)}`: there is no method `.{name}()`"
            advice = INSTEAD.get(f".{name}") or did_you_mean(name, METHODS)
            advice = advice or f"The methods are {', '.join(METHODS)}."
            return self.refuse(node, "unknown_method", what, advice)
        receiver = self.expression(function.value)
        arguments = self.expressions(self._positional(node))
        if node.keywords:
            what = f"the method `.{name}()` takes no keywords"
            advice = "Give its arguments by position."
            self.refuse(node.keywords[0], "wrong_arity", what, advice)
        return ir.Method(receiver=receiver, method=name, arguments=arguments)

    def _named_child(self, node: ast.Call, name: str) -> ir.Expression:
        if name == self.name:
            self.faults.append(recursive_call(node, name))
            return _REFUSED
        keys = () if name in self.tools or self._any_tool else self._keys.get(name, ())
        return self._child(node, keys[0] if len(keys) == 1 else name, keys)

    def _unknown_tool(self, node: ast.Call, name: str, keys: Sequence[str] = ()) -> ir.Expression:
        if keys:
            what = f"`{name}` can be any of the tools {', '.join(map(repr, keys))}"
            advice = "Rename one of them: for `_` stands each character that Python does not allow."
        elif name in self._variables:
            what = f"`{name}` is a variable and can not be called"
            advice = "Call a tool by its name; functions are no values here."
        else:
            self._hints += 1
            what, advice = f"there is no tool `{name}`", INSTEAD.get(name.rpartition(".")[2], "")
            if not advice and self._hints <= _HINTS:
                advice = did_you_mean(name, [*self.tools, *BUILTINS])
        return self.refuse(node, "unknown_tool", what, advice)

    def _child(self, node: ast.Call, key: str, keys: Sequence[str] = ()) -> ir.Expression:
        """A call of the tool that ``tools`` holds under ``key``."""
        tool = self.tools.get(key)
        if tool is None and not self._any_tool:
            return self._unknown_tool(node, key, keys)
        known: tuple[str, ...] = ()
        if tool is not None:
            self.children[tool.name] = tool
            known = tuple(tool.definition.signature.properties)
        arguments = self._bound(node, tool, known) if node.args else ()
        arguments += self._keywords(node, known) if node.keywords else ()
        return ir.Call(child=key if tool is None else tool.name, arguments=arguments)

    def _bound(
        self, node: ast.Call, tool: Tool | None, names: Sequence[str]
    ) -> tuple[ir.Argument, ...]:
        """Positional arguments, with the names that they are bound to."""
        made = []
        for place, value in enumerate(self._positional(node)):
            read = self.expression(value)
            if place < len(names):
                made.append(self._argument(names[place], read, value))
            elif tool is None:
                what = "a call in a stored program gives an argument without its name"
                self.refuse(value, "malformed_program", what, "Compose it from its text.")
            elif place == len(names):
                what = f"`{tool.name}` takes {len(names)} arguments, got {len(node.args)}"
                advice = f"It takes {parameter_list(tool.definition.signature)}."
                self.refuse(value, "wrong_arity", what, advice)
        return tuple(made)

    def _argument(self, name: str, value: ir.Expression, node: Located) -> ir.Argument:
        argument = ir.Argument(name=name, value=value)
        self.nodes[id(argument)] = node
        return argument

    def _positional(self, node: ast.Call) -> list[ast.expr]:
        values = []
        for value in node.args:
            if isinstance(value, ast.Starred):
                advice = "Write the arguments out one by one."
                self.refuse_foreign(value, "`*` in front of an argument is", advice)
            else:
                values.append(value)
        return values

    def _keywords(self, node: ast.Call, known: Collection[str]) -> tuple[ir.Argument, ...]:
        made = []
        for keyword in node.keywords:
            match keyword:
                case ast.keyword(arg=str(name), value=value):
                    if known and name not in known:
                        keys = [key for key in known if written(key) == name]
                        name = keys[0] if len(keys) == 1 else name
                case ast.keyword(
                    value=ast.Dict(keys=[ast.Constant(value=str(name))], values=[value])
                ):
                    pass  # a name that Python can not write
                case _:
                    advice = "Write the arguments out by name."
                    self.refuse_foreign(keyword, "`**` in front of an argument is", advice)
                    continue
            made.append(self._argument(name, self.expression(value), keyword))
        return tuple(made)


def dotted(node: ast.expr) -> str:
    """``a.b.c`` as text; empty when it is no chain of names."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""
