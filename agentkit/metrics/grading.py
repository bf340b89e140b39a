"""How right one call is beside one gold call: parameter names and values, each in three grades.

The rules are ToolDNA's (appendix C.3.1); ``agentkit.metrics.tooldna`` states them and what they
leave open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from agentkit.messages import JsonObject
from agentkit.metrics.comparable import ComparableCall, mark_of
from agentkit.metrics.fields import FieldKind, field_kind, texts_agree
from agentkit.metrics.remembering import remembered
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import resolve_local
from agentkit.tools.schema_validator import fits

Grade: TypeAlias = float
"""0, 0.5 or 1: wrong, right in part, right."""

WRONG: Grade = 0.0
PARTLY: Grade = 0.5
RIGHT: Grade = 1.0


class CallGrade(NamedTuple):
    """How one call compares with one gold call.

    Attributes:
        names: ParamName of the pair.
        values: ParamValue of the pair, never above ``names``.
    """

    names: Grade = WRONG
    values: Grade = WRONG


_WRONG_CALL = CallGrade()
_SAME_CALL = CallGrade(RIGHT, RIGHT)
_WRONG_VALUES = {names: CallGrade(names, WRONG) for names in (PARTLY, RIGHT)}
_DEFAULT = object()


class Grader:
    """Grades calls by one gold call."""

    def __init__(self, gold: ComparableCall, kinds: Mapping[str, FieldKind]) -> None:
        """Look up once what holds for each argument of the gold call.

        Args:
            gold: The gold call.
            kinds: How to compare values, by ``tool.parameter``, where not as ``field_kind`` says.
        """
        self._gold = gold
        self._rules = _Rules(gold.definition, gold.name, kinds)
        self._exact = [
            (name, gold.marks.get(name, _DEFAULT))
            for name in gold.given
            if type(gold.values[name]) is not dict and self._rules.is_exact(name)
        ]

    def grade(self, call: ComparableCall) -> CallGrade:
        """How right a call is."""
        gold = self._gold
        if call.name != gold.name or not (call.is_readable and gold.is_readable):
            return _WRONG_CALL
        marks = call.marks
        if marks == gold.marks:
            return _SAME_CALL
        names = RIGHT if call.given == gold.given else _grade_names(call, gold)
        if names == WRONG:
            return _WRONG_CALL
        for name, mark in self._exact:  # most wrong calls are found out here, at little cost
            if marks.get(name, _DEFAULT) != mark:
                return _WRONG_VALUES[names]
        differ = {name for name, _ in marks.items() ^ gold.marks.items()} & gold.given
        pairs = [((name,), call.values.get(name), gold.values[name]) for name in differ]
        # Unequal calls are never wholly right, also where only a default in a branch differs.
        return CallGrade(names, min(names, PARTLY, _worst(pairs, self._rules)))


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


@dataclass(frozen=True, slots=True)
class _Rules:
    """How the values of one tool's parameters are compared."""

    definition: ToolDefinition | None
    tool: str
    kinds: Mapping[str, FieldKind]

    def of(self, path: _Path) -> _Field:
        """The rule for one field; the caller's word counts most."""
        found = _UNKNOWN if self.definition is None else _field(self.definition, path)
        kind = self.kinds.get(".".join((self.tool, *path))) if self.kinds else None
        return found if kind is None else _Field(kind, found.schema)

    def is_exact(self, name: str) -> bool:
        """Whether the values of a parameter are right or wrong and nothing between."""
        kind = self.kinds.get(f"{self.tool}.{name}") if self.kinds else None
        if kind is not None:
            return kind == "exact"
        return self.definition is None or name not in _lenient(self.definition)

    @property
    def root(self) -> JsonObject:
        """The document that the schemas point into."""
        return {} if self.definition is None else self.definition.signature.parameters


class _Field(NamedTuple):
    kind: FieldKind
    schema: JsonObject


_UNKNOWN = _Field("exact", {})


@remembered()
def _lenient(definition: ToolDefinition) -> frozenset[str]:
    """The parameters of a tool whose values may be right in part."""
    properties = definition.signature.properties
    return frozenset(name for name in properties if _field(definition, (name,)).kind != "exact")


@remembered(most=16_384)
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
    return _Field(field_kind(path[-1], schema, description=text), schema)


def _worst(pairs: Iterable[tuple[_Path, Any, Any]], rules: _Rules) -> Grade:
    """The lowest grade of fields that differ; texts, which take longest, only where it matters."""
    worst = RIGHT
    texts: list[tuple[str, str]] = []
    for path, value, gold in pairs:
        rule = rules.of(path)
        if rule.kind == "text" and type(value) is str and type(gold) is str:
            texts.append((value, gold))
            worst = PARTLY
        elif type(gold) is dict and type(value) is dict:
            worst = min(worst, _grade_object(path, value, gold, rules))
        elif rule.kind == "selection" and _is_superset(value, gold):
            valid = fits(value, rule.schema, root=rules.root) is not False
            worst = PARTLY if valid else WRONG
        else:
            return WRONG
        if worst == WRONG:
            return WRONG
    return worst if all(texts_agree(value, gold) for value, gold in texts) else WRONG


def _is_superset(value: Any, gold: Any) -> bool:
    """Whether a list holds everything that another one holds, as often."""
    if type(value) is not list or type(gold) is not list or not gold:
        return False
    chosen, wanted = list(map(mark_of, value)), list(map(mark_of, gold))
    return set(wanted) <= set(chosen) and Counter(wanted) <= Counter(chosen)


def _grade_object(path: _Path, value: JsonObject, gold: JsonObject, rules: _Rules) -> Grade:
    if not gold.keys() <= value.keys():
        return WRONG
    added = {name: item for name, item in value.items() if name not in gold}
    if added and not _are_declared(added, rules.of(path).schema, rules.root):
        return WRONG
    pairs = [
        ((*path, name), value[name], item)
        for name, item in gold.items()
        if mark_of(value[name]) != mark_of(item)
    ]
    return min(PARTLY, _worst(pairs, rules))
