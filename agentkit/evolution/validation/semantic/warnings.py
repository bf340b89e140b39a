"""Warnings that stood there before."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.folding import folded, sentences
from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.texts import sentences_of
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

_WARNING = Phrasebook.shipped("warnings")
_LEAST_SHARED = 0.4


def warnings_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """A warning about lasting effects, or a demand to ask first, that the rewrite drops.

    Looked at for every tool that is not known to only read. A warning is kept when the new texts
    hold a warning too that shares enough words with it or is as strong.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> kept = {"summary": "Remove an event for good; nobody can restore it. Permanent."}
        >>> list(warnings_kept(rewrite("calendar_cancel_event", kept)))
        []
        >>> dropped = rewrite("calendar_cancel_event", {"summary": "Delete one event."})
        >>> [found.code for found in warnings_kept(dropped)]
        ['warning_removed']
    """
    if change.base.signature.effects.is_read_only:
        return
    now = sentences_of(change.candidate, ("summary", "usage_rule", "condition"))
    warned = [sentence for sentence in sentences(now) if _warns(sentence)]
    for warning in _warnings(change.base):
        if warning not in folded(now) and not any(_says(sentence, warning) for sentence in warned):
            yield FailedCheck(
                code="warning_removed",
                layer="semantic",
                field="summary",
                message=f"the warning {warning!r:.100} is gone",
                advice="keep what warns of lasting effects and what asks for consent",
                excerpt=warning[:120],
            )


def _warnings(base: ToolDefinition) -> list[str]:
    text = sentences_of(base, ("summary", "usage_rule"))
    return [sentence for sentence in sentences(text) if _warns(sentence)]


def _warns(sentence: str) -> bool:
    return _WARNING.search(sentence) is not None


def _says(sentence: str, warning: str) -> bool:
    """Whether a new warning speaks of the same: lasting effects, or asking first."""
    asks = [
        re.search(r"confirm|approv|ask |consent|bestatig|zustimm|确认|確認", text)
        for text in (sentence, warning)
    ]
    if all(asks) or not any(asks):
        return True
    had = set(terms(warning))
    return len(had.intersection(terms(sentence))) >= _LEAST_SHARED * len(had)
