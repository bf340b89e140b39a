"""Whether new words hold for every call, or repeat values of the calls that they were made from.

A description that says "use 36 for the blue Passat" repairs one episode and misleads the next, and
it carries what a user said into a text that everybody reads. So a value of an episode (an argument,
or what a verifier held for right) may not turn up in a tool's words, unless the tool says it
itself: in its definition as it was, or in its own errors.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

from agentkit.episodes import Episode
from agentkit.evolution.mining.dataflow import is_specific
from agentkit.evolution.mining.trajectory import parts_of
from agentkit.evolution.validation.report import Check, FailedCheck, ProposedChange
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import OneOf

_MOST_VALUES = 2_000
_LONGEST_VALUE = 2_000
_SHOWN = 60


def instance_values(episodes: Iterable[Episode]) -> tuple[str, ...]:
    """The values of episodes that say something by turning up in a text, each once.

    These are arguments of calls and what verdicts found or expected. Truth values, small whole
    numbers and texts of one or two characters are left out: they turn up by chance.

    Example:
        >>> from agentkit.episodes import Evidence, Verdict
        >>> wrong = Evidence(kind="wrong_value", message="", expected=["Passat380"], actual=31)
        >>> instance_values([Episode(
        ...     episode_id="e", request="", verdict=Verdict(passed=False, evidence=(wrong,)))])
        ('Passat380', '31')
    """
    found: dict[str, None] = {}
    for episode in episodes:
        evidence = () if episode.verdict is None else episode.verdict.evidence
        held = chain(
            (call.arguments for call in episode.calls),
            *((item.expected, item.actual) for item in evidence),
        )
        for value in held:
            found |= dict.fromkeys(_texts(value))
            if len(found) >= _MOST_VALUES:
                return tuple(found)[:_MOST_VALUES]
    return tuple(found)


def generalises(values: Iterable[str], *, stated: Iterable[object] = ()) -> Check:
    """A check that the new words of a candidate repeat none of the values.

    Args:
        values: Values of episodes, from ``instance_values``.
        stated: Values that the tool itself has stated, as in an error that lists what it takes.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.library.library import Library
        >>> loan = ToolDefinition.from_schema("loan", "", {
        ...     "properties": {"periods": {"type": "integer", "description": "Term."}}})
        >>> words = replace(loan.description, parameters={"periods": "Term; it is 36."})
        >>> change = ProposedChange(
        ...     base=loan, candidate=replace(loan, description=words), library=Library([loan]))
        >>> [str(failed) for failed in generalises(["36"])(change)]
        ["[instance_value] in parameters.periods: the text holds '36', a value of an episode"]
        >>> list(generalises(["36"], stated=[36, 48, 60])(change))
        []
    """
    distinct = tuple(dict.fromkeys(values))
    known = frozenset(_folded(one) for one in stated)

    def check(change: ProposedChange) -> Iterator[FailedCheck]:
        before = _folded(canonical_json(change.base.to_json()).decode())
        suspects = [value for value in distinct if _folded(value) not in known]
        for place, text in _new_texts(change.base, change.candidate):
            yield from _repeated(place, text, suspects, before)

    return check


def _texts(value: Any) -> Iterator[str]:
    for _, part in parts_of(value):
        if is_specific(part) and isinstance(part, str | int | float):
            text = str(part).strip() if isinstance(part, str) else _number(part)
            if 1 < len(text) <= _LONGEST_VALUE:
                yield text


def _number(value: float) -> str:
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python prints
        return ""


def _repeated(place: str, text: str, values: Collection[str], before: str) -> Iterator[FailedCheck]:
    folded = _folded(text)
    for value in values:
        wanted = _folded(value)
        if wanted in folded and _stands_in(text, value) and not _holds(before, wanted):
            yield FailedCheck(
                code="instance_value",
                layer="semantic",
                field=place,
                message=f"the text holds {value[:_SHOWN]!r}, a value of an episode",
                advice="say what such values have in common, or leave it out",
                excerpt=text[:200],
            )


def _stands_in(text: str, value: str) -> bool:
    """Whether a value stands in a text as itself: an ordinary word only in quotation marks."""
    wanted = re.escape(value)
    if value.isalpha() and value.islower():
        return re.search(rf"(['\"`\u2018\u201c]){wanted}['\"`\u2019\u201d]", text) is not None
    return _holds(_folded(text), _folded(value))


def _holds(text: str, value: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(value)}(?![\w]|\.\d)", text) is not None


def _folded(value: object) -> str:
    return str(value).casefold()


def _new_texts(base: ToolDefinition, candidate: ToolDefinition) -> Iterator[tuple[str, str]]:
    """Every text of the candidate that the base has not, with its place."""
    old, new = base.description, candidate.description
    if new.summary != old.summary:
        yield "summary", new.summary
    for name, text in new.parameters.items():
        if text != old.parameters.get(name):
            yield f"parameters.{name}", text
    for at, rule in enumerate(new.usage_rules):
        if rule not in old.usage_rules:
            yield f"usage_rules[{at}]", rule
    for at, tag in enumerate(new.tags):
        if tag not in old.tags:
            yield f"tags[{at}]", tag
    yield from _new_rules(base, candidate)


def _new_rules(base: ToolDefinition, candidate: ToolDefinition) -> Iterator[tuple[str, str]]:
    for at, rule in enumerate(candidate.specification.rules):
        if rule in base.specification.rules:
            continue
        if isinstance(rule, OneOf):
            yield f"rules[{at}]", " ".join(f"'{value}'" for value in rule.values)
        else:
            names = set(rule.__dataclass_fields__) - {"kind", "parameter"}
            said = [getattr(rule, name) for name in sorted(names)]
            yield f"rules[{at}]", " ".join(str(part) for part in said if part not in (None, ""))
