"""Sentences that several tools say word for word: what a server puts before each of its tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentkit.evaluation.doctor.doubles import Doubles
from agentkit.evaluation.doctor.text_mends import sentence_key, sentences
from agentkit.tools.definition import ToolDefinition

FEWEST_TOOLS = 3
"""From how many tools on a sentence counts as shared; doubles of a tool do not count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedSentence:
    """One sentence.

    Attributes:
        text: As the first tool writes it.
        tools: Who says it, in name order.
        openings: Those of them that begin with it.
    """

    text: str
    tools: tuple[str, ...]
    openings: tuple[str, ...]


def shared_sentences(
    definitions: Iterable[ToolDefinition], doubles: Iterable[Doubles]
) -> Mapping[str, SharedSentence]:
    """By ``sentence_key``, the sentences of at least ``FEWEST_TOOLS`` tools that are no doubles."""
    stands_for = {name: group.tools[0] for group in doubles for name in group.tools}
    found: dict[str, dict[str, bool]] = {}
    texts: dict[str, str] = {}
    for definition in definitions:
        for at, sentence in enumerate(sentences(definition.description.summary)):
            key = sentence_key(sentence)
            if key:
                texts.setdefault(key, sentence)
                found.setdefault(key, {}).setdefault(definition.name, at == 0)
    return {
        key: SharedSentence(
            text=texts[key],
            tools=tuple(sorted(tools)),
            openings=tuple(sorted(name for name, opens in tools.items() if opens)),
        )
        for key, tools in found.items()
        if len({stands_for.get(name, name) for name in tools}) >= FEWEST_TOOLS
    }
