"""Programs in a form that does not depend on names, nor on the order of parameters.

Works on the JSON form of a program, because an index holds one for every composite of a library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition


@dataclass(frozen=True, kw_only=True, slots=True)
class NormalForm:
    """A program without its author's names.

    Attributes:
        text: The same for two programs exactly when they differ in the names of parameters and
            variables only.
        parameters: The author's names of the parameters, in the order in which the program first
            speaks of them; one that it never speaks of is left out.
    """

    text: str
    parameters: tuple[str, ...]


def normal_form(body: JsonObject) -> NormalForm:
    """The normal form of a program in its JSON form (``agentkit.composites.codec``).

    Example:
        >>> name = {"kind": "Name", "name": "x"}
        >>> def returning(parameter):
        ...     value = {"kind": "Name", "name": parameter}
        ...     return {"parameters": [{"kind": "Parameter", "name": parameter, "default": None}],
        ...             "body": [{"kind": "Return", "value": value}]}
        >>> normal_form(returning("x")).text == normal_form(returning("y")).text
        True
    """
    parameters = [parameter["name"] for parameter in body.get("parameters", ())]
    names = _Names(frozenset(parameters))
    text = json.dumps(_renamed(body.get("body", ()), names), separators=(",", ":"))
    spoken = tuple(name for name in names.numbered if name in names.parameters)
    return NormalForm(text=text, parameters=spoken)


class _Names:
    """Numbers names in the order in which they are first met."""

    def __init__(self, parameters: frozenset[str]) -> None:
        self.parameters = parameters
        self.numbered: dict[str, str] = {}
        self._count = 0

    def of(self, name: str) -> str:
        if name not in self.numbered:
            self.numbered[name] = self._fresh(name)
        return self.numbered[name]

    def enter(self, targets: Sequence[str]) -> dict[str, str]:
        """Begin a comprehension, whose targets are its own; gives what to ``leave`` with."""
        outside = self.numbered
        self.numbered = outside | {target: self._fresh(target) for target in targets}
        return outside

    def leave(self, outside: dict[str, str], targets: Sequence[str]) -> None:
        """End a comprehension; what was first met inside stays known."""
        met = {name: at for name, at in self.numbered.items() if name not in targets}
        self.numbered = met | {name: outside[name] for name in targets if name in outside}

    def _fresh(self, name: str) -> str:
        self._count += 1
        return f"{'parameter' if name in self.parameters else 'variable'} {self._count}"


def _renamed(part: Any, names: _Names) -> Any:
    if isinstance(part, list | tuple):
        return [_renamed(item, names) for item in part]
    if not isinstance(part, Mapping):
        return part
    if part.get("kind") == "Name":
        return names.of(part["name"])
    if part.get("kind") == "Comprehension":
        return _comprehension(part, names)
    changed: dict[str, Any] = {}
    for field, value in part.items():
        if field == "targets":
            changed[field] = [names.of(target) for target in value]
        elif field == "target":
            changed[field] = names.of(value)
        else:
            changed[field] = _renamed(value, names)
    return changed


def _comprehension(part: JsonObject, names: _Names) -> dict[str, Any]:
    source = _renamed(part["source"], names)
    outside = names.enter(part["targets"])
    inside = {
        field: _renamed(value, names)
        for field, value in part.items()
        if field not in {"source", "targets"}
    }
    targets = [names.of(target) for target in part["targets"]]
    names.leave(outside, part["targets"])
    return {**inside, "source": source, "targets": targets}


def passed_on(definition: ToolDefinition) -> tuple[str, Mapping[str, str]] | None:
    """The tool that a composite only passes its arguments on to; None when it does more.

    Returns:
        The child, and for each parameter the child's parameter that it is given as.
    """
    body = definition.body or {}
    statements = body.get("body", ())
    if len(statements) != 1 or statements[0].get("kind") != "Return":
        return None
    call = statements[0]["value"]
    if call.get("kind") != "Call":
        return None
    arguments = call["arguments"]
    if any(argument["value"].get("kind") != "Name" for argument in arguments):
        return None
    given = {argument["value"]["name"]: argument["name"] for argument in arguments}
    parameters = {parameter["name"] for parameter in body.get("parameters", ())}
    if len(given) != len(arguments) or given.keys() != parameters:
        return None
    return call["child"], given
