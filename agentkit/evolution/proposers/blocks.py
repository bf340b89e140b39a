"""Read the ``<description>`` blocks of a model's answer as suggestions (ToolDNA, figure 3).

Tolerant and total: whatever the text is, what comes out are values, and nothing of it is run. Each
block is judged alone, so that a good one is not lost beside a bad one (algorithm 2, lines 7 to 20).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.evolution.proposal import Proposal, Stream, UnreadableProposal
from agentkit.evolution.proposer import Suggestion
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import Author
from agentkit.library.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Description, Example, ToolDefinition
from agentkit.tools.rules import Rule, rule_from_json
from agentkit.tools.schema import copied

# --- Cutting an answer of a model into its ``<description>`` blocks (ToolDNA, figure 3) ----------


OPENING, CLOSING = "<description>", "</description>"

MOST_CHARACTERS = 100_000
"""Longest answer that is read. A definition is a hundredth of it."""

MOST_BLOCKS = 50
"""Most blocks that are read of one answer."""

_SHOWN = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Cut:
    """An answer in parts.

    Attributes:
        blocks: What stands between the tags, in order.
        failed: What is wrong with the rest, each with the text that it is about.
    """

    blocks: tuple[str, ...] = ()
    failed: tuple[tuple[FailedCheck, str], ...] = ()


def cut(answer: str) -> Cut:
    """The blocks of an answer, in one pass over it.

    Text around blocks is prose and left out. A block that is opened and not closed before the next
    one opens, or before the answer ends, is half a block: nothing is read of it, as its end may be
    what is missing.

    Example:
        >>> cut("Better: <description>{}</description> or so").blocks
        ('{}',)
        >>> [check.code for check, _ in cut("<description>{").failed]
        ['half_block']
    """
    if not answer.strip():
        return _refused("empty_answer", "the answer is empty", answer)
    if len(answer) > MOST_CHARACTERS:
        why = f"the answer has {len(answer)} characters, read are up to {MOST_CHARACTERS}"
        return _refused("answer_too_long", why, answer)
    blocks: list[str] = []
    failed: list[tuple[FailedCheck, str]] = []
    for text, is_whole in _pieces(answer):
        if not is_whole:
            failed.append((_half(text), text))
        elif len(blocks) < MOST_BLOCKS:
            blocks.append(text)
        else:
            why = f"the answer has more than {MOST_BLOCKS} blocks"
            failed.append((unreadable("too_many_blocks", why, text), text))
            break
    if not blocks and not failed:
        return _refused("no_block", f"the answer has no {OPENING} block", answer)
    return Cut(blocks=tuple(blocks), failed=tuple(failed))


def unreadable(code: str, message: str, text: str, *, field: str = "") -> FailedCheck:
    """A reason why a text can not be read as a change of a tool."""
    return FailedCheck(
        code=code,
        layer="lexical",
        message=message,
        advice=f"answer with one {OPENING} block a tool, in the form that was asked for",
        field=field,
        excerpt=text.strip()[:_SHOWN],
    )


def _pieces(answer: str) -> list[tuple[str, bool]]:
    """What follows each opening tag, and whether it is closed; a closing tag alone is half, too."""
    pieces: list[tuple[str, bool]] = []
    first, *opened = answer.split(OPENING)
    if CLOSING in first:
        pieces.append((first, False))
    for part in opened:
        inside, closing, _ = part.partition(CLOSING)
        pieces.append((inside, bool(closing)))
    return pieces


def _half(text: str) -> FailedCheck:
    return unreadable("half_block", f"a block has not both {OPENING} and {CLOSING}", text)


def _refused(code: str, why: str, answer: str) -> Cut:
    return Cut(failed=((unreadable(code, why, answer), answer),))


# --- ToolDNA's own form of a block (figure 3): labelled lines ------------------------------------
#     Tool Name: calculate_loan
#     Tool Description: What a loan costs a month.
#     Required Parameters:
#     periods(int): Loan term. Must be 36, 48 or 60.
#     Usage Rules:
#     - Ask for the down payment first.
#     Usage Examples: calculate_loan(periods=36)
#
# Usage rules are ours, the template has none. Examples are read over: they are text here, and a
# worked call of a definition is data, so those of the tool stay.


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
        (?:[(\uff08](?P<kind>[^()\uff08\uff09]{0,100})[)\uff09])?\s{0,8}
        [`*]{0,3}[:\uff1a]\s{0,8}(?P<text>.*)""",
    re.VERBOSE,
)
"""Name, kind in brackets, colon, text; Chinese texts have full-width brackets and colons."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LabelledBlock:
    """What the lines of a block say.

    Attributes:
        tool: Name of the tool.
        summary: What it does; None when the block does not say.
        parameters: Name, kind and text of each parameter, in order.
        usage_rules: The sentences on use; None when the block does not say.
        failed: What is wrong with the block.
    """

    tool: str = ""
    summary: str | None = None
    parameters: tuple[tuple[str, str, str], ...] = ()
    usage_rules: tuple[str, ...] | None = None
    failed: tuple[FailedCheck, ...] = ()


def read_labelled(body: str) -> LabelledBlock:
    r"""The labelled lines of a block.

    Example:
        >>> read_labelled("Tool Name: loan\nRequired Parameters:\nperiods(int): Term.").parameters
        (('periods', 'int', 'Term.'),)
    """
    sections: dict[str, list[str]] = {}
    twice: list[str] = []
    for section, lines in _sections(body):
        if section in sections and section not in _MAY_COME_TWICE:
            twice.append(section)
        sections.setdefault(section, []).extend(lines)
    parameters = tuple(_labelled_parameters(sections.get("parameters", ())))
    names = [name for name, _, _ in parameters]
    twice += [f"parameters.{name[:60]}" for name in _repeated(names)]
    tool = "".join(sections.get("tool", ())[:1]).strip("`* ")
    failed = [_duplicate(field, body) for field in twice]
    if not tool:
        why = "the block is neither a JSON object nor does it name its tool in a line 'Tool Name:'"
        failed.append(unreadable("no_tool_name", why, body))
    rules = sections.get("usage_rules")
    return LabelledBlock(
        tool=tool,
        summary="\n".join(sections["summary"]) if "summary" in sections else None,
        parameters=parameters,
        usage_rules=None if rules is None else tuple(_without_bullet(rule) for rule in rules),
        failed=tuple(failed),
    )


def _sections(body: str) -> Iterator[tuple[str, list[str]]]:
    """Each label with the lines behind it; lines before the first label are left out."""
    label, lines = "", list[str]()
    for line in body.splitlines():
        found, rest = _label(line)
        if found:
            if label:
                yield label, lines
            label, lines = found, []
        text = rest if found else line.strip()
        if text:
            lines.append(text)
    if label:
        yield label, lines


def _label(line: str) -> tuple[str, str]:
    head, colon, rest = line.partition(":")
    section = _LABELS.get(head.strip(_DECORATION).casefold(), "") if colon else ""
    return section, rest.strip().removeprefix("**").strip() if section else ""


def _labelled_parameters(lines: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """A parameter a line; lines that begin none go on with the one before."""
    name, kind, texts = "", "", list[str]()
    for line in lines:
        said = _PARAMETER.fullmatch(_without_bullet(line))
        if said is None:
            texts.append(line)
            continue
        if name:
            yield name, kind, " ".join(texts)
        name, kind, texts = said["name"], (said["kind"] or "").strip(), [said["text"].strip()]
    if name:
        yield name, kind, " ".join(texts).strip()


def _without_bullet(line: str) -> str:
    bullet = _BULLET.match(line)
    return line if bullet is None else line[bullet.end() :]


def _repeated(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _duplicate(field: str, body: str) -> FailedCheck:
    return unreadable("duplicate_field", f"{field} is given twice", body, field=field)


# --- What one ``<description>`` block says, field by field, before it is held against a tool -----
# Two forms are read: the JSON object that our prompts ask for, and the labelled lines of ToolDNA's
# template (figure 3). A text is only ever decoded, never run.


_NAMES = {
    "tool": "tool",
    "tool_name": "tool",
    "name": "tool",
    "summary": "summary",
    "description": "summary",
    "parameters": "parameters",
    "usage_rules": "usage_rules",
    "rules": "rules",
    "examples": "examples",
    "tags": "tags",
}
"""Names of fields as models write them, and ours."""

_DEEPEST = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class ParameterWords:
    """What a block says of one parameter.

    Attributes:
        text: Its description; None when none is given.
        keywords: What else is said of it, in words of JSON Schema.
    """

    text: str | None = None
    keywords: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockFields:
    """What a block says; None for what it leaves out, which stays as it is.

    Attributes:
        tool: Name of the tool.
        summary: What the tool does.
        parameters: What is said of parameters, by dotted path; ``""`` stands for the arguments
            object itself.
        usage_rules: The sentences on use, all of them.
        rules: The learned rules, all of them.
        examples: Worked calls.
        tags: Labels, all of them.
    """

    tool: str
    summary: str | None = None
    parameters: Mapping[str, ParameterWords] = field(default_factory=dict)
    usage_rules: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] | None = None
    examples: tuple[Example, ...] | None = None
    tags: tuple[str, ...] | None = None


class UnreadableBlockError(Exception):
    """A block says nothing that can be held against a tool. It never leaves this package.

    Attributes:
        failed: All reasons.
        tool: The tool that it is about, as far as it says so.
    """

    def __init__(self, *failed: FailedCheck, tool: str = "") -> None:
        self.failed = failed
        self.tool = tool
        super().__init__("; ".join(map(str, failed)))


def read_fields(text: str) -> BlockFields:
    """What a block says.

    Args:
        text: What stands between the tags.

    Raises:
        UnreadableBlockError: It is in neither form, or fields are unknown or of a wrong kind.

    Example:
        >>> read_fields('{"tool": "loan", "parameters": {"periods": "36, 48 or 60."}}').parameters
        {'periods': ParameterWords(text='36, 48 or 60.', keywords={})}
    """
    if not is_json(text):
        raise UnreadableBlockError(
            unreadable("invalid_text", "the block holds half of a surrogate pair", "")
        )
    body = _without_fence(text)
    return _of_json(body) if body.startswith(("{", "[")) else _of_labelled(read_labelled(body))


def _without_fence(text: str) -> str:
    body = text.strip().removeprefix("\ufeff").strip()
    if body.startswith("```") and body.endswith("```") and len(body) >= 6:
        opening, _, rest = body[:-3].partition("\n")
        body = rest.strip() if opening[3:].strip().isalnum() or opening == "```" else body
    return body


def _of_labelled(labelled: LabelledBlock) -> BlockFields:
    if labelled.failed:
        raise UnreadableBlockError(*labelled.failed, tool=labelled.tool)
    return BlockFields(
        tool=labelled.tool,
        summary=labelled.summary,
        parameters={
            name: ParameterWords(text=text, keywords={"type": kind} if kind else {})
            for name, kind, text in labelled.parameters
        },
        usage_rules=labelled.usage_rules,
    )


def _of_json(body: str) -> BlockFields:
    record = _decoded(body)
    failed: list[FailedCheck] = []
    values: dict[str, Any] = {}
    for name, value in record.items():
        ours = _NAMES.get(name)
        if ours is None:
            known = ", ".join(sorted(set(_NAMES.values())))
            why = f"there is no field {name[:60]!r}; known are {known}"
            failed.append(unreadable("unknown_field", why, body, field=name[:60]))
        elif ours in values:
            why = f"{ours} is given twice"
            failed.append(unreadable("duplicate_field", why, body, field=ours))
        else:
            values[ours] = value
    tool = values.get("tool")
    name = tool.strip() if isinstance(tool, str) else ""
    if not name:
        failed.append(unreadable("no_tool_name", "the block does not name its tool", body))
    for ours in [ours for ours in _READERS if ours in values]:
        try:
            values[ours] = _READERS[ours](values[ours])
        except (TypeError, ValueError) as error:
            code = "invalid_rule" if ours == "rules" else "wrong_field_type"
            failed.append(unreadable(code, f"{ours}: {error}", body, field=ours))
    if failed:
        raise UnreadableBlockError(*failed, tool=name)
    return BlockFields(**{**values, "tool": name})


def _decoded(body: str) -> dict[str, Any]:
    try:
        record = json.loads(body, object_pairs_hook=_once, parse_constant=_no_constant)
        is_data = is_json(record)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, too
        why = f"not JSON: {str(error)[:200] or 'it is nested too deeply'}"
        raise UnreadableBlockError(unreadable("invalid_json", why, body)) from error
    if not is_data:
        why = "it holds what JSON can not carry, such as an infinite number"
        raise UnreadableBlockError(unreadable("invalid_json", why, body))
    if not isinstance(record, dict):
        why = f"a block is one JSON object, this is a {type(record).__name__}"
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


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        message = f"expected a text, got {type(value).__name__}"
        raise TypeError(message)
    return value.strip()


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        message = f"expected a list of texts, got {type(value).__name__}"
        raise TypeError(message)
    return tuple(text for text in map(_read_text, value) if text)


def _json_parameters(value: Any) -> dict[str, ParameterWords]:
    if not isinstance(value, dict):
        message = f"expected an object with a text for each parameter, got {type(value).__name__}"
        raise TypeError(message)
    found: dict[str, ParameterWords] = {}
    if isinstance(value.get("properties"), dict) and value.get("type", "object") == "object":
        _of_schema(value, "", found, _DEEPEST)
        return found
    for name, said in value.items():
        if isinstance(said, dict):
            _of_schema(said, name, found, _DEEPEST)
        else:
            found[name] = ParameterWords(text=_read_text(said))
    return found


def _of_schema(
    schema: dict[str, Any], path: str, found: dict[str, ParameterWords], depth: int
) -> None:
    """What a schema says of the parameter at ``path`` and of those inside of it."""
    if not depth:
        message = f"the schema is nested deeper than {_DEEPEST}"
        raise ValueError(message)
    inside = {"properties", "items", "description"}
    text = schema.get("description")
    found[path] = ParameterWords(
        text=None if text is None else _read_text(text),
        keywords={name: part for name, part in schema.items() if name not in inside},
    )
    properties, items = schema.get("properties", {}), schema.get("items")
    if not isinstance(properties, dict):
        message = f"properties of {path or 'the arguments'} are no object"
        raise TypeError(message)
    for name, part in properties.items():
        if not isinstance(part, dict):
            message = f"the schema of {name[:60]!r} is no object"
            raise TypeError(message)
        _of_schema(part, f"{path}.{name}" if path else name, found, depth - 1)
    if isinstance(items, dict):
        _of_schema(items, f"{path}[]", found, depth - 1)


def _read_rules(value: Any) -> tuple[Rule, ...]:
    if not isinstance(value, list):
        message = f"expected a list of rules, got {type(value).__name__}"
        raise TypeError(message)
    return tuple(map(rule_from_json, value))


def _read_examples(value: Any) -> tuple[Example, ...]:
    if not isinstance(value, list):
        message = f"expected a list of worked calls, got {type(value).__name__}"
        raise TypeError(message)
    return tuple(_example(item) for item in value)


def _example(value: Any) -> Example:
    known = {"arguments", "result", "query"}
    if not isinstance(value, dict) or not isinstance(value.get("arguments"), dict):
        message = "a worked call is an object with arguments"
        raise TypeError(message)
    if set(value) - known:
        message = f"a worked call has {', '.join(sorted(known))}, not {sorted(set(value) - known)}"
        raise TypeError(message)
    return Example(
        arguments=value["arguments"],
        result=value.get("result"),
        query=_read_text(value.get("query", "")),
    )


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "summary": _read_text,
    "parameters": _json_parameters,
    "usage_rules": _texts,
    "rules": _read_rules,
    "examples": _read_examples,
    "tags": _texts,
}


# --- The JSON Schema of one block, for models whose answers can be held to a schema --------------


_LONGEST_TEXT = 400
_LONGEST_RULE = 200
_MOST_RULES = 5
_MOST_VALUES = 50


def block_schema(definition: ToolDefinition) -> JsonObject:
    """What a block about one tool may say: its name, and words and rules for what it has.

    Every field but the name may be left out. Texts and lists are bounded, so that a small model
    that repeats itself comes to an end.

    Example:
        >>> loan = ToolDefinition(name="loan")
        >>> block_schema(loan)["properties"]["tool"]
        {'const': 'loan'}
    """
    names = sorted(definition.signature.properties)
    properties: dict[str, JsonObject] = {
        "tool": {"const": definition.name},
        "summary": _text_schema(_LONGEST_TEXT),
        "usage_rules": _list(_text_schema(_LONGEST_RULE), _MOST_RULES),
    }
    if names:
        texts = {name: _text_schema(_LONGEST_TEXT) for name in names}
        properties["parameters"] = {
            "type": "object",
            "properties": texts,
            "additionalProperties": False,
        }
        properties["rules"] = _list({"anyOf": _rule_schemas(names)}, _MOST_RULES)
    return {
        "type": "object",
        "properties": properties,
        "required": ["tool"],
        "additionalProperties": False,
    }


def _rule_schemas(names: list[str]) -> list[JsonObject]:
    """The rules that the prompt offers: lists of values, ranges and formats."""
    value = {"type": ["string", "integer"]}
    return [
        _rule("one_of", names, values=_list(value, _MOST_VALUES)),
        _rule("between", names, minimum={"type": "number"}, maximum={"type": "number"}),
        _rule("form", names, format={"enum": ["date", "time", "date-time", "email", "uuid"]}),
    ]


def _rule(kind: str, names: list[str], **fields: JsonObject) -> JsonObject:
    properties = {"kind": {"const": kind}, "parameter": {"enum": names}, **fields}
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _text_schema(longest: int) -> JsonObject:
    return {"type": "string", "minLength": 1, "maxLength": longest}


def _list(items: JsonObject, most: int) -> JsonObject:
    return {"type": "array", "items": items, "minItems": 1, "maxItems": most}


# --- A tool's definition with what a block says of it, contract included -------------------------
# A block that gives a parameter another type, or one that is not there, is not refused here: the
# candidate gets a changed signature, and structural validation says that the contract is
# immutable.
# So the rejection is on record as what it is, a wrong change, and not as an answer nobody could
# read.


_TYPES = {
    "str": "string",
    "string": "string",
    "text": "string",
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "double": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "tuple": "array",
    "dict": "object",
    "object": "object",
    "null": "null",
    "none": "null",
}
_SAYS_NO_TYPE = frozenset({"", "any", "optional", "required"})
_LIST_OF = re.compile(r"(?:list|array)(?:\[(\w+)\]|\s+of\s+(\w+?)s?)")
_OPTIONAL = re.compile(r"optional\[(.*)\]")


def amended(base: ToolDefinition, said: BlockFields) -> ToolDefinition:
    """The definition as it would be.

    Worked calls stay as they are, since a model can not know what a call returns. Only when the
    block gives another first one does the candidate take the block's, for validation to refuse.

    Raises:
        UnreadableBlockError: A type is no word that we know, or a path leads through what is no
            object.
    """
    description, specification = base.description, base.specification
    texts = {path: words.text for path, words in said.parameters.items() if words.text is not None}
    parameters = dict(description.parameters) | {path: text for path, text in texts.items() if path}
    return replace(
        base,
        signature=replace(base.signature, parameters=_schema(base, said.parameters)),
        description=Description(
            summary=description.summary if said.summary is None else said.summary,
            tags=description.tags if said.tags is None else said.tags,
            parameters={path: text for path, text in parameters.items() if text},
            usage_rules=description.usage_rules if said.usage_rules is None else said.usage_rules,
        ),
        specification=(
            specification if said.rules is None else replace(specification, rules=said.rules)
        ),
        examples=_kept_examples(base, said),
    )


def _kept_examples(base: ToolDefinition, said: BlockFields) -> tuple[Any, ...]:
    if not said.examples or not base.examples:
        return base.examples
    is_kept = dict(said.examples[0].arguments) == dict(base.examples[0].arguments)
    return base.examples if is_kept else said.examples


def _schema(base: ToolDefinition, said: Mapping[str, ParameterWords]) -> Any:
    """The parameters schema, changed only where the block says something else."""
    schema: dict[str, Any] = copied(base.signature.parameters)
    for path, words in said.items():
        part = _at(schema, path)
        for keyword, value in words.keywords.items():
            if keyword == "type":
                _take_type(part, value, path)
            elif keyword not in {"title", "examples"} and part.get(keyword) != value:
                part[keyword] = value
    return schema if schema != base.signature.parameters else base.signature.parameters


def _at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    """The part of a schema that governs a parameter; made where there is none."""
    if not path:
        return schema
    properties = _object(schema.setdefault("properties", {}), path)
    if path in properties:
        return _object(properties[path], path)
    steps = path.split(".")
    if len(steps) > _DEEPEST:
        raise UnreadableBlockError(
            unreadable("wrong_place", f"a path has {len(steps)} steps", path, field="parameters")
        )
    part = schema
    for step in steps:
        name = step.rstrip("[]")
        part = _object(_object(part.setdefault("properties", {}), path).setdefault(name, {}), path)
        for _ in range(step.count("[]")):
            part = _object(part.setdefault("items", {}), path)
    return part


def _object(part: Any, path: str) -> dict[str, Any]:
    if not isinstance(part, dict):
        why = f"the path {path[:60]!r} leads through a schema that is no object"
        raise UnreadableBlockError(unreadable("wrong_place", why, path, field="parameters"))
    return part


def _take_type(part: dict[str, Any], given: Any, path: str) -> None:
    """Declare the given type, unless it is declared already or nothing is."""
    outer, inner = _json_types(given, path)
    declared = part.get("type")
    known = set(declared) if isinstance(declared, list) else {declared} - {None}
    is_new_parameter = not part
    if outer and (is_new_parameter or (known and not outer <= known)):
        part["type"] = min(outer) if len(outer) == 1 else sorted(outer)
    items = part.get("items")
    if inner and isinstance(items, dict) and items.get("type") not in {None, inner}:
        part["items"] = {**items, "type": inner}


def _json_types(given: Any, path: str) -> tuple[set[str], str]:
    """The types that a word or a list of words stands for, and that of a list's items."""
    if isinstance(given, list):
        return set().union(*(_json_types(one, path)[0] for one in given)), ""
    words = str(given).strip().casefold()
    optional = _OPTIONAL.fullmatch(words)
    words = optional[1] if optional else words
    outer: set[str] = set()
    inner = ""
    for word in re.split(r"\s*(?:,|\||\bor\b)\s*", words):
        listed = _LIST_OF.fullmatch(word)
        if listed:
            outer.add("array")
            inner = _TYPES.get(listed[1] or listed[2], "")
        elif word in _TYPES:
            outer.add(_TYPES[word])
        elif word not in _SAYS_NO_TYPE:
            why = f"{str(given)[:60]!r} is no type of JSON"
            raise UnreadableBlockError(
                unreadable("unknown_type", why, path, field=f"parameters.{path[:60]}")
            )
    return outer, inner


# --- From the answer of a model to suggestions: tolerant, total and without running anything -----
# Whatever the text is, what comes out are values. Each block is judged alone, so that a good one
# is
# not lost beside a bad one (ToolDNA, algorithm 2, lines 7 to 20).


NOTHING = "NOTHING"
"""What a model answers that finds nothing to change."""

_LONGEST_KEPT = 4_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What a model was asked, as far as its answer is judged by it.

    Attributes:
        library: The tools as they are.
        stream: Where the answer comes from.
        author: Who answers.
        tools: The tools that the answer may be about; empty for every tool of the library.
        reason: Why it was asked, in words.
        evidence: Ids of the episodes that it was shown.
    """

    library: Library
    stream: Stream
    author: Author
    tools: frozenset[str] = frozenset()
    reason: str = ""
    evidence: tuple[str, ...] = ()


def read_answer(answer: str, question: Question) -> tuple[Suggestion, ...]:
    """What an answer suggests, block by block.

    Args:
        answer: The text; anything at all.
        question: What was asked.

    Returns:
        A proposal for each block that can be held against a tool, whether it is any good or not,
        and an ``UnreadableProposal`` for everything else. Nothing when the answer is ``NOTHING``.

    Example:
        >>> from agentkit import ToolDefinition
        >>> loan = ToolDefinition(name="loan")
        >>> question = Question(
        ...     library=Library([loan]), stream="person", author=Author(kind="person", name="Ann"))
        >>> answer = '<description>{"tool": "loan", "summary": "A loan."}</description>'
        >>> [found] = read_answer(answer, question)
        >>> found.candidate.description.summary
        'A loan.'
    """
    if answer.strip().strip(".`*") == NOTHING:
        return ()
    parts = cut(answer)
    seen: set[str] = set()
    suggestions = [_read_block(block, question, seen) for block in parts.blocks]
    refused = [_unreadable(question, "", text, (check,)) for check, text in parts.failed]
    return (*suggestions, *refused)


def _read_block(block: str, question: Question, seen: set[str]) -> Suggestion:
    tool = ""
    try:
        said = read_fields(block)
        tool = said.tool
        base = _base(said.tool, block, question)
        candidate = amended(base, said)
        key = f"{candidate.name} {candidate.digest}"
        if key in seen:
            why = f"the same change of {said.tool!r} is suggested twice"
            raise UnreadableBlockError(unreadable("duplicate_block", why, block))  # noqa: TRY301 - one way out
        seen.add(key)
    except UnreadableBlockError as error:
        return _unreadable(question, error.tool or tool, block, error.failed)
    return Proposal.of(
        base,
        candidate,
        stream=question.stream,
        author=question.author,
        reason=question.reason,
        evidence=question.evidence,
    )


def _base(name: str, block: str, question: Question) -> ToolDefinition:
    """The tool that a block is about (ToolDNA, appendix E: identity verification)."""
    tool = question.library.get(name)
    if tool is None:
        why = f"there is no tool {name[:60]!r}"
        raise UnreadableBlockError(unreadable("unknown_tool", why, block), tool=name)
    if question.tools and name not in question.tools:
        asked = ", ".join(sorted(question.tools))
        why = f"the block is about {name!r}, asked was for {asked[:200]}"
        raise UnreadableBlockError(unreadable("other_tool", why, block), tool=name)
    return tool.definition


def _unreadable(
    question: Question, tool: str, text: str, failed: tuple[FailedCheck, ...]
) -> UnreadableProposal:
    asked: Iterator[str] = iter(question.tools if len(question.tools) == 1 else ())
    return UnreadableProposal(
        author=question.author,
        stream=question.stream,
        tool_name=(tool or next(asked, ""))[:200],
        text=text[:_LONGEST_KEPT],
        failed=failed,
    )
