"""From the occurrences of a pattern to a composite: program, definition and worked calls."""

from __future__ import annotations

import ast
import json
import keyword
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from agentkit.composites.composite import join_effects, program_to_json
from agentkit.composites.language import (
    RESERVED,
    Default,
    Parameter,
    Program,
    assign,
    child_call,
    is_text,
    render,
)
from agentkit.evolution.patterns import Occurrence, Pattern
from agentkit.evolution.trajectories import Flow, RecordedCall, Trajectory
from agentkit.retrieval.references import name_words
from agentkit.tools.canonical import digest, is_json
from agentkit.tools.definition import (
    ChildReference,
    Description,
    Example,
    Origin,
    Signature,
    ToolDefinition,
)

# --- Names for tools, parameters and variables ----------------------------------------------------

LONGEST_TOOL_NAME = 64
"""What the providers' interfaces take."""


def tool_name(children: Sequence[str]) -> str:
    """A name for a composite that calls ``children`` in this order.

    Example:
        >>> tool_name(["search_airport", "search_airport", "find_flights"])
        'search_airport_and_find_flights'
    """
    distinct = list(dict.fromkeys("_".join(name_words(child)) or "tool" for child in children))
    if len(distinct) == 1:
        distinct.append("again")
    name = "_and_".join(distinct)
    if len(distinct) > 3 or len(name) > LONGEST_TOOL_NAME:
        name = f"{distinct[0]}_to_{distinct[-1]}_in_{len(children)}_calls"
    if len(name) > LONGEST_TOOL_NAME:
        name = f"{name[: LONGEST_TOOL_NAME - 9]}_{digest(list(children))[:8]}"
    return name if name.isidentifier() else f"tool_{name}"[:LONGEST_TOOL_NAME]


def identifier(wanted: str, taken: Collection[str]) -> str:
    """``wanted`` as a name that the composite language takes and that is not in ``taken``.

    Example:
        >>> identifier("from", taken=()), identifier("max", taken=()), identifier("q", taken=["q"])
        ('from_', 'max_', 'q_2')
    """
    name = re.sub(r"\W", "_", wanted, flags=re.ASCII).lstrip("_") or "value"
    if not name[0].isalpha():
        name = f"value_{name}"
    if keyword.iskeyword(name) or name in RESERVED or name == "result":
        name = f"{name}_"
    free, number = name, 2
    while free in taken:
        free, number = f"{name}_{number}", number + 1
    return free


def _qualifiers(pattern: Pattern) -> list[str]:
    """A word that tells calls of one tool apart, such as ``origin``; empty where none is needed.

    It is the first word of the arguments that the result of the call fills.
    """
    found = [
        next((name_words(name)[0] for name in fed if name_words(name)), "") for fed in pattern.feeds
    ]
    calls = Counter(step.tool for step in pattern.steps)
    return [
        word if calls[step.tool] > 1 and found.count(word) == 1 else ""
        for step, word in zip(pattern.steps, found, strict=True)
    ]


def _variables(pattern: Pattern, taken: Iterable[str]) -> list[str]:
    """A variable for the result of each call, called after what its tool finds or makes."""
    names: list[str] = []
    for step, qualifier in zip(pattern.steps, _qualifiers(pattern), strict=True):
        noun = name_words(step.tool.rpartition(".")[2])
        wanted = "_".join((noun[1:] or noun or ("result",))[-3:])
        wanted = f"{qualifier}_{wanted}" if qualifier else wanted
        names.append(identifier(wanted, taken=[*taken, *names]))
    return names


# --- The program ----------------------------------------------------------------------------------

Slot: TypeAlias = tuple[int, str]
"""An argument of a pattern that comes from outside: index of the call, name of the argument."""

_LONGEST_CONSTANT = 500  # characters; a longer text is what somebody wrote, not how a tool is used
_LARGEST_CONSTANT = 256  # bits
_SAME_OVER = 3  # occurrences over which an argument is constant, or equal to another


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
    default: Default | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Lifting:
    """A pattern with its parameters lifted out.

    Attributes:
        pattern: The calls.
        parameters: Required ones first, in the order of the calls.
        returned: Indexes of the calls whose results the caller needs, in order.
        keys: Names of these results in the returned object; empty when there is one.
        program: The program.
    """

    pattern: Pattern
    parameters: tuple[LiftedParameter, ...]
    returned: tuple[int, ...]
    keys: tuple[str, ...]
    program: Program

    def result_of(self, results: Sequence[Any]) -> Any:
        """What the program returns when its calls return ``results``."""
        if not self.keys:
            return results[self.returned[0]]
        return {key: results[call] for key, call in zip(self.keys, self.returned, strict=True)}

    def arguments_of(self, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What the program is called with to make calls with these arguments."""
        slots = ((one.name, one.slots[0]) for one in self.parameters)
        return {name: calls[call][own] for name, (call, own) in slots}


def lift(
    pattern: Pattern,
    occurrences: Sequence[Occurrence],
    trajectories: Sequence[Trajectory],
    *,
    returned: tuple[int, ...],
    declared: Mapping[str, Sequence[str]],
) -> Lifting:
    """Make a program of a pattern.

    An argument from outside becomes a parameter; those that varied together become one, and one
    that never varied has its value as a default.

    Args:
        pattern: The calls.
        occurrences: Where it was found; at least one.
        trajectories: What the occurrences point into.
        returned: Indexes of the calls whose results are returned.
        declared: For each tool the declared order of its parameters.
    """
    columns = {
        (call, name): _column((call, name), occurrences, trajectories)
        for call, step in enumerate(pattern.steps)
        for name in _in_order(pattern, call, declared)
        if dict(step.arguments)[name] is None
    }
    parameters = tuple(_parameters(pattern, columns))
    variables = _variables(pattern, [*_written(pattern), *(one.name for one in parameters)])
    keys = tuple(variables[call] for call in returned) if len(returned) > 1 else ()
    filled = {slot: one.name for one in parameters for slot in one.slots}
    calls = [
        _call(pattern, at, _in_order(pattern, at, declared), variables, filled)
        for at in range(len(pattern.steps))
    ]
    head = tuple(Parameter(name=one.name, default=one.default) for one in parameters)
    body = _body(calls, variables, returned, keys)
    return Lifting(
        pattern=pattern,
        parameters=parameters,
        returned=returned,
        keys=keys,
        program=Program(parameters=head, body=body),
    )


def _in_order(pattern: Pattern, call: int, declared: Mapping[str, Sequence[str]]) -> list[str]:
    """Names of the arguments of a call, declared ones first in their order."""
    step = pattern.steps[call]
    rank = {name: at for at, name in enumerate(declared.get(step.tool, ()))}
    return sorted((n for n, _ in step.arguments), key=lambda n: (rank.get(n, len(rank)), n))


def _column(
    slot: Slot, occurrences: Sequence[Occurrence], trajectories: Sequence[Trajectory]
) -> tuple[str, ...]:
    """Texts that are equal exactly when the values of an argument are.

    A value that cannot be read counts as equal to itself alone.
    """
    call, name = slot
    found = []
    for one in occurrences:
        trajectory = trajectories[one.trajectory]
        source = trajectory.steps[one.positions[call]].sources[name]
        try:
            text = json.dumps(trajectory.value(source), sort_keys=True)
        except LookupError:
            text = f"unread {source!r}"
        found.append(f"flow {text}" if isinstance(source, Flow) else text)
    return tuple(found)


def _parameters(
    pattern: Pattern, columns: Mapping[Slot, tuple[str, ...]]
) -> Iterator[LiftedParameter]:
    groups: dict[tuple[object, ...], list[Slot]] = {}
    for slot, column in columns.items():
        values = tuple(text.removeprefix("flow ") for text in column)
        is_shared = len(set(values)) > 1 and len(values) >= _SAME_OVER
        groups.setdefault(values if is_shared else slot, []).append(slot)
    wanted = [group[0][1] for group in groups.values()]
    qualifiers = _qualifiers(pattern)
    taken = _written(pattern)
    made = []
    for group in groups.values():
        call, name = group[0]
        text = name
        if wanted.count(name) > 1:
            text = f"{qualifiers[call] or '_'.join(name_words(pattern.steps[call].tool))}_{name}"
        text = identifier(text, taken=taken)
        taken.append(text)
        default = _constant(columns[group[0]])
        made.append(LiftedParameter(name=text, slots=tuple(group), default=default))
    yield from sorted(made, key=lambda one: one.default is not None)


def _constant(column: Sequence[str]) -> Default | None:
    """The value of an argument that never varied, where a program can hold it."""
    is_constant = len(column) >= _SAME_OVER and len(set(column)) == 1
    if not is_constant or column[0].startswith(("flow ", "unread ")):
        return None
    value = json.loads(column[0])
    if isinstance(value, str):
        is_literal = is_text(value) and len(value) <= _LONGEST_CONSTANT
    elif isinstance(value, int):
        is_literal = value.bit_length() <= _LARGEST_CONSTANT
    else:
        is_literal = isinstance(value, float) and math.isfinite(value)
    return Default(value) if is_literal or value is None else None


def _written(pattern: Pattern) -> list[str]:
    """Names that the children take in the text of a program: variables are called otherwise."""
    names: dict[str, None] = {}
    for step in pattern.steps:
        written = re.sub(r"\W", "_", step.tool, flags=re.ASCII)
        names |= dict.fromkeys((step.tool, step.tool.partition(".")[0], written))
    return list(names)


def _call(
    pattern: Pattern,
    at: int,
    names: Iterable[str],
    variables: Sequence[str],
    filled: Mapping[Slot, str],
) -> ast.Call:
    step = pattern.steps[at]
    links = dict(step.arguments)
    arguments = []
    for name in names:
        link = links[name]
        value: ast.expr = ast.Name(id=variables[link.step] if link else filled[at, name])
        for part in link.path if link else ():
            value = ast.Subscript(value=value, slice=ast.Constant(value=part))
        if link and link.cast:
            value = ast.Call(func=ast.Name(id=link.cast), args=[value], keywords=[])
        arguments.append((name, value))
    return child_call(step.tool, arguments)


def _body(
    calls: Sequence[ast.Call],
    variables: Sequence[str],
    returned: Sequence[int],
    keys: Sequence[str],
) -> tuple[ast.stmt, ...]:
    assigned = tuple(assign((name,), call) for name, call in zip(variables, calls, strict=True))
    if list(returned) == [len(calls) - 1]:
        return (*assigned[:-1], ast.Return(value=calls[-1]))
    values: list[ast.expr] = [ast.Name(id=variables[call]) for call in returned]
    if not keys:
        return (*assigned, ast.Return(value=values[0]))
    texts: list[ast.expr | None] = [ast.Constant(value=key) for key in keys]
    return (*assigned, ast.Return(value=ast.Dict(keys=texts, values=values)))


# --- The definition -------------------------------------------------------------------------------

_LONGEST_SENTENCE = 160
MOST_EXAMPLES = 3
"""Worked calls of one composite; the shortest are taken."""

_SPARE = 6  # further ones, to take when those contradict what is known of a child
_LONGEST_EXAMPLE = 16_000  # characters of JSON, with what its calls returned
_LOOKED_AT = 60  # occurrences to choose from


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkedCall:
    """One occurrence as a worked call.

    Attributes:
        example: The call of the composite.
        recorded: The calls of primitives behind it.
    """

    example: Example
    recorded: tuple[RecordedCall, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplacedCalls:
    """Calls of one trajectory that a composite stands for.

    Attributes:
        trajectory_id: Of the trajectory.
        positions: Of its steps.
        arguments: What the composite would have been called with.
    """

    trajectory_id: str
    positions: tuple[int, ...]
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class MinedComposite:
    """A composite that mining proposes. Nothing is in the library yet.

    Attributes:
        definition: All four levels and the program.
        lifting: The pattern and how its parameters were lifted.
        support: Episodes in which it could stand.
        uses: Calls of it that would have been made, over all episodes.
        evidence: Ids of the episodes, bounded.
        worked: Occurrences that can be worked calls, the best first, with the recorded calls behind
            each: on them it can be tried out although a child must not run.
        replaces: The calls that it would have stood for.
    """

    definition: ToolDefinition
    lifting: Lifting
    support: int
    uses: int
    evidence: tuple[str, ...]
    worked: tuple[WorkedCall, ...]
    replaces: tuple[ReplacedCalls, ...] = ()

    @property
    def name(self) -> str:
        """The proposed name."""
        return self.definition.name

    @property
    def calls(self) -> int:
        """Calls of the program."""
        return len(self.lifting.pattern.steps)

    @property
    def saves(self) -> int:
        """Calls that the episodes would have been shorter by."""
        return self.uses * (self.calls - 1)

    @property
    def source(self) -> str:
        """The program as text."""
        return render(
            self.lifting.program, self.name, docstring=self.definition.description.summary
        )


def definition_of(
    lifting: Lifting, name: str, tools: Mapping[str, ToolDefinition]
) -> ToolDefinition:
    """The definition of a lifted pattern, without worked calls.

    Args:
        lifting: The program and its parameters.
        name: The composite's name.
        tools: Definitions of the children by name.
    """
    steps = [tools[step.tool] for step in lifting.pattern.steps]
    children = {child.name: child for child in steps}
    properties, texts = {}, {}
    for parameter in lifting.parameters:
        call, argument = parameter.slots[0]
        schema = _alone(steps[call].signature.properties.get(argument))
        schema.pop("default", None)
        if parameter.default is not None:
            schema["default"] = parameter.default.value
        properties[parameter.name] = schema
        for path, text in steps[call].description.parameters.items():
            rest = path.removeprefix(argument)
            if path.startswith(argument) and rest[:1] in {"", ".", "["}:
                texts[f"{parameter.name}{rest}"] = text
    required = [parameter.name for parameter in lifting.parameters if parameter.default is None]
    results = [steps[call].signature.result for call in lifting.returned]
    result = dict(results[0]) if results and results[0] is not None else None
    if lifting.keys:
        result = {
            "type": "object",
            "properties": dict(zip(lifting.keys, map(_alone, results), strict=True)),
            "required": list(lifting.keys),
        }
    told = dict.fromkeys(_sentence(child) for child in steps)
    return ToolDefinition(
        name=name,
        signature=Signature(
            parameters={"type": "object", "properties": properties, "required": required},
            result=result,
            effects=join_effects(child.signature.effects for child in children.values()),
            children=tuple(
                ChildReference(name=child.name, digest=child.digest) for child in children.values()
            ),
        ),
        description=Description(
            summary=f"{len(steps)} calls in one. " + " Then: ".join(told),
            tags=("mined",),
            parameters=texts,
        ),
        body=program_to_json(lifting.program, name),
        origin=Origin(kind="composite", reference="mined from episodes"),
    )


def _alone(schema: Any) -> dict[str, Any]:
    """A schema outside of the one it was a part of; of one that refers to it anything is taken.

    The child still checks what it is given.
    """
    if not isinstance(schema, Mapping) or '"$ref"' in json.dumps(schema):
        return {}
    return dict(schema)


def _sentence(child: ToolDefinition) -> str:
    text = " ".join(child.description.summary.split()) or " ".join(name_words(child.name))
    text = text.removeprefix(f"{len(child.signature.children)} calls in one. ")
    first = text.split(". ")[0].rstrip(".")
    if len(first) > _LONGEST_SENTENCE:
        first = first[:_LONGEST_SENTENCE].rpartition(" ")[0] + " ..."
    return f"{first}."


def worked_calls(
    lifting: Lifting, occurrences: Sequence[Occurrence], trajectories: Sequence[Trajectory]
) -> tuple[WorkedCall, ...]:
    """Occurrences with distinct arguments whose calls were recorded whole, the shortest first.

    A call with something that is no JSON data, such as NaN, cannot be kept.
    """
    found: dict[str, tuple[int, WorkedCall]] = {}
    for occurrence in occurrences[:_LOOKED_AT]:
        trajectory = trajectories[occurrence.trajectory]
        if not all(trajectory.steps[position].is_whole for position in occurrence.positions):
            continue
        try:
            recorded = tuple(map(trajectory.recorded, occurrence.positions))
        except LookupError:  # an argument that the recording does not hold
            continue
        if not all(is_json(one.arguments) and is_json(one.result) for one in recorded):
            continue
        arguments = lifting.arguments_of([one.arguments for one in recorded])
        key = json.dumps(arguments, sort_keys=True)
        results = [one.result for one in recorded]
        length = len(key) + len(json.dumps(results))
        if key not in found and length <= _LONGEST_EXAMPLE:
            result = lifting.result_of(results)
            example = Example(arguments=arguments, result=result, query=trajectory.request)
            found[key] = length, WorkedCall(example=example, recorded=recorded)
    shortest = sorted(found.items(), key=lambda item: (item[1][0], item[0]))
    return tuple(worked for _, (_, worked) in shortest[: MOST_EXAMPLES + _SPARE])


def with_worked_calls(composite: MinedComposite, chosen: Iterable[WorkedCall]) -> MinedComposite:
    """The composite with these as its worked calls."""
    examples = tuple(one.example for one in chosen)
    return replace(composite, definition=replace(composite.definition, examples=examples))
