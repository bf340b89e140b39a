"""``InHand``: tools that can take what earlier calls gave, by name and type (L1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentkit.messages import JsonObject
from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.index import Inverted, Rows, ToolIndex, key_of
from agentkit.retrieval.retriever import Slot, SubGoal
from agentkit.retrieval.words import terms
from agentkit.tools.canonical import same_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.schema import JsonType, allowed_types, for_same_value, json_type

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1
"""Raise it when the key of a parameter changes."""

_MOST_SLOTS = 256
_DEEPEST = 4
_ITEMS = 3
"""Fields of results that are looked at: so many, so deep, and of so many items of a list."""


def values_in_hand(results: Iterable[object]) -> tuple[Slot, ...]:
    """The named values of results; of one name the newest.

    Example:
        >>> [(slot.name, slot.value) for slot in values_in_hand([{"id": 7, "open": True}])]
        [('id', 7), ('open', True)]
    """
    found: dict[str, Slot] = {}
    for result in results:
        for name, value in _fields(result, 0):
            if len(found) >= _MOST_SLOTS and name not in found:
                return tuple(found.values())
            found[name] = Slot(name=name, value=value, bound=True)
    return tuple(found.values())


def _fields(value: object, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield str(name), part
            yield from _fields(part, depth + 1)
    elif isinstance(value, list | tuple):
        for part in value[:_ITEMS]:
            yield from _fields(part, depth + 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class RequiredChannel:
    """Which tools need an argument of a name, however it is written: ``hotelId``, ``hotel_id``."""

    @property
    def fingerprint(self) -> str:
        """There are no settings."""
        return f"required/{_VERSION}"

    def served(
        self, index: ToolIndex, keys: Sequence[int]
    ) -> tuple[dict[int, float], NDArray[np.float64]]:
        """How much each name tells, and which tools need arguments of these names.

        Args:
            index: An index of at least one tool that has this channel.
            keys: Names, as keys.

        Returns:
            By key a number between 0 and 1, little for a name that many tools need; and
            float64[size]: the sum of these over the required arguments of a tool, as a share.
        """
        import numpy as np

        found = [(part, data, data.inverted.find(keys)) for part, data in index.data(self)]
        rarities = {}
        for at, key in enumerate(keys):
            count = sum(part.count(data.owners[slice(*spans[at])]) for part, data, spans in found)
            rarities[key] = 1 - math.log1p(count) / math.log1p(len(index))
        shares = np.zeros(index.size)
        for part, data, spans in found:
            for key, span in zip(keys, spans, strict=True):
                rows = data.owners[slice(*span)]
                np.add.at(shares[part.rows], rows, rarities[key] / data.counts[rows])
        return rarities, shares * index.alive

    def build(self, definitions: Sequence[ToolDefinition]) -> Rows:
        """The keys of the required parameters of some definitions."""
        import numpy as np

        keys = [sorted({_key_of(name) for name in one.signature.required}) for one in definitions]
        return Rows(
            counts=np.array([len(one) for one in keys], np.int32),
            arrays={"keys": np.array([key for one in keys for key in one], np.uint64)},
        )

    def prepared(self, rows: Rows) -> RequiredPostings:
        """The inverted file."""
        inverted = Inverted.of(rows.arrays["keys"])
        return RequiredPostings(
            inverted=inverted, owners=rows.owners[inverted.order], counts=rows.counts
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class RequiredPostings:
    """Which tools of a segment need which argument.

    Attributes:
        inverted: Which postings each name has.
        owners: int64[postings]: the row of each.
        counts: int32[rows]: how many arguments each tool needs.
    """

    inverted: Inverted
    owners: NDArray[np.int64]
    counts: NDArray[np.int32]


class InHand:
    """Lifts tools whose required arguments earlier calls have given; drops none.

    What a run has in hand are the bound ``SubGoal.inputs``: the named values of its results so
    far. What a planner guesses is not in hand. A required parameter
    is served by a value of the same name, in any writing, whose type it can take. A tool gains
    ``weight`` where all of its required parameters are served, in proportion where some are, and
    less for names that many tools need. A first request has nothing in hand and passes untouched.

    Args:
        weight: What a tool gains at most; the best match of words and meaning has 1.
        keep: How many tools it lifts at most.
    """

    name = "in_hand"

    def __init__(self, *, weight: float = 0.3, keep: int = 32) -> None:
        self._weight = weight
        self._keep = keep
        self._required = RequiredChannel()
        self.channels = (self._required,)

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Add to the scores of tools by the share of their required arguments that is in hand."""
        slots = {_key_of(slot.name): slot for slot in goal.inputs if slot.name and slot.bound}
        if not slots or not len(candidates):
            return candidates
        index = candidates.index
        rarities, served = self._required.served(index, sorted(slots))
        gains: dict[str, float] = {}
        for row, _ in index.top(served, self._keep, candidates.mask):
            name = index.names[row]
            share = _fitting(candidates.library[name].definition, slots, rarities)
            if share:
                gains[name] = self._weight * share
        return candidates.add(gains, reason="takes what earlier calls gave", field=self.name)


def _fitting(
    definition: ToolDefinition, slots: Mapping[int, Slot], rarities: Mapping[int, float]
) -> float:
    """The share of the required parameters that a value of the same name fits."""
    given = [
        rarities[key] if key in slots and parameter.takes(slots[key].value) else 0.0
        for key, parameter in _required(definition)
    ]
    return sum(given) / len(given) if given else 0.0


_WRITTEN_ALSO: Mapping[JsonType, frozenset[JsonType]] = {
    **dict.fromkeys(("integer", "number", "boolean", "array"), frozenset({"string"})),
    "string": frozenset({"integer", "number"}),
}
"""Types that values can be written in besides their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Parameter:
    """A required parameter.

    Attributes:
        schema: What it declares.
        root: The document that its references point into.
        types: The JSON types that it allows.
    """

    schema: Any
    root: JsonObject
    types: frozenset[JsonType]

    @classmethod
    def of(cls, schema: Any, root: JsonObject) -> _Parameter:
        return cls(schema=schema, root=root, types=allowed_types(schema, root=root))

    def takes(self, value: object) -> bool:
        """Whether a value may serve here, written in another form or in a list if need be."""
        kind = json_type(value)
        if kind in self.types or (kind == "integer" and "number" in self.types):
            return kind in {"array", "object"} or self._lists(value)
        if not self.types.isdisjoint(_WRITTEN_ALSO.get(kind, ())):
            return True
        if "array" not in self.types or not isinstance(self.schema, Mapping):
            return False
        return _Parameter.of(self.schema.get("items", {}), self.root).takes(value)

    def _lists(self, value: object) -> bool:
        """Whether the allowed values, where there are any, hold a value of the right type."""
        parts = for_same_value(self.schema, self.root, "allOf")
        enums = [part["enum"] for part in parts if isinstance(part.get("enum"), list)]
        return all(any(same_json(value, one) for one in enum) for enum in enums)


@lru_cache(maxsize=4_096)
def _required(definition: ToolDefinition) -> tuple[tuple[int, _Parameter], ...]:
    """The required parameters, each by the key of its name."""
    signature = definition.signature
    return tuple(
        (_key_of(name), _Parameter.of(signature.properties[name], signature.parameters))
        for name in signature.required
        if name in signature.properties
    )


@lru_cache(maxsize=16_384)
def _key_of(name: str) -> int:
    """The words of a name as a number: ``hotelId``, ``hotel_id`` and ``Hotel ID`` are one."""
    return key_of(" ".join(terms(name)))
