"""What a definition says: its texts, the facts about its parameters, and what a candidate changed.

Nothing here trusts the types of a definition: one that was read from foreign JSON may hold
anything where a text is expected. What is no text is left out, and ``malformed`` reports it.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import resolve_local

LONGEST_SCANNED = 8_000
"""Characters of one text that are looked at. ``lengths_kept`` rejects every longer one."""

LONGEST_OF_RULE = 2_000
"""Characters of any text of a rule. One that is longer is rejected before anything reads it."""

MOST_SCANNED = 40_000
"""Characters of all changed texts together that are looked at, and that may change at once."""

DEEPEST = 64
"""Levels of nesting that a definition may have."""

_MOST_TEXTS = 2_000
_MOST_LEAVES = 500

TextKind = Literal["summary", "tag", "parameter", "usage_rule", "condition", "rule", "example"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """One text of a definition.

    Attributes:
        field: Where it stands, as in ``FailedCheck.field``.
        kind: What it is for.
        text: The text itself.
        parameter: Dotted path of the parameter that it is about; empty for none.
    """

    field: str
    kind: TextKind
    text: str
    parameter: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """A text that a candidate has and its base has not.

    Attributes:
        field: Where it stands, as in ``FailedCheck.field``.
        kind: What it is for.
        before: The text of the base in the same place; empty for none.
        after: The text of the candidate, at most ``LONGEST_SCANNED`` characters of it.
        parameter: Dotted path of the parameter that it is about; empty for none.
        length: Characters of the whole text.
    """

    field: str
    kind: TextKind
    before: str
    after: str
    parameter: str = ""
    length: int = 0


def edits_between(base: Sequence[Text], candidate: Sequence[Text]) -> tuple[Edit, ...]:
    """The texts that are new in ``candidate``, in the order in which a definition lists them.

    A text that merely moved, such as a usage rule that now stands first, is not new.
    """
    there = {(text.kind, text.parameter, text.text) for text in base}
    places = {text.field: text.text for text in base}
    edits, left = [], MOST_SCANNED
    for text in candidate:
        if text.text and left > 0 and (text.kind, text.parameter, text.text) not in there:
            edit = Edit(
                field=text.field,
                kind=text.kind,
                before=places.get(text.field, ""),
                after=text.text[: min(LONGEST_SCANNED, left)],
                parameter=text.parameter,
                length=len(text.text),
            )
            left -= len(edit.after)
            edits.append(edit)
    return tuple(edits)


def texts_of(definition: ToolDefinition) -> tuple[Text, ...]:
    """Every text of a definition that evolution may touch; of worked calls the first 2,000."""
    return (*_texts(definition), *islice(_texts_of_examples(definition), _MOST_TEXTS))


def _texts(definition: ToolDefinition) -> Iterator[Text]:
    words, conditions = definition.description, definition.specification
    yield from _listed("summary", "summary", words.summary)
    yield from _listed("usage_rules", "usage_rule", sequence(words.usage_rules))
    for path, text in mapping(words.parameters).items():
        if isinstance(path, str) and isinstance(text, str):
            yield Text(field=f"parameters.{path}", kind="parameter", text=text, parameter=path)
    yield from _listed("tags", "tag", sequence(words.tags))
    yield from _listed("text", "condition", sequence(conditions.text))
    yield from _listed("complexity", "condition", conditions.complexity)
    for at, rule in enumerate(rules_of(definition)):
        about = text_or_empty(getattr(rule, "parameter", ""))
        for text in leaves(_words_of_rule(rule)):
            yield Text(field=f"rules[{at}]", kind="rule", text=text, parameter=about)


def _texts_of_examples(definition: ToolDefinition) -> Iterator[Text]:
    for at, example in enumerate(sequence(definition.examples)):
        parts = [getattr(example, name, None) for name in ("arguments", "result", "query")]
        for text in leaves(parts):
            yield Text(field=f"examples[{at}]", kind="example", text=text)


def _listed(name: str, kind: TextKind, value: Any) -> Iterator[Text]:
    if isinstance(value, str):
        yield Text(field=name, kind=kind, text=value)
    for at, text in enumerate(sequence(value)):
        if isinstance(text, str):
            yield Text(field=f"{name}[{at}]", kind=kind, text=text)


def _words_of_rule(rule: Any) -> list[Any]:
    """What a learned rule says in words. A regular expression is no sentence."""
    no_words = {"kind", "pattern", "expression", "parameter", "tool", "format"}
    names = getattr(rule, "__dataclass_fields__", {})
    return [getattr(rule, name) for name in names if name not in no_words]


def overlong_rules(
    definition: ToolDefinition, known: Sequence[Any] = ()
) -> Iterator[tuple[int, str]]:
    """The places of rules with a text that nobody reads, and the text; but for known rules."""
    for at, rule in enumerate(rules_of(definition)):
        parts = [getattr(rule, name) for name in getattr(rule, "__dataclass_fields__", {})]
        texts = () if rule in known else leaves(parts, most=sys.maxsize)
        if long := next((text for text in texts if len(text) > LONGEST_OF_RULE), ""):
            yield at, long


def rules_of(definition: ToolDefinition) -> Sequence[Any]:
    """The learned rules of a definition."""
    return sequence(getattr(definition.specification, "rules", ()))


def leaves(value: Any, most: int = _MOST_LEAVES) -> Iterator[str]:
    """The texts in JSON data, names of fields included; of huge data the first parts."""
    waiting, seen = [value], 0
    while waiting and seen < most:
        part = waiting.pop()
        seen += 1
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            waiting.extend(reversed([*part.keys(), *part.values()]))
        elif isinstance(part, list | tuple):
            waiting.extend(reversed(part))


def mapping(value: Any) -> Mapping[Any, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value if it is a list or tuple, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def text_or_empty(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def sentences_of(definition: ToolDefinition, kinds: Iterable[TextKind]) -> str:
    """The texts of these kinds, a line each."""
    wanted = frozenset(kinds)
    return "\n".join(text.text for text in texts_of(definition) if text.kind in wanted)


# --- Foreign data --------------------------------------------------------------------------------


_REPR = reprlib.Repr()
_REPR.maxlevel, _REPR.maxstring, _REPR.maxother = 3, 60, 60


def same(left: Any, right: Any) -> bool:
    """As ``agentkit.tools.canonical.same_json``, without recursion and for records as well.

    What is compared was made by a proposer, who may nest it as deep as a parser lets through.

    Example:
        >>> same({"a": [1, 2]}, {"a": (1.0, 2)}), same([1], [True])
        (True, False)
    """
    waiting = [(left, right)]
    while waiting:
        one, other = map(_as_data, waiting.pop())
        if one is other:
            continue
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            if one.keys() != other.keys():
                return False
            waiting.extend((one[key], other[key]) for key in one)
        elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
            if len(one) != len(other):
                return False
            waiting.extend(zip(one, other, strict=True))
        elif isinstance(one, bool) or isinstance(other, bool) or not bool(one == other):
            return False
    return True


def _as_data(part: Any) -> Any:
    """Rules and worked calls by the names of their fields."""
    names = getattr(part, "__dataclass_fields__", None)
    return part if names is None else {name: getattr(part, name) for name in names}


def is_too_deep(value: Any) -> bool:
    """Whether data are nested deeper than a definition may be.

    Example:
        >>> is_too_deep({"a": [1]})
        False
    """
    level, depth = [value], 0
    while level and depth <= DEEPEST:
        level = [inner for part in level for inner in (mapping(part).values() or sequence(part))]
        depth += 1
    return bool(level)


def shown_value(value: Any) -> str:
    """A value as it is written in Python, short, whatever it is.

    Example:
        >>> shown_value({"minimum": 1, "enum": [1, 2, 3]})
        "{'enum': [1, 2, 3], 'minimum': 1}"
    """
    return _REPR.repr(value)


# --- What the contract and the learned rules say about parameters --------------------------------


_LIMITS = (
    *("minimum", "exclusiveMinimum", "exclusive_minimum", "multipleOf", "multiple_of"),
    *("maximum", "exclusiveMaximum", "exclusive_maximum"),
    *("minLength", "maxLength", "minItems", "maxItems"),
)
"""How schemas and rules call bounds."""

_DEEPEST = 16
_MOST_PARAMETERS = 2_000
"""References multiply parameters at every level; those beyond this many are not looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterFacts:
    """One parameter of a tool.

    Attributes:
        path: Dotted path.
        types: JSON types that it takes; empty when nothing is said.
        values: What the enum and the rules allow; empty when they say nothing.
        numbers: Every number that schema and rules state about it.
        limits: Those of them that bound it.
        required: Whether a call must give it, as far as the object that holds it goes.
    """

    path: str
    types: frozenset[str] = frozenset()
    values: tuple[Any, ...] = ()
    numbers: frozenset[float] = frozenset()
    limits: frozenset[float] = frozenset()
    required: bool = False


def facts_of(contract: ToolDefinition, learned: ToolDefinition) -> Mapping[str, ParameterFacts]:
    """The parameters of a tool by dotted path, in declared order.

    Args:
        contract: Whose schema holds.
        learned: Whose rules hold.
    """
    schema = contract.signature.parameters
    rules: dict[str, list[Any]] = {}
    for rule in rules_of(learned):
        if isinstance(path := getattr(rule, "parameter", None), str):
            rules.setdefault(path, []).append(rule)
    return {
        path: _facts(path, part, required=required, rules=rules.get(path, []))
        for path, part, required in islice(_parts(schema, schema, "", 0), _MOST_PARAMETERS)
    }


def _parts(schema: Any, root: JsonObject, path: str, depth: int) -> Iterator[tuple[str, Any, bool]]:
    """The parts of a schema by path, each with whether it is required."""
    schema = _resolved(schema, root)
    if depth > _DEEPEST:
        return
    required = sequence(schema.get("required"))
    below = {
        f"{path}.{name}" if path else str(name): (part, name in required)
        for name, part in mapping(schema.get("properties")).items()
    }
    if path and isinstance(schema.get("items"), Mapping):
        below[f"{path}[]"] = (schema["items"], False)
    for place, (part, is_required) in below.items():
        yield place, _resolved(part, root), is_required
        yield from _parts(part, root, place, depth + 1)


def _resolved(part: Any, root: JsonObject) -> Mapping[str, Any]:
    reference = mapping(part).get("$ref")
    return mapping(resolve_local(root, reference) if isinstance(reference, str) else part)


def _facts(
    path: str, part: Mapping[str, Any], *, required: bool, rules: list[Any]
) -> ParameterFacts:
    choices = (one for word in ("anyOf", "oneOf", "allOf") for one in sequence(part.get(word)))
    branches = [part, *map(mapping, choices)]
    kinds = [branch.get("type") for branch in branches]
    values = [value for one in branches for value in sequence(one.get("enum"))]
    values += [one["const"] for one in branches if "const" in one]
    values += [value for rule in rules for value in sequence(getattr(rule, "values", ()))]
    stated = [one.get(word) for one in branches for word in _LIMITS]
    learned = [getattr(rule, word, None) for rule in rules for word in _LIMITS]
    limits = _numbers([*stated, *learned])
    return ParameterFacts(
        path=path,
        types=frozenset(
            one for kind in kinds for one in (sequence(kind) or (kind,)) if isinstance(one, str)
        ),
        values=tuple(values),
        numbers=frozenset([*limits, *_numbers([*values, part.get("default")])]),
        limits=frozenset(limits),
        required=required,
    )


def _numbers(values: Iterable[Any]) -> list[float]:
    """The finite numbers among values; those too large for a float are left out."""
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    ]
