"""``SignatureChannel``: which types a tool takes and gives (L1), as an inverted index.

Many tools have the same signature as far as type keys can tell (``agentkit.tools.types.keys``): a
few thousand signatures stand for a hundred thousand tools. So a segment keeps each signature once,
and a number a tool. A slot of a goal is scored against the keys, keys against signatures, and
tools look their signature up; Appendix C of CoCoDA asks for the same, a look-up by buckets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from agentkit.retrieval.index.channel import Mask
from agentkit.retrieval.index.packing import pack_arrays, unpack_arrays
from agentkit.retrieval.index.tool_index import ToolIndex
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.types.fit import FIELD, TypedSlot, signature_types
from agentkit.tools.types.keys import TYPE_KEYS, UNIFIES, serving, signature_keys

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1
"""Raise it when a definition gets other keys than before."""

_PLACES: Mapping[str, int] = {key: place for place, key in enumerate(TYPE_KEYS)}
_NO_KEY = bytes([len(TYPE_KEYS)])
_MOST_PARAMETERS = 255


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A signature as far as an index tells signatures apart.

    Attributes:
        inputs: Places in ``TYPE_KEYS`` of the keys of the parameters, ascending.
        output: Those of the result.
        parts: Those of the fields and items of the result.
        parameters: How many parameters there are.
        required: How many of them a call must give.
    """

    inputs: bytes
    output: bytes
    parts: bytes
    parameters: int
    required: int

    @classmethod
    def of(cls, definition: ToolDefinition) -> Kind:
        """The kind of a tool."""
        types = signature_types(definition)
        keys = signature_keys(types)
        required = sum(name in types.inputs for name in types.required)
        return cls(
            inputs=_places(keys.inputs),
            output=_places(keys.output),
            parts=_places(keys.parts),
            parameters=min(len(types.inputs), _MOST_PARAMETERS),
            required=min(required, _MOST_PARAMETERS),
        )


def _places(keys: Iterable[str]) -> bytes:
    return bytes(sorted(_PLACES[key] for key in keys))


@dataclass(frozen=True, kw_only=True)
class TypeTable:
    """The signatures of one segment.

    Attributes:
        codes: uint16[rows]: the kind of each tool.
        kinds: Each kind once, in the order in which tools have them.
    """

    codes: NDArray[np.uint16]
    kinds: tuple[Kind, ...]

    @classmethod
    def of(cls, kinds: Sequence[Kind]) -> TypeTable:
        """The table of tools with these kinds, by row."""
        import numpy as np

        known: dict[Kind, int] = {}
        codes = [known.setdefault(kind, len(known)) for kind in kinds]
        return cls(codes=np.array(codes, np.uint16), kinds=tuple(known))

    @classmethod
    def merged(cls, parts: Sequence[tuple[TypeTable, Mask | None]]) -> TypeTable:
        """The tables of several segments as one, without the rows that are not kept."""
        import numpy as np

        known: dict[Kind, int] = {}
        codes = [np.empty(0, np.uint16)]
        for table, mask in parts:
            kept = table.codes if mask is None else table.codes[mask]
            found, firsts = np.unique(kept, return_index=True)
            renamed = np.zeros(len(table.kinds), np.uint16)
            for code in found[np.argsort(firsts)].tolist():
                renamed[code] = known.setdefault(table.kinds[code], len(known))
            codes.append(renamed[kept])
        return cls(codes=np.concatenate(codes), kinds=tuple(known))

    @cached_property
    def parameters(self) -> NDArray[np.uint8]:
        """uint8[kinds]: how many parameters each kind has."""
        return _column(kind.parameters for kind in self.kinds)

    @cached_property
    def required(self) -> NDArray[np.uint8]:
        """uint8[kinds]: how many of them a call must give."""
        return _column(kind.required for kind in self.kinds)

    def fits(self, slot: TypedSlot, *, is_output: bool = False) -> NDArray[np.float32]:
        """float32[kinds]: how well a slot fits each kind, 1 where nothing is declared.

        The type alone counts, not how sure the slot is of it.
        """
        import numpy as np

        scores = np.zeros(len(TYPE_KEYS) + 1, np.float32)
        scores[:-1] = list(serving(slot, is_output=is_output).values())
        if not is_output:
            return self._inputs.best(scores)
        whole, parts = self._output.best(scores), self._parts.best(scores)
        best: NDArray[np.float32] = np.maximum(whole, np.float32(FIELD) * parts)
        return best

    @cached_property
    def _inputs(self) -> _Groups:
        return _Groups.of([kind.inputs for kind in self.kinds])

    @cached_property
    def _output(self) -> _Groups:
        return _Groups.of([kind.output for kind in self.kinds])

    @cached_property
    def _parts(self) -> _Groups:
        return _Groups.of([kind.parts for kind in self.kinds])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Groups:
    """Groups of key places, each distinct one once; few kinds differ in all three groups.

    Attributes:
        places: uint8: the groups, one behind the other; an empty one has the place past all keys.
        starts: Where each group starts.
        codes: uint16[kinds]: the group of each kind.
    """

    places: NDArray[np.uint8]
    starts: NDArray[np.intp]
    codes: NDArray[np.uint16]

    @classmethod
    def of(cls, groups: Sequence[bytes]) -> _Groups:
        import numpy as np

        known: dict[bytes, int] = {}
        codes = [known.setdefault(group, len(known)) for group in groups]
        filled = [group or _NO_KEY for group in known]
        sizes = np.fromiter(map(len, filled), np.intp, len(filled))
        return cls(
            places=np.frombuffer(b"".join(filled), np.uint8),
            starts=np.cumsum(sizes) - sizes,
            codes=np.array(codes, np.uint16),
        )

    def best(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """The highest score in the group of each kind; 0 for an empty group."""
        import numpy as np

        if not len(self.starts):
            return np.zeros(0, np.float32)
        best: NDArray[np.float32] = np.maximum.reduceat(scores[self.places], self.starts)
        return best[self.codes]


@dataclass(frozen=True, kw_only=True, slots=True)
class SignatureChannel:
    """The types of the tools of a library.

    Example:
        >>> from agentkit import Library
        >>> from agentkit.retrieval.index.config import IndexConfig
        >>> from agentkit.tools.types import TypeSet
        >>> day = {"properties": {"day": {"type": "string", "format": "date"}}}
        >>> on = {"properties": {"on": {"type": "boolean"}}}
        >>> tools = [
        ...     ToolDefinition.from_schema("agenda", "What is on.", day),
        ...     ToolDefinition.from_schema("switch", "The light.", on),
        ... ]
        >>> types = SignatureChannel()
        >>> index = Library(tools).derived(IndexConfig(channels=(types,)))
        >>> date = TypedSlot(type=TypeSet.of("string", meaning="date"))
        >>> [index.name(row) for row in types.accepting(index, date).nonzero()[0]]
        ['agenda']
    """

    @property
    def fingerprint(self) -> str:
        """The version, and the list of keys that places refer to."""
        keys = blake2b("\n".join(TYPE_KEYS).encode(), digest_size=6).hexdigest()
        return f"signature/{_VERSION}/{keys}"

    # --- answering --------------------------------------------------------------------------------

    def fits(
        self, index: ToolIndex, slot: TypedSlot, *, is_output: bool = False
    ) -> NDArray[np.float32]:
        """float32[index.size]: how well a slot fits each tool; 1 where nothing is declared."""
        return self.by_row(index, lambda table: table.fits(slot, is_output=is_output))

    def accepting(self, index: ToolIndex, slot: TypedSlot) -> Mask:
        """bool[index.size]: the tools with a parameter that can take the value of a slot."""
        accepted: Mask = (self.fits(index, slot) >= UNIFIES) & index.alive
        return accepted

    def by_row(
        self, index: ToolIndex, worked_out: Callable[[TypeTable], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """What is worked out for the kinds of each segment, for each tool of the index.

        Args:
            index: An index that has this channel.
            worked_out: Gives float32[kinds] for a table.
        """
        import numpy as np

        found = np.zeros(index.size, np.float32)
        for part, table in index.data(self):
            found[part.rows] = worked_out(table)[table.codes]
        return found

    # --- keeping ----------------------------------------------------------------------------------

    def build(self, definitions: Sequence[ToolDefinition]) -> TypeTable:
        """The signatures of some definitions."""
        return TypeTable.of([Kind.of(definition) for definition in definitions])

    def merge(
        self, parts: Sequence[tuple[TypeTable, Mask | None]], sizes: Sequence[int]
    ) -> TypeTable:
        """The signatures of several segments."""
        return TypeTable.merged(parts)

    def to_bytes(self, data: TypeTable) -> bytes:
        """The codes, and the kinds one behind the other."""
        import numpy as np

        kinds = data.kinds
        texts = [part for kind in kinds for part in (kind.inputs, kind.output, kind.parts)]
        sizes = np.fromiter(map(len, texts), np.uint8, len(texts))
        return pack_arrays(
            {
                "codes": data.codes,
                "places": np.frombuffer(b"".join(texts), np.uint8),
                "sizes": sizes.reshape(-1, 3),
                "parameters": data.parameters,
                "required": data.required,
            }
        )

    def from_bytes(self, blob: bytes) -> TypeTable:
        """The inverse of ``to_bytes``."""
        arrays = unpack_arrays(blob)
        places, position, kinds = arrays["places"].tobytes(), 0, []
        counts = zip(arrays["parameters"].tolist(), arrays["required"].tolist(), strict=True)
        for sizes, (parameters, required) in zip(arrays["sizes"].tolist(), counts, strict=True):
            parts = []
            for size in sizes:
                parts.append(places[position : position + size])
                position += size
            inputs, output, rest = parts
            kinds.append(
                Kind(
                    inputs=inputs,
                    output=output,
                    parts=rest,
                    parameters=parameters,
                    required=required,
                )
            )
        return TypeTable(codes=arrays["codes"], kinds=tuple(kinds))


def _column(values: Iterable[int]) -> NDArray[np.uint8]:
    import numpy as np

    return np.fromiter(values, np.uint8)
