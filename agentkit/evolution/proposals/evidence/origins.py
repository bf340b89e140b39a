"""Where the texts of a lesson came from, and which of its values accepted calls have used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agentkit.evolution.proposers.constraints import is_own_form
from agentkit.evolution.proposers.observed import ObservedCall, ToolRecord, values_of
from agentkit.evolution.validation.origins import TRUSTED, speaks_as
from agentkit.evolution.validation.report import TextOrigin
from agentkit.evolution.validation.texts import folded
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Form, OneOf, Rule, rule_sentence
from agentkit.tools.rules.demands import ToolsByName

OWN_WORDS = "words of this package"

_FIXED = ("words", "unit", "example", "pattern", "expression")
"""Fields of stated rules that the reading of refusals fills with fixed phrases."""


def own(*texts: str) -> tuple[TextOrigin, ...]:
    """Texts that are fixed phrases of this package, filled with names of the tool's parameters."""
    return tuple(TextOrigin(text=text, kind="code", where=OWN_WORDS) for text in texts if text)


def quoted(
    text: str, definition: ToolDefinition, tools: ToolsByName, *, is_constant: bool
) -> TextOrigin:
    """The origin of a text that a tool wrote into its refusals.

    Args:
        text: The text.
        definition: The tool.
        tools: All tools, by which a composite is as trusted as its parts.
        is_constant: Whether the tool says it whatever it is given.
    """
    if not is_constant:
        where = f"what {definition.name} may repeat of a call that it refuses"
        return TextOrigin(text=text, kind="user", where=where)
    kind = speaks_as(definition, tools)
    return TextOrigin(text=text, kind=kind, where=f"{definition.name}, refusing a call")


def origins_of_rule(
    rule: Rule,
    record: ToolRecord,
    definition: ToolDefinition,
    tools: ToolsByName,
    *,
    is_constant: bool,
) -> tuple[TextOrigin, ...]:
    """Where the texts of a stated rule came from.

    Ranges, orders and most forms are told in fixed phrases of this package. Allowed values and
    patterns are the tool's own. A rule that a user may have dictated is the user's as a whole, with
    its numbers: its sentence has an origin then.
    """
    match rule:
        case OneOf(values=values):
            texts: tuple[Any, ...] = values
        case Form() if not is_own_form(rule.words, rule.pattern):
            texts = (rule.pattern, rule.words, rule.example)
        case _:
            texts = ()
    used = _used(texts, rule, record, definition)
    said = [
        replace(quoted(text, definition, tools, is_constant=is_constant), is_used=text in used)
        for text in texts
        if text and isinstance(text, str)
    ]
    fixed = () if texts else own(*(getattr(rule, name, "") for name in _FIXED))
    if not is_constant:
        whole = quoted(rule_sentence(rule), definition, tools, is_constant=False)
        said.append(replace(whole, is_used=bool(texts) and used.issuperset(texts)))
    return (*said, *fixed)


def of_definition(text: str, other: ToolDefinition, tools: ToolsByName) -> TextOrigin:
    """The origin of a text taken from what another tool says of itself."""
    where = f"what {other.name} says of itself"
    return TextOrigin(text=text, kind=speaks_as(other, tools), where=where)


def is_vouched_for(origin: TextOrigin) -> bool:
    """Whether a text can be expected to pass without anybody's agreement."""
    return origin.kind in TRUSTED or origin.is_used


def _used(
    wanted: Iterable[Any], rule: Rule, record: ToolRecord, definition: ToolDefinition
) -> set[Any]:
    """The values that accepted calls gave before any tool had said them in that conversation.

    A call that follows a refusal proves nothing: whoever words the refusal also says what the next
    call gives, and a hostile tool accepts it.
    """
    parameter: str = getattr(rule, "parameter", "")
    asked, found = set(wanted), set[Any]()
    for call in record.accepted if asked else ():
        for given in values_of(parameter, call.arguments, definition):
            is_scalar = given is None or isinstance(given, str | int | float)
            if is_scalar and given in asked - found and _is_unprompted(given, call):
                found.add(given)
    return found


def _is_unprompted(value: Any, call: ObservedCall) -> bool:
    if call.earlier is None:
        return False
    heard = [*call.refusals, *(one.text for one in call.earlier)]
    return not any(folded(str(value)) in folded(text) for text in heard)
