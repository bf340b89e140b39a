"""From the occurrences of a pattern to a program: what becomes a parameter, what is returned."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentkit.composites import language as ir
from agentkit.composites.codec import is_text
from agentkit.composites.codec import literal_of
from agentkit.evolution.mining import naming
from agentkit.evolution.mining.ordering import Ordering
from agentkit.evolution.mining.patterns import Occurrence, Pattern
from agentkit.evolution.mining.program import ProgramWriter, Slot, arguments_in_order, written_names
from agentkit.evolution.mining.trajectory import Flow, Given, Path, Trajectory

ConstantPolicy = Literal["default", "keep", "parameter"]
"""What becomes of an argument that is the same wherever a pattern occurs: the default of a
parameter, a constant of the program, or a parameter like any other."""

_LONGEST_CONSTANT = 500  # characters; a longer text is what somebody wrote, not how a tool is used
_LARGEST_CONSTANT = 256  # bits


@dataclass(frozen=True, kw_only=True, slots=True)
class LiftedParameter:
    """A parameter of a mined program.

    Attributes:
        name: Its name.
        slots: The arguments that it fills, the first one first.
        default: The value that it had wherever the pattern occurred; None when it varied.
    """

    name: str
    slots: tuple[Slot, ...]
    default: ir.Constant | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Lifting:
    """A pattern with its parameters lifted out.

    Attributes:
        pattern: The calls.
        parameters: Required ones first, in the order of the calls.
        constants: Arguments that stay constants of the program.
        returned: Indexes of the calls whose results the caller needs, in order.
        keys: Names of these results in the returned object; empty when there is one.
        program: The program.
    """

    pattern: Pattern
    parameters: tuple[LiftedParameter, ...]
    constants: Mapping[Slot, Any]
    returned: tuple[int, ...]
    keys: tuple[str, ...]
    program: ir.Program

    def result_path(self, call: int) -> Path | None:
        """Where the result of one of the calls is in the program's result; None for nowhere."""
        if call not in self.returned:
            return None
        return (self.keys[self.returned.index(call)],) if self.keys else ()

    def result_of(self, results: Sequence[Any]) -> Any:
        """What the program returns when its calls return ``results``."""
        if not self.keys:
            return results[self.returned[0]]
        return {key: results[call] for key, call in zip(self.keys, self.returned, strict=True)}


def live_results(
    trajectory: Trajectory, ordering: Ordering, positions: Sequence[int]
) -> tuple[int, ...]:
    """Indexes of the calls of an occurrence whose results are needed outside of it.

    A result is needed when a later call outside uses it, when the final answer shows it, or when
    no call uses it at all: then it was made for the answer.
    """
    group = sum(1 << position for position in positions)
    return tuple(
        at
        for at, position in enumerate(positions)
        if not ordering.users[position]
        or ordering.users[position] & ~group
        or position in trajectory.answered
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class LiftingRules:
    """How parameters are lifted.

    Attributes:
        constants: What becomes of arguments that never varied.
        same_over: An argument has to be the same over so many occurrences to count as constant,
            and two arguments equal over so many to become one parameter.
        result_share: A result is returned when at least this share of the occurrences needs it;
            occurrences that need one that is not returned are left out.
    """

    constants: ConstantPolicy = "default"
    same_over: int = 3
    result_share: float = 0.2


def returned_calls(live: Sequence[tuple[int, ...]], rules: LiftingRules) -> tuple[int, ...]:
    """The calls whose results the program returns, given those that each occurrence needs."""
    needed: dict[int, int] = {}
    for one in live:
        for call in one:
            needed[call] = needed.get(call, 0) + 1
    return tuple(
        sorted(call for call, count in needed.items() if count >= rules.result_share * len(live))
    )


def lift(
    pattern: Pattern,
    occurrences: Sequence[Occurrence],
    trajectories: Sequence[Trajectory],
    *,
    returned: tuple[int, ...],
    orders: Mapping[str, Sequence[str]],
    rules: LiftingRules,
) -> Lifting:
    """Make a program of a pattern.

    Args:
        pattern: The calls.
        occurrences: Where it was found; at least one.
        trajectories: What the occurrences point into.
        returned: Indexes of the calls whose results are returned.
        orders: For each tool the declared order of its parameters.
        rules: How parameters are lifted.
    """
    slots = [
        (call, name)
        for call, step in enumerate(pattern.steps)
        for name in arguments_in_order(step.arguments, orders.get(step.tool, ()))
        if dict(step.arguments)[name] is None
    ]
    columns = {slot: _column(slot, occurrences, trajectories) for slot in slots}
    constants = _constants(columns, rules)
    kept = {
        slot: value
        for slot, value in constants.items()
        if rules.constants == "keep" and _is_literal(value)
    }
    groups = _merged([slot for slot in slots if slot not in kept], columns, constants, rules)
    defaults = constants if rules.constants == "default" else {}
    fed = _fed(pattern)
    parameters = _parameters(pattern, groups, defaults, fed)
    keys = _result_keys(pattern, returned, fed)
    filled: dict[Slot, ir.Expression] = {
        slot: ir.Name(name=parameter.name) for parameter in parameters for slot in parameter.slots
    }
    filled |= {slot: literal_of(value) for slot, value in kept.items()}
    writer = ProgramWriter(pattern=pattern, filled=filled, orders=orders, fed=fed)
    head = tuple(ir.Parameter(name=one.name, default=one.default) for one in parameters)
    return Lifting(
        pattern=pattern,
        parameters=parameters,
        constants=kept,
        returned=returned,
        keys=keys,
        program=ir.Program(parameters=head, body=writer.body(returned, keys)),
    )


# --- what varies ----------------------------------------------------------------------------------


def fingerprint(trajectory: Trajectory, source: Flow | Given) -> str:
    """Text that is equal for two arguments of one trajectory exactly when their values are.

    A value that can not be read counts as equal to itself alone.
    """
    try:
        return json.dumps(trajectory.value(source), sort_keys=True)
    except LookupError:
        return f"unread {source!r}"


def _column(
    slot: Slot, occurrences: Sequence[Occurrence], trajectories: Sequence[Trajectory]
) -> tuple[str, ...]:
    call, name = slot
    found = []
    for one in occurrences:
        trajectory = trajectories[one.trajectory]
        source = trajectory.steps[one.positions[call]].sources[name]
        mark = "flow " if isinstance(source, Flow) else ""
        found.append(mark + fingerprint(trajectory, source))
    return tuple(found)


def _constants(columns: Mapping[Slot, tuple[str, ...]], rules: LiftingRules) -> dict[Slot, Any]:
    """Arguments that were the same everywhere and never came from a result."""
    return {
        slot: json.loads(column[0])
        for slot, column in columns.items()
        if len(column) >= rules.same_over
        and len(set(column)) == 1
        and not column[0].startswith(("flow ", "unread "))
    }


def _merged(
    slots: Sequence[Slot],
    columns: Mapping[Slot, tuple[str, ...]],
    constants: Collection[Slot],
    rules: LiftingRules,
) -> list[tuple[Slot, ...]]:
    """Arguments that go together: those that varied, and were equal in every occurrence."""
    groups: dict[tuple[str, ...], list[Slot]] = {}
    order: list[list[Slot]] = []
    for slot in slots:
        column = tuple(text.removeprefix("flow ") for text in columns[slot])
        varied = len(set(column)) > 1 and len(column) >= rules.same_over
        if slot in constants or not varied:
            order.append([slot])
        elif column in groups:
            groups[column].append(slot)
        else:
            groups[column] = [slot]
            order.append(groups[column])
    return [tuple(group) for group in order]


def _is_literal(value: Any) -> bool:
    """Whether a value can be a constant of a program, or the default of a parameter."""
    if isinstance(value, str):
        return is_text(value) and len(value) <= _LONGEST_CONSTANT
    if isinstance(value, int):
        return value.bit_length() <= _LARGEST_CONSTANT
    return value is None or (isinstance(value, float) and math.isfinite(value))


# --- names ----------------------------------------------------------------------------------------


def _fed(pattern: Pattern) -> list[str]:
    """For each call a word for what its result is used as, such as ``origin``; mostly empty."""
    names: list[list[str]] = [[] for _ in pattern.steps]
    for step in pattern.steps:
        for name, link in step.arguments:
            if link is not None:
                names[link.step].append(name)
    found = [""] * len(pattern.steps)
    for tool in {step.tool for step in pattern.steps}:
        same = [at for at, step in enumerate(pattern.steps) if step.tool == tool]
        if len(same) > 1:
            for at, text in zip(same, naming.qualifiers([names[at] for at in same]), strict=True):
                found[at] = text
    return found


def _parameters(
    pattern: Pattern,
    groups: Sequence[tuple[Slot, ...]],
    defaults: Mapping[Slot, Any],
    fed: Sequence[str],
) -> tuple[LiftedParameter, ...]:
    wanted = [group[0][1] for group in groups]
    taken = written_names(pattern)
    made: list[LiftedParameter] = []
    for group in groups:
        (call, name), *_ = group
        text = name
        if wanted.count(name) > 1:
            text = f"{fed[call] or '_'.join(naming.words(pattern.steps[call].tool))}_{name}"
        text = naming.identifier(text, taken=taken)
        taken.append(text)
        value = defaults.get(group[0], ...)
        default = ir.Constant(value=value) if value is not ... and _is_literal(value) else None
        made.append(LiftedParameter(name=text, slots=group, default=default))
    return tuple(sorted(made, key=lambda parameter: parameter.default is not None))


def _result_keys(pattern: Pattern, returned: Sequence[int], fed: Sequence[str]) -> tuple[str, ...]:
    if len(returned) == 1:
        return ()
    names = naming.variable_names([step.tool for step in pattern.steps], fed)
    return tuple(names[call] for call in returned)
