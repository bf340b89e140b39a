"""Calls of which no result was recorded, checked as the executor would have checked them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.errors import DefinitionError
from agentkit.library.library import Library
from agentkit.messages import ToolCall, ToolFailure
from agentkit.metrics.remembering import remembered
from agentkit.tools import rules  # a door: they load when a tool has some
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.validation import ArgumentProblem, ArgumentValidator

if TYPE_CHECKING:
    from agentkit.tools.rules.refusal import RuleChecker


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
            checked = _validator(tool.definition).runnable(call.arguments)
        except DefinitionError as error:  # the schema is broken, not the call
            return ToolFailure(kind="tool_error", rule=str(error), retryable=False)
        if isinstance(checked, ArgumentProblem):
            return checked.failure()
        checker = _rules(tool.definition) if tool.definition.specification.rules else None
        return None if checker is None else checker.refusal(checked)

    def _unknown(self, name: str) -> ToolFailure:
        nearest = self._library.nearest(name)
        return ToolFailure(kind="unknown_tool", rule="It is not in the library.", nearest=nearest)


@remembered(most=512)  # making one ready costs more than to check a call, and episodes are many
def _validator(definition: ToolDefinition) -> ArgumentValidator:
    return ArgumentValidator(definition)


@remembered(most=512)
def _rules(definition: ToolDefinition) -> RuleChecker:
    return rules.RuleChecker(definition)
