"""What a change does to a definition, field by field and word by word, for people to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from agentkit.evolution.word_diff import ALIKE, PartKind, likeness, word_diff
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.rules import rule_sentence

Part = Literal["same", "removed", "added"]

Words: TypeAlias = tuple[tuple[Part, str], ...]
"""A text in parts: what stays, what goes and what comes."""

_PARTS: Mapping[PartKind, Part] = {"kept": "same", "removed": "removed", "added": "added"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One field that a change touches.

    Attributes:
        field: Where: ``summary``, ``parameters.periods``, ``usage_rules``, ``rules``.
        before: The text that goes; empty for one that is new.
        after: The text that comes; empty for one that is taken out.
    """

    field: str
    before: str
    after: str

    @property
    def words(self) -> Words:
        """The two texts as one, word by word."""
        return compare_words(self.before, self.after)

    def to_json(self) -> dict[str, Any]:
        """The difference as a JSON object."""
        return {
            "field": self.field,
            "before": self.before,
            "after": self.after,
            "words": [list(part) for part in self.words],
        }


def differences(before: ToolDefinition, after: ToolDefinition) -> tuple[Difference, ...]:
    """Every field in which two revisions of a tool differ, in the order in which they are read.

    Entries of a list are paired when they are alike, so that a changed rule is one difference.

    Example:
        >>> from dataclasses import replace
        >>> from agentkit.tools.definition import Description
        >>> ping = ToolDefinition(name="ping", description=Description(summary="Ping a host."))
        >>> said = replace(ping, description=Description(summary="Ping a host by name."))
        >>> [(one.field, one.words) for one in differences(ping, said)]
        [('summary', (('same', 'Ping a host'), ('added', ' by name'), ('same', '.')))]
    """
    return tuple(_differences(before, after))


def _differences(before: ToolDefinition, after: ToolDefinition) -> Iterator[Difference]:
    yield from _one("name", before.name, after.name)
    old, new = before.description, after.description
    yield from _one("summary", old.summary, new.summary)
    yield from _by_key("parameters", old.parameters, new.parameters, str)
    yield from _lists("usage_rules", old.usage_rules, new.usage_rules)
    yield from _lists("tags", old.tags, new.tags)
    told, tells = before.specification, after.specification
    rules = (map(rule_sentence, told.rules), map(rule_sentence, tells.rules))
    yield from _lists("rules", *map(tuple, rules))
    for name in ("pre", "post", "text"):
        yield from _lists(name, getattr(told, name), getattr(tells, name))
    yield from _one("complexity", told.complexity, tells.complexity)
    yield from _lists("examples", *(tuple(map(_call, one.examples)) for one in (before, after)))
    contract = before.to_json()["signature"], after.to_json()["signature"]
    yield from _by_key("signature", *contract, _json)
    yield from _one("body", _json(before.body), _json(after.body))


def _one(field: str, before: str, after: str) -> Iterator[Difference]:
    if before != after:
        yield Difference(field=field, before=before, after=after)


def _by_key(
    field: str, before: Mapping[str, Any], after: Mapping[str, Any], text: Callable[[Any], str]
) -> Iterator[Difference]:
    for key in dict.fromkeys((*before, *after)):
        sides = (text(side[key]) if key in side else "" for side in (before, after))
        yield from _one(f"{field}.{key}", *sides)


def _lists(field: str, before: Sequence[str], after: Sequence[str]) -> Iterator[Difference]:
    gone = [entry for entry in before if entry not in after]
    come = [entry for entry in after if entry not in before]
    for entry in gone:
        partner = _most_alike(entry, come)
        if partner:
            come.remove(partner)
        yield Difference(field=field, before=entry, after=partner)
    for entry in come:
        yield Difference(field=field, before="", after=entry)


def _most_alike(entry: str, others: Iterable[str]) -> str:
    """The other entry that shares most words with this one; empty when none shares enough."""
    alike = {other: likeness(entry, other) for other in others}
    best = max(alike, key=alike.__getitem__, default="")
    return best if best and alike[best] >= ALIKE else ""


def compare_words(before: str, after: str) -> Words:
    """Two texts as one: what stays, what goes, what comes.

    Texts that share little are told one after the other, because words that happen to be in both
    help nobody.

    Example:
        >>> compare_words("from 1 to 12", "from 1 to 60 months")
        (('same', 'from 1 to '), ('removed', '12'), ('added', '60 months'))
    """
    return tuple((_PARTS[part.kind], part.text) for part in word_diff(before, after))


def _call(example: Example) -> str:
    call = f"{_json(dict(example.arguments))} -> {_json(example.result)}"
    return f"{example.query!r}: {call}" if example.query else call


def _json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=repr)
