"""Calls of which no result was recorded, checked as the executor would have checked them."""

from __future__ import annotations

from agentkit.errors import DefinitionError
from agentkit.library.library import Library
from agentkit.messages import JsonObject, ToolCall, ToolFailure
from agentkit.metrics.remembering import remembered
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.validation import ArgumentProblem, ArgumentValidator


class CallChecker:
    """Says what keeps calls from being run.

    Args:
        library: The tools that may be called.
        names_all: Whether a tool that is not in the library can not be called.
    """

    def __init__(self, library: Library, *, names_all: bool = True) -> None:
        self._library = library
        self._names_all = names_all

    def failure(self, call: ToolCall) -> ToolFailure | None:
        """Why the call would have been refused; None when it would have been run."""
        if call.malformed is not None:
            rule = f"It was: {call.malformed[:200]!r}."
            return ToolFailure(kind="malformed_arguments", rule=rule)
        tool = self._library.get(call.name)
        if tool is None:
            return self._unknown(call.name) if self._names_all else None
        try:
            problem = _problem(tool.definition, call.arguments)
        except DefinitionError as error:  # the schema is broken, not the call
            return ToolFailure(kind="tool_error", rule=str(error), retryable=False)
        return None if problem is None else _invalid(problem)

    def _unknown(self, name: str) -> ToolFailure:
        nearest = self._library.nearest(name)
        return ToolFailure(kind="unknown_tool", rule="It is not in the library.", nearest=nearest)


def _problem(definition: ToolDefinition, arguments: JsonObject) -> ArgumentProblem | None:
    """The most useful problem of arguments that can not be mended either."""
    validator = _validator(definition)
    problems = validator.check(arguments)
    if not problems:
        return None
    mended = coerce(arguments, definition.signature.parameters)
    is_mended = mended is not arguments and not validator.check(mended)
    return None if is_mended else problems[0]


@remembered(most=512)  # making one ready costs more than to check a call, and episodes are many
def _validator(definition: ToolDefinition) -> ArgumentValidator:
    return ArgumentValidator(definition)


def _invalid(problem: ArgumentProblem) -> ToolFailure:
    return ToolFailure(
        kind="invalid_arguments",
        rule=problem.rule,
        path=problem.path_text,
        schema_excerpt=problem.schema_excerpt,
        nearest=problem.nearest,
        cause=problem.keyword,
    )
