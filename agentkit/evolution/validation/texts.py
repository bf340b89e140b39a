"""Which texts a definition holds, and which of them a candidate changed.

Nothing here trusts the types of a definition: one that was read from foreign JSON may hold
anything where a text is expected. What is no text is left out, and ``malformed`` reports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.tools.definition import ToolDefinition

LONGEST_SCANNED = 8_000
"""Characters of one text that are looked at. ``lengths_kept`` rejects every longer one."""

MOST_SCANNED = 40_000
"""Characters of all changed texts together that are looked at, and that may change at once."""

_MOST_TEXTS = 2_000
_MOST_LEAVES = 500

TextKind = Literal["summary", "tag", "parameter", "usage_rule", "condition", "rule", "example"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Text:
    """One text of a definition.

    Attributes:
        field: Where it stands, as in ``FailedCheck.field``.
        kind: What it is for.
        text: The text itself.
        parameter: Dotted path of the parameter that it is about; empty for none.
    """

    field: str
    kind: TextKind
    text: str
    parameter: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """A text that a candidate has and its base has not.

    Attributes:
        field: Where it stands, as in ``FailedCheck.field``.
        kind: What it is for.
        before: The text of the base in the same place; empty for none.
        after: The text of the candidate, at most ``LONGEST_SCANNED`` characters of it.
        parameter: Dotted path of the parameter that it is about; empty for none.
        length: Characters of the whole text.
    """

    field: str
    kind: TextKind
    before: str
    after: str
    parameter: str = ""
    length: int = 0


def edits_between(base: Sequence[Text], candidate: Sequence[Text]) -> tuple[Edit, ...]:
    """The texts that are new in ``candidate``, in the order in which a definition lists them.

    A text that merely moved, such as a usage rule that now stands first, is not new.
    """
    there = {(text.kind, text.parameter, text.text) for text in base}
    places = {text.field: text.text for text in base}
    edits, left = [], MOST_SCANNED
    for text in candidate:
        if text.text and left > 0 and (text.kind, text.parameter, text.text) not in there:
            edit = Edit(
                field=text.field,
                kind=text.kind,
                before=places.get(text.field, ""),
                after=text.text[: min(LONGEST_SCANNED, left)],
                parameter=text.parameter,
                length=len(text.text),
            )
            left -= len(edit.after)
            edits.append(edit)
    return tuple(edits)


def texts_of(definition: ToolDefinition) -> tuple[Text, ...]:
    """Every text of a definition that evolution may touch; of huge ones the first 2,000."""
    found: list[Text] = []
    for text in _texts(definition):
        found.append(text)
        if len(found) == _MOST_TEXTS:
            break
    return tuple(found)


def _texts(definition: ToolDefinition) -> Iterator[Text]:
    words, conditions = definition.description, definition.specification
    if isinstance(words.summary, str):
        yield Text(field="summary", kind="summary", text=words.summary)
    yield from _listed("usage_rules", "usage_rule", words.usage_rules)
    for path, text in mapping(words.parameters).items():
        if isinstance(path, str) and isinstance(text, str):
            yield Text(field=f"parameters.{path}", kind="parameter", text=text, parameter=path)
    yield from _listed("tags", "tag", words.tags)
    yield from _listed("text", "condition", conditions.text)
    if isinstance(conditions.complexity, str):
        yield Text(field="complexity", kind="condition", text=conditions.complexity)
    for at, rule in enumerate(rules_of(definition)):
        yield from _of_rule(f"rules[{at}]", rule)
    for at, example in enumerate(sequence(definition.examples)):
        parts = [getattr(example, name, None) for name in ("arguments", "result", "query")]
        for text in leaves(parts):
            yield Text(field=f"examples[{at}]", kind="example", text=text)


def _listed(name: str, kind: TextKind, values: Any) -> Iterator[Text]:
    for at, text in enumerate(sequence(values)):
        if isinstance(text, str):
            yield Text(field=f"{name}[{at}]", kind=kind, text=text)


def _of_rule(field: str, rule: Any) -> Iterator[Text]:
    """The words of a learned rule. A regular expression is no sentence: it is left to rules."""
    names = getattr(rule, "__dataclass_fields__", {})
    about = getattr(rule, "parameter", "")
    for name in names:
        if name not in {"kind", "pattern", "expression", "parameter", "tool", "format"}:
            for text in leaves(getattr(rule, name)):
                yield Text(
                    field=field,
                    kind="rule",
                    text=text,
                    parameter=about if isinstance(about, str) else "",
                )


def rules_of(definition: ToolDefinition) -> Sequence[Any]:
    """The learned rules of a definition."""
    return sequence(getattr(definition.specification, "rules", ()))


def leaves(value: Any) -> Iterator[str]:
    """The texts in JSON data, names of fields included; of huge data the first 500 parts."""
    waiting, seen = [value], 0
    while waiting and seen < _MOST_LEAVES:
        part = waiting.pop()
        seen += 1
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping):
            waiting.extend(reversed([*part.keys(), *part.values()]))
        elif isinstance(part, list | tuple):
            waiting.extend(reversed(part))


def mapping(value: Any) -> Mapping[Any, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def sequence(value: Any) -> Sequence[Any]:
    """The value if it is a list or tuple, else an empty one."""
    return value if isinstance(value, list | tuple) else ()


def text_or_empty(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def sentences_of(definition: ToolDefinition, kinds: Iterable[TextKind]) -> str:
    """The texts of these kinds, a line each."""
    wanted = frozenset(kinds)
    return "\n".join(text.text for text in texts_of(definition) if text.kind in wanted)
