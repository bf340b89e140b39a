"""Which words of a request no tool knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentkit.retrieval.index.channel import Channel
from agentkit.retrieval.index.examples import ExampleChannel
from agentkit.retrieval.index.lexical import LexicalChannel
from agentkit.retrieval.index.tool_index import ToolIndex

_MOST = 64
"""An episode keeps them; of a hundred pages that somebody pasted in a few tell enough."""


def unmatched_terms(
    query: str, index: ToolIndex, channels: Sequence[Channel[Any]]
) -> tuple[str, ...]:
    """The first 64 terms of ``query`` that stand in no text of any tool, examples included.

    What users ask for and no tool speaks of is the first sign of a missing tool, or of a
    description in other words than theirs.

    Args:
        query: A request.
        index: The index of the library.
        channels: The channels of that index. Without one for words nothing is known, and no term
            is called unmatched.
    """
    words = [one for one in channels if isinstance(one, LexicalChannel)][:1]
    unknown = [term for one in words for term in one.unknown(index, one.query(query))]
    for channel in channels:
        if isinstance(channel, ExampleChannel):
            unknown = channel.unknown(index, unknown)
    return tuple(unknown[:_MOST])
