"""Whether a text says rightly which parameters a call must give."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.texts import Edit, rules_of

_REQUIRED = Phrasebook.shipped("required")
_OPTIONAL = Phrasebook.shipped("optional")
_NEGATED = re.compile(r"\bnot\b|\bnicht\b|\bpas\b|\bno\b|非|不(?:是)?必")
_CONDITIONAL = Phrasebook.shipped("conditions")


def presence_agrees(change: ProposedChange) -> Iterator[FailedCheck]:
    """An optional parameter called required, or the other way round.

    A sentence with a condition (*required when ...*) is left to the rules: a ``Requires`` rule
    holds such things.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> right = {"parameters.tip_percent": "Tip in percent; 0 when omitted."}
        >>> list(presence_agrees(rewrite("bill_split", right)))
        []
        >>> wrong = {"parameters.tip_percent": "Tip in percent. Required."}
        >>> [found.message for found in presence_agrees(rewrite("bill_split", wrong))]
        ['it calls tip_percent required, which is optional']
    """
    ruled = {other for rule in rules_of(change.candidate) for other in getattr(rule, "others", ())}
    for edit, sentence, facts in change.statements:
        if edit.kind != "parameter" or facts is None or facts.path.endswith("[]"):
            continue
        required, optional = _REQUIRED.search(sentence), _OPTIONAL.search(sentence)
        if (
            required and not optional and not facts.required
            and facts.path not in ruled and not _CONDITIONAL.search(sentence)
            and not _NEGATED.search(sentence[: required.start()])
        ):  # fmt: skip
            yield _wrong(edit, sentence, f"it calls {facts.path} required, which is optional")
        elif optional and facts.required and not _NEGATED.search(sentence[: optional.start()]):
            yield _wrong(edit, sentence, f"it calls {facts.path} optional, which is required")


def _wrong(edit: Edit, sentence: str, message: str) -> FailedCheck:
    return reason(
        "presence_contradicted",
        "semantic",
        edit,
        sentence,
        message=message,
        advice="the schema says which parameters are required; leave that out of the words",
    )
