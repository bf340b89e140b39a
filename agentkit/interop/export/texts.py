"""Tools as texts: a Markdown page for people, and Python stubs.

Stubs are the text of a ``.pyi`` file, for editors, type checkers and code that calls tools. Every
tool is a function whose parameters go by name. Objects with listed fields become ``TypedDict``s.
What types can not say, such as bounds, stands in the docstring.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentkit.evaluation.doctor.schemas import parts
from agentkit.interop.export.rendering import (
    MOST_SCHEMAS,
    SILENT,
    Loss,
    Notes,
    RecursiveReference,
    References,
    Rendering,
    Tools,
    definitions_of,
    in_words,
    joined,
    lost_parts,
    rendering_of,
)
from agentkit.library.library import Library
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.rules import rule_sentence

_TOLD = frozenset({"type", "description", "title", "enum", "const"})
_LINE = re.compile(r"\s*[\r\n]+\s*")
_MARKUP = re.compile(r"([\\`*{}\[\]<>|#~]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])|^[-+])")


def render_markdown(tools: Tools) -> Rendering:
    """The tools as a Markdown page, a section each.

    Words of tools are shown as words: markup in them is escaped.

    Args:
        tools: What to render.

    Example:
        >>> from agentkit.testing import sample_library
        >>> print(render_markdown([sample_library()["dealer_policy"]]).value.splitlines()[0])
        # 1 tool
    """
    definitions = definitions_of(tools)
    count = len(definitions)
    at = f" of library version {tools.version}" if isinstance(tools, Library) else ""
    lines = [f"# {count:,} tool{'' if count == 1 else 's'}{at}"]
    losses: list[Loss] = []
    for definition in definitions:
        lines += ["", *_section(definition)]
        losses += _lost(definition)
    return rendering_of("\n".join(lines) + "\n", definitions, losses)


def _lost(definition: ToolDefinition) -> Iterator[Loss]:
    """Keywords beside the listed parameters, which the table does not show."""
    shown = {"type", "properties", "required", "additionalProperties", "$defs"}
    for key in definition.signature.parameters.keys() - shown:
        detail = "the table shows the listed parameters alone"
        yield Loss(tool=definition.name, keyword=key, place="/", went="dropped", detail=detail)


def escaped(text: str) -> str:
    """Text on one line, with everything that Markdown would take as markup escaped."""
    return _MARKUP.sub(r"\\\1", _LINE.sub(" ", text.strip()))


def code(text: str) -> str:
    """Text as code on one line, whatever backticks it holds."""
    flat = _LINE.sub(" ", text)
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") or not flat else ""
    return f"{ticks}{pad}{flat}{pad}{ticks}"


def cell(text: str) -> str:
    """Text in a cell of a table, where a bar would end it, also within code."""
    return text.replace("\\|", "|").replace("|", "\\|")


def _section(definition: ToolDefinition) -> Iterator[str]:
    said, told = definition.description, definition.specification
    yield f"## {escaped(definition.name)}"
    if said.summary:
        yield ""
        yield escaped(said.summary)
    yield from _table(definition)
    result = definition.signature.result
    facts = {
        "Returns": code(_json(result)) if result is not None else "",
        "Other parameters": _others(definition),
        "Effects": ", ".join(_effects(definition)),
        "Made of": ", ".join(code(child.name) for child in definition.signature.children),
        "Tags": ", ".join(map(code, said.tags)),
        "Cost": escaped(told.complexity),
        "Licence": escaped(definition.origin.licence or ""),
        "Digest": code(definition.digest[:12]),
    }
    yield ""
    yield from (f"- {title}: {text}" for title, text in facts.items() if text)
    yield from _listed("Rules of use", map(escaped, said.usage_rules))
    yield from _listed("Learned rules", (escaped(rule_sentence(rule)) for rule in told.rules))
    yield from _listed("Before a call", map(code, told.pre))
    yield from _listed("After a call", map(code, told.post))
    yield from _listed("Conditions", map(escaped, told.text))
    yield from _listed("Examples", map(_example, definition.examples))


def _table(definition: ToolDefinition) -> Iterator[str]:
    required = set(definition.signature.required)
    rows = [part for part in parts(definition.parameters_schema) if part.role == "property"]
    if not rows:
        return
    yield ""
    yield "| parameter | type | needed | what |"
    yield "|---|---|---|---|"
    for part in rows:
        schema = part.schema
        needed = "yes" if part.path in required else ""
        own = {key: value for key, value in part.own.items() if key not in _TOLD}
        said = str(schema.get("description", ""))
        text = escaped(joined(said, in_words(own) if own else ""))
        yield f"| {cell(code(part.path))} | {cell(_type(schema))} | {needed} | {cell(text)} |"


def _type(schema: Mapping[str, Any]) -> str:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if values:
        return ", ".join(code(_json(value)) for value in values)
    kind = schema.get("type")
    names = [kind] if isinstance(kind, str) else list(kind or ())
    return " or ".join(names) or ("one of several" if "anyOf" in schema else "any")


def _others(definition: ToolDefinition) -> str:
    more = definition.signature.parameters.get("additionalProperties")
    if more is None:
        return ""
    return "refused" if more is False else "taken" if more is True else code(_json(more))


def _effects(definition: ToolDefinition) -> Iterator[str]:
    for name, value in definition.signature.effects.to_json().items():
        yield name.replace("_", " ") if value else f"not {name.replace('_', ' ')}"


def _listed(title: str, entries: Iterable[str]) -> Iterator[str]:
    found = list(entries)
    if found:
        yield ""
        yield f"{title}:"
        yield ""
        yield from (f"- {entry}" for entry in found)


def _example(example: Example) -> str:
    asked = f"{escaped(example.query)}: " if example.query else ""
    answer = _json(example.result) if example.is_whole else "(not kept)"
    return f"{asked}{code(_json(dict(example.arguments)))} gives {code(answer)}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=repr)


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
    {"type", "properties", "required", "items", "anyOf", "oneOf", "enum", "const", "title"}
    | {"description", "$ref", "additionalProperties", "nullable"}
)
_DEEPEST = 12
_WIDTH = 100


def render_python_stubs(tools: Tools) -> Rendering:
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
    return rendering_of("\n\n".join(texts), definitions, losses, names)


class _Stub:
    """One function, with the classes that its types need."""

    def __init__(self, definition: ToolDefinition, name: str, taken: set[str]) -> None:
        self._definition = definition
        self._name = name
        self._taken = taken
        self._classes: list[str] = []
        self._notes = Notes(tool=definition.name)
        self._references = References({})

    def text(self) -> str:
        definition = self._definition
        schema = definition.parameters_schema
        self._references = References(schema)
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
            self._references = References(result)
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
        is_enough = len(steps) > _DEEPEST or self._references.count >= MOST_SCHEMAS
        if is_enough or not isinstance(raw, Mapping):
            return "Any"
        try:
            given, deeper = self._references.entered(raw, path)
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
