"""Which parameter a refusal speaks of, when it does not point at one.

Names of parameters are ordinary words (``time``, ``format``, ``date``), and refusals are full of
ordinary words. "time data 'tomorrow' does not match format '%Y-%m-%d'" is about neither ``time``
nor ``format``, but about the parameter whose value it quotes. Where a text leaves it open, nothing
is learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from agentkit.evolution.proposals.evidence.observed import ObservedCall
from agentkit.evolution.proposals.evidence.rule_of import given_paths, values_of
from agentkit.evolution.proposals.stated import StatedNeed, StatedOrder, Statement
from agentkit.messages import ToolFailure
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Rule

_QUOTES = "['\"`\u2018\u2019\u201c\u201d]"
_SHORTEST = 3
_LONGEST = 60


def meant(
    broken: Sequence[Rule],
    statement: Statement,
    call: ObservedCall,
    failure: ToolFailure,
    definition: ToolDefinition,
) -> Rule | None:
    """The one rule that is meant, among those that a refused call breaks; None if it is not clear.

    It is the one about the parameter that the failure points at, else about the only parameter
    whose value the text quotes, else about the one whose name stands nearest to the statement in
    the way in which texts name parameters. That a call breaks a single rule is not enough, unless
    it gives nothing else: the text may speak of something that the call left out.
    """
    if failure.path or isinstance(statement, StatedOrder | StatedNeed):
        return broken[0] if len(broken) == 1 else None
    quoted = [rule for rule in broken if _is_quoted(rule, call, failure.rule, definition)]
    if len(quoted) == 1:
        return quoted[0]
    nearest = _nearest(quoted or broken, statement, failure.rule)
    if len(nearest) == 1:
        return nearest[0]
    return broken[0] if len(broken) == 1 and len(given_paths(call.arguments)) == 1 else None


def _is_quoted(rule: Rule, call: ObservedCall, text: str, definition: ToolDefinition) -> bool:
    values = values_of(_parameter(rule), call.arguments, definition)
    return any(_quotes(text, value) for value in values)


def _quotes(text: str, value: Any) -> bool:
    """Whether a text repeats a value: an ordinary or short word only in quotation marks."""
    written = str(value)[:_LONGEST]
    is_usual = isinstance(value, str) and (
        len(value) < _SHORTEST or (value.isalpha() and value.islower())
    )
    wanted = re.escape(written)
    pattern = f"{_QUOTES}{wanted}{_QUOTES}" if is_usual else rf"(?<![\w.]){wanted}(?!\w|\.\d)"
    return bool(written) and re.search(pattern, text) is not None


def _nearest(rules: Sequence[Rule], statement: Statement, text: str) -> list[Rule]:
    """The rules about parameters that the text names, those named nearest to the statement."""
    named = [
        (abs(start - statement.start), rule)
        for rule in rules
        for start in _mentions(_parameter(rule), text)
    ]
    least = min((distance for distance, _ in named), default=0)
    return [rule for distance, rule in named if distance == least]


def _mentions(parameter: str, text: str) -> Iterator[int]:
    """Where a text names a parameter: in marks, alone in a line, or as what a sentence is about."""
    bare = parameter.rpartition(".")[2].rstrip("[]")
    name = re.escape(bare)
    if not name:
        return
    is_plain_word = bare.isalpha() and (bare.islower() or bare.istitle())
    if not is_plain_word:
        yield from (found.start() for found in re.finditer(rf"(?<!\w){name}(?!\w)", text))
        return
    pattern = rf"""
        {_QUOTES}{name}{_QUOTES}
      | ^\s*{name}\s*$
      | (?<!\w){name}
        (?=\s*[:=]|\s+(?:must|should|shall|is|are|was|has|have|can|cannot|may|needs?)\b)
      | \b(?:invalid|for|parameter|argument|field|of|bad|wrong|unsupported|unknown|illegal)\s+
        {name}(?!\w)
    """
    found = re.finditer(pattern, text, re.VERBOSE | re.MULTILINE | re.IGNORECASE)
    yield from (match.start() for match in found)


def _parameter(rule: Rule) -> str:
    parameter: str = getattr(rule, "parameter", "")
    return parameter
