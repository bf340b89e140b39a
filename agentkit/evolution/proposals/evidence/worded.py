"""What can be said in words only: forms without a pattern, and what the contract says already."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace

from agentkit.evolution.proposals.evidence.echoes import is_constant
from agentkit.evolution.proposals.evidence.lessons import Lesson, is_enough
from agentkit.evolution.proposals.evidence.observed import ObservedCall
from agentkit.evolution.proposals.evidence.origins import own, quoted
from agentkit.evolution.proposals.evidence.rule_of import rule_of, structured, value_paths
from agentkit.evolution.proposals.evidence.stated_rules import Seen
from agentkit.evolution.proposals.stated import StatedForm, Statement, stated_in_error
from agentkit.evolution.validation.report import TextOrigin
from agentkit.tools.rules import Between, OneOf
from agentkit.tools.rules.sentences import demand
from agentkit.tools.schema import excerpt

_INDEX = re.compile(r"\[\d+\]")


def worded_lessons(seen: Seen) -> Iterator[Lesson]:
    """Sentences for the texts of parameters that calls keep breaking.

    A model that breaks the schema it was shown did not read it there. The sentence says the same
    once more in words; no rule is needed for what the contract refuses anyway.
    """
    said: dict[tuple[str, str], list[tuple[Statement, ObservedCall]]] = defaultdict(list)
    of_contract: dict[tuple[str, str], list[ObservedCall]] = defaultdict(list)
    for call in seen.record.refused:
        for parameter, statement in _forms(call, seen):
            said[parameter, _sentence(statement.words)].append((statement, call))
        for parameter, text in _of_contract(call, seen):
            of_contract[parameter, text].append(call)
    lessons = [
        *((about, [call for _, call in found], found) for about, found in said.items()),
        *((about, calls, None) for about, calls in of_contract.items()),
    ]
    for (parameter, text), calls, found in lessons:
        before = seen.definition.description.parameters.get(parameter, "")
        if text.casefold() not in before.casefold() and is_enough(calls, seen.record, seen.knobs):
            basis = "The tool says so when it refuses a call"
            yield Lesson.from_calls(
                calls,
                seen.record,
                basis=basis,
                parameter=parameter,
                text=text,
                origins=own(text) if found is None else _origins(text, found, parameter, seen),
            )


def _parameter(call: ObservedCall, seen: Seen) -> str:
    """The parameter that a refusal is about; empty where it is about none that has a value."""
    failure = call.refusal
    if failure is None:
        return ""
    parameter = _INDEX.sub("[]", failure.path) or "".join(sorted(call.blamed)[:1])
    return parameter if any(value_paths(parameter, seen.definition)) else ""


def _origins(
    text: str, found: Collection[tuple[Statement, ObservedCall]], parameter: str, seen: Seen
) -> tuple[TextOrigin, ...]:
    is_own = is_constant(found, parameter, seen.definition)
    return (quoted(text, seen.definition, seen.library, is_constant=is_own),)


def _forms(call: ObservedCall, seen: Seen) -> Iterator[tuple[str, StatedForm]]:
    """Forms that the tool tells in words of its own."""
    parameter = _parameter(call, seen)
    if call.refusal is None or not parameter:
        return
    for statement in stated_in_error(call.refusal.rule):
        if isinstance(statement, StatedForm) and not (statement.pattern or statement.format):
            yield parameter, statement


def _of_contract(call: ObservedCall, seen: Seen) -> Iterator[tuple[str, str]]:
    """The list or range of the contract that was broken, as the contract has it, in words."""
    failure, parameter = call.refusal, _parameter(call, seen)
    part = excerpt(seen.definition.signature.parameters, tuple(parameter.split(".")))
    if failure is None or not parameter or part is None or failure.cause not in part:
        return
    for statement in structured(replace(failure, schema_excerpt=part)):
        rule = rule_of(statement, parameter, seen.definition)
        if isinstance(rule, OneOf | Between):
            yield parameter, _sentence(demand(rule))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
