"""The strict reader of programs that come as JSON.

Each node says with its ``kind`` what it is and has exactly the fields of that kind. What is read
is in the one form that the parser would give: nothing here is guessed or repaired.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import islice, pairwise
from typing import Any, NoReturn, TypeAlias, get_args

from agentkit.composites import ir
from agentkit.composites.faults import refusal
from agentkit.composites.limits import CompositeLimits
from agentkit.composites.problems import SourceCode
from agentkit.composites.written import is_identifier
from agentkit.errors import CompositeError, SourceProblem

Path: TypeAlias = "tuple[Path, str | int] | None"
"""Where in the JSON something stands: the path of what holds it, and its key or place there."""

Read: TypeAlias = "Callable[[Decoder, Any, Path], Any]"

EXACT_INTEGER = 2**53
"""Canonical JSON (RFC 8785) holds integers exactly up to here; larger ones travel as text."""

FIELD_OF: Mapping[tuple[type, str], str] = {(ir.Comprehension, "makes"): "kind"}
"""Fields that have another name in JSON, where ``kind`` says what a node is."""

_NAME_CHARS = 256


def is_text(value: object) -> bool:
    """Whether a value is a text that JSON can carry: one without half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def is_negative(number: float) -> bool:
    """Whether Python writes a number with a sign, as it does -0.0."""
    return number < 0 if isinstance(number, int) else math.copysign(1, number) < 0


class Decoder:
    """One program being read; counts what it reads, so that hostile data stops early."""

    def __init__(self, limits: CompositeLimits, tool_name: str) -> None:
        self._limits = limits
        self._tool_name = tool_name
        self._nodes = 0
        self._depth = 0
        self._bytes = 0

    def refuse(self, path: Path, message: str, code: SourceCode = "malformed_program") -> NoReturn:
        """Stop reading.

        Raises:
            CompositeError: Always.
        """
        raise malformed(f"{_written(path)}: {message}", code=code, tool_name=self._tool_name)

    def node(self, value: Any, path: Path, kinds: Mapping[str, type]) -> Any:
        """Read a node of one of ``kinds``."""
        is_object = type(value) is dict or isinstance(value, Mapping)
        kind = value.get("kind") if is_object else None
        node = kinds.get(kind) if isinstance(kind, str) else None
        if node is None:
            expected = next(iter(kinds)) if len(kinds) == 1 else f"one of {', '.join(kinds)}"
            self.refuse(path, f"expected an object with `kind` {expected}, got {shown(value)}")
        self._enter(path)
        if node is ir.Constant:
            made: Any = _constant(self, value, path)
        else:
            shape = _SHAPES[node]
            if len(value) != len(shape) + 1 or not shape.keys() <= value.keys():
                self._refuse_fields(node, value, path)
            fields = {}
            for name, read in shape.items():  # a loop: a comprehension is one frame more a level
                fields[name] = read(self, value[name], (path, name))
            made = node(**_renamed(node, fields))
            if node in _COUNTS and (complaint := _COUNTS[node](made)):
                self.refuse(path, complaint)
        self._depth -= 1
        return made

    def text(self, value: Any, path: Path, most: int) -> str:
        """Read a text."""
        if not is_text(value):
            self.refuse(path, f"expected a text, got {shown(value)}")
        text: str = value
        self._bytes += len(text) if text.isascii() else len(text.encode())
        if len(text) > most or self._bytes > self._limits.source_bytes:
            self.refuse(
                path,
                f"the texts of the program are longer than {self._limits.source_bytes} bytes, or "
                f"this one than {most} characters",
                "too_large",
            )
        return text

    @property
    def limits(self) -> CompositeLimits:
        """Caps on the program."""
        return self._limits

    def _enter(self, path: Path) -> None:
        self._nodes += 1
        self._depth += 1
        if self._nodes > self._limits.nodes:
            self.refuse(path, f"the program has more than {self._limits.nodes} nodes", "too_large")
        if self._depth > 2 * self._limits.nesting + 2:  # an argument lies between two expressions
            message = f"the program is nested more than {self._limits.nesting} deep"
            self.refuse(path, message, "too_large")

    def _refuse_fields(self, node: type, value: Mapping[str, Any], path: Path) -> NoReturn:
        shape = _SHAPES[node]
        missing = [name for name in shape if name not in value]
        others = (name for name in value if name != "kind" and name not in shape)
        unknown = [str(name)[:40] for name in islice(others, 5)]
        self.refuse(
            path,
            f"a {node.__name__} has the fields {list(shape)}; "
            f"missing: {missing or 'none'}, unknown: {unknown or 'none'}",
        )


def malformed(
    message: str,
    *,
    advice: str = "Give what program_to_json made, unchanged.",
    code: SourceCode = "malformed_program",
    tool_name: str = "",
) -> CompositeError:
    """The error for data that is no program."""
    return refusal(tool_name, (SourceProblem(code=code, message=message, advice=advice),))


def shown(value: object) -> str:
    """A value in a few characters, whatever its size."""
    if isinstance(value, str | int | float | None) and not isinstance(value, int):
        return repr(value[:40] if isinstance(value, str) else value)
    if isinstance(value, bool) or (isinstance(value, int) and value.bit_length() < 128):
        return repr(value)
    if isinstance(value, Mapping) and isinstance(kind := value.get("kind"), str):
        return f"an object with `kind` {kind[:40]!r}"
    return f"a value of type {type(value).__name__}"


def _renamed(node: type, fields: dict[str, Any]) -> dict[str, Any]:
    if node is ir.Comprehension:
        return {FIELD_OF.get((node, name), name): value for name, value in fields.items()}
    return fields


def _written(path: Path) -> str:
    steps: list[str] = []
    while path is not None:
        path, step = path
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "$" + "".join(reversed(steps))


# --- fields ---------------------------------------------------------------------------------------


def _name(decoder: Decoder, value: Any, path: Path) -> str:
    name = decoder.text(value, path, _NAME_CHARS)
    if not is_identifier(name):
        decoder.refuse(path, f"{name!r} is no name that Python can write")
    return name


def _label(decoder: Decoder, value: Any, path: Path) -> str:
    label = decoder.text(value, path, _NAME_CHARS)
    if not label.strip():
        decoder.refuse(path, "expected a name, got an empty text")
    return label


def _constant(decoder: Decoder, record: Mapping[str, Any], path: Path) -> ir.Constant:
    scalar = _scalar(decoder, record, path)
    is_default = path is not None and path[1] == "default"
    if isinstance(scalar, int | float) and is_negative(scalar) and not is_default:
        decoder.refuse(path, f"write {scalar!r} as Unary with operator '-' over a Constant")
    return ir.Constant(value=scalar)


def _scalar(decoder: Decoder, record: Mapping[str, Any], path: Path) -> ir.Scalar:
    fields = [name for name in record if name != "kind"]
    reader = _SCALARS.get(fields[0]) if len(fields) == 1 else None
    if reader is None:
        decoder.refuse(path, "a Constant has one of the fields `value`, `float` and `integer`")
    scalar: ir.Scalar = reader(decoder, record[fields[0]], (path, fields[0]))
    return scalar


def _plain(decoder: Decoder, value: Any, path: Path) -> ir.Scalar:
    if isinstance(value, str):
        return decoder.text(value, path, decoder.limits.string_chars)
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int) or abs(value) > EXACT_INTEGER:
        decoder.refuse(
            path,
            "expected null, a truth value, a text or an integer up to 2**53, got "
            f"{shown(value)}; floats stand in `float`, larger integers in `integer`, as text",
        )
    return value


def _float(decoder: Decoder, value: Any, path: Path) -> float:
    text = decoder.text(value, path, 32)
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or repr(number) != text:
        decoder.refuse(path, f"expected a finite float as Python writes it, got {text!r}")
    return number


def _integer(decoder: Decoder, value: Any, path: Path) -> int:
    text = decoder.text(value, path, decoder.limits.integer_bits // 3 + 2)
    digits = text.removeprefix("-")
    number = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 4_300 else 0
    if abs(number) <= EXACT_INTEGER or str(number) != text:
        decoder.refuse(path, f"expected an integer beyond 2**53, got {text[:40]!r}")
    if number.bit_length() > decoder.limits.integer_bits:
        message = f"an integer has more than {decoder.limits.integer_bits} bits"
        decoder.refuse(path, message, "literal")
    return number


def _node(*kinds: type) -> Read:
    by_name = {kind.__name__: kind for kind in kinds}

    def read(decoder: Decoder, value: Any, path: Path) -> Any:
        return decoder.node(value, path, by_name)

    return read


def _optional(read: Read) -> Read:
    def read_or_none(decoder: Decoder, value: Any, path: Path) -> Any:
        return None if value is None else read(decoder, value, path)

    return read_or_none


def _many(read: Read, *, least: int = 0) -> Read:
    def read_all(decoder: Decoder, value: Any, path: Path) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            decoder.refuse(path, f"expected a list, got {shown(value)}")
        if len(value) < least:
            decoder.refuse(path, f"expected {least} or more items, got {len(value)}")
        made = []
        for place, item in enumerate(value):
            made.append(read(decoder, item, (path, place)))
        return tuple(made)

    return read_all


def _one_of(words: Any) -> Read:
    allowed = get_args(words)

    def read(decoder: Decoder, value: Any, path: Path) -> str:
        if not isinstance(value, str) or value not in allowed:
            decoder.refuse(path, f"expected one of {list(allowed)}, got {shown(value)}")
        return value

    return read


_expression = _node(*ir.EXPRESSIONS)
_expressions = _many(_expression)
_arguments = _many(_node(ir.Argument))
_block = _many(_node(*ir.STATEMENTS))
_names = _many(_name, least=1)
_operator = _one_of(ir.BinaryOperator)

_SCALARS: Mapping[str, Read] = {"value": _plain, "float": _float, "integer": _integer}

_SHAPES: Mapping[type, Mapping[str, Read]] = {
    ir.Name: {"name": _name},
    ir.Argument: {"name": _label, "value": _expression},
    ir.Call: {"child": _label, "arguments": _arguments},
    ir.Builtin: {"function": _label, "arguments": _expressions, "keywords": _arguments},
    ir.Method: {"receiver": _expression, "method": _label, "arguments": _expressions},
    ir.Unary: {"operator": _one_of(ir.UnaryOperator), "operand": _expression},
    ir.Binary: {"operator": _operator, "left": _expression, "right": _expression},
    ir.Compare: {
        "operators": _many(_one_of(ir.CompareOperator), least=1),
        "operands": _many(_expression, least=2),
    },
    ir.Boolean: {
        "operator": _one_of(ir.BooleanOperator),
        "operands": _many(_expression, least=2),
    },
    ir.Conditional: {"test": _expression, "then": _expression, "otherwise": _expression},
    ir.ListLiteral: {"items": _expressions},
    ir.TupleLiteral: {"items": _expressions},
    ir.DictLiteral: {"keys": _expressions, "values": _expressions},
    ir.Index: {"value": _expression, "index": _expression},
    ir.Slice: {
        "value": _expression,
        "start": _optional(_expression),
        "stop": _optional(_expression),
        "step": _optional(_expression),
    },
    ir.Format: {"parts": _many(_expression, least=1)},
    ir.Comprehension: {
        "makes": _one_of(ir.ComprehensionKind),
        "targets": _names,
        "source": _expression,
        "element": _expression,
        "key": _optional(_expression),
        "conditions": _expressions,
    },
    ir.Assign: {"targets": _names, "value": _expression},
    ir.Update: {"target": _name, "operator": _operator, "value": _expression},
    ir.Do: {"call": _node(ir.Call)},
    ir.If: {"test": _expression, "then": _block, "otherwise": _block},
    ir.For: {"targets": _names, "source": _expression, "body": _block},
    ir.Break: {},
    ir.Continue: {},
    ir.Return: {"value": _expression},
    ir.Parameter: {"name": _name, "default": _optional(_node(ir.Constant))},
    ir.Program: {"parameters": _many(_node(ir.Parameter)), "body": _block},
}
"""How each field of each node is read; a Constant has a form of its own."""


# --- what one field can not say alone -------------------------------------------------------------


def _paired(node: ir.DictLiteral) -> str:
    if len(node.keys) == len(node.values):
        return ""
    return f"as many values as keys, got {len(node.keys)} keys and {len(node.values)} values"


def _chained(node: ir.Compare) -> str:
    if len(node.operands) == len(node.operators) + 1:
        return ""
    return f"one operator less than operands, got {len(node.operators)} and {len(node.operands)}"


def _keyed(node: ir.Comprehension) -> str:
    if (node.key is not None) == (node.kind == "dict"):
        return ""
    return "a dict comprehension has a key, the others have none"


def _formatted(node: ir.Format) -> str:
    texts = [isinstance(part, ir.Constant) for part in node.parts]
    if all(texts):
        return "a Format without a value in it is a Constant"
    if any(one and other for one, other in pairwise(texts)):
        return "two texts side by side are one"
    constants = (part.value for part in node.parts if isinstance(part, ir.Constant))
    if not all(isinstance(value, str) and value for value in constants):
        return "a Constant in a Format is a text of at least one character"
    return ""


_COUNTS: Mapping[type, Callable[[Any], str]] = {
    ir.DictLiteral: _paired,
    ir.Compare: _chained,
    ir.Comprehension: _keyed,
    ir.Format: _formatted,
}
"""What is wrong with a node whose fields are right one by one; empty when nothing is."""
