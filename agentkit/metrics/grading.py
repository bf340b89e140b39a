"""How right one call is beside one gold call: parameter names and values, each in three grades.

The rules are ToolDNA's (appendix C.3.1); ``agentkit.metrics.tooldna`` states them and what they
leave open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from agentkit.messages import JsonObject
from agentkit.metrics.comparable import ComparableCall, mark_of
from agentkit.metrics.fields import FieldKind, field_kind, texts_agree
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.fit import fits
from agentkit.tools.references import resolve_local

Grade: TypeAlias = float
"""0, 0.5 or 1: wrong, right in part, right."""

WRONG: Grade = 0.0
PARTLY: Grade = 0.5
RIGHT: Grade = 1.0

_NOTHING = object()  # None is a value here


@dataclass(frozen=True, kw_only=True, slots=True)
class CallGrade:
    """How one call compares with one gold call.

    Attributes:
        names: ParamName of the pair.
        values: ParamValue of the pair, never above ``names``.
    """

    names: Grade = WRONG
    values: Grade = WRONG


_WRONG_CALL = CallGrade()
_SAME_CALL = CallGrade(names=RIGHT, values=RIGHT)


def grade_call(
    call: ComparableCall, gold: ComparableCall, kinds: Mapping[str, FieldKind]
) -> CallGrade:
    """Grade a call by a gold call.

    Args:
        call: What was called.
        gold: What should have been.
        kinds: How to compare values, by ``tool.parameter``, where not as ``field_kind`` says.
    """
    if call.name != gold.name or not (call.is_readable and gold.is_readable):
        return _WRONG_CALL
    if call.marks == gold.marks:
        return _SAME_CALL
    names = _grade_names(call, gold)
    if names == WRONG:
        return _WRONG_CALL
    rules = _Rules(definition=gold.definition, tool=gold.name, kinds=kinds)
    pairs = [
        ((name,), call.values.get(name, _NOTHING), gold.values[name]) for name in sorted(gold.given)
    ]
    # Unequal calls are never wholly right, also where only a default in a branch differs.
    return CallGrade(names=names, values=min(names, PARTLY, _worst(pairs, rules)))


def _grade_names(call: ComparableCall, gold: ComparableCall) -> Grade:
    if any(name in gold.marks for name in gold.given - call.given):
        return WRONG
    added = {name: call.values[name] for name in call.given - gold.given if name in call.marks}
    if not added:
        return RIGHT
    schema = {} if call.definition is None else call.definition.signature.parameters
    return PARTLY if _are_declared(added, schema, schema) else WRONG


def _are_declared(added: JsonObject, schema: JsonObject, root: JsonObject) -> bool:
    """Whether fields that nobody asked for exist, and hold what they may."""
    properties = schema.get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    others = schema.get("additionalProperties", False)
    return all(
        (part := declared.get(name, others)) is not False
        and fits(value, part, root=root) is not False
        for name, value in added.items()
    )


_Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rules:
    """How the values of one tool's parameters are compared."""

    definition: ToolDefinition | None
    tool: str
    kinds: Mapping[str, FieldKind]

    def of(self, path: _Path) -> _Field:
        """The rule for one field; the caller's word counts most."""
        found = _UNKNOWN if self.definition is None else _field(self.definition, path)
        kind = self.kinds.get(".".join((self.tool, *path))) if self.kinds else None
        return found if kind is None else _Field(kind=kind, schema=found.schema)

    @property
    def root(self) -> JsonObject:
        """The document that the schemas point into."""
        return {} if self.definition is None else self.definition.signature.parameters


@dataclass(frozen=True, kw_only=True, slots=True)
class _Field:
    kind: FieldKind = "exact"
    schema: JsonObject = field(default_factory=dict)


_UNKNOWN = _Field()


@lru_cache(maxsize=16_384)
def _field(definition: ToolDefinition, path: _Path) -> _Field:
    """The schema of a field, and how it is compared."""
    root = schema = definition.signature.parameters
    for name in path:
        properties = schema.get("properties")
        part = properties.get(name) if isinstance(properties, Mapping) else None
        reference = part.get("$ref") if isinstance(part, Mapping) else None
        part = resolve_local(root, reference) if isinstance(reference, str) else part
        if not isinstance(part, Mapping):
            return _UNKNOWN
        schema = part
    text = definition.description.parameters.get(".".join(path), "")
    return _Field(kind=field_kind(path[-1], schema, description=text), schema=schema)


def _worst(pairs: Iterable[tuple[_Path, Any, Any]], rules: _Rules) -> Grade:
    """The lowest grade of several fields; texts, which take longest, only where it matters."""
    worst = RIGHT
    texts: list[tuple[str, str]] = []
    for path, value, gold in pairs:
        if value is not _NOTHING and mark_of(value) == mark_of(gold):
            continue
        rule = rules.of(path)
        if rule.kind == "text" and isinstance(value, str) and isinstance(gold, str):
            texts.append((value, gold))
            worst = min(worst, PARTLY)
            continue
        worst = min(worst, _grade_structured(path, value, gold, rules))
        if worst == WRONG:
            return WRONG
    return worst if all(texts_agree(value, gold) for value, gold in texts) else WRONG


def _grade_structured(path: _Path, value: Any, gold: Any, rules: _Rules) -> Grade:
    """The grade of a value that is not the gold one, and no free text."""
    if isinstance(value, Mapping) and isinstance(gold, Mapping):
        return _grade_object(path, value, gold, rules)
    rule = rules.of(path)
    if rule.kind != "selection" or not isinstance(value, list) or not isinstance(gold, list):
        return WRONG
    chosen, wanted = Counter(map(mark_of, value)), Counter(map(mark_of, gold))
    is_superset = bool(wanted) and wanted <= chosen
    return (
        PARTLY if is_superset and fits(value, rule.schema, root=rules.root) is not False else WRONG
    )


def _grade_object(path: _Path, value: JsonObject, gold: JsonObject, rules: _Rules) -> Grade:
    if not gold.keys() <= value.keys():
        return WRONG
    added = {name: item for name, item in value.items() if name not in gold}
    if added and not _are_declared(added, rules.of(path).schema, rules.root):
        return WRONG
    pairs = [((*path, name), value[name], item) for name, item in gold.items()]
    return min(PARTLY, _worst(pairs, rules))
