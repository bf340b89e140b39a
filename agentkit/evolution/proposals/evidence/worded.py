"""What can be said in words only: forms without a pattern, and what the contract says already."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from agentkit.evolution.proposals.evidence.lessons import Lesson, is_enough
from agentkit.evolution.proposals.evidence.observed import ObservedCall
from agentkit.evolution.proposals.evidence.rule_of import rule_of, structured, value_paths
from agentkit.evolution.proposals.evidence.stated_rules import Seen
from agentkit.evolution.proposals.stated import StatedForm, stated_in_error
from agentkit.messages import ToolFailure
from agentkit.tools.rules import Between, OneOf
from agentkit.tools.rules.sentences import demand
from agentkit.tools.schema import excerpt

_INDEX = re.compile(r"\[\d+\]")


def worded_lessons(seen: Seen) -> Iterator[Lesson]:
    """Sentences for the texts of parameters that calls keep breaking.

    A model that breaks the schema it was shown did not read it there. The sentence says the same
    once more in words; no rule is needed for what the contract refuses anyway.
    """
    said: dict[tuple[str, str], list[ObservedCall]] = defaultdict(list)
    for call in seen.record.refused:
        for parameter, text in _words(call, seen):
            said[parameter, text].append(call)
    for (parameter, text), calls in said.items():
        before = seen.definition.description.parameters.get(parameter, "")
        if text.casefold() not in before.casefold() and is_enough(calls, seen.record, seen.knobs):
            basis = "The tool says so when it refuses a call"
            yield Lesson.from_calls(calls, seen.record, basis=basis, parameter=parameter, text=text)


def _words(call: ObservedCall, seen: Seen) -> Iterator[tuple[str, str]]:
    failure = call.refusal
    blamed = sorted(call.blamed)
    parameter = "" if failure is None else _INDEX.sub("[]", failure.path) or "".join(blamed[:1])
    if failure is None or not any(value_paths(parameter, seen.definition)):
        return
    for statement in stated_in_error(failure.rule):
        if isinstance(statement, StatedForm) and not (statement.pattern or statement.format):
            yield parameter, _sentence(statement.words)
    yield from _of_contract(parameter, failure, seen)


def _of_contract(parameter: str, failure: ToolFailure, seen: Seen) -> Iterator[tuple[str, str]]:
    """The list or range of the contract that was broken, in words."""
    schema = seen.definition.signature.parameters
    part = excerpt(schema, tuple(parameter.split(".")))
    if part is None or failure.cause not in part:
        return
    for statement in structured(failure):
        rule = rule_of(statement, parameter, seen.definition)
        if isinstance(rule, OneOf | Between):
            yield parameter, _sentence(demand(rule))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
