"""Tool cards: one line or the full schema, and their cost in a prompt."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from agentkit.errors import UsageError
from agentkit.messages import JsonObject
from agentkit.models.base import described_tool
from agentkit.tools.definition import ToolDefinition

TokenCounter: TypeAlias = Callable[[str], int]
"""Any function from a text to its number of tokens, such as ``len(encoding.encode(text))``."""

_BYTES_PER_TOKEN = 4
_LONGEST_SENTENCE = 120
_LONGEST_ENUM = 6
_LONGEST_TYPE = 60
_SAYS_NOTHING = {"", "any", "object"}
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)\s+(?![a-z])"  # a small letter goes on with the sentence
    "|(?<=[\u3002\uff01\uff1f])"  # full-width marks need no space after them
)


def card(definition: ToolDefinition) -> str:
    """One line that tells what a tool is for and what it takes.

    The form is ``name(p: type, ...) -> type  # first sentence``: the parameters that a call must
    give, three dots for the others, the arrow when the result is declared as more than some object.
    A card is there to tell whether a tool is worth its full schema: without optional parameters 32
    cards cost a fifth to a third less. Line breaks inside names or texts become spaces.

    Example:
        >>> area = ToolDefinition.from_schema(
        ...     "area",
        ...     "The area of a triangle. Use it for any unit.",
        ...     {
        ...         "type": "object",
        ...         "properties": {"base": {"type": "number"}, "unit": {"enum": ["m", "cm"]}},
        ...         "required": ["base"],
        ...     },
        ...     result={"type": "number"},
        ... )
        >>> card(area)
        'area(base: number, ...) -> number  # The area of a triangle.'
    """
    signature = definition.known_signature
    required = set(signature.required)
    parameters = [
        f"{name}: {type_text(schema)}"
        for name, schema in signature.properties.items()
        if name in required
    ]
    if len(parameters) < len(signature.properties):
        parameters.append("...")
    returns = "" if signature.result is None else type_text(signature.result)
    result = "" if returns in _SAYS_NOTHING else f" -> {returns}"
    sentence = first_sentence(definition.text)
    comment = f"  # {sentence}" if sentence else ""
    return _one_line(f"{definition.name}({', '.join(parameters)}){result}") + comment


def schema_text(definition: ToolDefinition, *, examples: int = 0) -> str:
    """The full schema as compact JSON in the OpenAI function form, to count what it costs.

    Args:
        definition: The tool.
        examples: How many of its worked calls are shown beside it.

    Adapters may send another form; they differ by a few tokens a tool.
    """
    function = {
        "name": definition.name,
        "description": described_tool(definition, examples),
        "parameters": definition.parameters_schema,
    }
    record = {"type": "function", "function": function}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), default=_plain)


def first_sentence(text: str) -> str:
    """The first sentence of ``text`` on one line, cut at 120 characters."""
    sentence = _SENTENCE_END.split(text.strip(), maxsplit=1)[0]
    return _clipped(_one_line(sentence), _LONGEST_SENTENCE)


def type_text(schema: Any) -> str:
    """A schema in a word: ``number``, ``[string]``, ``m|cm``, ``any``; at most 60 characters."""
    return _clipped(_type_text(schema), _LONGEST_TYPE)


def _type_text(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return _value_text(schema["const"])
    enum = schema.get("enum")
    if isinstance(enum, Sequence) and 0 < len(enum) <= _LONGEST_ENUM:
        return "|".join(_value_text(value) for value in enum)
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    for keyword in ("anyOf", "oneOf"):
        if schema.get(keyword):
            return "|".join(dict.fromkeys(_type_text(option) for option in schema[keyword]))
    return _declared_type(schema)


def _declared_type(schema: JsonObject) -> str:
    declared = schema.get("type", "any")
    if isinstance(declared, Sequence) and not isinstance(declared, str):
        names = dict.fromkeys(map(str, declared))  # each once, or nested lists would multiply
        return "|".join(_declared_type({**schema, "type": name}) for name in names)
    if declared == "array":
        return f"[{_type_text(schema.get('items', True))}]"
    return str(declared)


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _clipped(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "\u2026"


def _plain(value: object) -> object:
    """JSON form of the read-only mappings that a definition may hold."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a schema holds a {type(value).__name__}, which is not JSON data")


def estimate_tokens(text: str) -> int:
    """The tokens of ``text``, guessed as one for every four bytes of UTF-8, rounded up.

    This is an estimate. On the cards and schemas of four public catalogues the vocabularies
    ``cl100k_base`` and ``o200k_base`` have 4.2 to 4.9 bytes a token, so a budget kept with it is
    kept in reality with 5 to 20% to spare; single texts full of codes and digits go down to 3
    bytes, and scripts that a vocabulary covers badly lower still. Where the exact number matters,
    pass the model's own tokenizer as ``count_tokens``.

    Example:
        >>> estimate_tokens("weather"), estimate_tokens("")
        (2, 0)
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN)


def counted(text: str, count_tokens: TokenCounter) -> int:
    """The tokens of ``text`` as a whole number, whatever the counter gives: fractions round up.

    Raises:
        UsageError: The counter gave no number, or one below 0 or without an end.

    Example:
        >>> counted("weather", lambda text: len(text) / 4)
        2
    """
    tokens = count_tokens(text)
    try:
        whole = math.ceil(tokens)
    except (TypeError, ValueError, OverflowError):
        whole = -1
    if whole < 0:
        raise UsageError(
            f"count_tokens gave {tokens!r} for a text of {len(text):,} characters; it must give "
            "the number of tokens, 0 or more"
        )
    return whole
