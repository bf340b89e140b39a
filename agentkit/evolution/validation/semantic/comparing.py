"""The one way to set a tool against another: by what that other one says of itself."""

from __future__ import annotations

import re

from agentkit.evolution.validation.folding import sentences
from agentkit.evolution.validation.lexical.tool_names import alternatives
from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.texts import text_or_empty

_FORMS = re.compile(
    r"call it only when the value of \S{1,80} is known from the user or from an earlier result;"
    r" otherwise ask for it\.|call it only when the request asks for what it does;"
    r" otherwise answer without it\.|(?:do not use it for this, which another tool does"
    r"|prefer it to a tool that does this, when both seem to fit): (.+)$"
)
"""The sentences with which the evidence proposer tells tools apart, and nothing else."""

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
    return _whose_purpose(change, match.group(1))


def without_closed_forms(change: ProposedChange, text: str) -> str:
    """A folded text without the sentences that tell tools apart in closed forms.

    What such a form quotes must be what another tool says of itself.
    """
    found = _FORMS.search(text)
    if found is None or (found[1] and not _whose_purpose(change, found[1])):
        return text
    return f"{text[: found.start()]} {text[found.end() :]}"


def _whose_purpose(change: ProposedChange, said: str) -> str:
    """The other tool whose first sentence this is; empty for none."""
    for tool in change.library.definitions:
        purpose = next(sentences(text_or_empty(tool.description.summary)), "")
        if tool.name != change.base.name and purpose.rstrip(".") == said.rstrip("."):
            return tool.name
    return ""


def compares(change: ProposedChange) -> bool:
    """Whether a change sets its tool against another one in an allowed form."""
    return any(preferred_to(change, sentence) for _, sentence, _ in change.statements) or any(
        True for _ in alternatives(change)
    )
