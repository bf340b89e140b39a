"""That every field holds what it should, and every text has its parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentkit.evolution.validation.report import FailedCheck, ProposedChange
from agentkit.evolution.validation.sameness import is_too_deep, shown_value
from agentkit.evolution.validation.texts import mapping, sequence
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import Example, ToolDefinition

_DEEPEST = 32


def fields_well_formed(change: ProposedChange) -> Iterator[FailedCheck]:
    """Texts are texts, lists are lists, and examples are JSON.

    A definition that was read from foreign JSON may hold anything in its fields. Texts without a
    letter or a digit count as malformed too: white space, or the ``...`` that a prompt shows. So do
    texts that are emptied.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(fields_well_formed(rewrite("weather_now", {"parameters.city": "Name of a city."})))
        []
        >>> odd = rewrite("weather_now", {"/description/usage_rules": [["Cities in English."]]})
        >>> [found.field for found in fields_well_formed(odd)]
        ['usage_rules[0]']
    """
    found = list(dict.fromkeys(_problems(change.candidate)))
    known = set(_problems(change.base)) if found else set()
    for field, problem in found:
        if (field, problem) not in known:
            yield FailedCheck(
                code="malformed",
                layer="structural",
                field=field,
                message=problem,
                advice="give texts as strings, several of them as a list, and examples as JSON",
            )


def _problems(tool: ToolDefinition) -> Iterator[tuple[str, str]]:
    yield from _malformed(tool)
    yield from _malformed_examples(tool.examples)
    if is_too_deep([tool.signature.parameters, tool.signature.result, tool.body]):
        yield "signature", "it is nested too deeply"


def _malformed(tool: ToolDefinition) -> Iterator[tuple[str, str]]:
    words: Any = tool.description
    conditions: Any = tool.specification
    for field, value in (("summary", words.summary), ("complexity", conditions.complexity)):
        if value != "" and not _has_words(value):
            yield field, _no_words(value)
    for field, values in (
        ("usage_rules", words.usage_rules),
        ("tags", words.tags),
        ("text", conditions.text),
    ):
        if not isinstance(values, tuple | list):
            yield field, f"it is {shown_value(values)}, not a list of texts"
        for at, text in enumerate(sequence(values)):
            if not _has_words(text):
                yield f"{field}[{at}]", _no_words(text)
    if not isinstance(words.parameters, Mapping):
        yield "parameters", f"it is {shown_value(words.parameters)}, not a text for each parameter"
    for path, text in mapping(words.parameters).items():
        if not isinstance(path, str) or not _has_words(text):
            yield f"parameters.{path!s:.60}", _no_words(text)


def _no_words(value: object) -> str:
    return f"it is {shown_value(value)}, not a text with words"


def _has_words(text: object) -> bool:
    """Whether a value is a text that says something: ``"..."`` out of a prompt does not."""
    return isinstance(text, str) and any(character.isalnum() for character in text)


def _malformed_examples(examples: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(examples, tuple | list):
        yield "examples", f"it is {shown_value(examples)}, not a list of examples"
    for at, example in enumerate(sequence(examples)):
        if not isinstance(example, Example) or not isinstance(example.arguments, Mapping):
            yield f"examples[{at}]", f"{shown_value(example)} is no call with arguments"
        elif is_too_deep([example.arguments, example.result]):
            yield f"examples[{at}]", "it is nested too deeply"
        elif not is_json([example.arguments, example.result]) or not isinstance(example.query, str):
            yield f"examples[{at}]", "its arguments, result and query are not all JSON"


def parameters_known(change: ProposedChange) -> Iterator[FailedCheck]:
    """Texts for parameters that the tool does not have (ToolDNA, appendix E.1, case 2).

    A dotted path goes through objects and lists, as ``attach_descriptions`` follows it: a text for
    any other place would be kept and shown to nobody.

    Example:
        >>> from agentkit.testing.rewrites import rewrite
        >>> list(parameters_known(rewrite("bill_split", {"parameters.people": "How many pay."})))
        []
        >>> extra = rewrite("bill_split", {"parameters.discount_code": "A voucher."})
        >>> [found.field for found in parameters_known(extra)]
        ['parameters.discount_code']
    """
    had = mapping(change.base.description.parameters)
    for path in mapping(change.candidate.description.parameters):
        if path not in had and not exists(change.base.signature.parameters, path):
            yield FailedCheck(
                code="unknown_parameter",
                layer="structural",
                field=f"parameters.{path!s:.80}",
                message=f"the tool has no parameter {path!r:.80}",
                advice="describe the parameters that are there; the set of them does not change",
            )


def exists(schema: JsonObject, path: object) -> bool:
    """Whether a dotted path leads to a part that ``attach_descriptions`` gives a text to."""
    return isinstance(path, str) and path in _paths(schema, "", 0)


def _paths(schema: Any, path: str, depth: int) -> set[str]:
    found = {path} if path else set()
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return found
    for name, part in mapping(schema.get("properties")).items():
        found |= _paths(part, f"{path}.{name}" if path else str(name), depth + 1)
    if path and isinstance(schema.get("items"), Mapping):
        found |= _paths(schema["items"], f"{path}[]", depth + 1)
    return found
