"""Pre- and postconditions of the tools that a model calls, checked around the call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from agentkit.errors import CompositeRunError, ContractViolation
from agentkit.messages import FailureKind, ToolFailure
from agentkit.tools import composite  # a door: conditions load the language when there are some
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentkit.tools.composite.contracts import Conditions

_TRANSIENT = frozenset({"child_failed", "child_timeout"})
"""Failures of a composite that may be gone at a second try; all others would come again."""


class ContractChecker:
    """Checks the contracts (L3) of the tools of one agent. Each tool's conditions are read once.

    Args:
        mode: ``always`` checks; ``off`` finds every contract kept.
    """

    def __init__(self, mode: Literal["off", "always"] = "off") -> None:
        self._checks = mode == "always"
        self._conditions: dict[str, tuple[ToolDefinition, Conditions]] = {}

    def before(
        self, definition: ToolDefinition, arguments: Mapping[str, Any]
    ) -> ToolFailure | None:
        """The first precondition that the arguments break, as a failure that the model may mend."""
        if not self._checks or not definition.specification.pre:
            return None
        violation = self._of(definition).before(arguments)
        return None if violation is None else composite_failure(violation)

    def after(
        self, definition: ToolDefinition, arguments: Mapping[str, Any], result: object
    ) -> ToolFailure | None:
        """The first postcondition that the result breaks."""
        if not self._checks or not definition.specification.post:
            return None
        violation = self._of(definition).after(arguments, result)
        return None if violation is None else composite_failure(violation)

    def _of(self, definition: ToolDefinition) -> Conditions:
        known = self._conditions.get(definition.name)
        if known is None or known[0] is not definition:
            known = definition, composite.Conditions(definition)
            self._conditions[definition.name] = known
        return known[1]


def composite_failure(error: CompositeRunError) -> ToolFailure:
    """What a run of a composite, or a contract, died of; the rule names the path of calls."""
    return ToolFailure(
        kind=_kind(error),
        rule=str(error),
        cause=error.code,
        retryable=error.code != "postcondition",  # the tool is wrong, not the call
    )


def is_transient(failure: ToolFailure) -> bool:
    """Whether the same call may succeed when it is simply made again."""
    if failure.kind != "tool_error":
        return False
    return failure.cause in _TRANSIENT or failure.cause not in composite.RUN_CODES


def _kind(error: CompositeRunError) -> FailureKind:
    if isinstance(error, ContractViolation):
        return "contract_violated"
    return "timeout" if error.code in {"child_timeout", "deadline"} else "tool_error"
