"""Programs as definitions store them: canonical text, and the trees of nodes that came before.

Whatever is read, a text or a tree, goes through the parser and the rules of the language.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.parser import read_source
from agentkit.composites.problems import (
    READING_LIMITS,
    STYLE_CODES,
    CompositeLimits,
    refusal,
)
from agentkit.composites.rendering import render
from agentkit.errors import CompositeError, SourceProblem
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

FORMAT_VERSION = 2
"""Version of the stored form: 2 is text, 1 a tree of nodes in JSON."""

_NODES: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (*ir.EXPRESSIONS, *ir.STATEMENTS, ir.Argument, ir.Parameter, ir.Program)
}
_Found: TypeAlias = tuple[ir.Program, tuple[SourceProblem, ...]]
_NO_PROGRAM = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors raised by a tree that is not a program."""


def program_to_json(program: ir.Program, name: str = "composite") -> dict[str, Any]:
    """A program as a definition stores it: its canonical text, with the version of the format."""
    return {"format": FORMAT_VERSION, "source": render(program, name)}


def program_from_json(
    record: JsonObject,
    *,
    tools: Mapping[str, Tool] | None = None,
    name: str = "",
    limits: CompositeLimits | None = None,
    is_new: bool = False,
) -> ir.Program:
    r"""The inverse of ``program_to_json``, for data of any origin.

    Args:
        record: The body of a definition.
        tools: The tools that it may call, by their name in the library; with None, the rules that
            need their signatures and effects are left out.
        name: The composite's name, for messages; it may not call itself.
        limits: Caps on the program.
        is_new: Whether it comes into the library now, and is held to all rules; a program that
            was stored before may break those that do not keep it from running.

    Raises:
        CompositeError: The data is not a program (``malformed_program``), was written by a newer
            agentkit, or breaks a rule of the language.

    Example:
        >>> from agentkit.composites.parser import parse
        >>> program = parse("def twice(x): return 2 * x", {}).program
        >>> program_to_json(program, "twice")["source"]
        'def twice(x):\n    return 2 * x\n'
        >>> program_from_json(program_to_json(program)) == program
        True
    """
    try:
        program, problems = _read(_text(record), name, tools, limits or CompositeLimits())
    except CompositeError as error:
        raise refusal(name, error.problems) from None
    problems = tuple(one for one in problems if is_new or one.code not in STYLE_CODES)
    if problems:
        raise refusal(name, problems)
    return program


def program_of(definition: ToolDefinition) -> ir.Program | None:
    """The program of a composite, under ``READING_LIMITS``; None when it has none that is valid."""
    if definition.body is None:
        return None
    try:
        return program_from_json(definition.body, limits=READING_LIMITS)
    except CompositeError:
        return None


def called_in(record: JsonObject) -> frozenset[str] | None:
    """The tools that a stored program calls, also one that breaks rules of the language.

    None when it cannot be read.
    """
    try:
        program, _ = _read(_text(record), "", None, READING_LIMITS)
    except CompositeError:
        return None
    return frozenset(call.child for call in ir.calls(program))


def _read(
    text: str, name: str, tools: Mapping[str, Tool] | None, limits: CompositeLimits
) -> _Found:
    """A stored text, read; a library asks for the same ones again and again."""
    if tools is None:
        return _read_alone(text, name, limits)
    read = read_source(text, tools, limits=_longer(limits), stored_as=name)
    return read.program, read.problems


@lru_cache(maxsize=4_096)
def _read_alone(text: str, name: str, limits: CompositeLimits) -> _Found:
    read = read_source(text, None, limits=_longer(limits), stored_as=name)
    return read.program, read.problems


def _longer(limits: CompositeLimits) -> CompositeLimits:
    """Limits for a canonical text, which may be longer than that of its author."""
    longer = min(8 * limits.source_bytes, READING_LIMITS.source_bytes)
    return replace(limits, source_bytes=max(limits.source_bytes, longer))


def _text(record: object) -> str:
    """The text of a stored program.

    Raises:
        CompositeError: There is none.
    """
    match record:
        case {"format": 2, "source": str(text)}:
            return text
        case {"format": bool()}:
            pass
        case {"format": int(version)} if version > FORMAT_VERSION:
            what = f"the program has format {version:.9g}, this agentkit reads 1 and 2"
            raise _malformed(what, advice="Upgrade agentkit-evolve.")
        case {"format": 1, **tree}:
            try:
                return render(_node(tree))
            except RecursionError:
                raise _malformed("the program is nested too deeply", "too_large") from None
            except _NO_PROGRAM as error:
                what = f"{type(error).__name__}: {error}"
                raise _malformed(f"the tree of nodes is not a program ({what:.200})") from error
    raise _malformed("a program has `format` 2 and its text in `source`")


def _malformed(
    message: str, code: str = "malformed_program", advice: str = "Compose it from its text."
) -> CompositeError:
    return refusal("", (SourceProblem(code=code, message=message, advice=advice),))


def _node(record: Any) -> Any:
    """A node of the older form; whether its fields make sense is found out from its text."""
    if isinstance(record, list | tuple):
        return tuple(map(_node, record))
    if not isinstance(record, Mapping):
        return record
    fields = {name: part for name, part in record.items() if name != "kind"}
    match record:
        case {"kind": "Constant", "value": None | bool() | int() | str() as value}:
            return ir.Constant(value=value)
        case {"kind": "Constant", "float": str(text)}:
            return ir.Constant(value=float(text))
        case {"kind": "Constant", "integer": str(text)}:
            return ir.Constant(value=int(text))
        case {"kind": "Constant"}:
            raise ValueError(f"a constant holds no {type(fields.get('value')).__name__}")
        case {"kind": "Comprehension", "makes": kind}:
            del fields["makes"]
            made = {name: _node(part) for name, part in fields.items()}
            return ir.Comprehension(kind=kind, **made)
    return _NODES[record["kind"]](**{name: _node(part) for name, part in fields.items()})
