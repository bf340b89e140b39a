"""Rules that a tool states itself when it refuses a call, or in its own description.

A statement becomes a rule only when it explains what happened: the refused calls break it, the
calls that the tool took keep it, and the refusals agree with each other.

Where the definition has such a rule already, what it says stays unless it is stated anew: a second
bound joins the first. And a list or bound that allows more than the learned one needs agreement
among those that say so only, since the others are what was learned from before.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from agentkit.evolution.proposals.evidence.attributing import meant
from agentkit.evolution.proposals.evidence.echoes import is_constant
from agentkit.evolution.proposals.evidence.lessons import EvidenceRules, Lesson, is_enough, subject
from agentkit.evolution.proposals.evidence.observed import ObservedCall, ToolRecord
from agentkit.evolution.proposals.evidence.origins import origins_of_rule
from agentkit.evolution.proposals.evidence.rule_of import (
    described_rules,
    given_paths,
    rule_key,
    rule_of,
    structured,
    value_paths,
)
from agentkit.evolution.proposals.evidence.vetoes import (
    Trial,
    allows_more,
    is_sound,
    rejects_known,
)
from agentkit.evolution.proposals.proposer import PassedOver, PassedOverReason
from agentkit.evolution.proposals.stated import (
    StatedNeed,
    StatedOrder,
    Statement,
    stated_in_error,
)
from agentkit.library.library import Library
from agentkit.messages import ToolFailure
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Between, Rule, rule_sentence
from agentkit.tools.validation import validate_arguments

_INDEX = re.compile(r"\[\d+\]")
_PARTS = (
    ("minimum", "exclusive_minimum"),
    ("maximum", "exclusive_maximum"),
    ("multiple_of",),
    ("unit",),
)
"""What a range says, part by part: a bound is one part, whether it is itself allowed or not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """One tool with what was observed of it.

    Attributes:
        definition: The tool as it is.
        record: Its calls.
        library: The tools that there are.
        knobs: How much must have happened.
        pass_over: Takes what was seen and taught nothing.
    """

    definition: ToolDefinition
    record: ToolRecord
    library: Library
    knobs: EvidenceRules
    pass_over: Callable[[PassedOver], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Claim:
    """A rule that one call supports.

    Attributes:
        rule: The rule.
        call: The call that breaks it.
        statement: What the refusal says; None for what the definition says itself.
    """

    rule: Rule
    call: ObservedCall
    statement: Statement | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Agreed:
    """A rule that enough calls support.

    Attributes:
        rule: The rule.
        calls: The calls behind it.
        against: Refusals that say otherwise.
        is_constant: Whether the tool says it whatever it is given.
    """

    rule: Rule
    calls: list[ObservedCall]
    against: int
    is_constant: bool


def stated_lessons(seen: Seen) -> Iterator[Lesson]:
    """What the tool says itself about its arguments, as far as calls bear it out."""
    claims = [claim for call in seen.record.refused for claim in _claimed(call, call.refusal, seen)]
    stated = list(_agreed(claims, seen, basis="The tool says so when it refuses a call"))
    yield from stated
    told = {getattr(lesson.rule, "parameter", "") for lesson in stated}
    described = [claim for claim in _described(seen) if _parameter(claim.rule) not in told]
    yield from _agreed(described, seen, basis="The description says so, and calls broke it")


def _claimed(call: ObservedCall, failure: ToolFailure | None, seen: Seen) -> Iterator[_Claim]:
    """The rules that one refusal states and that the refused call breaks."""
    if failure is None or failure.kind == "contract_violated":
        return
    names = seen.definition.signature.properties
    paths = _paths(call, failure, seen)
    of_schema = structured(failure)
    for statement in of_schema or stated_in_error(failure.rule, names):
        broken = [
            rule
            for rule in _possible(statement, paths, seen)
            if Trial(rule, seen.definition).refuses(call)
        ]
        chosen = meant(broken, statement, call, failure, seen.definition)
        if chosen is not None:
            yield _Claim(rule=chosen, call=call, statement=None if of_schema else statement)


def _paths(call: ObservedCall, failure: ToolFailure, seen: Seen) -> list[str]:
    """The parameters that a refusal may be about: the one it points at, or all that were given."""
    if failure.path:
        return [*value_paths(_INDEX.sub("[]", failure.path), seen.definition)]
    given = given_paths(call.arguments)
    return [path for path in given if path in value_paths(path, seen.definition)]


def _possible(statement: Statement, paths: Iterable[str], seen: Seen) -> Iterator[Rule]:
    """The rules that a statement makes, one for each parameter that it may be about."""
    is_about_two = isinstance(statement, StatedOrder | StatedNeed)
    for path in ("",) if is_about_two else paths:
        rule = rule_of(statement, path, seen.definition)
        if rule is not None and is_sound(rule, seen.definition, seen.library):
            yield rule


def _parameter(rule: Rule) -> str:
    parameter: str = getattr(rule, "parameter", "")
    return parameter


def _agreed(claims: Iterable[_Claim], seen: Seen, *, basis: str) -> Iterator[Lesson]:
    """The rules that enough refusals agree on and that no known call or value breaks."""
    about: dict[tuple[str, str], list[_Claim]] = defaultdict(list)
    for claim in claims:
        about[claim.rule.kind, _parameter(claim.rule) or rule_key(claim.rule)].append(claim)
    for found in about.values():
        is_range = isinstance(found[0].rule, Between)
        had = _had(found[0].rule, seen.definition)
        made = _together(found, seen, had) if is_range else _majority(found, seen, had)
        if made is None:
            seen.pass_over(_unsupported(found, seen))
            continue
        rule, calls = made.rule, made.calls
        if not _is_news(rule, calls, seen):
            seen.pass_over(_nothing_new(rule, calls, seen))
        elif rejects_known(rule, seen.definition, seen.record):
            seen.pass_over(_contradicted(rule, calls, seen))
        else:
            origins = origins_of_rule(
                rule, seen.record, seen.definition, seen.library, is_constant=made.is_constant
            )
            yield Lesson.from_calls(
                calls, seen.record, basis=basis, against=made.against, rule=rule, origins=origins
            )


def _unsupported(found: list[_Claim], seen: Seen) -> PassedOver:
    """Refusals that state something, and that are too few or do not agree."""
    rules = Counter(rule_key(claim.rule) for claim in found)
    [(_, most)] = rules.most_common(1)
    count = _counted(len(found), "refused call")
    if most < seen.knobs.least_agreement * len(found):
        why = f"{count} state {len(rules)} different rules, so none of them holds for every call"
        return _passed_over("disagreement", why, found[0].rule, len(found), seen)
    episodes = len({claim.call.episode_id for claim in found})
    needed = f"{seen.knobs.least_failures} from {seen.knobs.least_episodes} episodes are needed"
    why = f"{count} in {_counted(episodes, 'episode')}; {needed}"
    return _passed_over("too_few", why, found[0].rule, len(found), seen)


def _nothing_new(rule: Rule, calls: Collection[ObservedCall], seen: Seen) -> PassedOver:
    count = _counted(len(calls), "refused call")
    why = f"the definition says it by now; {count} broke it, before that or since"
    return _passed_over("already_said", why, rule, len(calls), seen)


def _contradicted(rule: Rule, calls: Collection[ObservedCall], seen: Seen) -> PassedOver:
    refused = _counted(len(calls), "refused call")
    why = (
        f"{refused} state: {rule_sentence(rule)} But the tool took calls, or a verifier expected "
        "values, that this would refuse"
    )
    return _passed_over("contradicts_accepted", why, rule, len(calls), seen)


def _passed_over(
    reason: PassedOverReason, why: str, rule: Rule, failures: int, seen: Seen
) -> PassedOver:
    return PassedOver(
        tool=seen.definition.name,
        parameter=_parameter(rule),
        reason=reason,
        why=why,
        failures=failures,
    )


def _is_news(rule: Rule, calls: Collection[ObservedCall], seen: Seen) -> bool:
    """Whether the definition does not say it yet, as a rule or in its contract."""
    if rule_key(rule) in map(rule_key, seen.definition.specification.rules):
        return False
    return not all(_contract_refuses(_parameter(rule), call, seen) for call in calls)


def _contract_refuses(parameter: str, call: ObservedCall, seen: Seen) -> bool:
    problems = validate_arguments(seen.definition, dict(call.arguments))
    return any(_INDEX.sub("[]", problem.path_text) == parameter for problem in problems)


def _had(rule: Rule, definition: ToolDefinition) -> Rule | None:
    """What was learned about the same thing before."""
    rules = definition.specification.rules
    return next((one for one in rules if subject(one) == subject(rule)), None)


def _majority(claims: list[_Claim], seen: Seen, had: Rule | None) -> _Agreed | None:
    """The rule that enough claims agree on."""
    wider = [one for one in claims if had is not None and allows_more(one.rule, had)]
    made = _agreement(wider, seen) if wider else None
    if made is None:
        return _agreement(claims, seen)
    return replace(made, against=len(claims) - len(made.calls))


def _agreement(claims: list[_Claim], seen: Seen) -> _Agreed | None:
    by_rule: dict[str, list[_Claim]] = defaultdict(list)
    for claim in claims:
        by_rule[rule_key(claim.rule)].append(claim)
    most = max(by_rule.values(), key=len)
    calls = [claim.call for claim in most]
    is_agreed = len(most) >= seen.knobs.least_agreement * len(claims)
    if not is_agreed or not is_enough(calls, seen.record, seen.knobs):
        return None
    rule = most[0].rule
    said = [(claim.statement, claim.call) for claim in most if claim.statement is not None]
    return _Agreed(
        rule=rule,
        calls=calls,
        against=len(claims) - len(most),
        is_constant=len(said) < len(most) or is_constant(said, _parameter(rule), seen.definition),
    )


def _together(claims: list[_Claim], seen: Seen, had: Rule | None) -> _Agreed | None:
    """A range of which some claims state the one end and some the other, or one was known.

    Each part needs agreement and enough calls of its own, so that no bound rests on one call.
    """
    parameter = _parameter(claims[0].rule)
    parts: dict[str, Any] = {}
    agreed: list[_Agreed] = []
    for part in _PARTS:
        known = {} if had is None else _said(had, part)
        bare = [
            replace(claim, rule=Between(parameter=parameter, **said))
            for claim in claims
            if (said := _said(claim.rule, part))
        ]
        made = _majority(bare, seen, Between(parameter=parameter, **known)) if bare else None
        parts |= known if made is None else _said(made.rule, part)
        agreed += [] if made is None else [made]
    if not agreed or not set(parts) - {"unit"}:
        return None
    rule = Between(parameter=parameter, **parts)
    if not is_sound(rule, seen.definition, seen.library):
        return None
    return _Agreed(
        rule=rule,
        calls=list({id(call): call for made in agreed for call in made.calls}.values()),
        against=max(made.against for made in agreed),
        is_constant=all(made.is_constant for made in agreed),
    )


def _said(rule: Rule, names: Iterable[str]) -> dict[str, Any]:
    """The fields of these names that say something."""
    given = {name: getattr(rule, name) for name in names}
    return {name: value for name, value in given.items() if value not in (None, "")}


def _described(seen: Seen) -> Iterator[_Claim]:
    """Rules that the description states in passing, and that calls were blamed for breaking.

    The second of ToolDNA's case studies: the text says ``Loan term (36/48/60)`` and the model calls
    with 31 (appendix D).
    """
    blamed = {name for call in seen.record.calls for name in call.blamed}
    for name in sorted(blamed & set(seen.definition.description.parameters)):
        calls = [c for c in seen.record.calls if name in c.blamed and not c.is_accepted]
        for rule in described_rules(seen.definition, name):
            if is_sound(rule, seen.definition, seen.library):
                trial = Trial(rule, seen.definition)
                yield from (_Claim(rule=rule, call=c) for c in calls if trial.refuses(c))


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
