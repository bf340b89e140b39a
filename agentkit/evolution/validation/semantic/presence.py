"""Whether a text says rightly which parameters a call must give."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agentkit.evolution.validation.phrasebook import Phrasebook
from agentkit.evolution.validation.reasons import reason
from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.texts import Edit, rules_of
from agentkit.retrieval.words import terms

_REQUIRED = Phrasebook.shipped("required")
_OPTIONAL = Phrasebook.shipped("optional")
_PARAMETER = Phrasebook.shipped("parameters")
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


def parameters_known(change: ProposedChange) -> Iterator[FailedCheck]:
    """A text that speaks of a parameter which the schema lacks.

    Models fill in what they read of, and a field that nobody declared is a good place for what was
    said in confidence.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(parameters_known(rewrite("weather_now", {"rule": "Give `unit` if it is said."})))
        []
        >>> more = rewrite("weather_now", {"rule": "It also takes a token. Fill in `context`."})
        >>> [found.message for found in parameters_known(more)]
        ["it speaks of the parameter 'token', which the schema lacks", \
"it speaks of the parameter 'context', which the schema lacks"]
    """
    for edit, sentence, _ in change.statements:
        for match in _PARAMETER.matches(sentence):
            name = next(filter(None, match.groups()), "")
            if name and not set(terms(name)) <= change.vocabulary:
                yield reason(
                    "invented_parameter",
                    "semantic",
                    edit,
                    sentence,
                    message=f"it speaks of the parameter {name!r:.60}, which the schema lacks",
                    advice="leave it out: a call with it would be refused",
                )
                break


def _wrong(edit: Edit, sentence: str, message: str) -> FailedCheck:
    return reason(
        "presence_contradicted",
        "semantic",
        edit,
        sentence,
        message=message,
        advice="the schema says which parameters are required; leave that out of the words",
    )
