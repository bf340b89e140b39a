"""The words of a definition by field."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.tools.definition import ToolDefinition
from agentkit.tools.rules import rule_sentence


def texts_of(definition: ToolDefinition) -> dict[str, str]:
    """What a definition says in words, by field; empty fields are left out.

    These are L2 and the words of L3: the summary, the usage rules, the sentences of learned rules,
    each parameter's text, the conditions, the complexity and the tags. Names, types and allowed
    values are the contract and no language; examples are values. Parameters come in the order of
    the schema, so that another order of the same texts is no edit.

    Args:
        definition: The tool.

    Example:
        >>> lamp = ToolDefinition.from_schema(
        ...     "lamp",
        ...     "Switch a lamp.",
        ...     {"type": "object", "properties": {"room": {"description": "Which room."}}},
        ... )
        >>> texts_of(lamp)
        {'summary': 'Switch a lamp.', 'parameters.room': 'Which room.'}
    """
    return {field: text for field, text in _texts(definition) if text}


def _texts(definition: ToolDefinition) -> Iterator[tuple[str, str]]:
    description, specification = definition.description, definition.specification
    yield "summary", description.summary
    yield "usage_rules", "\n".join(description.usage_rules)
    yield "rules", "\n".join(map(rule_sentence, specification.rules))
    order = {name: at for at, name in enumerate(definition.signature.properties)}

    def place(path: str) -> tuple[int, str]:
        top = path if path in order else path.split(".", 1)[0].split("[", 1)[0]
        return order.get(top, len(order)), path

    for path in sorted(description.parameters, key=place):
        yield f"parameters.{path}", description.parameters[path]
    yield "conditions", "\n".join(specification.text)
    yield "complexity", specification.complexity
    yield "tags", ", ".join(description.tags)
