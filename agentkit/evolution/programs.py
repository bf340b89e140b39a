"""Programs of code mode as composites: those that recur, with what varied as parameters.

Mining calls (``mining``) finds the flow of data by comparing values, and no loops or branches. A
program that a model wrote says both, so one that did well in enough episodes is a candidate as it
stands. Literals that it passes to tools or compares with are its parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from agentkit.agent.code_mode import read_program
from agentkit.composites.language import (
    RESERVED,
    Default,
    Parameter,
    Program,
    arguments_of,
    calls,
    child_call,
    child_of,
    targets_of,
    walk,
)
from agentkit.episodes import Episode
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
from agentkit.models.base import RUN_TOOL
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
                groups.setdefault(repr(normal_form(run.lifted.program)), []).append(run)
    names, made = {*tools, *taken}, []
    for _, runs in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        if len({run.episode.episode_id for run in runs}) >= min_support:
            children = [child_of(call) for call in calls(runs[0].lifted.program)]
            names.add(name := distinct_name(tool_name(children), names))
            made.append(_composite(name, children, runs, tools))
    return tuple(made)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A program that went well: where, without its literals, with its result and its calls."""

    episode: Episode
    lifted: _Literals
    result: Any
    recorded: tuple[RecordedCall, ...]


def _runs(episode: Episode, tools: Mapping[str, Tool]) -> Iterator[_Run]:
    for turn in episode.turns:
        for call, result in zip(turn.message.tool_calls, turn.results, strict=False):
            if call.name != RUN_TOOL or result.status != "ok" or result.call_id != call.call_id:
                continue
            try:
                program = read_program(str(call.arguments.get("program", "")), tools).program
            except CompositeError:  # a tool is gone, or is another one by now
                continue
            if _is_worth_a_tool(program):
                recorded = tuple(
                    RecordedCall(
                        tool=one.call.name, arguments=one.call.arguments, result=one.result.value
                    )
                    for one in turn.program_calls
                    if one.program == call.call_id and one.result.status == "ok"
                )
                yield _Run(
                    episode=episode,
                    lifted=_Literals(program),
                    result=result.value,
                    recorded=recorded,
                )


def _is_worth_a_tool(program: Program) -> bool:
    """Whether it calls more than once: two calls in the text, or one in a loop."""
    kinds = ast.For | ast.ListComp | ast.DictComp | ast.GeneratorExp
    loops = [node for node in walk(program) if isinstance(node, kinds)]
    return len(calls(program)) > 1 or any(map(calls, loops))


class _Literals(ast.NodeTransformer):
    """A program with the literals that it passes to tools, and compares with, as parameters.

    Attributes:
        program: It; its parameters have no defaults.
        slots: For each parameter a call and an argument that it fills; "" for a comparison.
        values: The literals, by parameter.
    """

    def __init__(self, program: Program) -> None:
        self.slots: dict[str, Slot] = {}
        self.values: dict[str, Any] = {}
        self._number = -1
        called = {child_of(call).partition(".")[0] for call in calls(program)}
        self._taken = [*RESERVED, *called]
        for node in walk(program):
            if isinstance(node, ast.AST):
                self._taken += (node.id,) if isinstance(node, ast.Name) else targets_of(node)
        body = tuple(self.visit(deepcopy(node)) for node in program.body)
        self.program = Program(
            parameters=tuple(Parameter(name=one) for one in self.slots), body=body
        )

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call of a child with parameters for its literals."""
        child = child_of(node)
        if not child:
            return self.generic_visit(node)
        self._number += 1
        number = self._number
        arguments = [
            (name, self._parameter(value, (number, name))) for name, value in arguments_of(node)
        ]
        return child_call(child, arguments)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """A comparison with parameters for its literals."""
        node.left = self._parameter(node.left, (0, ""))
        node.comparators = [self._parameter(one, (0, "")) for one in node.comparators]
        return node

    def _parameter(self, node: ast.expr, slot: Slot) -> ast.expr:
        """A parameter in place of a literal; truth values and None stay."""
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError):
            return self.visit(node)  # type: ignore[no-any-return]  # as it was
        if value is None or isinstance(value, bool) or not is_json(value):
            return node
        for name, known in self.values.items():
            same = canonical_json(known) == canonical_json(value)
            if same and self.slots[name][1] == slot[1]:
                return ast.Name(id=name)
        name = identifier(slot[1] or "value", taken=self._taken)
        self._taken.append(name)
        self.slots[name], self.values[name] = slot, value
        return ast.Name(id=name)


def _composite(
    name: str, children: Sequence[str], runs: Sequence[_Run], tools: Mapping[str, ToolDefinition]
) -> MinedComposite:
    """What a group of runs comes to; a literal that never varied is a default."""
    first = runs[0].lifted
    parameters = []
    for parameter, slot in first.slots.items():
        values = {canonical_json(run.lifted.values[parameter]) for run in runs}
        value = first.values[parameter]
        is_default = len(values) == 1 and isinstance(value, int | float | str)
        default = Default(value) if is_default and len(str(value)) <= _LONGEST_DEFAULT else None
        parameters.append(LiftedParameter(name=parameter, slots=(slot,), default=default))
    parameters.sort(key=lambda one: one.default is not None)
    head = tuple(Parameter(name=one.name, default=one.default) for one in parameters)
    lifting = Lifting(
        pattern=Pattern(steps=tuple(PatternStep(tool=one, arguments=()) for one in children)),
        parameters=tuple(parameters),
        returned=(),
        keys=(),
        program=replace(first.program, parameters=head),
    )
    worked = (
        WorkedCall(
            example=Example(
                arguments=run.lifted.values, result=run.result, query=run.episode.request
            ),
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
