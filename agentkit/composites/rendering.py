"""Expressions as text, with no more parentheses than Python needs.

Texts inside the braces of an f-string are written so that Python 3.11 reads them too: without a
backslash, and in other quotes than those around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import IntEnum
from typing import Any, TypeAlias

from agentkit.composites import ir
from agentkit.composites.written import is_dotted, written


class Binding(IntEnum):
    """How tightly an operator holds its operands, loosest first."""

    TERNARY = 1
    OR = 2
    AND = 3
    NOT = 4
    COMPARE = 5
    SUM = 6
    TERM = 7
    UNARY = 8
    POWER = 9
    ATOM = 10


Write: TypeAlias = "Callable[[ExpressionWriter, Any], str]"

_QUOTES = ('"', "'", '"""', "'''")
_SUMS = frozenset({"+", "-"})


class ExpressionWriter:
    """Writes expressions.

    Attributes:
        is_exact: Whether all that was written so far parses back on every Python we support; only
            texts deep inside f-strings can spoil that.
    """

    def __init__(self) -> None:
        self.is_exact = True
        self._braces = 0

    def text(self, node: ir.Expression, least: Binding = Binding.TERNARY) -> str:
        """Write ``node``, in parentheses where it binds less tightly than ``least``."""
        written_text = _WRITERS[type(node)](self, node)
        return f"({written_text})" if binding(node) < least else written_text

    def texts(self, nodes: Iterable[ir.Expression]) -> list[str]:
        """Write several expressions that stand between commas."""
        return [self.text(node) for node in nodes]

    def quoted(self, value: str) -> str:
        """Write a text literal."""
        if not self._braces:
            return _literal(value)
        if value.isprintable() and "\\" not in value:
            for quotes in ("'", '"', "'''", '"""'):
                if quotes not in value and not (len(quotes) > 1 and value.endswith(quotes[0])):
                    return f"{quotes}{value}{quotes}"
        self.is_exact = False
        return _literal(value)

    def formatted(self, parts: Iterable[ir.Expression]) -> str:
        """Write an f-string."""
        pieces = [
            (part.value, "") if isinstance(part, ir.Constant) else ("", self._in_braces(part))
            for part in parts
        ]
        for quotes in _QUOTES:
            if any(quotes in code for _, code in pieces):
                continue
            texts = [self._plain(str(text), quotes) if text else code for text, code in pieces]
            if None not in texts:
                return f"f{quotes}{''.join(map(str, texts))}{quotes}"
        self.is_exact = False
        return "f" + _literal("".join(f"{text}{code}" for text, code in pieces))

    def _in_braces(self, node: ir.Expression) -> str:
        self._braces += 1
        code = self.text(node)
        self._braces -= 1
        return f"{{ {code} }}" if code.startswith("{") else f"{{{code}}}"

    def _plain(self, text: str, quotes: str) -> str | None:
        """The literal part of an f-string; None when it can not stand between these quotes."""
        doubled = text.replace("{", "{{").replace("}", "}}")
        if not self._braces:
            return _escaped(doubled, quotes[0])
        fits = quotes not in text and not text.endswith(quotes[0])
        return doubled if fits and text.isprintable() and "\\" not in text else None


def _escaped(text: str, quote: str) -> str:
    body = repr(f"'\"{text}")[1:-1]  # with both quotes in it, repr takes ' and escapes only that
    body = body.removeprefix("\\'\"").replace("\\'", "'")
    return body.replace(quote, f"\\{quote}")


def _literal(value: str) -> str:
    text = repr(value)
    return text if '"' in text else f'"{text[1:-1]}"'


def binding(node: ir.Expression) -> Binding:
    """How tightly an expression holds together as it is written."""
    if isinstance(node, ir.Binary):
        if node.operator == "**":
            return Binding.POWER
        return Binding.SUM if node.operator in _SUMS else Binding.TERM
    if isinstance(node, ir.Boolean):
        return Binding.AND if node.operator == "and" else Binding.OR
    if isinstance(node, ir.Unary):
        return Binding.NOT if node.operator == "not" else Binding.UNARY
    if isinstance(node, ir.Compare):
        return Binding.COMPARE
    return Binding.TERNARY if isinstance(node, ir.Conditional) else Binding.ATOM


def _constant(writer: ExpressionWriter, node: ir.Constant) -> str:
    return writer.quoted(node.value) if isinstance(node.value, str) else repr(node.value)


def _name(writer: ExpressionWriter, node: ir.Name) -> str:  # noqa: ARG001 - the table's signature
    return node.name


def _call(writer: ExpressionWriter, node: ir.Call) -> str:
    name = node.child if is_dotted(node.child) else written(node.child)
    return f"{name}({', '.join(_arguments(writer, node.arguments))})"


def _arguments(writer: ExpressionWriter, arguments: Iterable[ir.Argument]) -> list[str]:
    return [f"{written(given.name)}={writer.text(given.value)}" for given in arguments]


def _builtin(writer: ExpressionWriter, node: ir.Builtin) -> str:
    if _is_sole_generator(node.arguments) and not node.keywords:
        return f"{node.function}{writer.text(node.arguments[0])}"
    arguments = [*writer.texts(node.arguments), *_arguments(writer, node.keywords)]
    return f"{node.function}({', '.join(arguments)})"


def _method(writer: ExpressionWriter, node: ir.Method) -> str:
    stem = f"{_receiver(writer, node.receiver)}.{node.method}"
    if _is_sole_generator(node.arguments):
        return f"{stem}{writer.text(node.arguments[0])}"
    return f"{stem}({', '.join(writer.texts(node.arguments))})"


def _is_sole_generator(arguments: tuple[ir.Expression, ...]) -> bool:
    if len(arguments) != 1:
        return False
    (only,) = arguments
    return isinstance(only, ir.Comprehension) and only.kind == "generator"


def _receiver(writer: ExpressionWriter, node: ir.Expression) -> str:
    text = writer.text(node, Binding.ATOM)
    is_number = isinstance(node, ir.Constant) and not isinstance(node.value, str)
    return f"({text})" if is_number else text


def _unary(writer: ExpressionWriter, node: ir.Unary) -> str:
    if node.operator == "not":
        return f"not {writer.text(node.operand, Binding.NOT)}"
    return f"{node.operator}{writer.text(node.operand, Binding.UNARY)}"


def _binary(writer: ExpressionWriter, node: ir.Binary) -> str:
    own = binding(node)
    if own is Binding.POWER:  # groups to the right, and holds tighter than a sign on its left
        left, right = Binding.ATOM, Binding.UNARY
    else:
        left, right = own, Binding(own + 1)
    return f"{writer.text(node.left, left)} {node.operator} {writer.text(node.right, right)}"


def _compare(writer: ExpressionWriter, node: ir.Compare) -> str:
    first, *others = (writer.text(operand, Binding.SUM) for operand in node.operands)
    chain = zip(node.operators, others, strict=True)
    return " ".join([first, *(f"{operator} {operand}" for operator, operand in chain)])


def _boolean(writer: ExpressionWriter, node: ir.Boolean) -> str:
    tighter = Binding(binding(node) + 1)
    return f" {node.operator} ".join(writer.text(operand, tighter) for operand in node.operands)


def _conditional(writer: ExpressionWriter, node: ir.Conditional) -> str:
    then, test = writer.text(node.then, Binding.OR), writer.text(node.test, Binding.OR)
    return f"{then} if {test} else {writer.text(node.otherwise)}"


def _list(writer: ExpressionWriter, node: ir.ListLiteral) -> str:
    return f"[{', '.join(writer.texts(node.items))}]"


def _tuple(writer: ExpressionWriter, node: ir.TupleLiteral) -> str:
    items = writer.texts(node.items)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _dict(writer: ExpressionWriter, node: ir.DictLiteral) -> str:
    entries = zip(writer.texts(node.keys), writer.texts(node.values), strict=True)
    return f"{{{', '.join(f'{key}: {value}' for key, value in entries)}}}"


def _index(writer: ExpressionWriter, node: ir.Index) -> str:
    return f"{_receiver(writer, node.value)}[{writer.text(node.index)}]"


def _slice(writer: ExpressionWriter, node: ir.Slice) -> str:
    start, stop, step = (
        "" if bound is None else writer.text(bound) for bound in (node.start, node.stop, node.step)
    )
    bounds = f"{start}:{stop}" if node.step is None else f"{start}:{stop}:{step}"
    return f"{_receiver(writer, node.value)}[{bounds}]"


def _format(writer: ExpressionWriter, node: ir.Format) -> str:
    return writer.formatted(node.parts)


_BRACKETS: Mapping[ir.ComprehensionKind, str] = {"list": "[]", "dict": "{}", "generator": "()"}


def _comprehension(writer: ExpressionWriter, node: ir.Comprehension) -> str:
    key = "" if node.key is None else f"{writer.text(node.key)}: "
    clauses = [f"{key}{writer.text(node.element)} for {', '.join(node.targets)}"]
    clauses.append(f"in {writer.text(node.source, Binding.OR)}")
    clauses.extend(f"if {writer.text(test, Binding.OR)}" for test in node.conditions)
    brackets = _BRACKETS[node.kind]
    return f"{brackets[0]}{' '.join(clauses)}{brackets[1]}"


_WRITERS: Mapping[type, Write] = {
    ir.Constant: _constant,
    ir.Name: _name,
    ir.Call: _call,
    ir.Builtin: _builtin,
    ir.Method: _method,
    ir.Unary: _unary,
    ir.Binary: _binary,
    ir.Compare: _compare,
    ir.Boolean: _boolean,
    ir.Conditional: _conditional,
    ir.ListLiteral: _list,
    ir.TupleLiteral: _tuple,
    ir.DictLiteral: _dict,
    ir.Index: _index,
    ir.Slice: _slice,
    ir.Format: _format,
    ir.Comprehension: _comprehension,
}
