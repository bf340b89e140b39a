"""Read the ``<description>`` blocks of a model's answer as suggestions (ToolDNA, figure 3).

Tolerant and total: whatever the text is, it is read or passed over, and nothing of it is run. Each
block is judged alone, so that a good one is not lost beside a bad one (algorithm 2, lines 7 to 20).
A block holds words and rules. What it says of types, required parameters and examples is left out:
the contract is not a model's to change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentkit.evolution.proposal import PassedOver, Proposal, Stream, ignored
from agentkit.evolution.validation.report import TextOrigin
from agentkit.evolution.validation.texts import LONGEST_SCANNED
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.models.grammar import closed_object
from agentkit.reading import read_json
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import ToolDefinition, is_instructions
from agentkit.tools.rules import rule_from_json

OPENING, CLOSING = "<description>", "</description>"
NOTHING = "NOTHING"
"""What a model answers that would change nothing."""

_MOST_CHARACTERS = 100_000
_MOST_BLOCKS = 50
_SHOWN = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a model was asked, so that its answer can be read.

    Attributes:
        library: The tools as they are.
        stream: Where suggestions come from.
        author: Who answers, with the hash of the prompt.
        tools: The tools that were asked about; empty for any.
        reason: Why the question was asked.
        evidence: Ids of the episodes that were shown.
        pass_over: Takes what cannot be read, with the reason.
        origins: Whose words the answer is, where it is not the author's alone.
    """

    library: Library
    stream: Stream
    author: Author
    tools: frozenset[str] = frozenset()
    reason: str = ""
    evidence: tuple[str, ...] = ()
    pass_over: Callable[[PassedOver], None] = ignored
    origins: tuple[TextOrigin, ...] = ()


class _UnreadableError(ValueError):
    """A block that cannot become a candidate.

    Attributes:
        tool: The tool that it names, as far as that can be read.
    """

    def __init__(self, message: str, *, tool: str = "") -> None:
        self.tool = tool
        super().__init__(message)


def read_answer(answer: str, question: Question) -> tuple[Proposal, ...]:
    """Every block of an answer that is a change; what cannot be read is passed over.

    Args:
        answer: Whatever the model wrote.
        question: What it was asked.
    """
    if answer.strip().strip(".`*") == NOTHING:
        return ()
    found: list[Proposal] = []
    for part in _blocks(answer):
        try:
            found.append(_read_block(part, question))
        except _UnreadableError as error:
            asked = min(question.tools) if len(question.tools) == 1 else ""
            why = f"what {question.author.name} answered cannot be read: {error}"
            tool = (error.tool or asked)[:_SHOWN]
            question.pass_over(PassedOver(tool=tool, reason="unreadable", why=why))
    return tuple(found)


def _blocks(answer: str) -> Iterator[str | _UnreadableError]:
    """The blocks of an answer, or what is wrong with it or with a piece of it."""
    if not answer.strip():
        yield _UnreadableError("the answer is empty")
        return
    if len(answer) > _MOST_CHARACTERS:
        yield _UnreadableError(f"it has {len(answer):,} characters, over {_MOST_CHARACTERS:,}")
        return
    half = f"a block has not both {OPENING} and {CLOSING}"
    first, *opened = answer.split(OPENING)
    if CLOSING in first:
        yield _UnreadableError(half)
    elif not opened:
        yield _UnreadableError(f"the answer has no {OPENING} block")
    for number, part in enumerate(opened):
        inside, closing, _ = part.partition(CLOSING)
        if number == _MOST_BLOCKS:
            yield _UnreadableError(f"the answer has more than {_MOST_BLOCKS} blocks")
            return
        yield inside if closing else _UnreadableError(half)


def _read_block(block: str | _UnreadableError, question: Question) -> Proposal:
    if isinstance(block, _UnreadableError):
        raise block
    said = _said(block)
    name = said["tool"]
    tool = question.library.get(name)
    if tool is None or (is_instructions(name) and name not in question.tools):
        raise _UnreadableError(f"there is no tool {name[:60]!r}", tool=name)
    if question.tools and name not in question.tools:
        asked = ", ".join(sorted(question.tools))
        raise _UnreadableError(f"{name!r} is not what was asked for, {asked[:200]}", tool=name)
    candidate = _amended(tool.definition, said)
    return Proposal.of(
        tool.definition,
        candidate,
        stream=question.stream,
        author=question.author,
        reason=question.reason,
        evidence=question.evidence,
        origins=question.origins,
    )


def _amended(base: ToolDefinition, said: Mapping[str, Any]) -> ToolDefinition:
    """The definition as a block would have it; what the block does not name stays."""
    texts = {**base.description.parameters, **said.get("parameters", {})}
    words = {name: said[name] for name in ("summary", "usage_rules", "tags") if name in said}
    words["parameters"] = {name: text for name, text in texts.items() if text}
    rules = said.get("rules", base.specification.rules)
    return replace(
        base,
        description=replace(base.description, **words),
        specification=replace(base.specification, rules=rules),
    )


# --- What a block says ----------------------------------------------------------------------------


_NAMES = {
    "tool": "tool",
    "tool_name": "tool",
    "name": "tool",
    "summary": "summary",
    "description": "summary",
    "parameters": "parameters",
    "usage_rules": "usage_rules",
    "rules": "rules",
    "tags": "tags",
    "examples": "",
    "first_example": "",
}
"""How models name the fields; those without a name of ours are left out."""


def _said(text: str) -> Mapping[str, Any]:
    """The fields of a block by our names: a JSON object, or lines with labels (figure 3)."""
    body = text.strip().removeprefix("\ufeff").strip()
    if body.startswith("```") and body.endswith("```") and len(body) >= 6:
        body = body[:-3].partition("\n")[2].strip()
    try:
        given = read_json(body) if body.startswith(("{", "[")) else _labelled(body)
        problem = "" if is_json([text, given]) else "it holds NaN, or half of a surrogate pair"
    except (ValueError, RecursionError) as error:
        problem = str(error)[:200] or "it is nested too deeply"
    if problem:
        raise _UnreadableError(f"a block is not JSON: {problem}")
    try:
        return _fields(_expect(given, dict, "an object"))
    except (TypeError, ValueError) as error:
        tool = given.get("tool", "") if isinstance(given, dict) else ""
        raise _UnreadableError(str(error)[:500], tool=str(tool)) from error


def _fields(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields by our names, each of its type.

    Raises:
        TypeError: A field has another type.
        ValueError: A field is unknown or given twice, or no tool is named.
    """
    values: dict[str, Any] = {}
    for name, value in given.items():
        ours = _NAMES.get(name)
        if ours is None:
            known = ", ".join(sorted({*_NAMES.values()} - {""}))
            raise ValueError(f"there is no field {name[:60]!r}; known are {known}")
        if ours in values:
            raise ValueError(f"{ours} is given twice")
        if ours:
            values[ours] = _READERS[ours](value)
    if not values.get("tool"):
        raise ValueError("the block does not name its tool")
    return values


def _expect(value: Any, kind: type[Any], words: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {words}, got {type(value).__name__}")
    return value


def _text(value: Any) -> str:
    text: str = _expect(value, str, "a text").strip()
    return text


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, _expect(value, list, "a list"))))


def _parameters(value: Any) -> dict[str, str]:
    """Texts by parameter; of a schema, which models give as well, the descriptions."""
    value = _expect(value, dict, "an object with a text for each parameter")
    if isinstance(value.get("properties"), dict) and value.get("type", "object") == "object":
        value = value["properties"]
    parts = {
        name: said.get("description") if isinstance(said, dict) else said
        for name, said in value.items()
    }
    return {name: _text(said) for name, said in parts.items() if said is not None}


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "tool": _text,
    "summary": _text,
    "parameters": _parameters,
    "usage_rules": _texts,
    "rules": lambda value: tuple(map(rule_from_json, _expect(value, list, "a list"))),
    "tags": _texts,
}


# --- ToolDNA's own form of a block: lines with labels ---------------------------------------------


_LABELS = {
    "tool name": "tool",
    "tool description": "summary",
    "required parameters": "parameters",
    "optional parameters": "parameters",
    "parameters": "parameters",
    "usage rules": "usage_rules",
    "usage examples": "examples",
    "usage example": "examples",
    "examples": "examples",
}
_MAY_COME_TWICE = frozenset({"parameters", "examples"})
_DECORATION = "#*_` \t-"
_BULLET = re.compile(r"^(?:[-*•]|\d{1,3}[.)])\s{1,8}")
_PARAMETER = re.compile(
    r"""[`*]{0,3}(?P<name>[^\s():\uff1a\uff08\uff09`*]{1,200})[`*]{0,3}\s{0,8}
        (?:[(\uff08][^()\uff08\uff09]{0,100}[)\uff09])?\s{0,8}
        [`*]{0,3}[:\uff1a]\s{0,8}(?P<text>.*)""",
    re.VERBOSE,
)


def _labelled(body: str) -> dict[str, Any]:
    """The fields of a block whose lines begin with labels such as ``Tool Name:``."""
    sections: dict[str, list[str]] = {}
    label = ""
    for line in body.splitlines():
        head, colon, rest = line.partition(":")
        found = _LABELS.get(head.strip(_DECORATION).casefold(), "") if colon else ""
        if found in sections and found not in _MAY_COME_TWICE:
            raise ValueError(f"{found} is given twice")
        label = found or label
        text = rest.strip().removeprefix("**").strip() if found else line.strip()
        if label:
            sections.setdefault(label, []).extend([text] if text else [])
    given: dict[str, Any] = {name: "\n".join(lines) for name, lines in sections.items()}
    if "tool" in given:
        given["tool"] = "".join(sections["tool"][:1]).strip("`* ")
    if "parameters" in given:
        given["parameters"] = _labelled_parameters(sections["parameters"])
    if "usage_rules" in given:
        given["usage_rules"] = [_BULLET.sub("", line) for line in sections["usage_rules"]]
    return given


def _labelled_parameters(lines: list[str]) -> dict[str, str]:
    """Texts by parameter; one goes on until the next parameter, and the type is left out."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        said = _PARAMETER.fullmatch(_BULLET.sub("", line))
        if said is None:
            if name:
                found[name] = f"{found[name]} {line}".strip()
            continue
        name = said["name"]
        if name in found:
            raise ValueError(f"{name[:60]} is given twice")
        found[name] = said["text"].strip()
    return found


# --- The schema of a block, for models that can be held to one ------------------------------------


_LONGEST_TEXT = 400
_LONGEST_RULE = 200
_MOST_RULES = 5
_MOST_VALUES = 50


def block_schema(definition: ToolDefinition) -> JsonObject:
    """The JSON Schema of a block about a tool: words for its parameters, and rules as data.

    A block about instructions holds their text.
    """
    if is_instructions(definition.name):
        text = _text_schema(LONGEST_SCANNED)
        return closed_object({"tool": {"const": definition.name}, "summary": text})
    names = sorted(definition.signature.properties)
    properties: dict[str, JsonObject] = {
        "tool": {"const": definition.name},
        "summary": _text_schema(_LONGEST_TEXT),
        "usage_rules": _list_schema(_text_schema(_LONGEST_RULE), _MOST_RULES),
    }
    if names:
        properties["parameters"] = closed_object(
            dict.fromkeys(names, _text_schema(_LONGEST_TEXT)), []
        )
        values = _list_schema({"type": ["string", "integer"]}, _MOST_VALUES)
        formats = ["date", "time", "date-time", "email", "uuid"]
        rules = [
            _rule_schema("one_of", names, values=values),
            _rule_schema("between", names, minimum={"type": "number"}, maximum={"type": "number"}),
            _rule_schema("form", names, format={"enum": formats}),
        ]
        properties["rules"] = _list_schema({"anyOf": rules}, _MOST_RULES)
    return closed_object(properties, ["tool"])


def _rule_schema(kind: str, names: list[str], **fields: JsonObject) -> JsonObject:
    return closed_object({"kind": {"const": kind}, "parameter": {"enum": names}, **fields})


def _text_schema(longest: int) -> JsonObject:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def _list_schema(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}
