"""What is wrong with a definition in agentkit's own form, before it becomes one.

``ToolDefinition.from_json`` trusts what programs of ours wrote. People forget quotes and mistype
keys, and a file from elsewhere may hold anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

from agentkit.errors import DefinitionError
from agentkit.tools.bounded import schema_fault
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import (
    ChildReference,
    Description,
    Effects,
    Example,
    Origin,
    Signature,
    Specification,
    ToolDefinition,
)
from agentkit.tools.sources.dialects import normalise_schema

_TEXT, _TEXTS, _OBJECT, _OBJECTS, _FLAG = "text", "a list of texts", "an object", "a list", "a flag"

_PARTS: Mapping[str, tuple[type, Mapping[str, str]]] = {
    "": (
        ToolDefinition,
        {
            "name": _TEXT,
            "description": _OBJECT,
            "signature": _OBJECT,
            "specification": _OBJECT,
            "origin": _OBJECT,
            "body": _OBJECT,
            "examples": _OBJECTS,
        },
    ),
    "description": (
        Description,
        {"summary": _TEXT, "tags": _TEXTS, "usage_rules": _TEXTS, "parameters": _OBJECT},
    ),
    "signature": (
        Signature,
        {"parameters": _OBJECT, "result": _OBJECT, "effects": _OBJECT, "children": _OBJECTS},
    ),
    "specification": (
        Specification,
        {"pre": _TEXTS, "post": _TEXTS, "text": _TEXTS, "complexity": _TEXT, "rules": _OBJECTS},
    ),
    "origin": (
        Origin,
        {
            "kind": _TEXT,
            "reference": _TEXT,
            "original": _OBJECT,
            "original_name": _TEXT,
            "licence": _TEXT,
        },
    ),
}
"""The parts of a definition, and what stands under their keys."""


def record_faults(record: Any) -> tuple[str, ...]:
    """Why the data are no definition; empty when they are one as far as can be seen here.

    Args:
        record: What a file of a tool holds.

    Example:
        >>> record_faults({"name": "ping", "description": {"sumary": "Ping."}})
        ("description has no key 'sumary'; it has parameters, summary, tags, usage_rules",)
    """
    if not isinstance(record, dict):
        return (f"it holds {_kind(record)}, not the keys of a tool",)
    if not is_json(record):
        return ("it holds a value that JSON does not have, such as .nan or half a letter",)
    found = tuple(_faults(record))
    if "name" not in record:
        found = ("it has no key 'name'", *found)
    return found or tuple(_schema_faults(record))


def _faults(record: Mapping[str, Any]) -> Iterator[str]:
    for part, (kind, shapes) in _PARTS.items():
        value = record if not part else record.get(part)
        if not isinstance(value, dict):
            continue  # absent, or told as a fault of what holds it
        known = {one.name for one in fields(kind)} | ({"format"} if not part else set())
        yield from _unknown(value, known, part or "the tool")
        for key, shape in shapes.items():
            if key in value and not _is(value[key], shape):
                yield f"{f'{part}.{key}' if part else key} is {_kind(value[key])}, not {shape}"
    yield from _inner_faults(record)


def _inner_faults(record: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong below the parts."""
    signature, description = _object(record.get("signature")), _object(record.get("description"))
    for name, text in _object(description.get("parameters")).items():
        if not isinstance(text, str):
            yield f"description.parameters.{name} is {_kind(text)}, not text"
    effects = _object(signature.get("effects"))
    yield from _unknown(effects, {one.name for one in fields(Effects)}, "signature.effects")
    for name, flag in effects.items():
        if not isinstance(flag, bool):
            yield f"signature.effects.{name} is {_kind(flag)}, not true or false"
    for number, child in enumerate(_list(signature.get("children"))):
        names = {one.name for one in fields(ChildReference)}
        if (
            not isinstance(child, dict)
            or child.keys() != names
            or not _is([*child.values()], _TEXTS)
        ):
            yield f"signature.children[{number}] is not a name and a digest"
    for number, example in enumerate(_list(record.get("examples"))):
        yield from _example_faults(example, f"examples[{number}]")


def _example_faults(example: Any, where: str) -> Iterator[str]:
    if not isinstance(example, dict) or not isinstance(example.get("arguments"), dict):
        yield f"{where} has no 'arguments' with a key for each argument"
        return
    yield from _unknown(example, {one.name for one in fields(Example)}, where)
    if not isinstance(example.get("query", ""), str):
        yield f"{where}.query is {_kind(example['query'])}, not text"
    if not isinstance(example.get("is_whole", True), bool):
        yield f"{where}.is_whole is {_kind(example['is_whole'])}, not true or false"


def _schema_faults(record: Mapping[str, Any]) -> Iterator[str]:
    """Whether the schemas are some."""
    signature = _object(record.get("signature"))
    for key in ("parameters", "result"):
        schema = signature.get(key, {})
        try:
            is_plain = not normalise_schema(schema).changes
        except DefinitionError as error:
            yield f"signature.{key}: {error}"
            continue
        if not is_plain and (fault := schema_fault(schema)):
            yield f"{'.'.join(['signature', key, *map(str, fault.place)])}: {fault.message}"


def _unknown(value: Mapping[str, Any], known: set[str], where: str) -> Iterator[str]:
    for key in sorted(value.keys() - known):
        yield f"{where} has no key {key!r:.60}; it has {', '.join(sorted(known))}"


def _is(value: Any, shape: str) -> bool:
    if shape == _TEXT:
        return isinstance(value, str)
    if shape == _TEXTS:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    return isinstance(value, dict) if shape == _OBJECT else isinstance(value, list)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _kind(value: Any) -> str:
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "empty" if value is None else "an object")
