"""Tools as a page for people: Markdown, every level of a definition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agentkit.evaluation.doctor.schemas import parts
from agentkit.interop.export.renderers.rendering import Loss, Rendering, definitions_of
from agentkit.interop.export.renderers.saying import in_words, joined
from agentkit.library.library import Library
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.rules import rule_sentence
from agentkit.tools.tool import Tool

_TOLD = frozenset({"type", "description", "title", "enum", "const"})
_LINE = re.compile(r"\s*[\r\n]+\s*")
_MARKUP = re.compile(r"([\\`*{}\[\]<>|#~]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9])|^[-+])")


def render_markdown(tools: Library | Iterable[Tool | ToolDefinition]) -> Rendering:
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
    return Rendering(
        value="\n".join(lines) + "\n",
        losses=tuple(losses),
        names={definition.name: definition.name for definition in definitions},
        schemas={one.name: one.signature.parameters for one in definitions},
    )


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
