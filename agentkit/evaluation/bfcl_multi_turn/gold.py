"""Gold calls, which upstream writes as Python: ``"mv(source='a.txt', destination='b')"``.

They are parsed and read as data. Nothing is run.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from agentkit.evaluation.expectations import GoldCall
from agentkit.tools.definition import ToolDefinition


class UnreadableGoldError(ValueError):
    """A gold text is not a call of a tool with literal arguments."""


def parse_gold(text: str, tools: Mapping[str, ToolDefinition]) -> GoldCall:
    """The call that a text states.

    Args:
        text: One call. Positional arguments are named in the order of the tool's parameters.
        tools: The tools that there are, by name.

    Raises:
        UnreadableGoldError: The text says anything else.

    Example:
        >>> definition = ToolDefinition.from_schema("cd", "", {
        ...     "type": "object", "properties": {"folder": {"type": "string"}}})
        >>> parse_gold("cd('papers')", {"cd": definition})
        GoldCall(name='cd', arguments={'folder': 'papers'})
    """
    call = _call(text)
    name = ast.unparse(call.func)
    if name not in tools:
        raise UnreadableGoldError(f"the gold call {text!r} is of a tool that no simulator has")
    parameters = list(tools[name].signature.properties)
    if len(call.args) > len(parameters):
        raise UnreadableGoldError(
            f"the gold call {text!r} has {len(call.args)} arguments, {name} takes {len(parameters)}"
        )
    arguments: dict[str, Any] = {}
    given = [*zip(parameters, call.args, strict=False)]
    given += [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
    for parameter, value in given:
        if parameter in arguments or parameter not in parameters:
            raise UnreadableGoldError(
                f"the gold call {text!r} gives {parameter!r} twice, or {name} has no such parameter"
            )
        arguments[parameter] = _literal(text, value)
    return GoldCall(name=name, arguments=arguments)


def _call(text: str) -> ast.Call:
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableGoldError(f"the gold call {text[:200]!r} is no Python: {error}") from error
    if not isinstance(expression, ast.Call):
        raise UnreadableGoldError(f"the gold call {text[:200]!r} is not a call")
    return expression


def _literal(text: str, value: ast.expr) -> Any:
    try:
        return _as_json(ast.literal_eval(value))
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UnreadableGoldError(
            f"the gold call {text[:200]!r} has an argument that is no plain value: {error}"
        ) from error


def _as_json(value: Any) -> Any:
    """The value with lists for tuples, as a model's calls, which are JSON, have them."""
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    raise TypeError(f"JSON has no {type(value).__name__} like {value!r}")
