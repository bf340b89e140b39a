"""Where the texts of a lesson came from, and which of its values accepted calls have used."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from agentkit.evolution.proposals.evidence.observed import ObservedCall, ToolRecord
from agentkit.evolution.proposals.evidence.rule_of import values_of
from agentkit.evolution.proposals.stated.forms import is_own_form
from agentkit.evolution.validation.folding import folded
from agentkit.evolution.validation.origins import every_text, speaks_as
from agentkit.evolution.validation.report import TextOrigin
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Form, OneOf, Rule
from agentkit.tools.rules.inherited import ToolsByName

OWN_WORDS = "words of this package"

_FIXED = ("words", "unit", "example", "pattern", "expression")
"""Fields of stated rules that the reading of refusals fills with fixed phrases."""


def own(*texts: str) -> tuple[TextOrigin, ...]:
    """Texts that are fixed phrases of this package, filled with names of the tool's parameters."""
    return tuple(TextOrigin(text=text, kind="code", where=OWN_WORDS) for text in texts if text)


def quoted(
    text: str,
    calls: Iterable[ObservedCall],
    definition: ToolDefinition,
    tools: ToolsByName,
    *,
    part: str = "",
) -> TextOrigin:
    """The origin of a text that a tool wrote into its refusals.

    A refusal may repeat an argument. What stands inside an argument of every refused call is
    therefore whatever the user or the model gave, not what the tool says.

    Args:
        text: The text.
        calls: The refused calls behind it.
        definition: The tool.
        tools: All tools, by which a composite is as trusted as its parts.
        part: The part of the text that is the tool's, where the rest is a fixed phrase.
    """
    kind = speaks_as(definition, tools)
    if kind == "code" and all(_repeats(call, part or text) for call in calls):
        return TextOrigin(
            text=text, kind="user", where=f"an argument that {definition.name} repeats"
        )
    return TextOrigin(text=text, kind=kind, where=f"{definition.name}, refusing a call")


def origins_of_rule(
    rule: Rule,
    calls: Collection[ObservedCall],
    record: ToolRecord,
    definition: ToolDefinition,
    tools: ToolsByName,
) -> tuple[TextOrigin, ...]:
    """Where the texts of a stated rule came from.

    Ranges, orders and most forms are told in fixed phrases of this package. Allowed values and
    patterns are the tool's own.
    """
    match rule:
        case OneOf(values=values):
            texts = {value: value for value in values if isinstance(value, str)}
        case Form() if not is_own_form(rule.words, rule.pattern):
            texts = dict.fromkeys((rule.pattern, rule.words, rule.example), rule.pattern)
        case _:
            return own(*(getattr(rule, name, "") for name in _FIXED))
    used = _used(texts, rule, record, definition)
    said = (quoted(text, calls, definition, tools, part=texts[text]) for text in texts if text)
    return tuple(replace(one, is_used=one.text in used) for one in said)


def of_definition(text: str, other: ToolDefinition, tools: ToolsByName) -> TextOrigin:
    """The origin of a text taken from what another tool says of itself."""
    where = f"what {other.name} says of itself"
    return TextOrigin(text=text, kind=speaks_as(other, tools), where=where)


def is_vouched_for(origin: TextOrigin) -> bool:
    """Whether a text can be expected to pass without anybody's agreement."""
    return origin.kind in {"code", "person"} or origin.is_used


def _repeats(call: ObservedCall, text: str) -> bool:
    """Whether a text stands in an argument."""
    wanted = folded(text)
    return any(wanted in folded(given) for given in every_text(call.arguments))


def _used(
    wanted: Collection[str], rule: Rule, record: ToolRecord, definition: ToolDefinition
) -> set[str]:
    """The values that accepted calls gave before any tool had said them in that conversation.

    A call that follows a refusal proves nothing: whoever words the refusal also says what the next
    call gives, and a hostile tool accepts it.
    """
    parameter: str = getattr(rule, "parameter", "")
    found: set[str] = set()
    for call in record.accepted:
        for given in values_of(parameter, call.arguments, definition):
            is_asked = isinstance(given, str) and given in wanted and given not in found
            if is_asked and _is_unprompted(given, call):
                found.add(given)
    return found


def _is_unprompted(value: str, call: ObservedCall) -> bool:
    if call.earlier is None:
        return False
    heard = [*call.refusals, *(one.text for one in call.earlier)]
    return not any(folded(value) in folded(text) for text in heard)
