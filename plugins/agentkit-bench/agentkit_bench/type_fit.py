"""Does a value of one type serve where another type is asked for? As a score.

``flow(source, target)`` is the one question: a bound input flows into a parameter, a result flows
into what the goal wants. Widening the target never lowers the score, a type flows into itself and
into all wider types with score 1, and what nobody declared, on either side, scores 1 as well: it
says nothing, so it changes no ranking. The scores of pairs that almost fit are constants below.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import JsonType
from agentkit_bench.type_evidence import Guess, TypeEvidence, type_of
from agentkit_bench.type_lattice import (
    ANY,
    WRITTEN_ALSO,
    Alternative,
    TypedSlot,
    TypeSet,
    includes,
)

PARTLY = 0.9
"""The types overlap: some values of the source fit (a number where an integer is asked for)."""

PERHAPS = 0.5
"""Some values can be written in the other type (a text that may hold a number, a datetime for a
date, one city where a list of cities is asked for)."""

FIELD = 0.9
"""An object serves by one of its fields, or a list by its items."""

_TURNED: Mapping[str, frozenset[str]] = {
    "datetime": frozenset({"date", "time"}),
    "date": frozenset({"datetime", "year", "month", "weekday"}),
    "city": frozenset({"address", "airport", "region", "country"}),
    "country": frozenset({"city", "region", "language", "currency"}),
    "region": frozenset({"city", "country"}),
    "address": frozenset({"city"}),
    "airport": frozenset({"city"}),
}
"""Meanings whose values can be turned into another one."""

_DEEPEST = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureTypes:
    """The types of a tool's parameters and of its result.

    Attributes:
        inputs: By parameter name, in declared order.
        required: Parameters that a call must give.
        output: The result; undeclared in most catalogues.
    """

    inputs: Mapping[str, TypeEvidence] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    output: TypeEvidence = field(default_factory=TypeEvidence)


def signature_types(definition: ToolDefinition) -> SignatureTypes:
    """The types of a tool's parameters and of its result.

    Worked examples (L4) are read as observed values.

    Example:
        >>> weather = ToolDefinition.from_schema(
        ...     "weather",
        ...     "Weather on a day.",
        ...     {"properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]},
        ... )
        >>> types = signature_types(weather)
        >>> print(types.inputs["day"].declared, "->", types.output.declared)
        string date -> any
    """
    parameters, texts = definition.signature.parameters, definition.description.parameters
    inputs = {
        name: type_of(
            schema,
            name=name,
            description=texts.get(name, ""),
            observed=[one.arguments[name] for one in definition.examples if name in one.arguments],
            root=parameters,
        )
        for name, schema in definition.signature.properties.items()
    }
    result = definition.signature.result
    return SignatureTypes(
        inputs=inputs,
        required=definition.signature.required,
        output=TypeEvidence() if result is None else type_of(result, is_result=True),
    )


def flow(source: TypeSet | TypeEvidence, target: TypeSet | TypeEvidence) -> float:
    """How well values of ``source`` serve where ``target`` is asked for, between 0 and 1.

    Of unions the best pair of alternatives counts. Null is left out of account as long as there is
    something else.

    Example:
        >>> integer, number = TypeSet.of("integer"), TypeSet.of("number")
        >>> flow(integer, number), flow(number, integer), flow(TypeSet.of("boolean"), number)
        (1.0, 0.9, 0.0)
        >>> flow(TypeSet.one_of(["12.5"]), number), flow(TypeSet.one_of(["twelve"]), number)
        (0.5, 0.0)
    """
    return _flow(_evidence(source), _evidence(target), 0)


def unify(slot: TypedSlot, known: TypeSet | TypeEvidence, *, is_output: bool = False) -> float:
    """How well a slot of a goal fits a parameter, or the result, of a tool, between 0 and 1.

    Inputs are contravariant: the parameter has to accept what the goal has. The output is
    covariant: the result has to serve as what the goal wants, itself, by a field of an object or
    by the items of a list. The less sure the slot, the nearer is the score to 1.

    Example:
        >>> date = TypedSlot(type=TypeSet.of("string", meaning="date"), confidence=0.9)
        >>> unify(date, TypeSet.of("boolean"))
        0.1
        >>> whole = TypeSet.object_with({"price": TypeSet.of("number")})
        >>> unify(TypedSlot(type=TypeSet.of("number")), whole, is_output=True)
        0.9
    """
    evidence = _evidence(known)
    if slot.is_untyped or evidence.declared.is_any:
        return 1.0
    wanted = TypeEvidence(declared=slot.type)
    fit = _serves(evidence, wanted, 0) if is_output else _flow(wanted, evidence, 0)
    return round(1.0 - slot.confidence * (1.0 - fit), 4)


def _evidence(known: TypeSet | TypeEvidence) -> TypeEvidence:
    return TypeEvidence(declared=known) if isinstance(known, TypeSet) else known


def _flow(source: TypeEvidence, target: TypeEvidence, depth: int) -> float:
    kinds, wanted = source.declared, target.declared
    if kinds.is_any or wanted.is_any or kinds.is_never or depth > _DEEPEST:
        return 1.0
    pairs = product(kinds.without_null().alternatives, wanted.alternatives)
    return max((_pair(one, source, two, target, depth) for one, two in pairs), default=0.0)


def _pair(
    one: Alternative, source: TypeEvidence, two: Alternative, target: TypeEvidence, depth: int
) -> float:
    """One alternative into another: the product of how base, meaning and content fit."""
    if two.includes(one) and not (source.meanings or target.meanings):
        return 1.0
    if two.base == "array" and one.base != "null":
        inside = replace(target, declared=two.items or ANY)
        if one.base == "array":
            items = replace(source, declared=one.items or ANY)
            return _flow(items, inside, depth + 1) * _by_value(one, two)
        alone = replace(source, declared=TypeSet(frozenset([one])))
        return PERHAPS * _flow(alone, inside, depth + 1)
    fit = _by_base(one, two)
    if fit == 0:
        return 0.0
    fit *= _by_meaning(_meanings(one, source), _meanings(two, target))
    return fit * _by_fields(one, two, depth) if one.base == two.base == "object" else fit


def _meanings(one: Alternative, evidence: TypeEvidence) -> Sequence[Guess]:
    return (Guess(meaning=one.meaning, confidence=1.0),) if one.meaning else evidence.meanings


def _by_base(one: Alternative, two: Alternative) -> float:
    if one.base == two.base or (one.base, two.base) == ("integer", "number"):
        return _by_value(one, two)
    if (one.base, two.base) == ("number", "integer"):
        return PARTLY * _by_value(one, two)
    if (one.base, two.base) not in WRITTEN_ALSO:
        return 0.0
    if one.base == "string" and one.value is not None:
        return PERHAPS if _holds_number(one.value, two.base) else 0.0
    return PERHAPS


def _by_value(one: Alternative, two: Alternative) -> float:
    """How the allowed values overlap; case and white space do not matter, as in coercion."""
    if two.value is None or one.value in (None, two.value):
        return 1.0
    return PARTLY if _folded(one.value) == _folded(two.value) else 0.0


def _folded(text: str) -> str:
    return " ".join(text.strip('"').split()).casefold()


def _holds_number(text: str, base: JsonType) -> bool:
    """Whether a JSON text is a string in which a number stands."""
    try:
        number = float(json.loads(text))
    except ValueError:
        return False
    return base == "number" or number.is_integer()


def _by_meaning(ours: Sequence[Guess], theirs: Sequence[Guess]) -> float:
    """1 unless all meanings exclude each other; then less, the surer they are."""
    fits = [
        1.0 - one.confidence * two.confidence * (1.0 - _meaning_fit(one.meaning, two.meaning))
        for one, two in product(ours, theirs)
    ]
    return max(fits, default=1.0)


def _meaning_fit(one: str, two: str) -> float:
    if includes(two, one):
        return 1.0
    if includes(one, two):
        return PARTLY
    return PERHAPS if two in _TURNED.get(one, ()) else 0.0


def _by_fields(one: Alternative, two: Alternative, depth: int) -> float:
    """The worst of the fields asked for; one that nobody mentioned may be there."""
    have = dict(one.fields)
    fits = [
        _flow(TypeEvidence(declared=have[name]), TypeEvidence(declared=wanted), depth + 1)
        if name in have
        else (PARTLY if have else 1.0)
        for name, wanted in two.fields
    ]
    return min(fits, default=1.0)


def _serves(result: TypeEvidence, wanted: TypeEvidence, depth: int) -> float:
    """How well a result serves: itself, by a field, or by its items."""
    whole = _flow(result, wanted, depth)
    if whole == 1.0 or depth > _DEEPEST:
        return whole
    parts = _parts_of(result.declared)
    return max([whole, *(FIELD * _serves(part, wanted, depth + 1) for part in parts)])


def _parts_of(declared: TypeSet) -> list[TypeEvidence]:
    """The fields and the items of a type."""
    found: list[TypeEvidence] = []
    for one in declared.alternatives:
        if one.items is not None:
            found.append(TypeEvidence(declared=one.items))
        found.extend(TypeEvidence(declared=kind) for _, kind in one.fields)
    return found
