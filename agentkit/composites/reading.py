"""Expressions of a text, from Python's syntax to nodes; what the language lacks is noted."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
    SourceCode,
    did_you_mean,
    instead_of,
)
from agentkit.tools.tool import Tool

Located: TypeAlias = ast.expr | ast.stmt | ast.arg | ast.keyword
"""Syntax that has a place in the text."""

_HINTS = 3
"""For how many unknown names similar tools are looked for, among any number of tools."""

_QUOTED = 60

_REFUSED = ir.Name(name="refused")

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


def place_of(node: Located, source: str) -> Place:
    """Where syntax starts; Python counts columns in bytes from 0, we in characters from 1."""
    if source.isascii():
        return node.lineno, node.col_offset + 1
    before = _lines(source)[node.lineno - 1].encode("utf-8")[: node.col_offset]
    return node.lineno, len(before.decode("utf-8", "replace")) + 1


def _lines(source: str) -> list[str]:
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def names_set(node: ast.AST) -> Iterator[str]:
    """The names that a piece of syntax assigns."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


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

    def refuse(self, node: Located, code: SourceCode, message: str, advice: str) -> ir.Name:
        """Note a fault; gives what stands for the refused part, where nobody looks any more."""
        self.faults.append(Fault(node, code, message, advice))
        return _REFUSED

    def refuse_foreign(self, node: Located, what: str, advice: str) -> ir.Name:
        """Note what the language does not have."""
        return self.refuse(node, "unknown_construct", f"{what} not in the language", advice)

    def refuse_operator(self, node: ast.expr | ast.stmt) -> ir.Name:
        """Refuse an operator on bits or matrices."""
        what, advice = f"the operator of `{self.quote(node)}` is", "Use arithmetic, `and`, `or`."
        return self.refuse_foreign(node, what, advice)

    def refuse_depth(self, node: Located) -> ir.Name:
        """Refuse what is nested beyond the limit, once; what is in it stays unknown."""
        if not self._is_too_deep:
            self.faults.append(too_deep(node, self.limits))
        self._is_too_deep = True
        return _REFUSED

    def quote(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node, shortened."""
        line = _lines(self.source)[node.lineno - 1].encode("utf-8")
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
        made = _READERS.get(type(node), ExpressionReader._foreign)(self, node)
        self.depth = depth
        self.nodes[id(made)] = node
        return made

    def expressions(self, nodes: Sequence[ast.expr]) -> tuple[ir.Expression, ...]:
        """Read several expressions."""
        return tuple([self.expression(node) for node in nodes])

    def targets(self, target: ast.expr) -> tuple[str, ...]:
        """The names that a loop or an assignment sets."""
        if type(target) is ast.Name:
            return (target.id,)
        if not isinstance(target, ast.Tuple | ast.List):
            return (self._target(target),)
        if len(target.elts) < 2:
            what = f"`{self.quote(target)}` unpacks fewer than two items"
            advice = "Take the one item by its index, `xs[0]`."
            self.refuse(target, "unknown_construct", what, advice)
            return ("refused",)
        return tuple([self._target(item) for item in target.elts])

    def _target(self, item: ast.expr) -> str:
        if isinstance(item, ast.Name):
            return item.id
        self.refuse(item, "unknown_construct", *_FOREIGN_TARGETS.get(type(item), _OTHER_TARGET))
        return "refused"

    def _constant(self, node: ast.Constant) -> ir.Expression:
        value = node.value
        complaint = _FOREIGN_LITERALS.get(type(value)) or self._literal_complaint(value)
        if complaint is not None or isinstance(value, bytes | complex | EllipsisType):
            return self.refuse(node, "literal", *(complaint or ("", "")))
        return ir.Constant(value=value)

    def _literal_complaint(self, value: object) -> tuple[str, str] | None:
        """What is wrong with a literal, and what to write; None when it may stand."""
        limits = self.limits
        if isinstance(value, str):
            if len(value) > limits.string_chars:
                what = f"a text of {len(value)} characters is longer than {limits.string_chars}"
                return what, "Pass long texts in as arguments."
            if not is_text(value):
                what = "a text with half of a surrogate pair is no JSON"
                return what, "Write the whole character."
        elif isinstance(value, int):
            bits = value.bit_length()
            if bits > limits.integer_bits:
                what = f"an integer of {bits} bits is larger than {limits.integer_bits}"
                return what, "Use a smaller number, or a float such as 1e300."
        elif isinstance(value, float) and not math.isfinite(value):
            return "a number is beyond the range of floats", "Use a number up to 1.7e308."
        return None

    def _name(self, node: ast.Name) -> ir.Expression:
        return ir.Name(name=node.id)

    def _unary(self, node: ast.UnaryOp) -> ir.Expression:
        operator = _UNARY.get(type(node.op))
        if operator is None:
            return self.refuse_operator(node)
        return ir.Unary(operator=operator, operand=self.expression(node.operand))

    def _binary(self, node: ast.BinOp) -> ir.Expression:
        operator = BINARY.get(type(node.op))
        if operator is None:
            return self.refuse_operator(node)
        left = self.expression(node.left)
        return ir.Binary(operator=operator, left=left, right=self.expression(node.right))

    def _compare(self, node: ast.Compare) -> ir.Expression:
        operators = tuple([_COMPARE[type(operator)] for operator in node.ops])
        operands = self.expressions([node.left, *node.comparators])
        return ir.Compare(operators=operators, operands=operands)

    def _boolean(self, node: ast.BoolOp) -> ir.Expression:
        operator: ir.BooleanOperator = "and" if isinstance(node.op, ast.And) else "or"
        return ir.Boolean(operator=operator, operands=self.expressions(node.values))

    def _conditional(self, node: ast.IfExp) -> ir.Expression:
        test, then = self.expression(node.test), self.expression(node.body)
        return ir.Conditional(test=test, then=then, otherwise=self.expression(node.orelse))

    def _list(self, node: ast.List) -> ir.Expression:
        return ir.ListLiteral(items=self.expressions(node.elts))

    def _tuple(self, node: ast.Tuple) -> ir.Expression:
        return ir.TupleLiteral(items=self.expressions(node.elts))

    def _dict(self, node: ast.Dict) -> ir.Expression:
        keys, values = [], []
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                advice = "List the entries one by one, or use a dict comprehension over .items()."
                self.refuse_foreign(value, "`**` inside a dict literal is", advice)
            else:
                keys.append(self.expression(key))
                values.append(self.expression(value))
        return ir.DictLiteral(keys=tuple(keys), values=tuple(values))

    def _subscript(self, node: ast.Subscript) -> ir.Expression:
        value, index = self.expression(node.value), node.slice
        if not isinstance(index, ast.Slice):
            return ir.Index(value=value, index=self.expression(index))
        start, stop, step = (
            None if bound is None else self.expression(bound)
            for bound in (index.lower, index.upper, index.step)
        )
        return ir.Slice(value=value, start=start, stop=stop, step=step)

    def _fstring(self, node: ast.JoinedStr) -> ir.Expression:
        """Texts side by side become one, and empty ones nothing."""
        made: list[ir.Expression] = []
        for value in node.values:
            part = self._formatted(value)
            if isinstance(part, ir.Constant):
                text = str(part.value)
                if made and isinstance(before := made[-1], ir.Constant):
                    made.pop()
                    text = f"{before.value}{text}"
                part = ir.Constant(value=text)
                self.nodes[id(part)] = node
            if not isinstance(part, ir.Constant) or part.value:
                made.append(part)
        if all(isinstance(part, ir.Constant) for part in made):
            return made[0] if made else ir.Constant(value="")
        return ir.Format(parts=tuple(made))

    def _formatted(self, node: ast.expr) -> ir.Expression:
        if not isinstance(node, ast.FormattedValue):
            return self.expression(node)
        advice = "Write plain {value}; for digits after the point use {round(value, 2)}."
        if node.conversion != -1:
            what = f"an f-string holds the conversion `!{chr(node.conversion)}`"
            self.refuse(node, "format_specification", what, advice)
        if node.format_spec is not None:
            what = "an f-string holds a format after `:`"
            self.refuse(node, "format_specification", what, advice)
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
            key=None if key is None else self.expression(key),
            element=self.expression(element),
        )

    def _attribute(self, node: ast.Attribute) -> ir.Expression:
        advice = INSTEAD.get(dotted(node)) or (
            f"Read an entry of a dict: `{self.quote(node.value)}[{node.attr!r}]`."
        )
        what = f"`{self.quote(node)}` reads an attribute"
        return self.refuse(node, "unknown_construct", what, advice)

    def _foreign(self, node: ast.expr) -> ir.Expression:
        """Refuse what is not in the language, known to us or not."""
        return self.refuse_foreign(node, f"`{self.quote(node)}` is", instead_of(node))

    # --- calls ------------------------------------------------------------------------------------

    @cached_property
    def _variables(self) -> frozenset[str]:
        """Names that are variables anywhere in the text, and parameters."""
        arguments = (node.arg for node in ast.walk(self._root) if isinstance(node, ast.arg))
        return frozenset([*names_set(self._root), *arguments])

    @cached_property
    def _keys(self) -> Mapping[str, Sequence[str]]:
        """Keys of tools that the text writes in another way, by that way."""
        found: dict[str, list[str]] = {}
        for key in self.tools:
            if not is_plain(key):
                found.setdefault(written(key), []).append(key)
        return found

    def _call(self, node: ast.Call) -> ir.Expression:
        function = node.func
        if isinstance(function, ast.Name):
            if function.id in BUILTINS:
                return self._builtin(node, function.id)
            return self._named_child(node, function.id)
        match function:
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if (
                name == TOOLS
            ):
                return self._child(node, key)
            case ast.Attribute(attr=method):
                path = dotted(function)
                is_tool = path and path.partition(".")[0] not in self._variables
                if is_tool and (path in self.tools or self._any_tool):
                    return self._child(node, path)
                if method in METHODS:
                    return self._method(node, function)
                if is_tool:
                    return self._unknown_tool(node, path)
                return self._unknown_method(node, function)
        what = f"`{self.quote(function)}` is not a name that can be called"
        advice = "Call a tool or a function of the language by its name."
        return self.refuse(node, "unknown_construct", what, advice)

    def _await(self, node: ast.Await) -> ir.Expression:
        made = self._call(node.value) if isinstance(node.value, ast.Call) else None
        if isinstance(made, ir.Call) or made is _REFUSED:
            return made
        what = "only a call of a tool is awaited"
        return self.refuse(node, "unknown_construct", what, "Drop the `await`.")

    def _builtin(self, node: ast.Call, name: str) -> ir.Expression:
        arguments = self.expressions(self._positional(node))
        return ir.Builtin(function=name, arguments=arguments, keywords=self._keywords(node, ()))

    def _method(self, node: ast.Call, function: ast.Attribute) -> ir.Expression:
        name, receiver = function.attr, self.expression(function.value)
        arguments = self.expressions(self._positional(node))
        if node.keywords:
            what = f"the method `.{name}()` takes no keywords"
            advice = "Give its arguments by position."
            self.refuse(node.keywords[0], "wrong_arity", what, advice)
        return ir.Method(receiver=receiver, method=name, arguments=arguments)

    def _unknown_method(self, node: ast.Call, function: ast.Attribute) -> ir.Expression:
        name = function.attr
        what = f"`{self.quote(function)}`: there is no method `.{name}()`"
        advice = INSTEAD.get(f".{name}") or did_you_mean(name, METHODS)
        advice = advice or f"The methods are {', '.join(METHODS)}."
        return self.refuse(node, "unknown_method", what, advice)

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
            what = f"there is no tool `{name}`"
            advice = INSTEAD.get(name.rpartition(".")[2]) or self._similar(name)
        return self.refuse(node, "unknown_tool", what, advice)

    def _similar(self, name: str) -> str:
        self._hints += 1
        hint = did_you_mean(name, [*self.tools, *BUILTINS]) if self._hints <= _HINTS else ""
        return hint or "Call one of the tools that you were given, or a function of the language."

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


_COMPREHENSIONS: Mapping[type[ast.expr], ir.ComprehensionKind] = {
    ast.ListComp: "list",
    ast.DictComp: "dict",
    ast.GeneratorExp: "generator",
}
_READERS: Mapping[type[ast.AST], Callable[[ExpressionReader, Any], ir.Expression]] = {
    ast.Constant: ExpressionReader._constant,
    ast.Name: ExpressionReader._name,
    ast.UnaryOp: ExpressionReader._unary,
    ast.BinOp: ExpressionReader._binary,
    ast.Compare: ExpressionReader._compare,
    ast.BoolOp: ExpressionReader._boolean,
    ast.IfExp: ExpressionReader._conditional,
    ast.List: ExpressionReader._list,
    ast.Tuple: ExpressionReader._tuple,
    ast.Dict: ExpressionReader._dict,
    ast.Subscript: ExpressionReader._subscript,
    ast.JoinedStr: ExpressionReader._fstring,
    ast.ListComp: ExpressionReader._comprehension,
    ast.DictComp: ExpressionReader._comprehension,
    ast.GeneratorExp: ExpressionReader._comprehension,
    ast.Attribute: ExpressionReader._attribute,
    ast.Call: ExpressionReader._call,
    ast.Await: ExpressionReader._await,
}
"""The reader of each kind of expression that the language has."""
