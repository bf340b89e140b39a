"""Whether a tool still says what it is for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.semantic.support import share_supported
from agentkit.evolution.validation.texts import Edit
from agentkit.retrieval.words import terms

_LEAST_SHARE = 0.34
_LEAST_KEPT = 0.15

_DOES = Phrasebook.shipped("deeds")
_NOT = re.compile(
    r"\b(?:not|never|no|nothing|nichts?|kein\w*|pas|rien|no|nada|before|vor|avant|antes)\b|不|ない|ません|前"
)


def purpose_kept(change: ProposedChange) -> Iterator[FailedCheck]:
    """A summary that is about something else, or is gone.

    Words are compared, not meanings: at least a third of what the new summary says must stand
    somewhere in the tool (name, parameters, texts, examples), or a seventh of the old summary must
    be left. A translation into another language therefore fails: it changes who can read the tool,
    and is for a person to propose.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> same = rewrite("weather_now", {"summary": "Tells how warm it is in a city right now."})
        >>> list(purpose_kept(same))
        []
        >>> other = rewrite("weather_now", {"summary": "Manages invoices of suppliers."})
        >>> [found.code for found in purpose_kept(other)]
        ['purpose_changed']
    """
    before, after = change.summaries
    if before == after or not before.strip():
        return
    if not after.strip():
        yield _changed("", "the summary is gone")
    elif share_supported(change, after) < _LEAST_SHARE and _kept(before, after) < _LEAST_KEPT:
        yield _changed(after, "it shares hardly a word with what the tool says about itself")


def _kept(before: str, after: str) -> float:
    had = set(terms(before))
    return len(had.intersection(terms(after))) / len(had) if had else 1.0


def _changed(after: str, message: str) -> FailedCheck:
    return reason(
        "purpose_changed",
        "semantic",
        Edit(field="summary", kind="summary", before="", after=after),
        after,
        message=message,
        advice="say the same in clearer words; another purpose is another tool",
    )


def deeds_declared(change: ProposedChange) -> Iterator[FailedCheck]:
    """A tool that is known to change nothing said to delete, pay, send or write.

    Held against declared effects alone; with effects undeclared nothing is contradicted.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> usual = rewrite("cars_search", {"rule": "Run it before booking a test drive."})
        >>> list(deeds_declared(usual))
        []
        >>> doing = rewrite("cars_search", {"sentence": "It also deletes old entries."})
        >>> [found.code for found in deeds_declared(doing)]
        ['effect_contradicted']
    """
    if not change.base.signature.effects.is_read_only:
        return
    for edit, sentence, _ in change.statements:
        if edit.kind not in {"summary", "usage_rule"} or _NOT.search(sentence):
            continue
        match = _DOES.search(sentence)
        word = next(filter(None, match.groups()), "") if match else ""
        if word and word not in change.known_folded:
            yield reason(
                "effect_contradicted",
                "semantic",
                edit,
                sentence,
                message=f"it says that the tool changes something ({word!r}), against its effects",
                advice="say what the tool does; its effects are part of the contract",
            )
