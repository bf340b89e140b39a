"""Learned rules, pre- and postconditions of the tools that a model calls, checked around the call.

Learned rules are always checked: they state what the tool would refuse anyway, and say it better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from agentkit import (
    composites,  # a door: conditions and rules load the language when there are some
)
from agentkit.errors import CompositeRunError, ContractViolation, UsageError
from agentkit.messages import FailureKind, ToolFailure
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    from agentkit.composites.contracts import Conditions
    from agentkit.composites.rule_checker import RuleChecker
    from agentkit.tools.rules.checking import EarlierCall

_TRANSIENT = frozenset({"child_failed", "child_timeout"})
"""Failures of a composite that may be gone at a second try; all others would come again."""


class ContractChecker:
    """Checks the contracts (L3) of the tools of one agent. Each tool's conditions are read once.

    Args:
        mode: ``always`` checks pre- and postconditions; ``off`` finds all of them kept.

    Raises:
        UsageError: It is neither, so nobody knows what was meant to be checked.
    """

    def __init__(self, mode: Literal["off", "always"] = "off") -> None:
        if mode not in ("off", "always"):
            raise UsageError(f"contracts is {mode!r}; use 'always' or 'off'")
        self._checks = mode == "always"
        self._conditions: dict[str, tuple[ToolDefinition, Conditions]] = {}
        self._rules: dict[str, RuleChecker] = {}

    def before(
        self,
        definition: ToolDefinition,
        arguments: Mapping[str, Any],
        earlier: Callable[[], Sequence[EarlierCall]] | None = None,
    ) -> ToolFailure | None:
        """The first rule or precondition that a call breaks, as a failure that a model may mend.

        Args:
            definition: The tool.
            arguments: The arguments, as they satisfy its schema.
            earlier: Gives the calls that succeeded before; asked by rules that want one.
        """
        if self._checks and definition.specification.pre:
            violation = self._of(definition).before(arguments)
            if violation is not None:
                return composite_failure(violation)
        if not definition.specification.rules:
            return None
        checker = self._rules_of(definition)
        known = earlier() if earlier is not None and checker.wanted_before else None
        return checker.refusal(arguments, known)

    def wanted_before(self, definition: ToolDefinition) -> frozenset[str]:
        """The tools that a learned rule wants to be called before this one."""
        if not definition.specification.rules:
            return frozenset()
        return self._rules_of(definition).wanted_before

    def after(
        self, definition: ToolDefinition, arguments: Mapping[str, Any], result: object
    ) -> ToolFailure | None:
        """The first postcondition that the result breaks."""
        if not self._checks or not definition.specification.post:
            return None
        violation = self._of(definition).after(arguments, result)
        return None if violation is None else composite_failure(violation)

    def _rules_of(self, definition: ToolDefinition) -> RuleChecker:
        known = self._rules.get(definition.digest)  # two revisions may serve at the same time
        if known is None:
            known = self._rules[definition.digest] = composites.RuleChecker(definition)
        return known

    def _of(self, definition: ToolDefinition) -> Conditions:
        known = self._conditions.get(definition.name)
        if known is None or known[0] is not definition:
            known = definition, composites.Conditions(definition)
            self._conditions[definition.name] = known
        return known[1]


def calls_first(wanted: str, child: str) -> ToolFailure:
    """A composite calls a child that wants another call first."""
    rule = f"call {wanted} first; {child}, which this tool calls, needs it"
    return ToolFailure(kind="contract_violated", rule=rule, cause="call_before")


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
    return failure.cause in _TRANSIENT or failure.cause not in composites.RUN_CODES


def _kind(error: CompositeRunError) -> FailureKind:
    if isinstance(error, ContractViolation):
        return "contract_violated"
    return "timeout" if error.code in {"child_timeout", "deadline"} else "tool_error"
