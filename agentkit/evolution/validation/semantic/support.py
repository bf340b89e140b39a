"""Which words of a sentence the definition bears out."""

from __future__ import annotations

from agentkit.evolution.validation.report import ProposedChange
from agentkit.evolution.validation.shipped import shipped_lines
from agentkit.retrieval.words import terms

_COMMON = frozenset(terms(" ".join(shipped_lines("common_words"))))


def said_terms(words: str) -> frozenset[str]:
    """The terms of a text without numbers and without words that fit any tool."""
    return frozenset(term for term in terms(words) if term not in _COMMON and not term.isdigit())


def share_supported(change: ProposedChange, words: str) -> float:
    """How much of what ``words`` say the tool says too, from 0 to 1; 1 when they say nothing."""
    said = said_terms(words)
    return len(said & change.vocabulary) / len(said) if said else 1.0
