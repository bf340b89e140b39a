"""Running tools without touching the world, every contract checked, within a budget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from agentkit.composites.composite import composite_tool
from agentkit.composites.contracts import check_post, check_pre
from agentkit.composites.composite import Composite
from agentkit.composites.problems import CompositeLimits
from agentkit.errors import CompositeRunError, ContractViolation
from agentkit.evolution.insertion.budget import Budget, BudgetSpent
from agentkit.evolution.insertion.outcome import RejectionCode
from agentkit.evolution.insertion.policy import InsertPolicy
from agentkit.evolution.insertion.stubs import MissingStub, runs_live, stub
from agentkit.evolution.loops import require_loop
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.encoding import encode_result
from agentkit.tools.tool import Tool

FailureCause = Literal["no_stub", "precondition", "postcondition", "error"]

_LONGEST_CHAIN = 64


@dataclass(frozen=True, kw_only=True, slots=True)
class Ran:
    """A run that came to its end.

    Attributes:
        value: What it returned, as JSON data.
    """

    value: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A run that did not come to its end.

    Attributes:
        cause: ``no_stub``: a tool that touches the world has no recorded answer; a condition that
            does not hold; or an ``error``.
        code: The run code of a composite, or the type of the exception.
        tool: Where it happened.
        message: What happened, with values.
        arguments: What ``tool`` was called with.
        condition: The condition that does not hold.
        path: Names of the tools from the one that was tried down to where it happened.
    """

    cause: FailureCause
    code: str
    tool: str
    message: str
    arguments: JsonObject = field(default_factory=dict)
    condition: str = ""
    path: tuple[str, ...] = ()


Trial: TypeAlias = Ran | Failed


class DryRun:
    """Tries tools of one library.

    Pure tools with code run; all others answer from their worked calls. A composite always runs,
    over children for which the same holds.

    Args:
        tools: The library's tools by name.
        policy: Which tools may run, and how much.
        limits: Caps on each run of a composite.
    """

    def __init__(
        self, tools: Mapping[str, Tool], *, policy: InsertPolicy, limits: CompositeLimits
    ) -> None:
        self._tools = tools
        self._policy = policy
        seconds = min(limits.deadline_seconds or policy.seconds, policy.seconds)
        self._limits = replace(limits, deadline_seconds=seconds)
        self._budget = Budget(policy)
        self._safe: dict[str, Tool] = {}

    def safe(self, name: str) -> Tool:
        """The tool of that name as it may be run here."""
        if name not in self._safe:
            self._safe[name] = self.prepared(self._tools[name])
        return self._safe[name]

    def prepared(self, tool: Tool) -> Tool:
        """``tool``, which need not be in the library, as it may be run here.

        Raises:
            CompositeError: A child is missing, or is not the pinned one.
        """
        definition = tool.definition
        if definition.is_composite:
            pinned = (child.name for child in definition.signature.children)
            children = {name: self.safe(name) for name in pinned if name in self._tools}
            return composite_tool(definition, children, limits=self._limits, contracts="always")
        if tool.is_bound and runs_live(definition, self._policy):
            return self._counted(tool)
        return self._counted(stub(definition))

    def is_pure(self, definition: ToolDefinition) -> bool:
        """Whether a run of the tool is evidence for all later runs."""
        return runs_live(definition, self._policy)

    def lacking(self, name: str) -> tuple[RejectionCode, str]:
        """Why a tool without a recorded answer was not run itself, and what to do about it."""
        tool = self._tools[name]
        effects = tool.definition.signature.effects
        if runs_live(tool.definition, self._policy):
            return "unbound_child", (
                f"{name!r} is pure, but has no code in this process: give its Tool to the manager "
                "(tools=..., --tools), or record an example of it with these arguments"
            )
        advice = f"record an example of {name!r} with these arguments and its answer"
        if not effects.to_json() and tool.is_bound:
            advice += "; if it touches nothing outside the call, declare effects=Effects.pure(), "
            advice += "or use InsertPolicy(run_undeclared=True) (--run-undeclared)"
        return "no_stub", advice

    async def run(self, tool: Tool, arguments: JsonObject) -> Trial:
        """Call a prepared tool, its own contract checked as well.

        Raises:
            BudgetSpent: The candidate has cost as much as the policy allows.
        """
        self._budget.begin_run()
        if tool.is_async:
            require_loop()
        given = dict(arguments)
        try:
            if isinstance(tool.function, Composite):
                return Ran(value=await _run_composite(tool.function, given))
            return await _run_primitive(tool, given)
        except BudgetSpent:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is told as a failure
            return self._failed(tool, given, error)

    def _counted(self, tool: Tool) -> Tool:
        function, budget = tool, self._budget

        def call(**arguments: Any) -> Any:
            budget.begin_call()
            return function(**arguments)

        return replace(tool, function=call)

    def _failed(self, tool: Tool, given: JsonObject, error: Exception) -> Failed:
        for cause in _chain(error):
            if isinstance(cause, BudgetSpent):
                raise cause
        path = error.path if isinstance(error, CompositeRunError) else (tool.name,)
        for cause in _chain(error):
            if isinstance(cause, MissingStub):
                return Failed(
                    cause="no_stub",
                    code="no_stub",
                    tool=cause.tool_name,
                    message=str(cause),
                    arguments=cause.arguments,
                    path=path,
                )
            if isinstance(cause, ContractViolation):
                return _broken_contract(cause, path)
        code = error.code if isinstance(error, CompositeRunError) else type(error).__name__
        return Failed(
            cause="error", code=code, tool=tool.name, message=str(error), arguments=given, path=path
        )


async def _run_composite(composite: Composite, arguments: JsonObject) -> Any:
    if composite.needs_event_loop:
        value = await composite.run_async(arguments, dry_run=True)
    else:
        value = composite.run(arguments, dry_run=True)
    return encode_result(value)[0]


async def _run_primitive(tool: Tool, arguments: JsonObject) -> Trial:
    violation = check_pre(tool.definition, arguments)
    if violation is None:
        value = tool(**tool.convert(arguments))
        data, _ = encode_result(await value if tool.is_async else value)
        violation = check_post(tool.definition, arguments, data)
        if violation is None:
            return Ran(value=data)
    return _broken_contract(violation, (tool.name,))


def _broken_contract(violation: ContractViolation, path: tuple[str, ...]) -> Failed:
    is_pre = violation.code == "precondition"
    return Failed(
        cause="precondition" if is_pre else "postcondition",
        code=violation.code,
        tool=violation.tool_name,
        message=str(violation),
        arguments=violation.values,
        condition=violation.condition,
        path=violation.path or path,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, outermost first."""
    current: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if current is None:
            return
        yield current
        current = current.__cause__
