"""Which texts of a candidate somebody must agree to, because of where they came from.

A rule shows models whatever it was learned from: allowed values, the words and the example of a
form. Whoever words the errors of a tool could so word what models read. Each proposal therefore
says of its texts where they came from, and what no trusted origin vouches for waits.

Numbers, bounds and texts without letters are data, and need no origin unless a user may have
dictated the rule that holds them. Nor do texts that the base holds already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from agentkit.evolution.validation.report import OriginKind, ProposedChange, TextOrigin
from agentkit.evolution.validation.texts import folded, mapping, rules_of, sequence, stands_in
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_sentence
from agentkit.tools.rules.demands import ToolsByName, demanded

TRUSTED: frozenset[OriginKind] = frozenset({"person", "code"})
_READ = frozenset({"summary", "tag", "parameter", "usage_rule", "condition"})
"""Kinds of texts that every check of words reads; those of a model pass when these checks do."""

_CODE = frozenset({"function", "pydantic"})
_NAMES = frozenset({"kind", "parameter", "others", "tool", "format", "measure"})
"""Fields of rules that hold names of parameters and tools, or words of a fixed list."""

_MOST_WORDS = 3
_LONGEST = 40
"""Words and characters of an allowed value. A longer one is a sentence, whoever used it."""

_WORD = re.compile(r"[^\W_]+")
_FIRST_EAST_ASIAN = 0x2E80  # scripts without spaces: two characters count as a word


@dataclass(frozen=True, kw_only=True, slots=True)
class FreshText(TextOrigin):
    """A text that a candidate brings, with its origin.

    Attributes:
        field: Where it stands, as in ``FailedCheck.field``.
        waits: Whether somebody must agree to it.
    """

    field: str
    waits: bool

    @classmethod
    def of(cls, origin: TextOrigin, field: str, *, waits: bool) -> FreshText:
        """A text of this origin."""
        return cls(
            text=origin.text.strip(),
            kind=origin.kind,
            where=origin.where,
            is_used=origin.is_used,
            field=field,
            waits=waits,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Words:
    """New words in one place; whether they are an allowed value, and read by every check."""

    field: str
    text: str
    is_value: bool = False
    is_read: bool = False


def fresh_texts(change: ProposedChange) -> tuple[FreshText, ...]:
    """The new texts of a candidate that hold words, with their origins.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.testing.rewrites import rewrite
        >>> from agentkit.tools.rules import OneOf
        >>> rule = OneOf(parameter="city", values=("your password", "Oslo"))
        >>> said = (TextOrigin(text="your password", kind="server"),)
        >>> change = replace(rewrite("weather_now", rules=(rule,)), origins=said)
        >>> [(one.text, one.kind, one.waits) for one in fresh_texts(change)]
        [('your password', 'server', True), ('Oslo', 'model', True)]
    """
    if change.written_by in TRUSTED and not change.origins:
        return ()
    known = _known(change)
    of_words = (
        text
        for words in _new_words(change)
        if not known(words.text)
        for text in _told(words, change)
    )
    return (*of_words, *_dictated(change))


def speaks_as(definition: ToolDefinition, tools: ToolsByName) -> OriginKind:
    """Whose words the results and errors of a tool are.

    Tools made of Python code that is named speak as that code, unless they declare ``open_world``:
    then their errors may be those of a remote system. A composite speaks as the least trusted tool
    that it calls. Every other tool speaks as a server.

    Example:
        >>> from agentkit.tools.definition import Origin
        >>> local = ToolDefinition(name="convert", origin=Origin(reference="units:convert"))
        >>> remote = ToolDefinition(name="convert", origin=Origin(kind="mcp"))
        >>> speaks_as(local, {}), speaks_as(remote, {})
        ('code', 'server')
    """
    parts = demanded(definition, tools).values() if definition.is_composite else (definition,)
    return "code" if all(map(_is_code, parts)) else "server"


def _is_code(definition: ToolDefinition | None) -> bool:
    if definition is None or definition.signature.effects.open_world is True:
        return False
    origin = definition.origin
    return definition.is_composite or (origin.kind in _CODE and bool(origin.reference))


def _told(words: _Words, change: ProposedChange) -> Iterator[FreshText]:
    """The parts of new words by their origin; what no origin names is whose the proposal is."""
    rest = words.text
    whole = [origin for origin in change.origins if origin.text == rest]
    found: list[TextOrigin] = []
    for origin in whole or sorted(change.origins, key=lambda one: -len(one.text)):
        if origin.text and (whole or origin.text in rest):
            rest = rest.replace(origin.text, " ", 1)
            found.append(origin)
    if _is_worded(rest):
        found.append(TextOrigin(text=rest, kind=change.written_by))
    for origin in found:
        yield FreshText.of(origin, words.field, waits=_waits(words, origin))


def _dictated(change: ProposedChange) -> Iterator[FreshText]:
    """New rules that a user may have dictated, numbers included: their sentences have an origin."""
    by_text = {origin.text: origin for origin in change.origins if origin.kind == "user"}
    had = list(rules_of(change.base))
    for at, rule in enumerate(rules_of(change.candidate) if by_text else ()):
        origin = by_text.get(rule_sentence(rule)) if rule not in had else None
        if origin is not None:
            yield FreshText.of(origin, f"rules[{at}]", waits=not origin.is_used)


def _waits(words: _Words, origin: TextOrigin) -> bool:
    if origin.kind in TRUSTED or (origin.kind == "model" and words.is_read):
        return False
    return not (words.is_value and origin.is_used and not _is_sentence(origin.text))


def _is_sentence(text: str) -> bool:
    found = _WORD.findall(text)
    count = sum((len(w) + 1) // 2 if ord(w[0]) >= _FIRST_EAST_ASIAN else 1 for w in found)
    return count > _MOST_WORDS or len(text) > _LONGEST


def _new_words(change: ProposedChange) -> Iterator[_Words]:
    for edit in change.edits:
        if edit.kind == "rule":
            continue  # below, by its parts
        before = edit.before.rstrip(" .")
        text = edit.after.removeprefix(before) if before else edit.after
        if _is_worded(text):
            yield _Words(field=edit.field, text=text, is_read=edit.kind in _READ)
    had = list(rules_of(change.base))
    for at, rule in enumerate(rules_of(change.candidate)):
        if rule not in had:
            yield from _of_rule(f"rules[{at}]", rule)
    if change.is_new:
        yield from _of_new_tool(change.candidate)


def _of_rule(field: str, rule: Any) -> Iterator[_Words]:
    """The texts of a rule: what models read of it, and the values that it holds calls to."""
    for name in getattr(rule, "__dataclass_fields__", {}):
        if name in _NAMES:
            continue
        for text in every_text(getattr(rule, name)):
            if _is_worded(text):
                yield _Words(field=field, text=text, is_value=name in {"values", "example"})


def _of_new_tool(definition: ToolDefinition) -> Iterator[_Words]:
    """What a new composite holds beside its words: literals, defaults and worked calls."""
    constants = [part.get("value") for part in _objects(definition.body) if _is_constant(part)]
    parts: list[tuple[str, Any]] = [("body", constants)]
    properties = mapping(definition.signature.parameters.get("properties"))
    parts += [
        (f"parameters.{name}", [mapping(part).get(key) for key in ("default", "enum", "const")])
        for name, part in properties.items()
    ]
    for at, example in enumerate(sequence(definition.examples)):
        parts.append((f"examples[{at}]", [example.query, example.arguments, example.result]))
    for field, part in parts:
        for text in dict.fromkeys(every_text(part)):
            if _is_worded(text):
                yield _Words(field=field, text=text)


def _is_constant(part: Mapping[Any, Any]) -> bool:
    return part.get("kind") == "Constant"


def _objects(value: Any) -> Iterator[Mapping[Any, Any]]:
    """The objects inside JSON data."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list | tuple):
            waiting.extend(part)


def every_text(value: Any) -> Iterator[str]:
    """The texts inside JSON data of any size, names of fields included."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            waiting.extend((*part.values(), *part.keys()))
        elif isinstance(part, list | tuple):
            waiting.extend(reversed(part))


def _is_worded(text: str) -> bool:
    return any(map(str.isalpha, text))


def _known(change: ProposedChange) -> Callable[[str], bool]:
    """Tells whether the tool, or a tool that a new composite calls, says a text already."""
    contract = change.base.signature
    said: list[Any] = [contract.parameters, contract.result]
    if change.is_new:  # its own contract may hold defaults that nobody knows
        tools = filter(None, (change.library.get(child.name) for child in contract.children))
        of_children = (tool.definition.signature for tool in tools)
        said = [[one.parameters, one.result] for one in of_children]
        said.append(list(contract.properties))
    exact = {folded(text) for text in every_text(said)}
    # Worked calls are learned from users and tools, so they vouch for nothing.
    read = (text.text for text in change.texts if text.kind != "example")
    texts = folded("\n".join(read))

    @cache
    def is_known(text: str) -> bool:
        words = folded(text).strip()
        return words in exact or stands_in(words, texts)

    return is_known
