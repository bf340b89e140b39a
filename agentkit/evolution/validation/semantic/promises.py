"""Claims that a tool is safe, free, certain or always there, and that it is the best."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.semantic.comparing import preferred_to

_PROMISE = Phrasebook.shipped("promises")
_READS_ONLY = re.compile(
    r"read[- ]only|chang|modif|write|stor|alter|affect|lesend|andert|lecture|lectura"
    r"|只读|修改|读|変更|読み取り"
)
_IDEMPOTENT = re.compile(r"idempotent|retr|as often|any number|undo|撤销")

_PROMOTION = Phrasebook.shipped("promotion")


def no_promises(change: ProposedChange) -> Iterator[FailedCheck]:
    """Claims of safety, price, certainty and availability.

    A model that reads *safe* stops asking. Whether a tool only reads is declared in its effects;
    where they say so, a text may say it too. What the base says may stay.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(no_promises(rewrite("calendar_find_slot", {"rule": "Gives the first free slot."})))
        []
        >>> list(no_promises(rewrite("cars_details", {"rule": "Read-only."})))
        []
        >>> claim = rewrite("calendar_cancel_event", {"rule": "It is safe and can be undone."})
        >>> [(found.code, found.message) for found in no_promises(claim)]
        [('false_claim', "it promises what the definition does not bear out ('is safe')")]
    """
    effects = change.base.signature.effects
    for edit, sentence, _ in change.statements:
        for match in _PROMISE.matches(sentence):
            claim = match.group()
            declared = (effects.is_read_only and _READS_ONLY.search(claim)) or (
                effects.idempotent and _IDEMPOTENT.search(claim)
            )
            if not declared and claim not in change.known_folded:
                yield reason(
                    "false_claim",
                    "semantic",
                    edit,
                    sentence,
                    message=f"it promises what the definition does not bear out ({claim!r:.60})",
                    advice="leave promises out; its effects say what a tool does to the world",
                )
                break


def no_self_promotion(change: ProposedChange) -> Iterator[FailedCheck]:
    """Praise, and comparison with other tools.

    One form of comparison passes and needs others to agree: ``comparing.preferred_to``.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> order = rewrite("cars_search", {"rule": "The cheapest car comes first."})
        >>> list(no_self_promotion(order))
        []
        >>> praise = rewrite("cars_search", {"rule": "The most reliable source of car prices."})
        >>> [found.code for found in no_self_promotion(praise)]
        ['self_promotion']
    """
    for edit, sentence, _ in change.statements:
        match = _PROMOTION.search(sentence)
        if match is None or preferred_to(change, sentence):
            continue
        if match.group() not in change.known_folded:
            yield reason(
                "self_promotion",
                "semantic",
                edit,
                sentence,
                message=f"it praises the tool or compares it with others ({match.group()!r:.60})",
                advice="say what the tool does; which one fits is for the model to find",
            )
