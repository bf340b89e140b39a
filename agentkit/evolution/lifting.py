"""From the occurrences of a pattern to the definition of a composite."""

from __future__ import annotations

import json
import keyword
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentkit.composites import language as ir
from agentkit.composites.codec import is_text, literal_of, program_to_json
from agentkit.composites.language import RESERVED
from agentkit.composites.rendering import render
from agentkit.composites.source import join_effects
from agentkit.evolution.patterns import Link, Occurrence, Ordering, Pattern
from agentkit.evolution.trajectories import Flow, Given, RecordedCall, Trajectory
from agentkit.tools.canonical import digest, is_json
from agentkit.tools.definition import (
    ChildReference,
    Description,
    Example,
    Origin,
    Signature,
    ToolDefinition,
)

# --- Names for what mining makes: tools, parameters and variables --------------------------------


LONGEST_TOOL_NAME = 64
"""What the providers' interfaces take."""

_VERBS = frozenset(
    {"calculate", "compute", "fetch", "find", "get", "list", "load", "look", "lookup", "make"}
    | {"query", "read", "retrieve", "search", "up", "by"}
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


def words(name: str) -> tuple[str, ...]:
    """The words of a name, whatever its style, in lower case.

    Example:
        >>> words("originSkyId"), words("Hotels.Search_HTTPHotel2")
        (('origin', 'sky', 'id'), ('hotels', 'search', 'http', 'hotel', '2'))
    """
    return tuple(word.lower() for word in _WORD.findall(name))


def tool_name(children: Sequence[str]) -> str:
    """A name for a composite that calls ``children`` in this order.

    Example:
        >>> tool_name(["search_airport", "search_airport", "find_flights"])
        'search_airport_and_find_flights'
    """
    distinct = list(dict.fromkeys("_".join(words(child)) or "tool" for child in children))
    if len(distinct) == 1:
        distinct.append("again")
    name = "_and_".join(distinct) if len(distinct) <= 3 else ""
    if not 0 < len(name) <= LONGEST_TOOL_NAME:
        name = f"{distinct[0]}_to_{distinct[-1]}_in_{len(children)}_calls"
    if len(name) > LONGEST_TOOL_NAME:
        name = f"{name[: LONGEST_TOOL_NAME - 9]}_{digest(list(children))[:8]}"
    return name if name.isidentifier() else f"tool_{name}"[:LONGEST_TOOL_NAME]


def variable_names(children: Sequence[str], qualifiers: Sequence[str]) -> list[str]:
    """A variable for the result of each call, told apart by its qualifier where that helps."""
    nouns = [_noun(child) for child in children]
    names: list[str] = []
    for noun, qualifier in zip(nouns, qualifiers, strict=True):
        wanted = f"{qualifier}_{noun}" if qualifier and nouns.count(noun) > 1 else noun
        names.append(identifier(wanted, taken=names))
    return names


def _noun(child: str) -> str:
    parts = [word for word in words(child.rpartition(".")[2]) if word not in _VERBS]
    return "_".join(parts[-3:]) or "_".join(words(child)) or "result"


def qualifiers(fed: Sequence[Collection[str]]) -> list[str]:
    """What tells calls apart, read from the names of the parameters that their results fill.

    Args:
        fed: For each call the names of the parameters that its result fills.

    Returns:
        A word or two for each call; empty where the names do not tell it from all the others.

    Example:
        >>> qualifiers([["originSkyId", "originEntityId"], ["destinationSkyId"]])
        ['origin', 'destination']
    """
    found = []
    for at, names in enumerate(fed):
        others = {
            word
            for other, each in enumerate(fed)
            if other != at
            for name in each
            for word in words(name)
        }
        prefix = _common_prefix(words(name) for name in names)
        own = [word for word in prefix if word not in others]
        found.append("_".join(own[:2]))
    return [text if found.count(text) == 1 else "" for text in found]


def _common_prefix(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    prefix: tuple[str, ...] | None = None
    for name in names:
        if prefix is None:
            prefix = name
        same = 0
        while same < min(len(prefix), len(name)) and prefix[same] == name[same]:
            same += 1
        prefix = prefix[:same]
    return prefix or ()


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
    if name not in taken:
        return name
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


# --- The text of a mined composite, as a program: one call after the other -----------------------


Slot: TypeAlias = tuple[int, str]
"""An argument of a pattern that comes from outside: index of the call, name of the argument."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgramWriter:
    """Writes the body of a program that makes the calls of a pattern.

    Attributes:
        pattern: The calls.
        filled: What stands for each argument from outside.
        orders: For each tool the declared order of its parameters.
        fed: For each call a word for what its result is used as; mostly empty.
    """

    pattern: Pattern
    filled: Mapping[Slot, ir.Expression]
    orders: Mapping[str, Sequence[str]]
    fed: Sequence[str]

    def body(self, returned: Sequence[int], keys: Sequence[str]) -> ir.Block:
        """The statements.

        Args:
            returned: Indexes of the calls whose results are returned.
            keys: Names of these results in the returned object; empty when there is one.
        """
        variables = self._variables()
        last = len(self.pattern.steps) - 1
        body = [
            ir.Assign(targets=(variables[at],), value=self._call(at, variables))
            for at in range(last)
        ]
        if list(returned) == [last]:
            return (*body, ir.Return(value=self._call(last, variables)))
        body.append(ir.Assign(targets=(variables[last],), value=self._call(last, variables)))
        return (*body, ir.Return(value=_returned(returned, keys, variables)))

    def _variables(self) -> list[str]:
        parameters = [part.name for part in self.filled.values() if isinstance(part, ir.Name)]
        taken = [*written_names(self.pattern), *parameters]
        variables: list[str] = []
        for name in variable_names([step.tool for step in self.pattern.steps], self.fed):
            variables.append(identifier(name, taken=[*taken, *variables]))
        return variables

    def _call(self, at: int, variables: Sequence[str]) -> ir.Call:
        step = self.pattern.steps[at]
        links = dict(step.arguments)
        names = arguments_in_order(step.arguments, self.orders.get(step.tool, ()))
        arguments = [
            ir.Argument(name=name, value=self._value(at, name, links[name], variables))
            for name in names
        ]
        return ir.Call(child=step.tool, arguments=tuple(arguments))

    def _value(self, at: int, name: str, link: Link, variables: Sequence[str]) -> ir.Expression:
        if link is None:
            return self.filled[at, name]
        value: ir.Expression = ir.Name(name=variables[link.step])
        for step in link.path:
            value = ir.Index(value=value, index=literal_of(step))
        return ir.Builtin(function=link.cast, arguments=(value,)) if link.cast else value


def _returned(
    returned: Sequence[int], keys: Sequence[str], variables: Sequence[str]
) -> ir.Expression:
    if not keys:
        return ir.Name(name=variables[returned[0]])
    return ir.DictLiteral(
        keys=tuple(ir.Constant(value=key) for key in keys),
        values=tuple(ir.Name(name=variables[call]) for call in returned),
    )


def arguments_in_order(arguments: Sequence[tuple[str, Link]], declared: Sequence[str]) -> list[str]:
    """Names of the arguments, declared ones first in their order."""
    rank = {name: at for at, name in enumerate(declared)}
    return sorted((name for name, _ in arguments), key=lambda n: (rank.get(n, len(rank)), n))


def written_names(pattern: Pattern) -> list[str]:
    """Names that the children take in the text of a program: variables are called otherwise."""
    names: dict[str, None] = {}
    for step in pattern.steps:
        written = re.sub(r"\W", "_", step.tool, flags=re.ASCII)
        names |= dict.fromkeys((step.tool, step.tool.partition(".")[0], written))
    return list(names)


# --- From the occurrences of a pattern to a program: what becomes a parameter, what is return ----
# From the occurrences of a pattern to a program: what becomes a parameter, what is returned.


_LONGEST_CONSTANT = 500  # characters; a longer text is what somebody wrote, not how a tool is used
_LARGEST_CONSTANT = 256  # bits
_SAME_OVER = 3  # occurrences over which an argument is constant, or equal to another
_SHARE = 0.2  # of the occurrences that need a result, so that it is returned


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
        returned: Indexes of the calls whose results the caller needs, in order.
        keys: Names of these results in the returned object; empty when there is one.
        program: The program.
    """

    pattern: Pattern
    parameters: tuple[LiftedParameter, ...]
    returned: tuple[int, ...]
    keys: tuple[str, ...]
    program: ir.Program

    def result_of(self, results: Sequence[Any]) -> Any:
        """What the program returns when its calls return ``results``."""
        if not self.keys:
            return results[self.returned[0]]
        return {key: results[call] for key, call in zip(self.keys, self.returned, strict=True)}


def live_results(
    trajectory: Trajectory, ordering: Ordering, occurrence: Occurrence
) -> tuple[int, ...]:
    """Indexes of the calls of an occurrence whose results are needed outside of it.

    A result is needed when a later call outside uses it, when the final answer shows it, or when
    no call uses it at all: then it was made for the answer.
    """
    return tuple(
        at
        for at, position in enumerate(occurrence.positions)
        if not ordering.users[position]
        or ordering.users[position] & ~occurrence.group
        or position in trajectory.answered
    )


def returned_calls(live: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The calls whose results the program returns, given those that each occurrence needs."""
    needed = Counter(call for one in live for call in one)
    return tuple(sorted(call for call, count in needed.items() if count >= _SHARE * len(live)))


def lift(
    pattern: Pattern,
    occurrences: Sequence[Occurrence],
    trajectories: Sequence[Trajectory],
    *,
    returned: tuple[int, ...],
    orders: Mapping[str, Sequence[str]],
) -> Lifting:
    """Make a program of a pattern.

    Args:
        pattern: The calls.
        occurrences: Where it was found; at least one.
        trajectories: What the occurrences point into.
        returned: Indexes of the calls whose results are returned.
        orders: For each tool the declared order of its parameters.
    """
    columns = {
        (call, name): _column((call, name), occurrences, trajectories)
        for call, step in enumerate(pattern.steps)
        for name in arguments_in_order(step.arguments, orders.get(step.tool, ()))
        if dict(step.arguments)[name] is None
    }
    defaults = {
        slot: json.loads(column[0])
        for slot, column in columns.items()
        if len(column) >= _SAME_OVER
        and len(set(column)) == 1
        and not column[0].startswith(("flow ", "unread "))
    }
    fed = _fed(pattern)
    parameters = _lifted_parameters(pattern, _merged(columns), defaults, fed)
    keys = _result_keys(pattern, returned, fed)
    filled: dict[Slot, ir.Expression] = {
        slot: ir.Name(name=parameter.name) for parameter in parameters for slot in parameter.slots
    }
    writer = ProgramWriter(pattern=pattern, filled=filled, orders=orders, fed=fed)
    head = tuple(ir.Parameter(name=one.name, default=one.default) for one in parameters)
    return Lifting(
        pattern=pattern,
        parameters=parameters,
        returned=returned,
        keys=keys,
        program=ir.Program(parameters=head, body=writer.body(returned, keys)),
    )


def _merged(columns: Mapping[Slot, tuple[str, ...]]) -> list[tuple[Slot, ...]]:
    """Arguments that go together: those that varied, and were equal in every occurrence."""
    groups: dict[tuple[object, ...], list[Slot]] = {}
    for slot, column in columns.items():
        values = tuple(text.removeprefix("flow ") for text in column)
        varied = len(set(values)) > 1 and len(values) >= _SAME_OVER
        groups.setdefault(values if varied else slot, []).append(slot)
    return [tuple(group) for group in groups.values()]


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
            for at, text in zip(same, qualifiers([names[at] for at in same]), strict=True):
                found[at] = text
    return found


def _lifted_parameters(
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
            text = f"{fed[call] or '_'.join(words(pattern.steps[call].tool))}_{name}"
        text = identifier(text, taken=taken)
        taken.append(text)
        value = defaults.get(group[0], ...)
        default = ir.Constant(value=value) if value is not ... and _is_literal(value) else None
        made.append(LiftedParameter(name=text, slots=group, default=default))
    return tuple(sorted(made, key=lambda parameter: parameter.default is not None))


def _result_keys(pattern: Pattern, returned: Sequence[int], fed: Sequence[str]) -> tuple[str, ...]:
    if len(returned) == 1:
        return ()
    names = variable_names([step.tool for step in pattern.steps], fed)
    return tuple(names[call] for call in returned)


# --- From a chosen pattern to the definition of a composite --------------------------------------


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
class MinedComposite:
    """A composite that mining proposes. Nothing is in the library yet.

    Attributes:
        definition: All four levels and the program.
        lifting: The pattern and how its parameters were lifted.
        support: Episodes in which it could stand.
        uses: Calls of it that would have been made, over all episodes.
        gain: Calls saved over all episodes, less the calls of the program and one.
        evidence: Ids of the episodes, bounded.
        worked: Occurrences that can be worked calls, the best first, with the recorded calls behind
            each: on them it can be tried out although a child must not run.
    """

    definition: ToolDefinition
    lifting: Lifting
    support: int
    uses: int
    gain: int
    evidence: tuple[str, ...]
    worked: tuple[WorkedCall, ...]

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A pattern that is worth a tool.

    Attributes:
        lifting: Its program.
        occurrences: Every place where the program could stand.
        placed: Those that are left when the choices before it have taken theirs.
        gain: Units saved: calls of all episodes, less the calls of the program and one.
    """

    lifting: Lifting
    occurrences: tuple[Occurrence, ...]
    placed: tuple[Occurrence, ...]
    gain: int

    @property
    def support(self) -> int:
        """Trajectories in which the program could stand."""
        return len({occurrence.trajectory for occurrence in self.occurrences})


MOST_EVIDENCE = 50
"""Ids of episodes that a candidate names."""


def candidate_of(
    choice: Choice,
    name: str,
    trajectories: Sequence[Trajectory],
    tools: Mapping[str, ToolDefinition],
) -> MinedComposite:
    """The definition of a composite, from a chosen pattern.

    Args:
        choice: The pattern and where it stands.
        name: The composite's name.
        trajectories: What the occurrences point into.
        tools: Definitions of the children by name.
    """
    worked = _worked(choice.lifting, choice.occurrences, trajectories)
    ids = dict.fromkeys(trajectories[o.trajectory].trajectory_id for o in choice.placed)
    return MinedComposite(
        definition=_definition(
            choice.lifting, name, tools, [one.example for one in worked[:MOST_EXAMPLES]]
        ),
        lifting=choice.lifting,
        support=choice.support,
        uses=len(choice.placed),
        gain=choice.gain,
        evidence=tuple(ids)[:MOST_EVIDENCE],
        worked=worked,
    )


def _definition(
    lifting: Lifting, name: str, tools: Mapping[str, ToolDefinition], examples: Sequence[Example]
) -> ToolDefinition:
    steps = [tools[step.tool] for step in lifting.pattern.steps]
    children = {child.name: child for child in steps}
    return ToolDefinition(
        name=name,
        signature=Signature(
            parameters=_parameters_schema(lifting, steps),
            result=_result(lifting, steps),
            effects=join_effects(child.signature.effects for child in children.values()),
            children=tuple(
                ChildReference(name=child.name, digest=child.digest) for child in children.values()
            ),
        ),
        description=Description(
            summary=_summary(steps), tags=("mined",), parameters=_texts(lifting, steps)
        ),
        examples=tuple(examples),
        body=program_to_json(lifting.program),
        origin=Origin(kind="composite", reference="mined from episodes"),
    )


def _parameters_schema(lifting: Lifting, steps: Sequence[ToolDefinition]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for parameter in lifting.parameters:
        call, argument = parameter.slots[0]
        schema = _alone(steps[call].signature.properties.get(argument))
        schema.pop("default", None)
        if parameter.default is not None:
            schema["default"] = parameter.default.value
        properties[parameter.name] = schema
    required = [parameter.name for parameter in lifting.parameters if parameter.default is None]
    return {"type": "object", "properties": properties, "required": required}


def _result(lifting: Lifting, steps: Sequence[ToolDefinition]) -> dict[str, Any] | None:
    results = [steps[call].signature.result for call in lifting.returned]
    if not lifting.keys:
        return None if results[0] is None else dict(results[0])
    properties = dict(zip(lifting.keys, map(_alone, results), strict=True))
    return {"type": "object", "properties": properties, "required": list(lifting.keys)}


def _alone(schema: Any) -> dict[str, Any]:
    """A schema outside of the one it was a part of; of one that refers to it anything is taken.

    The child still checks what it is given.
    """
    if not isinstance(schema, Mapping) or '"$ref"' in json.dumps(schema):
        return {}
    return dict(schema)


def _summary(steps: Sequence[ToolDefinition]) -> str:
    """What the calls do, in order, told once for each tool."""
    told = dict.fromkeys(_sentence(child) for child in steps)
    return f"{len(steps)} calls in one. " + " Then: ".join(told)


def _sentence(child: ToolDefinition) -> str:
    text = " ".join(child.description.summary.split()) or " ".join(words(child.name))
    text = text.removeprefix(f"{len(child.signature.children)} calls in one. ")
    first = text.split(". ")[0].rstrip(".")
    if len(first) > _LONGEST_SENTENCE:
        first = first[:_LONGEST_SENTENCE].rpartition(" ")[0] + " ..."
    return f"{first}."


def _texts(lifting: Lifting, steps: Sequence[ToolDefinition]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for parameter in lifting.parameters:
        call, argument = parameter.slots[0]
        for path, text in steps[call].description.parameters.items():
            rest = path.removeprefix(argument)
            if path == argument or (path.startswith(argument) and rest[:1] in {".", "["}):
                texts[f"{parameter.name}{rest}"] = text
    return texts


# --- L4 -------------------------------------------------------------------------------------------


def _worked(
    lifting: Lifting,
    occurrences: Sequence[Occurrence],
    trajectories: Sequence[Trajectory],
) -> tuple[WorkedCall, ...]:
    """Occurrences with distinct arguments whose calls were recorded whole, the shortest first.

    A call with something that is no JSON data, such as NaN, can not be kept.
    """
    found: dict[str, tuple[int, WorkedCall]] = {}
    for occurrence in occurrences[:_LOOKED_AT]:
        trajectory = trajectories[occurrence.trajectory]
        steps = [trajectory.steps[position] for position in occurrence.positions]
        if not all(step.is_whole for step in steps):
            continue
        try:
            recorded = [trajectory.recorded(position) for position in occurrence.positions]
        except LookupError:  # an argument that the recording does not hold
            continue
        if not all(is_json(one.arguments) and is_json(one.result) for one in recorded):
            continue
        arguments = {p.name: _filled(recorded, p.slots[0]) for p in lifting.parameters}
        key = json.dumps(arguments, sort_keys=True)
        length = len(key) + len(json.dumps([one.result for one in recorded]))
        if key not in found and length <= _LONGEST_EXAMPLE:
            result = lifting.result_of([step.result for step in steps])
            example = Example(arguments=arguments, result=result, query=trajectory.request)
            found[key] = length, WorkedCall(example=example, recorded=tuple(recorded))
    shortest = sorted(found.items(), key=lambda item: (item[1][0], item[0]))
    return tuple(worked for _, (_, worked) in shortest[: MOST_EXAMPLES + _SPARE])


def _filled(calls: Sequence[RecordedCall], slot: Slot) -> Any:
    call, name = slot
    return calls[call].arguments[name]
