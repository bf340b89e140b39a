"""The one way to set a tool against another: by what that other one says of itself."""

from __future__ import annotations

import re

from agentkit.evolution.validation.folding import sentences
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.texts import text_or_empty

_PREFERRED = re.compile(r"prefer it to a tool that does this, when both seem to fit: (.+)$")


def preferred_to(change: ProposedChange, sentence: str) -> str:
    """The tool to which a sentence prefers this one in the allowed form; empty for none.

    Two tools that calls confuse are told apart by saying what the other one is for (the evidence
    proposer does). The form is closed: a fixed sentence, and behind it the first sentence of the
    other tool's summary, word for word. It still moves calls from that tool to this one, which is
    why ``ValidationPolicy`` asks a judge and a person.

    Args:
        change: The change.
        sentence: A folded sentence of it.
    """
    match = _PREFERRED.match(sentence)
    if match is None:
        return ""
    said = match.group(1).rstrip(".")
    for tool in change.library.definitions:
        purpose = next(sentences(text_or_empty(tool.description.summary)), "")
        if tool.name != change.base.name and purpose.rstrip(".") == said:
            return tool.name
    return ""


def compares(change: ProposedChange) -> bool:
    """Whether a change sets its tool against another one in the allowed form."""
    return any(preferred_to(change, sentence) for _, sentence, _ in change.statements)
