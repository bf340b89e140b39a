"""What may stand against a call, and what went wrong with it, as failures that a model reads.

Learned rules are always checked: they state what the tool would refuse anyway, and say it better.
Pre- and postconditions are checked where the policy wants that.

The text of an exception was written for developers and may hold anything: an address with a
password, a query, a path. So a model reads only what was meant for whoever calls the tool:

* the words of ``ModelRetry`` and ``ToolFailed``, as they are;
* the text of ``REFUSALS``, with which Python code says that it was given a wrong value, without
  what looks like a secret;
* of any other exception its class and a reference, under which the log has the rest, without
  what looks like a secret.

``expose_errors`` shows every text, for development. Clients of
``agentkit.interop.mcp.LibraryServer`` read of any exception its class alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal

from agentkit import (
    composites,  # a door: conditions and rules load the language when there are some
    episodes,  # a door: redaction loads when a text is to be redacted
)
from agentkit.episodes import Turn
from agentkit.errors import (
    CompositeRunError,
    ContractViolation,
    McpError,
    ModelRetry,
    ToolFailed,
    UsageError,
)
from agentkit.messages import (
    MAX_SENT_VALUES,
    AssistantMessage,
    FailureKind,
    ToolCall,
    ToolFailure,
    is_finite,
    measured,
)
from agentkit.tools import rules  # a door: they load when a tool has some
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.invocation import UnserialisableError, described, shortened
from agentkit.tools.tool import Tool

if TYPE_CHECKING:
    from agentkit.composites.contracts import Conditions, RuleChecker
    from agentkit.tools.rules.records import EarlierCall

_LOG = logging.getLogger(__name__)
_LONGEST = 500
_LONGEST_READ = 4 * _LONGEST

REFUSALS = (ValueError, TypeError, LookupError, ArithmeticError)
"""Exceptions that speak of a value, so that a model can give another one."""
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


def wanted_before_children(definition: ToolDefinition, tools: Mapping[str, Tool]) -> dict[str, str]:
    """The tools that must be called before a composite, each with the child that wants it.

    A composite must not be a way around a rule of its children. Whether a value comes from an
    earlier call can not be seen inside it, since the program makes the arguments; but a call that
    is wanted before a child, and that the composite does not make itself, is wanted before it.

    Args:
        definition: The composite; for a primitive the answer is empty.
        tools: The library's tools by name.
    """
    inside: dict[str, ToolDefinition] = {}
    waiting = [definition]
    while waiting:
        for child in waiting.pop().signature.children:
            tool = tools.get(child.name)
            if tool is not None and child.name not in inside:
                inside[child.name] = tool.definition
                waiting.append(tool.definition)
    return {
        rule.tool: name
        for name, child_definition in inside.items()
        for rule in child_definition.specification.rules
        if isinstance(rule, rules.CallBefore) and rule.tool not in inside
    }


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


def is_transient(failure: ToolFailure, error: BaseException) -> bool:
    """Whether the same call may succeed when it is simply made again; a refused value does not."""
    cause = error.__cause__ if isinstance(error, CompositeRunError) else error
    if failure.kind != "tool_error" or is_refusal(cause):
        return False
    return failure.cause in _TRANSIENT or failure.cause not in composites.RUN_CODES


def _kind(error: CompositeRunError) -> FailureKind:
    if isinstance(error, ContractViolation):
        return "contract_violated"
    return "timeout" if error.code in {"child_timeout", "deadline"} else "tool_error"


def failure_of(
    error: BaseException,
    call: ToolCall,
    *,
    late_seconds: float | None = None,
    expose_errors: bool = False,
    run_id: str = "",
) -> ToolFailure:
    """The failure for an exception of a tool.

    Args:
        error: What the tool raised. A signal to the model (``ModelRetry``, ``ToolFailed``) keeps
            its author's words.
        call: The call, for the log.
        late_seconds: The time that was allowed, when it is over.
        expose_errors: Whether the texts of all exceptions are shown.
        run_id: The run, for the reference.
    """
    if isinstance(error, ModelRetry):
        return ToolFailure(kind="retry_requested", rule=error.message)
    if isinstance(error, ToolFailed):
        return ToolFailure(kind="tool_failed", rule=error.message, retryable=False)
    if isinstance(error, UnserialisableError):
        rule = _without_secrets(str(error))
        return ToolFailure(kind="unserialisable_result", rule=rule, retryable=False)
    if late_seconds is not None:
        return ToolFailure(kind="timeout", rule=f"It was stopped after {late_seconds:g} seconds.")
    if isinstance(error, CompositeRunError):
        failure = composite_failure(error)
        reference = _reference(run_id, call)
        return failure if expose_errors else _without_child_text(failure, error, call, reference)
    if expose_errors:
        rule = described(error)[:_LONGEST]
    else:
        rule = _for_model(error, call, _reference(run_id, call))
    return ToolFailure(kind="tool_error", rule=rule, cause=type(error).__name__)


def _reference(run_id: str, call: ToolCall) -> str:
    """What finds the call in the log."""
    return blake2b(f"{run_id}/{call.call_id}".encode(), digest_size=4).hexdigest()


def is_refusal(error: BaseException | None) -> bool:
    """Whether Python code says that a value is wrong; some errors are also the system's."""
    return isinstance(error, REFUSALS) and not isinstance(error, OSError)


def _for_model(error: BaseException, call: ToolCall, reference: str) -> str:
    """As much of an exception as a model may read; the log has the rest."""
    if is_refusal(error) or isinstance(error, McpError):
        return _without_secrets(described(error))[:_LONGEST]
    _LOG.error(
        "reference %s: call %s of %s raised %s\n%s",
        reference,
        episodes.log_text(call.call_id),
        call.name,
        type(error).__name__,
        episodes.error_report(error),
    )
    return f"{type(error).__name__}. What it says is in the log under reference {reference}."


def _without_secrets(text: str) -> str:
    """A text without secrets and control characters; of a long one the beginning, up to a word."""
    if len(text) > _LONGEST_READ:
        head = text[:_LONGEST_READ]
        text = head.rpartition(" ")[0] or head
    plain = "".join(sign if sign.isprintable() or sign in "\n\t" else "\ufffd" for sign in text)
    return episodes.without_secrets(plain)


def _without_child_text(
    failure: ToolFailure, error: CompositeRunError, call: ToolCall, reference: str
) -> ToolFailure:
    """The failure of a composite, which quotes what a child raised."""
    rule, cause = failure.rule, error.__cause__
    if error.code == "child_failed" and cause is not None:
        rule = rule.replace(
            shortened(described(cause)), _for_model(cause, call, reference).rstrip(".")
        )
    return replace(failure, rule=_without_secrets(rule))


MAX_ARGUMENT_DEPTH = 64
"""Deeper nesting is no argument that a tool asks for; it would only exhaust the stack of whoever
walks it."""


MAX_CALLS_AT_ONCE = 512
"""The calls of one answer that are looked at; any more are left out together."""

_TOO_MANY = f"An answer makes at most {MAX_CALLS_AT_ONCE} calls"


def few_calls(message: AssistantMessage) -> AssistantMessage:
    """The answer with at most ``MAX_CALLS_AT_ONCE`` calls, and one that stands for the rest."""
    calls = message.tool_calls
    if len(calls) <= MAX_CALLS_AT_ONCE:
        return message
    first, rest = calls[:MAX_CALLS_AT_ONCE], calls[MAX_CALLS_AT_ONCE:]
    text = f"{_TOO_MANY}; {len(rest):,} calls, from this one on, were left out and not run."
    return replace(message, tool_calls=(*first, replace(rest[0], arguments={}, malformed=text)))


def stands_for_rest(call: ToolCall) -> bool:
    """Whether a call stands for those that were too many."""
    return call.malformed is not None and call.malformed.startswith(_TOO_MANY)


def normalize_response(
    message: AssistantMessage, turns: Sequence[Turn], *, has_programs: bool = False
) -> AssistantMessage:
    """The answer as the run goes on with it.

    Some servers number calls anew in each answer, but ids must be unique within a run. Arguments
    nested deeper than ``MAX_ARGUMENT_DEPTH``, or with numbers that JSON has not, become malformed.

    Args:
        message: The answer.
        turns: The run so far.
        has_programs: Whether models write programs. The calls of a program have its id, a dot and
            a number, so no call of a model may have a dot in its own.
    """
    if not message.tool_calls:
        return message
    if has_programs:
        calls = (replace(one, call_id=one.call_id.replace(".", "_")) for one in message.tool_calls)
        message = replace(message, tool_calls=tuple(calls))
    taken = {call.call_id for turn in turns for call in turn.message.tool_calls}
    suffixes: dict[str, int] = {}
    return replace(
        message,
        tool_calls=tuple(_renamed(bounded(call), taken, suffixes) for call in message.tool_calls),
    )


def _renamed(call: ToolCall, taken: set[str], suffixes: dict[str, int]) -> ToolCall:
    call_id, suffix = call.call_id, suffixes.get(call.call_id, 2)
    while call_id in taken:
        call_id, suffix = f"{call.call_id}-{suffix}", suffix + 1
    taken.add(call_id)
    if call_id == call.call_id:
        return call
    suffixes[call.call_id] = suffix
    return replace(call, call_id=call_id)


def bounded(call: ToolCall) -> ToolCall:
    """The call, malformed where its arguments are too deep, too many, or hold infinity or NaN."""
    levels, count = measured(
        call.arguments, most_levels=MAX_ARGUMENT_DEPTH, most_values=MAX_SENT_VALUES
    )
    if levels <= MAX_ARGUMENT_DEPTH and count <= MAX_SENT_VALUES:
        if is_finite(call.arguments):
            return call
        text = "arguments with a number beyond all bounds, or NaN, which are not JSON"
        return replace(call, arguments={}, malformed=text)
    text = f"arguments of more than {MAX_SENT_VALUES:,} values"
    if levels > MAX_ARGUMENT_DEPTH:
        text = f"arguments nested more than {MAX_ARGUMENT_DEPTH} levels deep"
    return replace(call, arguments={}, malformed=text)
