"""Python stubs: the text of a ``.pyi`` file, for editors, type checkers and code that calls tools.

Every tool is a function whose parameters go by name. Objects with listed fields become
``TypedDict``s. What types can not say, such as bounds, stands in the docstring.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any

from agentkit.interop.export.renderers.rendering import Loss, Rendering, definitions_of, lost_parts
from agentkit.interop.export.renderers.saying import (
    SILENT,
    Notes,
    RecursiveReference,
    followed,
    in_words,
    joined,
    resolved,
)
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

_HEAD = '''"""Tools of library version {version}."""

from typing import Any, Literal, NotRequired, TypedDict
'''
_NAMES = {"Any", "Literal", "NotRequired", "TypedDict"}
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list[Any]",
    "object": "dict[str, Any]",
}
_IN_TYPES = frozenset(
    [
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "enum",
        "const",
        "title",
        "description",
        "$ref",
        "additionalProperties",
        "nullable",
    ]
)
_DEEPEST = 12
_MOST_TYPES = 5_000
"""Types of one tool; references that multiply each other end there, as ``Any``."""

_WIDTH = 100


def render_python_stubs(tools: Library | Iterable[Tool | ToolDefinition]) -> Rendering:
    """The tools as the text of a stub file.

    Args:
        tools: What to render.

    Example:
        >>> from agentkit.testing import sample_library
        >>> stubs = render_python_stubs([sample_library()["bill_split"]]).value
        >>> print(next(line for line in stubs.splitlines() if line.startswith("def ")))
        def bill_split(*, amount: float, people: int, tip_percent: float = ...) -> float:
    """
    definitions = definitions_of(tools)
    version = tools.version if isinstance(tools, Library) else 0
    names = python_names(definition.name for definition in definitions)
    taken = {*names.values(), *_NAMES}
    texts = [_HEAD.format(version=version)]
    losses: list[Loss] = []
    for definition in definitions:
        stub = _Stub(definition, names[definition.name], taken)
        texts.append(stub.text())
        losses += [*stub.losses(), *lost_parts(definition, kept=("result",))]
    return Rendering(
        value="\n\n".join(texts),
        losses=tuple(losses),
        names={given: name for name, given in names.items()},
        schemas={names[one.name]: one.signature.parameters for one in definitions},
    )


class _Stub:
    """One function, with the classes that its types need."""

    def __init__(self, definition: ToolDefinition, name: str, taken: set[str]) -> None:
        self._definition = definition
        self._name = name
        self._taken = taken
        self._classes: list[str] = []
        self._notes = Notes(tool=definition.name)
        self._root: JsonObject = {}
        self._left = _MOST_TYPES

    def text(self) -> str:
        definition = self._definition
        self._root = schema = definition.parameters_schema
        properties = schema.get("properties", {})
        names = python_names(properties)
        needed = set(schema.get("required", ()))
        given: list[str] = []
        told: list[str] = []
        for name, part in properties.items():
            place = f"/properties/{name}"
            type_ = self._type(part, place, (name,), ())
            given.append(f"{names[name]}: {type_}{'' if name in needed else ' = ...'}")
            told += _argument(names[name], name, part)
            if names[name] != name:
                detail = f"the parameter is {names[name]!r} in Python"
                self._notes.note("name", place, "changed", detail)
        result = definition.signature.result
        back = "Any"
        if result:
            self._root = result
            back = self._type(result, "", ("result",), ())
        head = _signature(self._name, given, back)
        body = [definition.text, *(["", "Args:"] if told else []), *told]
        return "\n\n".join([*self._classes, f"{head}\n{_docstring(body)}"]) + "\n"

    def losses(self) -> list[Loss]:
        name = self._definition.name
        changed = []
        if self._name != name:
            detail = f"the function is {self._name!r}; Rendering.names maps it back"
            changed = [Loss(tool=name, keyword="name", went="changed", detail=detail)]
        return [*changed, *self._notes.losses]

    def _type(self, raw: Any, place: str, steps: tuple[str, ...], path: tuple[str, ...]) -> str:
        """The type of a schema, as text."""
        self._left -= 1
        if not isinstance(raw, Mapping) or len(steps) > _DEEPEST or self._left < 0:
            return "Any"
        try:
            deeper, given = followed(raw, self._root, path), resolved(raw, self._root, path)
        except RecursiveReference as error:
            self._notes.note("$ref", place, "dropped", f"the reference {error} became Any")
            return "Any"
        for key in given:
            if key not in _IN_TYPES and key not in SILENT:
                self._notes.note(key, place, "text", f"{key} is no type: it is told in words")
        values = [given["const"]] if "const" in given else given.get("enum")
        if values:
            return _literal(values)
        branches = given.get("anyOf") or given.get("oneOf")
        if branches:
            found = [self._type(one, place, steps, deeper) for one in branches]
            return " | ".join(dict.fromkeys(found))
        kind = given.get("type")
        kinds = [kind] if isinstance(kind, str) else list(kind or ())
        found = [self._typed(one, given, place, steps, deeper) for one in kinds]
        return " | ".join(dict.fromkeys(found)) or "Any"

    def _typed(
        self,
        kind: str,
        given: Mapping[str, Any],
        place: str,
        steps: tuple[str, ...],
        path: tuple[str, ...],
    ) -> str:
        if kind == "array" and "items" in given:
            inner = self._type(given["items"], f"{place}/items", (*steps, "item"), path)
            return f"list[{inner}]"
        if kind == "object" and given.get("properties"):
            return self._class(given, place, steps, path)
        if kind == "object" and isinstance(given.get("additionalProperties"), Mapping):
            below = f"{place}/additionalProperties"
            inner = self._type(given["additionalProperties"], below, (*steps, "value"), path)
            return f"dict[str, {inner}]"
        return _TYPES.get(kind, "Any")

    def _class(
        self,
        given: Mapping[str, Any],
        place: str,
        steps: tuple[str, ...],
        path: tuple[str, ...],
    ) -> str:
        needed = set(given.get("required", ()))
        fields: list[str] = []
        for name, part in given["properties"].items():
            type_ = self._type(part, f"{place}/properties/{name}", (*steps, name), path)
            wanted = type_ if name in needed else f"NotRequired[{type_}]"
            fields.append(f"    {json.dumps(name)}: {wanted},")
        base = _camel((self._name, *steps))
        name = base
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        body = "\n".join(fields)
        self._classes.append(f'{name} = TypedDict("{name}", {{\n{body}\n}})')
        return name


def _camel(steps: Iterable[str]) -> str:
    words = [word for step in steps for word in re.split(r"[^0-9a-zA-Z]+", step) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if is_python_name(name) else f"T{name}"


def _literal(values: Iterable[Any]) -> str:
    found = list(values)
    if any(isinstance(value, float | list | dict) for value in found):
        return "Any"
    return f"Literal[{', '.join(map(_python, found))}]"


def _python(value: Any) -> str:
    return ascii(value)


def _signature(name: str, given: list[str], back: str) -> str:
    line = f"def {name}({'*, ' if given else ''}{', '.join(given)}) -> {back}:"
    if len(line) <= _WIDTH or not given:
        return line
    inside = "".join(f"    {one},\n" for one in given)
    return f"def {name}(\n    *,\n{inside}) -> {back}:"


def _argument(python_name: str, name: str, part: Any) -> list[str]:
    """The line of a docstring about one parameter."""
    if not isinstance(part, Mapping):
        return []
    rest = {key: value for key, value in part.items() if key not in _IN_TYPES | SILENT}
    told = joined(str(part.get("description", "")), in_words(rest) if rest else "")
    also = f" (sent as {name!r})" if name != python_name else ""
    return [f"    {python_name}{also}: {' '.join(told.split())}"] if told or also else []


def _docstring(lines: Iterable[str]) -> str:
    """A docstring, whatever the words hold; the text of a tool is foreign."""
    text = "\n".join(lines).strip()
    safe = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    safe = "".join(one if one.isprintable() or one == "\n" else _escape(one) for one in safe)
    if safe.endswith('"'):
        safe = f'{safe[:-1]}\\"'
    body = "\n".join(f"    {line}".rstrip() for line in safe.split("\n")).strip()
    closing = '"""' if "\n" not in body else '\n    """'
    return f'    """{body}{closing}' if body else "    ..."


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


_FOREIGN = re.compile(r"[^0-9a-zA-Z_]")


def is_python_name(name: str) -> bool:
    """Whether a name can be written in a ``def`` as it is."""
    return name.isidentifier() and not keyword.iskeyword(name) and name.isascii()


def python_names(names: Iterable[str]) -> dict[str, str]:
    """An identifier for each name, all different; a name that is one stays.

    Example:
        >>> python_names(["get weather", "class", "add"])
        {'get weather': 'get_weather', 'class': 'class_', 'add': 'add'}
    """
    given = list(dict.fromkeys(names))
    found = {name: name for name in given if is_python_name(name)}
    taken = set(found)
    for name in given:
        if name in found:
            continue
        wanted = _FOREIGN.sub("_", name) or "_"
        if wanted[0].isdigit():
            wanted = f"_{wanted}"
        while keyword.iskeyword(wanted) or wanted in taken:
            wanted += "_"
        taken.add(wanted)
        found[name] = wanted
    return {name: found[name] for name in given}
