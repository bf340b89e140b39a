"""Calls that are looked at and never run: would the executor have let them through?"""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.agent.contracts import ContractChecker
from agentkit.agent.executor import CallHistory
from agentkit.diagnosis.wording import describe_failure
from agentkit.errors import CompositeError, DefinitionError
from agentkit.library.library import nearest_names
from agentkit.messages import Message, ToolCall, ToolFailure, ToolResult
from agentkit.models.base import ModelRequest
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import ArgumentProblem
from agentkit.tools.validation import ArgumentValidator

NOT_RUN = ToolFailure(
    kind="denied", rule="The call is valid; a shadow run executes nothing.", retryable=False
)


def checked_calls(calls: Sequence[ToolCall], request: ModelRequest) -> tuple[ToolResult, ...]:
    """A result for each call: ``failed`` with the rule that it breaks, else ``denied``, unrun.

    Looked at are, in the order of the executor: whether the tool was offered, whether the arguments
    can be read, the contract's schema, preconditions, and learned rules. No function is called.

    Args:
        calls: What a model proposed.
        request: What it was asked, with the conversation so far.
    """
    offered = {definition.name: definition for definition in request.tools}
    return tuple(_result(call, _failure(call, offered, request.messages)) for call in calls)


def _failure(
    call: ToolCall, offered: dict[str, ToolDefinition], said: Sequence[Message]
) -> ToolFailure | None:
    definition = offered.get(call.name)
    if definition is None:
        nearest = nearest_names(call.name, offered)
        rule = f"Offered are {len(offered)} tools."
        return ToolFailure(kind="unknown_tool", rule=rule, nearest=nearest)
    if call.malformed is not None:
        return ToolFailure(kind="malformed_arguments", rule=f"It was: {call.malformed[:200]!r}.")
    try:
        arguments = ArgumentValidator(definition).runnable(call.arguments)
        if isinstance(arguments, ArgumentProblem):
            return arguments.failure()
        checker = ContractChecker("always")
        return checker.before(definition, arguments, CallHistory(said).known)
    except (DefinitionError, CompositeError) as error:  # a definition that nothing can be held to
        return ToolFailure(kind="tool_error", rule=str(error), retryable=False)


def _result(call: ToolCall, failure: ToolFailure | None) -> ToolResult:
    found = failure or NOT_RUN
    return ToolResult(
        call_id=call.call_id,
        name=call.name,
        status="denied" if failure is None else "failed",
        text=describe_failure(call.name, found),
        failure=found,
        attempts=0,
    )
