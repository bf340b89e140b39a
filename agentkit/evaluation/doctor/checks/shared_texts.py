"""Sentences that several tools say word for word."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.evaluation.doctor.catalogue import Catalogue
from agentkit.evaluation.doctor.finding import Finding, Kind
from agentkit.evaluation.doctor.listing import quoted
from agentkit.evaluation.doctor.shared import FEWEST_TOOLS

_FEWEST_TOKENS = 10

OPENING = Kind(
    code="shared_opening",
    severity="warning",
    title="descriptions that begin with the same sentence",
    why="One-line cards show that sentence alone, and retrieval finds all of them for it.",
    advice="Begin with what only this tool does; say the common part once, in the system prompt.",
)
SENTENCE = Kind(
    code="shared_sentence",
    severity="note",
    title="sentences that several descriptions repeat",
    why="Each tool that is offered pays for it again.",
    advice="Say it once, in the system prompt, if the model needs it at all.",
)


def shared_texts(catalogue: Catalogue) -> Iterator[Finding]:
    """One finding a sentence; tokens are those of all copies but one."""
    reported = {definition.name for definition in catalogue.definitions}
    for sentence in catalogue.shared.values():
        tokens = catalogue.count_tokens(sentence.text)
        opens = len(sentence.openings) >= FEWEST_TOOLS
        tools = sentence.openings if opens else sentence.tools
        if tokens < _FEWEST_TOKENS or not reported.intersection(tools):
            continue
        yield Finding(
            kind=OPENING if opens else SENTENCE,
            tools=tools,
            what=f"{len(sentence.tools):,} tools say {quoted(sentence.text)}",
            where=("summary",),
            tokens=tokens * (len(sentence.tools) - 1),
        )
