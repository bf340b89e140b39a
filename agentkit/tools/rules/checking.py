"""Learned rules against values and calls: does one hold, what comes near, what is wanted before.

``agentkit.composites.RuleChecker`` puts these together for the rules of one tool; conditions need
the composite language.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

from agentkit.tools.canonical import is_finite
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import close_to, path_text, value_text
from agentkit.tools.patterns import FORMAT_EXAMPLES
from agentkit.tools.rules.records import Between, CallBefore, EarlierCall, Form, OneOf
from agentkit.tools.rules.rendering import keywords, scalar_text
from agentkit.tools.schema_validator import fits
from agentkit.tools.tool import Tool

_MOST_NEAREST = 3
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_LETTER = r"[^\W\u2e80-\U0010ffff]"
"""A letter or digit of scripts that put spaces between words."""

_LONGEST = 200_000
_MOST_PARTS = 200

# --- one value ------------------------------------------------------------------------------------


def holds(rule: OneOf | Between | Form, value: Any) -> bool:
    """Whether a value satisfies a rule.

    As in JSON Schema (``keywords``), a range speaks of numbers (or of the length of texts, or of
    lists) and a form of texts; values of other types are left to the contract. A pattern that is
    not safe is not applied.

    Example:
        >>> holds(Between(parameter="x", multiple_of=0.01), 19.99)
        True
        >>> holds(Between(parameter="x", measure="length", maximum=3), "four")
        False
    """
    return fits(value, keywords(rule)) is not False


def nearest_allowed(rule: OneOf | Between | Form, value: Any) -> tuple[str, ...]:
    """Listed values that come near one that is not, best first, or the example of a form.

    Example:
        >>> nearest_allowed(OneOf(parameter="periods", values=(36, 48, 60)), 40)
        ('36', '48', '60')
    """
    match rule:
        case OneOf() if isinstance(value, str):
            return close_to(value, [member for member in rule.values if isinstance(member, str)])
        case OneOf() if _is_number(value):
            numbers = sorted(filter(_is_number, rule.values), key=lambda one: abs(one - value))
            return tuple(map(scalar_text, numbers[:_MOST_NEAREST]))
        case Form():
            example = rule.example or FORMAT_EXAMPLES.get(rule.format, "")
            return (example,) if example else ()
    return ()


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and is_finite(value)


# --- earlier calls (call_before) ------------------------------------------------------------------

Given = tuple[tuple[str | int, ...], Any]
"""A value of the arguments with its path."""


def missing_call(
    rule: CallBefore, values: Iterable[Given], earlier: Sequence[EarlierCall]
) -> tuple[str, tuple[str | int, ...]] | None:
    """The missing requirement of a call, as a sentence and a path; None for none.

    A value comes from a result when its text contains it as a whole, with upper and lower case
    alike: models shorten and change what they read, and a refusal needs a reason.

    Args:
        rule: The rule.
        values: The values of the rule's parameter, if it has one and the call gives it.
        earlier: The calls that succeeded before.
    """
    texts = [call.text for call in earlier if call.name == rule.tool]
    if not texts:
        where = (rule.parameter,) if rule.parameter else ()
        return f"call {rule.tool} first; it has not been called with success yet", where
    for path, value in values:
        for part in islice(_parts(value), _MOST_PARTS):
            if not any(_is_in(part, text) for text in texts):
                sentence = f"`{path_text(path)}` must come from the result of {rule.tool}"
                return f"{sentence}, got {value_text(part)}, which no result of it holds", path
    return None


def _parts(value: Any) -> Iterator[Any]:
    """The texts and numbers inside a value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _parts(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def _occurs_in(needle: str, text: str) -> bool:
    """Whether a text stands in another as a whole: C-1 does not in C-17, nor in C-1-2.

    Scripts without spaces end no word, so their letters may stand beside it.
    """
    if needle not in text:
        return False
    before, after = rf"(?<!{_LETTER})(?<!{_LETTER}-)", rf"(?!-?{_LETTER})"
    starts, ends = (re.match(_LETTER, edge) is not None for edge in (needle[0], needle[-1]))
    whole = (before if starts else "") + re.escape(needle) + (after if ends else "")
    return re.search(whole, text) is not None


def _is_in(part: str | float, text: str) -> bool:
    if len(text) > _LONGEST:  # then it is not worth the search
        return True
    if isinstance(part, str):
        needle, where = part.strip().casefold(), text.casefold()
        if not needle:
            return '""' in where
        return _occurs_in(needle, where) or _occurs_in(json.dumps(needle)[1:-1], where)
    return any(float(number[0]) == part for number in _NUMBER.finditer(text))


# --- the tools that calls lead to -----------------------------------------------------------------


class ToolsByName(Protocol):
    """A library, or any other mapping of names to tools."""

    def get(self, name: str, /) -> Tool | None:
        """The tool of a name; None when there is none."""
        ...


def demanded(definition: ToolDefinition, tools: ToolsByName) -> dict[str, ToolDefinition | None]:
    """The tools that calls of a tool lead to: what its rules demand first, and its children.

    The demands of demanded tools and of children count too, so a rule has the effects of every
    tool that it makes models call.

    Args:
        definition: The tool.
        tools: The tools that there are.

    Returns:
        By name, in the order found, without the tool itself; None for a tool that is not there.
    """
    found: dict[str, ToolDefinition | None] = {}
    waiting = [definition]
    while waiting:
        one = waiting.pop()
        names = [rule.tool for rule in one.specification.rules if isinstance(rule, CallBefore)]
        for name in (*names, *(child.name for child in one.signature.children)):
            if name in found or name == definition.name:
                continue
            tool = tools.get(name)
            found[name] = None if tool is None else tool.definition
            if tool is not None:
                waiting.append(tool.definition)
    return found
