"""Programs of code mode as composites: those that recur, with what varied as parameters.

Mining calls (``mining``) finds the flow of data by comparing values, and no loops or branches. A
program that a model wrote says both, so one that did well in enough episodes is a candidate as it
stands. What was particular to a request, the literals that it passes to tools or compares with,
becomes parameters.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from agentkit.agent.code_mode import read_program
from agentkit.agent.selection import RUN_TOOL
from agentkit.composites import language as ir
from agentkit.composites.language import RESERVED
from agentkit.episodes import Episode, Turn
from agentkit.episodes.labels import with_late_verdicts
from agentkit.errors import CompositeError
from agentkit.evolution.duplicates import normal_form
from agentkit.evolution.lifting import (
    LiftedParameter,
    Lifting,
    MinedComposite,
    Slot,
    WorkedCall,
    definition_of,
    identifier,
    tool_name,
)
from agentkit.evolution.patterns import Pattern, PatternStep
from agentkit.evolution.trajectories import RecordedCall, is_success
from agentkit.library.merging import distinct_name
from agentkit.tools.canonical import canonical_json, is_json
from agentkit.tools.definition import Example, ToolDefinition
from agentkit.tools.tool import Tool

_LONGEST_DEFAULT = 80
_MOST_EVIDENCE = 50


def mined_programs(
    episodes: Iterable[Episode],
    tools: Mapping[str, ToolDefinition],
    *,
    min_support: int,
    taken: Iterable[str] = (),
) -> tuple[MinedComposite, ...]:
    """The programs that went well in enough episodes, as composites; the most frequent first.

    Args:
        episodes: What happened; those with other names of tools than the library's are left out.
        tools: Definitions by name.
        min_support: A program occurs in at least so many episodes.
        taken: Names that no composite may have.
    """
    known = {name: Tool(definition=definition) for name, definition in tools.items()}
    groups: dict[str, list[_Run]] = {}
    for episode in with_late_verdicts(episodes):
        if is_success(episode) and not episode.library_names:
            for run in _runs(episode, known):
                key = repr(normal_form(run.program))
                groups.setdefault(key, []).append(run)
    names, made = {*tools, *taken}, []
    for _, runs in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        if len({run.episode.episode_id for run in runs}) >= min_support:
            wanted = tool_name([call.child for call in ir.calls(runs[0].program)])
            name = distinct_name(wanted, names)
            names.add(name)
            made.append(_composite(name, runs, tools))
    return tuple(made)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A program that went well, with its literals lifted.

    Attributes:
        episode: Where it was run.
        program: The program; its parameters have no defaults.
        slots: For each parameter a call and an argument that it fills; "" for a comparison.
        values: The literals, by parameter.
        result: What it returned.
        recorded: What it called.
    """

    episode: Episode
    program: ir.Program
    slots: Mapping[str, Slot]
    values: Mapping[str, Any]
    result: Any
    recorded: tuple[RecordedCall, ...]


def _runs(episode: Episode, tools: Mapping[str, Tool]) -> Iterator[_Run]:
    for turn in episode.turns:
        for call, result in zip(turn.message.tool_calls, turn.results, strict=False):
            if call.name != RUN_TOOL or result.status != "ok" or result.call_id != call.call_id:
                continue
            try:
                parsed = read_program(str(call.arguments.get("program", "")), tools)
            except CompositeError:  # a tool is gone, or is another one by now
                continue
            if not _is_worth_a_tool(parsed.program):
                continue
            lifted = _Literals(parsed.program)
            yield _Run(
                episode=episode,
                program=lifted.program,
                slots=lifted.slots,
                values=lifted.values,
                result=result.value,
                recorded=tuple(_recorded(turn, call.call_id)),
            )


def _recorded(turn: Turn, program: str) -> Iterator[RecordedCall]:
    for one in turn.program_calls:
        if one.program == program and one.result.status == "ok":
            value = one.result.value
            yield RecordedCall(tool=one.call.name, arguments=one.call.arguments, result=value)


def _is_worth_a_tool(program: ir.Program) -> bool:
    """Whether it calls more than once: two calls in the text, or one in a loop."""
    loops = [node for node in ir.walk(program) if isinstance(node, ir.For | ir.Comprehension)]
    return len(ir.calls(program)) > 1 or any(map(ir.calls, loops))


class _Literals:
    """A program with the literals that it passes to tools, and compares with, as parameters."""

    def __init__(self, program: ir.Program) -> None:
        self.slots: dict[str, Slot] = {}
        self.values: dict[str, Any] = {}
        self._number = -1
        called = {call.child.partition(".")[0] for call in ir.calls(program)}
        self._taken = [*RESERVED, *called, *_variables(program)]
        body = self._lifted(program.body)
        parameters = tuple(ir.Parameter(name=name) for name in self.slots)
        self.program = ir.Program(parameters=parameters, body=body)

    def _lifted(self, node: Any) -> Any:
        if isinstance(node, tuple):
            return tuple(map(self._lifted, node))
        if isinstance(node, ir.Call):
            self._number += 1
            number = self._number
            arguments = [
                replace(one, value=self._parameter(one.value, (number, one.name)))
                for one in node.arguments
            ]
            return replace(node, arguments=tuple(arguments))
        if isinstance(node, ir.Compare):
            operands = [self._parameter(one, (0, "")) for one in node.operands]
            return replace(node, operands=tuple(operands))
        if not is_dataclass(node) or isinstance(node, type):
            return node
        made = {one.name: self._lifted(getattr(node, one.name)) for one in fields(node)}
        return replace(node, **made)

    def _parameter(self, node: ir.Expression, slot: Slot) -> ir.Expression:
        """A parameter in place of a literal; truth values and None stay."""
        try:
            value = _value_of(node)
        except ValueError:
            return self._lifted(node)  # type: ignore[no-any-return]  # as it was
        if value is None or isinstance(value, bool):
            return node
        for name, known in self.values.items():
            same = canonical_json(known) == canonical_json(value)
            if same and self.slots[name][1] == slot[1]:
                return ir.Name(name=name)
        name = identifier(slot[1] or "value", taken=self._taken)
        self._taken.append(name)
        self.slots[name], self.values[name] = slot, value
        return ir.Name(name=name)


def _value_of(node: ir.Expression) -> Any:
    """The value of a literal.

    Raises:
        ValueError: It is none.
    """
    match node:
        case ir.Constant(value=value):
            return value
        case ir.ListLiteral(items=items):
            return [_value_of(one) for one in items]
        case ir.DictLiteral(keys=keys, values=values):
            return {
                str(_value_of(key)): _value_of(one) for key, one in zip(keys, values, strict=True)
            }
    raise ValueError(node)


def _variables(program: ir.Program) -> Iterator[str]:
    for node in ir.walk(program):
        if isinstance(node, ir.Name):
            yield node.name
        if isinstance(node, ir.Assign | ir.For | ir.Comprehension):
            yield from node.targets


def _composite(
    name: str, runs: Sequence[_Run], tools: Mapping[str, ToolDefinition]
) -> MinedComposite:
    """What a group of runs comes to; a literal that never varied is a default."""
    first = runs[0]
    parameters = []
    for parameter, slot in first.slots.items():
        values = {canonical_json(run.values[parameter]) for run in runs}
        value = first.values[parameter]
        is_default = len(values) == 1 and isinstance(value, int | float | str)
        default = (
            ir.Constant(value=value) if is_default and len(str(value)) <= _LONGEST_DEFAULT else None
        )
        parameters.append(LiftedParameter(name=parameter, slots=(slot,), default=default))
    parameters.sort(key=lambda one: one.default is not None)
    head = tuple(ir.Parameter(name=one.name, default=one.default) for one in parameters)
    steps = tuple(PatternStep(tool=call.child, arguments=()) for call in ir.calls(first.program))
    lifting = Lifting(
        pattern=Pattern(steps=steps),
        parameters=tuple(parameters),
        returned=(),
        keys=(),
        program=replace(first.program, parameters=head),
    )
    worked = (
        WorkedCall(
            example=Example(arguments=run.values, result=run.result, query=run.episode.request),
            recorded=run.recorded,
        )
        for run in runs
        if is_json(run.result)
    )
    ids = dict.fromkeys(run.episode.episode_id for run in runs)
    return MinedComposite(
        definition=definition_of(lifting, name, tools),
        lifting=lifting,
        support=len(ids),
        uses=len(runs),
        evidence=tuple(ids)[:_MOST_EVIDENCE],
        worked=tuple(worked),
    )
