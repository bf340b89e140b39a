"""Programs as JSON, which is how a definition stores its body, and back.

Each node says with its ``kind`` what it is and has exactly the fields of that kind. What is read is
in the one form that the parser would give: nothing is guessed or repaired, so that each program has
one digest. The digests of stored definitions cover this form; it never changes within a format.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from types import UnionType
from typing import Any, Literal, NoReturn, get_args, get_origin, get_type_hints

from agentkit.composites import language as ir
from agentkit.composites.checks import check_program
from agentkit.composites.problems import CompositeLimits, SourceCode, refusal
from agentkit.errors import CompositeError, SourceProblem, UsageError
from agentkit.messages import JsonObject
from agentkit.tools.canonical import digest
from agentkit.tools.tool import Tool

FORMAT_VERSION = 1
"""Version of the JSON form of a program."""

_EXACT_INTEGER = 2**53
"""Canonical JSON (RFC 8785) holds integers exactly up to here; larger ones travel as text."""

_NAME_CHARS = 256

_KINDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (*ir.EXPRESSIONS, *ir.STATEMENTS, ir.Argument, ir.Parameter, ir.Program)
}
_FIELDS: Mapping[type, Mapping[str, str]] = {
    kind: {
        "makes" if (kind, field.name) == (ir.Comprehension, "kind") else field.name: field.name
        for field in fields(kind)
    }
    for kind in _KINDS.values()
}
"""The fields of each kind of node by their names in JSON, where ``kind`` says what a node is."""

_HINTS: Mapping[type, Mapping[str, Any]] = {
    kind: get_type_hints(kind, vars(ir)) for kind in _KINDS.values()
}

_LEAST: Mapping[tuple[type, str], int] = {
    (ir.Compare, "operators"): 1,
    (ir.Compare, "operands"): 2,
    (ir.Boolean, "operands"): 2,
    (ir.Format, "parts"): 1,
    (ir.Comprehension, "targets"): 1,
    (ir.Assign, "targets"): 1,
    (ir.For, "targets"): 1,
}
"""How many items a list has at the least; none elsewhere."""

_LABELS = {
    (ir.Argument, "name"),
    (ir.Call, "child"),
    (ir.Builtin, "function"),
    (ir.Method, "method"),
}
"""Texts that name a tool, a parameter or a word of the language; the others are identifiers."""


def program_to_json(program: ir.Program) -> dict[str, Any]:
    """A program as one JSON object, with its format version."""
    return {"format": FORMAT_VERSION, **_encoded(program)}


def program_from_json(
    record: JsonObject,
    *,
    tools: Mapping[str, Tool] | None = None,
    name: str = "",
    limits: CompositeLimits | None = None,
) -> ir.Program:
    """The inverse of ``program_to_json``, for data of any origin.

    The static rules of the language hold for it as they hold for a text.

    Args:
        record: What ``program_to_json`` made.
        tools: The tools that it may call, by their name in the library; with None, the rules that
            need their signatures and effects are left out.
        name: The composite's name, for messages; it may not call itself.
        limits: Caps on the program.

    Raises:
        CompositeError: The data is no program (``malformed_program``, with the path in the JSON),
            was written by a newer agentkit, or breaks a rule of the language.

    Example:
        >>> from agentkit.composites.parser import parse
        >>> program = parse("def twice(x): return 2 * x", {}).program
        >>> program_from_json(program_to_json(program)) == program
        True
    """
    limits = limits or CompositeLimits()
    body = _without_format(record, name)
    try:
        program: ir.Program = _Decoder(limits, name).node(body, (ir.Program,))
    except RecursionError as error:
        message = "the program is nested too deeply for this process"
        raise _malformed(message, code="too_large", tool_name=name) from error
    problems = check_program(program, tools, name=name, limits=limits)
    if problems:
        raise refusal(name, problems)
    return program


def program_digest(program: ir.Program) -> str:
    """SHA-256 over the canonical JSON of a program."""
    return digest(program_to_json(program))


def literal_of(value: Any) -> ir.Expression:
    """The expression that the parser reads for a JSON value.

    A negative number is a sign before a constant, as in Python's own grammar.

    Raises:
        UsageError: The value is no JSON, or nested beyond what a program may hold.

    Example:
        >>> from agentkit.composites.rendering import render_expression
        >>> render_expression(literal_of({"rate": -0.5, "terms": [36, None]}))
        "{'rate': -0.5, 'terms': [36, None]}"
    """
    try:
        return _literal(value)
    except RecursionError as error:
        raise UsageError("the value is nested too deeply for a literal") from error


def is_text(value: object) -> bool:
    """Whether a value is a text that JSON can carry: one without half of a surrogate pair."""
    if not isinstance(value, str):
        return False
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


# --- writing --------------------------------------------------------------------------------------


def _encoded(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, ir.Constant):
        return {"kind": "Constant", **_encoded_scalar(value.value)}
    node = type(value)
    if node not in _FIELDS:
        return value
    record: dict[str, Any] = {"kind": node.__name__}
    for name, field in _FIELDS[node].items():
        record[name] = _encoded(getattr(value, field))
    return record


def _encoded_scalar(value: ir.Scalar) -> JsonObject:
    if isinstance(value, float):
        return {"float": repr(value)}  # 1.0 and 1 are one number in JSON, two in the language
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _EXACT_INTEGER:
        return {"integer": str(value)}
    return {"value": value}


def _literal(value: Any) -> ir.Expression:
    if isinstance(value, list | tuple):
        return ir.ListLiteral(items=tuple(map(_literal, value)))
    if isinstance(value, Mapping):
        keys, values = tuple(map(_literal, value)), tuple(map(_literal, value.values()))
        return ir.DictLiteral(keys=keys, values=values)
    if value is None or isinstance(value, bool | str):
        return ir.Constant(value=value)
    if not isinstance(value, int) and not (isinstance(value, float) and math.isfinite(value)):
        what = type(value).__name__
        raise UsageError(f"only JSON values have a literal, got a {what}: {value!r}")
    if _is_negative(value):
        return ir.Unary(operator="-", operand=ir.Constant(value=-value))
    return ir.Constant(value=value)


def _is_negative(number: float) -> bool:
    """Whether Python writes a number with a sign, as it does -0.0."""
    return number < 0 if isinstance(number, int) else math.copysign(1, number) < 0


# --- reading --------------------------------------------------------------------------------------


class _Decoder:
    """One program being read; counts what it reads, so that hostile data stops early."""

    def __init__(self, limits: CompositeLimits, tool_name: str) -> None:
        self._limits = limits
        self._tool_name = tool_name
        self._nodes = self._bytes = 0
        self._depth = 0
        self._path: list[str] = []

    def node(self, record: Any, kinds: tuple[type, ...]) -> Any:
        """Read a node of one of ``kinds``."""
        kind = record.get("kind") if isinstance(record, Mapping) else None
        node = _KINDS.get(kind) if isinstance(kind, str) else None
        if node is None or node not in kinds:
            names = ", ".join(kind.__name__ for kind in kinds)
            self._refuse(f"expected an object with `kind` {names}, got {_shown(kind or record)}")
        self._enter()
        if node is ir.Constant:
            made: Any = self._constant(record)
        else:
            names_of = _FIELDS[node]
            if record.keys() != {"kind", *names_of}:
                self._refuse(f"a {node.__name__} has the fields {list(names_of)} and no others")
            values = {}
            for name, field in names_of.items():  # a comprehension is one frame more a level
                self._path.append(f".{name}")
                values[field] = self._field(node, field, record[name])
                self._path.pop()
            made = node(**values)
            if complaint := _complaint(made):
                self._refuse(complaint)
        self._depth -= 1
        return made

    def _field(self, node: type, field: str, value: Any) -> Any:
        hint = _HINTS[node][field]
        if get_origin(hint) is not tuple:
            return self._one(node, field, hint, value)
        if not isinstance(value, list | tuple):
            self._refuse(f"expected a list, got {_shown(value)}")
        least = _LEAST.get((node, field), 0)
        if len(value) < least:
            self._refuse(f"expected {least} or more items, got {len(value)}")
        made = []
        for place, item in enumerate(value):
            self._path.append(f"[{place}]")
            made.append(self._one(node, field, get_args(hint)[0], item))
            self._path.pop()
        return tuple(made)

    def _one(self, node: type, field: str, hint: Any, value: Any) -> Any:
        if hint is str:
            name = self._text(value, _NAME_CHARS)
            is_label = (node, field) in _LABELS
            if not (name.strip() if is_label else ir.is_identifier(name)):
                self._refuse(f"{name!r} is no name that Python can write")
            return name
        if get_origin(hint) is Literal:
            if not isinstance(value, str) or value not in get_args(hint):
                self._refuse(f"expected one of {list(get_args(hint))}, got {_shown(value)}")
            return value
        kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        if type(None) in kinds and value is None:
            return None
        return self.node(value, tuple(kind for kind in kinds if kind in _FIELDS))

    def _text(self, value: Any, most: int) -> str:
        if not is_text(value):
            self._refuse(f"expected a text, got {_shown(value)}")
        text: str = value
        self._bytes += len(text) if text.isascii() else len(text.encode())
        if len(text) > most or self._bytes > self._limits.source_bytes:
            what = (
                f"the texts of the program are longer than {self._limits.source_bytes} bytes, or "
                f"this one than {most} characters"
            )
            self._refuse(what, "too_large")
        return text

    def _constant(self, record: Mapping[str, Any]) -> ir.Constant:
        names = [name for name in record if name != "kind"]
        readers = {"value": self._plain, "float": self._float, "integer": self._integer}
        if len(names) != 1 or names[0] not in readers:
            self._refuse("a Constant has one of the fields `value`, `float` and `integer`")
        is_default = self._path[-1:] == [".default"]
        self._path.append(f".{names[0]}")
        value = readers[names[0]](record[names[0]])
        self._path.pop()
        if isinstance(value, int | float) and _is_negative(value) and not is_default:
            self._refuse(f"write {value!r} as Unary with operator '-' over a Constant")
        return ir.Constant(value=value)

    def _plain(self, value: Any) -> ir.Scalar:
        if isinstance(value, str):
            return self._text(value, self._limits.string_chars)
        if value is None or isinstance(value, bool):
            return value
        if not isinstance(value, int) or abs(value) > _EXACT_INTEGER:
            what = (
                "expected null, a truth value, a text or an integer up to 2**53, got "
                f"{_shown(value)}; floats stand in `float`, larger integers in `integer`, as text"
            )
            self._refuse(what)
        return value

    def _float(self, value: Any) -> float:
        text = self._text(value, 32)
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or repr(number) != text:
            self._refuse(f"expected a finite float as Python writes it, got {text!r}")
        return number

    def _integer(self, value: Any) -> int:
        most = self._limits.integer_bits
        text = self._text(value, most // 3 + 2)
        digits = text.removeprefix("-")
        number = int(text) if digits.isascii() and digits.isdigit() and len(digits) <= 4_300 else 0
        if abs(number) <= _EXACT_INTEGER or str(number) != text:
            self._refuse(f"expected an integer beyond 2**53, got {text[:40]!r}")
        if number.bit_length() > most:
            self._refuse(f"an integer has more than {most} bits", "literal")
        return number

    def _enter(self) -> None:
        self._nodes += 1
        self._depth += 1
        limits = self._limits
        if self._nodes > limits.nodes:
            self._refuse(f"the program has more than {limits.nodes} nodes", "too_large")
        if self._depth > 2 * limits.nesting + 2:  # an argument lies between two expressions
            self._refuse(f"the program is nested more than {limits.nesting} deep", "too_large")

    def _refuse(self, message: str, code: SourceCode = "malformed_program") -> NoReturn:
        where = "$" + "".join(self._path)
        raise _malformed(f"{where}: {message}", code=code, tool_name=self._tool_name)


def _without_format(record: object, name: str) -> JsonObject:
    version = record.get("format") if isinstance(record, Mapping) else None
    if not isinstance(record, Mapping) or type(version) is not int or version < 1:
        message = f"$.format: expected an integer from 1, got {_shown(version or record)}"
        raise _malformed(message, tool_name=name)
    if version > FORMAT_VERSION:
        message = f"$.format: the program has format {version:.9g}, this agentkit reads up to "
        advice = "Upgrade agentkit-evolve."
        raise _malformed(f"{message}{FORMAT_VERSION}", advice=advice, tool_name=name)
    return {key: value for key, value in record.items() if key != "format"}


def _malformed(
    message: str,
    *,
    advice: str = "Give what program_to_json made, unchanged.",
    code: SourceCode = "malformed_program",
    tool_name: str = "",
) -> CompositeError:
    return refusal(tool_name, (SourceProblem(code=code, message=message, advice=advice),))


def _shown(value: object) -> str:
    """A value in a few characters, whatever its size."""
    if isinstance(value, str):
        return repr(value[:40])
    return f"a {type(value).__name__}"


def _complaint(node: Any) -> str:
    """What is wrong with a node whose fields are right one by one; empty when nothing is."""
    match node:
        case ir.DictLiteral(keys=keys, values=values) if len(keys) != len(values):
            return f"as many values as keys, got {len(keys)} keys and {len(values)} values"
        case ir.Compare(operators=signs, operands=values) if len(values) != len(signs) + 1:
            return f"one operator less than operands, got {len(signs)} and {len(values)}"
        case ir.Comprehension(kind=kind, key=key) if (key is not None) != (kind == "dict"):
            return "a dict comprehension has a key, the others have none"
        case ir.Format(parts=parts):
            texts = [part.value for part in parts if isinstance(part, ir.Constant)]
            are_texts = [isinstance(part, ir.Constant) for part in parts]
            if all(are_texts):
                return "a Format without a value in it is a Constant"
            if any(one and other for one, other in pairwise(are_texts)):
                return "two texts side by side are one"
            if not all(isinstance(text, str) and text for text in texts):
                return "a Constant in a Format is a text of at least one character"
    return ""
