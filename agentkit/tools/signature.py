"""L1 as types: what a tool takes and gives, and how well a typed goal fits it.

The door to ``agentkit.tools.types``. Nothing here decides alone whether a tool is offered:
retrieval uses types as a score first (``agentkit.retrieval``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentkit.tools.definition import Signature, ToolDefinition
from agentkit.tools.types.evidence import Guess, TypeEvidence
from agentkit.tools.types.inference import type_of
from agentkit.tools.types.lattice import ANY, NEVER, Alternative, TypeSet, join, meet
from agentkit.tools.types.meanings import PARENTS as MEANINGS
from agentkit.tools.types.named import named_type
from agentkit.tools.types.schemas import declared_type
from agentkit.tools.types.unify import (
    SignatureTypes,
    TypedSlot,
    Unification,
    flow,
    unify,
    unify_signatures,
)
from agentkit.tools.types.values import type_of_value

__all__ = [
    "ANY",
    "MEANINGS",
    "NEVER",
    "Alternative",
    "Guess",
    "Signature",
    "SignatureTypes",
    "TypeEvidence",
    "TypeSet",
    "TypedSlot",
    "Unification",
    "declared_type",
    "flow",
    "join",
    "meet",
    "named_type",
    "signature_types",
    "slot_of_value",
    "type_of",
    "type_of_value",
    "unify",
    "unify_signatures",
]


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
    return SignatureTypes(
        inputs=inputs,
        required=definition.signature.required,
        output=_output(definition),
    )


def _output(definition: ToolDefinition) -> TypeEvidence:
    result = definition.signature.result
    if result is None:
        return TypeEvidence()
    return type_of(result, is_result=True)


def slot_of_value(value: Any, *, name: str = "") -> TypedSlot:
    """The slot of a value that the caller has: bound, and as sure as the value is plain.

    Example:
        >>> slot = slot_of_value("2024-08-15", name="day")
        >>> print(slot.type, slot.confidence, slot.bound)
        string date in {"2024-08-15"} 0.98 True
        >>> slot_of_value("Paris").confidence
        1.0
    """
    evidence = type_of_value(value)
    if not evidence.meanings:
        return TypedSlot(name=name, type=evidence.declared, bound=True)
    return TypedSlot(
        name=name,
        type=_meant(evidence),
        confidence=evidence.meanings[0].confidence,
        bound=True,
    )


def _meant(evidence: TypeEvidence) -> TypeSet:
    """The declared type of a value with its meaning; that of a list is the meaning of its items."""
    meaning = evidence.meanings[0].meaning
    (only,) = evidence.declared.alternatives
    if only.items is None:
        return evidence.declared.with_meaning(meaning)
    return TypeSet(frozenset([replace(only, items=only.items.with_meaning(meaning))]))
