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
from typing import Any, Literal, get_args, get_origin, get_type_hints

from agentkit.composites import language as ir
from agentkit.composites.checks import check_program
from agentkit.composites.problems import CompositeLimits, SourceCode, refusal
from agentkit.errors import SourceProblem, UsageError
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
    try:
        program: ir.Program = _Decoder(limits).node(_without_format(record), (ir.Program,), "$")
        problems = check_program(program, tools, name=name, limits=limits)
    except _MalformedError as error:
        problems = (error.problem,)
    except RecursionError:
        deep = _MalformedError("the program is nested too deeply for this process", "too_large")
        problems = (deep.problem,)
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


class _MalformedError(Exception):
    """Data that are no program."""

    def __init__(
        self,
        message: str,
        code: SourceCode = "malformed_program",
        advice: str = "Give what program_to_json made, unchanged.",
    ) -> None:
        self.problem = SourceProblem(code=code, message=message, advice=advice)
        super().__init__(message)


class _Decoder:
    """One program being read; counts what it reads, so that hostile data stop early."""

    def __init__(self, limits: CompositeLimits) -> None:
        self._limits = limits
        self._nodes, self._bytes = limits.nodes, limits.source_bytes

    def node(self, record: Any, kinds: tuple[type, ...], path: str) -> Any:
        """Read a node of one of ``kinds``; ``path`` is its place."""
        kind = record.get("kind") if isinstance(record, Mapping) else None
        node = _KINDS.get(kind) if isinstance(kind, str) else None
        if node is None or node not in kinds:
            names = ", ".join(one.__name__ for one in kinds)
            what = f"expected an object with `kind` {names}, got {_shown(kind or record)}"
            raise _MalformedError(f"{path}: {what}")
        self._nodes -= 1
        if self._nodes < 0:
            what = f"the program has more than {self._limits.nodes} nodes"
            raise _MalformedError(f"{path}: {what}", "too_large")
        if node is ir.Constant:
            return self._constant(record, path)
        names_of = _FIELDS[node]
        if record.keys() != {"kind", *names_of}:
            what = f"a {node.__name__} has the fields {list(names_of)} and no others"
            raise _MalformedError(f"{path}: {what}")
        made = node(
            **{
                field: self._field(node, field, _HINTS[node][field], record[name], f"{path}.{name}")
                for name, field in names_of.items()
            }
        )
        if complaint := _complaint(made):
            raise _MalformedError(f"{path}: {complaint}")
        return made

    def _field(self, node: type, field: str, hint: Any, value: Any, path: str) -> Any:
        if get_origin(hint) is tuple:
            if not isinstance(value, list | tuple):
                raise _MalformedError(f"{path}: expected a list, got {_shown(value)}")
            inner = get_args(hint)[0]
            items = enumerate(value)
            return tuple(self._field(node, field, inner, one, f"{path}[{n}]") for n, one in items)
        if hint is str:
            name = self._text(value, _NAME_CHARS, path)
            if not (name.strip() if (node, field) in _LABELS else ir.is_identifier(name)):
                raise _MalformedError(f"{path}: {name!r} is no name that Python can write")
            return name
        if get_origin(hint) is Literal:
            if not isinstance(value, str) or value not in get_args(hint):
                what = f"expected one of {list(get_args(hint))}, got {_shown(value)}"
                raise _MalformedError(f"{path}: {what}")
            return value
        kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        if type(None) in kinds and value is None:
            return None
        return self.node(value, tuple(kind for kind in kinds if kind in _FIELDS), path)

    def _text(self, value: Any, most: int, path: str) -> str:
        if not is_text(value):
            raise _MalformedError(f"{path}: expected a text, got {_shown(value)}")
        text: str = value
        self._bytes -= len(text.encode())
        if len(text) > most or self._bytes < 0:
            what = (
                f"the texts of the program are longer than {self._limits.source_bytes} bytes, or "
                f"this one than {most} characters"
            )
            raise _MalformedError(f"{path}: {what}", "too_large")
        return text

    def _constant(self, record: Mapping[str, Any], path: str) -> ir.Constant:
        limits, value = self._limits, record.get("value")
        match record:
            case {"value": str()}:
                self._text(value, limits.string_chars, path)
            case {"value": None | bool() | int()}:
                pass
            case {"float": str() as text} if len(text) <= _FLOAT_CHARS:
                value = _number(float, text)
            case {"integer": str() as text} if len(text) <= limits.integer_bits // 3 + 2:
                value = _number(int, text)
            case _:
                value = math.nan
        is_written_so = {"kind": "Constant", **_encoded_scalar(value)} == record
        if not is_written_so or (isinstance(value, float) and not math.isfinite(value)):
            what = (
                "a Constant is a null, truth value, text or integer up to 2**53 in `value`, a "
                "finite float in `float`, or a larger integer in `integer`, as Python writes it"
            )
            raise _MalformedError(f"{path}: {what}")
        if isinstance(value, int) and value.bit_length() > limits.integer_bits:
            what = f"an integer has more than {limits.integer_bits} bits"
            raise _MalformedError(f"{path}: {what}", "literal")
        if isinstance(value, int | float) and _is_negative(value) and not path.endswith(".default"):
            what = f"write {value!r} as Unary with operator '-' over a Constant"
            raise _MalformedError(f"{path}: {what}")
        return ir.Constant(value=value)


_FLOAT_CHARS = 32


def _number(kind: type[int | float], text: str) -> int | float:
    try:
        return kind(text)
    except ValueError:
        return math.nan


def _without_format(record: object) -> JsonObject:
    version = record.get("format") if isinstance(record, Mapping) else None
    if not isinstance(record, Mapping) or type(version) is not int or version < 1:
        raise _MalformedError(f"$.format: expected an integer from 1, got {_shown(version)}")
    if version > FORMAT_VERSION:
        what = f"the program has format {version:.9g}, this agentkit reads up to {FORMAT_VERSION}"
        raise _MalformedError(f"$.format: {what}", advice="Upgrade agentkit-evolve.")
    return {key: value for key, value in record.items() if key != "format"}


def _shown(value: object) -> str:
    """A value in a few characters, whatever its size."""
    return repr(value[:40]) if isinstance(value, str) else f"a {type(value).__name__}"


def _complaint(node: Any) -> str:
    """What is wrong with a node whose fields are right one by one; empty when nothing is."""
    match node:
        case ir.DictLiteral(keys=keys, values=values) if len(keys) != len(values):
            return f"as many values as keys, got {len(keys)} keys and {len(values)} values"
        case ir.Compare(operators=signs, operands=values) if (
            len(values) != len(signs) + 1 or not signs
        ):
            return f"one operator less than operands, got {len(signs)} and {len(values)}"
        case ir.Boolean(operands=values) if len(values) < 2:
            return f"two or more operands, got {len(values)}"
        case ir.Comprehension(kind=kind, key=key) if (key is not None) != (kind == "dict"):
            return "a dict comprehension has a key, the others have none"
        case ir.Comprehension(targets=()) | ir.Assign(targets=()) | ir.For(targets=()):
            return "there is at least one target"
        case ir.Format(parts=parts):
            texts = [part.value if isinstance(part, ir.Constant) else None for part in parts]
            if None not in texts:
                return "a Format without a value in it is a Constant"
            if any(one is not None and other is not None for one, other in pairwise(texts)):
                return "two texts side by side are one"
            if not all(text is None or (isinstance(text, str) and text) for text in texts):
                return "a Constant in a Format is a text of at least one character"
    return ""
