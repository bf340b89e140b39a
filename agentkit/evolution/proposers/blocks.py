"""Read the ``<description>`` blocks of a model's answer as suggestions (ToolDNA, figure 3).

Tolerant and total: whatever the text is, what comes out are values, and nothing of it is run. Each
block is judged alone, so that a good one is not lost beside a bad one (algorithm 2, lines 7 to 20).
A block holds words and rules. What it says of types, required parameters and examples is left out:
the contract is not a model's to change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from agentkit.evolution.proposal import Proposal, Stream, UnreadableProposal
from agentkit.evolution.proposer import Suggestion
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import Rule, rule_from_json

OPENING, CLOSING = "<description>", "</description>"
NOTHING = "NOTHING"
"""What a model answers that would change nothing."""

MOST_CHARACTERS = 100_000
"""Longest answer that is read. A definition is a hundredth of it."""

MOST_BLOCKS = 50
"""Most blocks that are read of one answer."""

_SHOWN = 200
_LONGEST_KEPT = 4_000


class UnreadableBlockError(Exception):
    """A block that can not become a candidate.

    Attributes:
        failed: Why.
        tool: The tool that it names, as far as that can be read.
    """

    def __init__(self, *failed: FailedCheck, tool: str = "") -> None:
        self.failed = failed
        self.tool = tool
        super().__init__("; ".join(map(str, failed)))


def unreadable(code: str, message: str, text: str, *, field: str = "") -> FailedCheck:
    """A reason why an answer, or a part of it, can not be read."""
    return FailedCheck(
        code=code,
        layer="lexical",
        message=message,
        advice=f"answer with one {OPENING} block a tool, in the form that was asked for",
        field=field,
        excerpt=text.strip()[:_SHOWN],
    )


# --- From an answer to suggestions ----------------------------------------------------------------


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
    """

    library: Library
    stream: Stream
    author: Author
    tools: frozenset[str] = frozenset()
    reason: str = ""
    evidence: tuple[str, ...] = ()


def read_answer(answer: str, question: Question) -> tuple[Suggestion, ...]:
    """Every block of an answer as a proposal, or with the reasons why it is none.

    Args:
        answer: Whatever the model wrote.
        question: What it was asked.
    """
    if answer.strip().strip(".`*") == NOTHING:
        return ()
    seen: set[str] = set()
    return tuple(
        _refused(question, "", text, (part,))
        if isinstance(part, FailedCheck)
        else _read_block(part, question, seen)
        for part, text in _parts(answer)
    )


def _parts(answer: str) -> Iterator[tuple[str | FailedCheck, str]]:
    """The blocks of an answer, or what is wrong with it or with a piece of it, with the text."""
    if not answer.strip():
        yield unreadable("empty_answer", "the answer is empty", answer), answer
        return
    if len(answer) > MOST_CHARACTERS:
        why = f"the answer has {len(answer)} characters, read are up to {MOST_CHARACTERS}"
        yield unreadable("answer_too_long", why, answer), answer
        return
    half = f"a block has not both {OPENING} and {CLOSING}"
    first, *opened = answer.split(OPENING)
    if CLOSING in first:
        yield unreadable("half_block", half, first), first
    elif not opened:
        yield unreadable("no_block", f"the answer has no {OPENING} block", answer), answer
    for number, part in enumerate(opened):
        inside, closing, _ = part.partition(CLOSING)
        if number == MOST_BLOCKS:
            why = f"the answer has more than {MOST_BLOCKS} blocks"
            yield unreadable("too_many_blocks", why, inside), inside
            return
        yield inside if closing else unreadable("half_block", half, inside), inside


def _read_block(block: str, question: Question, seen: set[str]) -> Suggestion:
    try:
        said = read_fields(block)
        base = _base(said.tool, block, question)
        candidate = amended(base, said)
    except UnreadableBlockError as error:
        return _refused(question, error.tool, block, error.failed)
    if candidate.digest in seen:
        why = f"the same change of {said.tool!r} is suggested twice"
        failed = unreadable("duplicate_block", why, block)
        return _refused(question, said.tool, block, (failed,))
    seen.add(candidate.digest)
    return Proposal.of(
        base,
        candidate,
        stream=question.stream,
        author=question.author,
        reason=question.reason,
        evidence=question.evidence,
    )


def _base(name: str, block: str, question: Question) -> ToolDefinition:
    tool = question.library.get(name)
    if tool is None:
        why = f"there is no tool {name[:60]!r}"
        raise UnreadableBlockError(unreadable("unknown_tool", why, block), tool=name)
    if question.tools and name not in question.tools:
        asked = ", ".join(sorted(question.tools))
        why = f"the block is about {name!r}, asked was for {asked[:200]}"
        raise UnreadableBlockError(unreadable("other_tool", why, block), tool=name)
    return tool.definition


def _refused(
    question: Question, tool: str, text: str, failed: tuple[FailedCheck, ...]
) -> UnreadableProposal:
    asked = min(question.tools) if len(question.tools) == 1 else ""
    return UnreadableProposal(
        author=question.author,
        stream=question.stream,
        tool_name=(tool or asked)[:200],
        text=text[:_LONGEST_KEPT],
        failed=failed,
    )


# --- What a block says ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockFields:
    """What a block says; None for what it says nothing of.

    Attributes:
        tool: Name of the tool.
        summary: What the tool does.
        parameters: Texts by parameter.
        usage_rules: All usage rules.
        rules: All learned rules.
        tags: All tags.
    """

    tool: str
    summary: str | None = None
    parameters: Mapping[str, str] | None = None
    usage_rules: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] | None = None
    tags: tuple[str, ...] | None = None


def amended(base: ToolDefinition, said: BlockFields) -> ToolDefinition:
    """The definition as a block would have it."""
    words, specification = base.description, base.specification
    texts = {**words.parameters, **(said.parameters or {})}
    description = replace(
        words,
        summary=words.summary if said.summary is None else said.summary,
        parameters={name: text for name, text in texts.items() if text},
        usage_rules=words.usage_rules if said.usage_rules is None else said.usage_rules,
        tags=words.tags if said.tags is None else said.tags,
    )
    if said.rules is not None:
        specification = replace(specification, rules=said.rules)
    return replace(base, description=description, specification=specification)


def read_fields(text: str) -> BlockFields:
    """What a block says: a JSON object, or lines with labels as in ToolDNA's figure 3.

    Raises:
        UnreadableBlockError: It says nothing that can be read.
    """
    if not is_json(text):
        why = "the block holds half of a surrogate pair"
        raise UnreadableBlockError(unreadable("invalid_text", why, ""))
    body = text.strip().removeprefix("\ufeff").strip()
    if body.startswith("```") and body.endswith("```") and len(body) >= 6:
        body = body[:-3].partition("\n")[2].strip()
    given = _decoded(body) if body.startswith(("{", "[")) else _labelled(body)
    return _fields(given, body)


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


def _fields(given: Mapping[str, Any], body: str) -> BlockFields:
    failed: list[FailedCheck] = []
    values: dict[str, Any] = {}
    for name, value in given.items():
        ours = _NAMES.get(name)
        if ours is None:
            known = ", ".join(sorted(set(filter(None, _NAMES.values()))))
            why = f"there is no field {name[:60]!r}; known are {known}"
            failed.append(unreadable("unknown_field", why, body, field=name[:60]))
        elif ours in values:
            failed.append(_duplicate(ours, body))
        elif ours:
            values[ours] = value
    tool = values.get("tool")
    name = tool.strip() if isinstance(tool, str) else ""
    if not name:
        failed.append(unreadable("no_tool_name", "the block does not name its tool", body))
    for ours in set(_READERS) & set(values):
        try:
            values[ours] = _READERS[ours](values[ours])
        except (TypeError, ValueError) as error:
            code = "invalid_rule" if ours == "rules" else "wrong_field_type"
            failed.append(unreadable(code, f"{ours}: {error}", body, field=ours))
    if failed:
        raise UnreadableBlockError(*failed, tool=name)
    return BlockFields(**{**values, "tool": name})


def _duplicate(field: str, body: str) -> FailedCheck:
    return unreadable("duplicate_field", f"{field} is given twice", body, field=field)


def _decoded(body: str) -> dict[str, Any]:
    try:
        record = json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant)
        is_data = is_json(record)
    except (ValueError, RecursionError) as error:
        why = f"not JSON: {str(error)[:200] or 'it is nested too deeply'}"
        raise UnreadableBlockError(unreadable("invalid_json", why, body)) from error
    if not is_data or not isinstance(record, dict):
        why = f"a block is one JSON object of finite values, this is a {type(record).__name__}"
        raise UnreadableBlockError(unreadable("invalid_json", why, body))
    return record


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            message = f"the field {name[:60]!r} is given twice"
            raise ValueError(message)
        made[name] = value
    return made


def _no_constant(name: str) -> Any:
    message = f"{name} is no JSON"
    raise ValueError(message)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"expected a text, got {type(value).__name__}"
        raise TypeError(message)
    return value.strip()


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        message = f"expected a list, got {type(value).__name__}"
        raise TypeError(message)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(filter(None, map(_text, _list(value))))


def _parameters(value: Any) -> dict[str, str]:
    """Texts by parameter; of a schema, which models give as well, the descriptions."""
    if not isinstance(value, dict):
        message = f"expected an object with a text for each parameter, got {type(value).__name__}"
        raise TypeError(message)
    if isinstance(value.get("properties"), dict) and value.get("type", "object") == "object":
        value = value["properties"]
    parts = {
        name: said.get("description") if isinstance(said, dict) else said
        for name, said in value.items()
    }
    return {name: _text(said) for name, said in parts.items() if said is not None}


def _rules(value: Any) -> tuple[Rule, ...]:
    return tuple(map(rule_from_json, _list(value)))


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "summary": _text,
    "parameters": _parameters,
    "usage_rules": _texts,
    "rules": _rules,
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
_BULLET = re.compile(r"(?:[-*•]|\d{1,3}[.)])\s{1,8}")
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
        found, rest = _label(line)
        if found in sections and found not in _MAY_COME_TWICE:
            raise UnreadableBlockError(_duplicate(found, body))
        label = found or label
        text = rest if found else line.strip()
        if label:
            sections.setdefault(label, []).extend([text] if text else [])
    given: dict[str, Any] = {name: "\n".join(lines) for name, lines in sections.items()}
    if "tool" in given:
        given["tool"] = "".join(sections["tool"][:1]).strip("`* ")
    if "parameters" in given:
        given["parameters"] = _labelled_parameters(sections["parameters"], body)
    if "usage_rules" in given:
        given["usage_rules"] = [_without_bullet(line) for line in sections["usage_rules"]]
    return given


def _label(line: str) -> tuple[str, str]:
    head, colon, rest = line.partition(":")
    section = _LABELS.get(head.strip(_DECORATION).casefold(), "") if colon else ""
    return section, rest.strip().removeprefix("**").strip() if section else ""


def _labelled_parameters(lines: list[str], body: str) -> dict[str, str]:
    """Texts by parameter; one goes on until the next parameter, and the type is left out."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        said = _PARAMETER.fullmatch(_without_bullet(line))
        if said is None:
            if name:
                found[name] = f"{found[name]} {line}".strip()
            continue
        name = said["name"]
        if name in found:
            raise UnreadableBlockError(_duplicate(f"parameters.{name[:60]}", body))
        found[name] = said["text"].strip()
    return found


def _without_bullet(line: str) -> str:
    bullet = _BULLET.match(line)
    return line if bullet is None else line[bullet.end() :]


# --- The schema of a block, for models that can be held to one ------------------------------------


_LONGEST_TEXT = 400
_LONGEST_RULE = 200
_MOST_RULES = 5
_MOST_VALUES = 50


def block_schema(definition: ToolDefinition) -> JsonObject:
    """The JSON Schema of a block about a tool: words for its parameters, and rules as data."""
    names = sorted(definition.signature.properties)
    properties: dict[str, JsonObject] = {
        "tool": {"const": definition.name},
        "summary": _text_schema(_LONGEST_TEXT),
        "usage_rules": _list_schema(_text_schema(_LONGEST_RULE), _MOST_RULES),
    }
    if names:
        texts = {name: _text_schema(_LONGEST_TEXT) for name in names}
        properties["parameters"] = {
            "type": "object",
            "properties": texts,
            "additionalProperties": False,
        }
        values = _list_schema({"type": ["string", "integer"]}, _MOST_VALUES)
        bound, formats = {"type": "number"}, ["date", "time", "date-time", "email", "uuid"]
        rules = [
            _rule_schema("one_of", names, values=values),
            _rule_schema("between", names, minimum=bound, maximum=bound),
            _rule_schema("form", names, format={"enum": formats}),
        ]
        properties["rules"] = _list_schema({"anyOf": rules}, _MOST_RULES)
    return _closed(properties, ["tool"])


def _rule_schema(kind: str, names: list[str], **fields: JsonObject) -> JsonObject:
    properties = {"kind": {"const": kind}, "parameter": {"enum": names}, **fields}
    return _closed(properties, list(properties))


def _closed(properties: Mapping[str, Any], required: list[str]) -> JsonObject:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": required,
        "additionalProperties": False,
    }


def _text_schema(longest: int) -> JsonObject:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def _list_schema(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}
