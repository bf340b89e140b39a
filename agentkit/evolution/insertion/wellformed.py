"""Whether a definition that came as data can be kept at all: it may come from anywhere."""

from __future__ import annotations

from agentkit.errors import DefinitionError
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.refusal import Refused, refuse
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.validation import validate_arguments

_LONGEST_NAME = 256  # of a child in a program


def check_data(definition: ToolDefinition, policy: InsertPolicy) -> None:
    """The definition is JSON data of bounded size, with a name and a schema that can be used.

    Raises:
        Refused: It is not.
    """
    name = definition.name
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise _malformed(
            name,
            f"the name has {len(name):,} characters, or one that can not be printed",
            f"give it a name of at most {_LONGEST_NAME} printable characters",
        )
    size = _size(definition)
    if size > policy.most_bytes:
        raise _malformed(
            name,
            f"the definition has {size:,} bytes, more than {policy.most_bytes:,} "
            "(InsertPolicy.most_bytes)",
            "shorten its words and its examples",
        )
    try:
        validate_arguments(definition, {})
    except DefinitionError as error:
        raise _malformed(name, str(error), "correct the schema of the parameters") from error


def _size(definition: ToolDefinition) -> int:
    try:
        return len(canonical_json(definition.to_json()))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _malformed(
            definition.name,
            f"the definition can not be stored: {type(error).__name__}: {error}",
            "definitions hold JSON data only",
        ) from error


def _malformed(name: str, explanation: str, advice: str) -> Refused:
    shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}\u2026"
    return refuse("malformed", shown, explanation, advice)
