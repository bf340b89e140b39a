"""``Segment``: some tools, and what each channel knows about them. Never changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.retrieval.index.channel import Channel, Mask
from agentkit.retrieval.index.names import NameTable
from agentkit.tools.definition import ToolDefinition

LARGEST = 32_768
"""Most tools of a segment: rows fit into 16 bits, and no insert waits for a larger merge."""

_AT_A_TIME = 1_024
_FAN = 8
"""A large segment is put together from eight parts, these from eight parts each, and so on: what
building takes for a while is many times the size of what is built."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """An index over some definitions.

    Attributes:
        names: Their names.
        data: What each channel made of them, in the order of the channels.
    """

    names: NameTable
    data: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(cls, definitions: Sequence[ToolDefinition], channels: Sequence[Channel[Any]]) -> Segment:
        """The segment of some definitions; the place in the list is the row."""
        if len(definitions) > _AT_A_TIME:
            size = max(_AT_A_TIME, -(-len(definitions) // _FAN))
            starts = range(0, len(definitions), size)
            some = [cls.of(definitions[one : one + size], channels) for one in starts]
            return cls.merged([(part, None) for part in some], channels)
        return cls(
            names=NameTable.of([definition.name for definition in definitions]),
            data=tuple(channel.build(definitions) for channel in channels),
        )

    @classmethod
    def merged(
        cls, parts: Sequence[tuple[Segment, Mask | None]], channels: Sequence[Channel[Any]]
    ) -> Segment:
        """Several segments as one, without the rows that are not kept."""
        sizes = [len(part) if mask is None else int(mask.sum()) for part, mask in parts]
        return cls(
            names=NameTable.merged([(part.names, mask) for part, mask in parts]),
            data=tuple(
                channel.merge([(part.data[place], mask) for part, mask in parts], sizes)
                for place, channel in enumerate(channels)
            ),
        )
