"""Type keys: the few hundred classes of types that an index tells apart.

A key is a JSON type with a meaning and how sure that is: ``string``, ``string date``,
``number money?``. A tool has the keys of its parameters and of its result; ``serving`` says how
well a slot of a goal goes with each key, so a look-up scores keys instead of tools. Keys drop what
is rare or has too many values (fields of fields, ``enum`` values, owners of identifiers): compare
the few tools that are left with ``unify_signatures`` where that matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType

from agentkit.tools.types.fit import SignatureTypes, TypedSlot, flow, holds_number, parts_of
from agentkit.tools.types.inference import Guess, TypeEvidence, written_as
from agentkit.tools.types.lattice import MEANINGS, Alternative, Base, TypeSet, wider

_SURE = 0.8
_UNSURE = 0.5
"""Guesses below are not kept."""

_DEEPEST = 2
_MOST_KEYS = 24
"""Keys of one tool's inputs, and of its result; one with more is taken as undeclared."""

UNIFIES = 0.2
"""A lower score of ``serving`` means that the types exclude each other, or very likely do."""

UNDECLARED = "any"
"""The key of what nobody declared: it goes with every slot."""

_PLAIN: Mapping[str, TypeEvidence] = {
    UNDECLARED: TypeEvidence(),
    **{base: TypeEvidence(declared=TypeSet.of(base)) for base in ("null", "boolean", "object")},
    **{base: TypeEvidence(declared=TypeSet.of(base)) for base in ("string", "integer", "number")},
    "list": TypeEvidence(declared=TypeSet.of("array")),
    **{
        f"list of {base}": TypeEvidence(declared=TypeSet.list_of(TypeSet.of(base)))
        for base in ("string", "number", "object", "array")
    },
}


def _meant() -> Iterator[tuple[str, TypeEvidence]]:
    for meaning in MEANINGS:
        for base in ("string", "number"):
            if base in written_as(meaning):
                declared = TypeSet.of(base)
                sure = Guess(meaning=meaning, confidence=0.9)
                unsure = Guess(meaning=meaning, confidence=0.65)
                yield f"{base} {meaning}", TypeEvidence(declared=declared, meanings=(sure,))
                yield f"{base} {meaning}?", TypeEvidence(declared=declared, meanings=(unsure,))


TYPE_KEYS: Mapping[str, TypeEvidence] = MappingProxyType({**_PLAIN, **dict(_meant())})
"""All keys, each with the type that it stands for; the order is part of stored indexes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureKeys:
    """The keys of one tool.

    Attributes:
        inputs: Of its parameters; ``UNDECLARED`` alone when it declares none.
        output: Of its result.
        parts: Of the fields and items of its result.
    """

    inputs: frozenset[str]
    output: frozenset[str]
    parts: frozenset[str]


def signature_keys(types: SignatureTypes) -> SignatureKeys:
    """The keys of a signature.

    Example:
        >>> types = SignatureTypes(inputs={"day": TypeEvidence(declared=TypeSet.of("string"))})
        >>> signature_keys(types)
        SignatureKeys(inputs=frozenset({'string'}), output=frozenset({'any'}), parts=frozenset())
    """
    inputs = frozenset(key for one in types.inputs.values() for key in keys_of(one))
    output = frozenset(keys_of(types.output))
    parts = frozenset(key for part in _parts(types.output.declared, 0) for key in keys_of(part))
    return SignatureKeys(
        inputs=_bounded(inputs or {UNDECLARED}),
        output=_bounded(output),
        parts=parts if len(parts) <= _MOST_KEYS else frozenset({UNDECLARED}),
    )


def _bounded(keys: AbstractSet[str]) -> frozenset[str]:
    return frozenset(keys) if len(keys) <= _MOST_KEYS else frozenset({UNDECLARED})


def keys_of(evidence: TypeEvidence) -> Iterator[str]:
    """The keys of one type: of each alternative with each meaning that is likely enough."""
    if evidence.declared.is_any:
        yield UNDECLARED
        return
    for one in evidence.declared.without_null().alternatives:
        yield from _keys_of_alternative(one, evidence.meanings)


def _keys_of_alternative(one: Alternative, guesses: tuple[Guess, ...]) -> Iterator[str]:
    if one.base == "array":
        bases = {part.base for part in one.items.alternatives} if one.items is not None else set()
        known = {"number" if base == "integer" else base for base in bases}
        names = [f"list of {base}" for base in sorted(known) if f"list of {base}" in TYPE_KEYS]
        yield from names if len(names) == len(known) and names else ["list"]
        return
    if one.meaning:
        guesses = (Guess(meaning=one.meaning, confidence=1.0),)
    base: Base = "number" if one.base == "integer" else one.base
    found = [key for guess in guesses if (key := _key(base, guess)) in TYPE_KEYS]
    yield from found or [one.base]


def _key(base: Base, guess: Guess) -> str:
    meaning = guess.meaning if guess.meaning in MEANINGS else wider(guess.meaning)[1]
    if guess.confidence < _UNSURE:
        return ""
    return f"{base} {meaning}" if guess.confidence >= _SURE else f"{base} {meaning}?"


def _parts(declared: TypeSet, depth: int) -> Iterator[TypeEvidence]:
    if declared.is_any or depth > _DEEPEST:
        return
    for part in parts_of(declared):
        yield part
        yield from _parts(part.declared, depth + 1)


def serving(slot: TypedSlot, *, is_output: bool = False) -> Mapping[str, float]:
    """How well a slot goes with each key, between 0 and 1; 1 throughout for an untyped one.

    The type alone counts; how sure it is, ``TypedSlot.confidence``, is for the caller to weigh.

    Args:
        slot: An input that a goal has, or the output that it wants.
        is_output: Whether it is the output.

    Example:
        >>> fits = serving(TypedSlot(type=TypeSet.of("string", meaning="date")))
        >>> fits["string date"], fits["any"], fits["string"], fits["boolean"]
        (1.0, 1.0, 1.0, 0.0)
    """
    is_null = all(one.base == "null" for one in slot.type.alternatives)
    if slot.is_untyped or is_null:  # keys leave null out, since it fits whatever may be left out
        return _EVERYTHING
    return _scores(_without_values(slot.type), is_output=is_output)


_EVERYTHING: Mapping[str, float] = MappingProxyType(dict.fromkeys(TYPE_KEYS, 1.0))


@lru_cache(maxsize=1_024)
def _scores(kind: TypeSet, *, is_output: bool) -> Mapping[str, float]:
    pairs = {
        key: flow(evidence, kind) if is_output else flow(kind, evidence)
        for key, evidence in TYPE_KEYS.items()
    }
    return MappingProxyType(pairs)


def _without_values(kind: TypeSet) -> TypeSet:
    """The type without its values, which keys do not know; a text keeps whether it is a number."""
    return TypeSet.union(_bare(one) for one in kind.alternatives)


def _bare(one: Alternative) -> Alternative:
    items = None if one.items is None else _without_values(one.items)
    domain = None
    if one.domain is not None and one.base == "string":
        domain = frozenset([_sample(one.domain)])
    return replace(one, items=items, fields=(), domain=domain)


def _sample(texts: frozenset[str]) -> str:
    """A value that can be read as a number where all of them can."""
    for sample, base in _SAMPLES:
        if all(holds_number(text, base) for text in texts):
            return sample
    return '"x"'


_SAMPLES: tuple[tuple[str, Base], ...] = (('"1"', "integer"), ('"1.5"', "number"))
