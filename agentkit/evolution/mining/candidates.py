"""From a chosen pattern to the definition of a composite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentkit.composites.codec import program_to_json
from agentkit.composites.source import join_effects
from agentkit.composites.rendering import render
from agentkit.evolution.mining import naming
from agentkit.evolution.mining.lifting import Lifting
from agentkit.evolution.mining.patterns import Occurrence
from agentkit.evolution.mining.program import Slot
from agentkit.evolution.mining.selection import Choice
from agentkit.evolution.mining.trajectory import RecordedCall, Trajectory
from agentkit.messages import JsonObject
from agentkit.tools.canonical import is_json
from agentkit.tools.definition import (
    ChildReference,
    Description,
    Example,
    Origin,
    Signature,
    ToolDefinition,
)

_LONGEST_SENTENCE = 160


@dataclass(frozen=True, kw_only=True, slots=True)
class ExampleRules:
    """Which occurrences become worked calls.

    Attributes:
        most: Most worked calls of one composite; the shortest are taken.
        spare: Further ones, to take when those contradict what is known of a child.
        longest: Longest worked call, in characters of JSON, with what its calls returned.
        looked_at: Occurrences to choose from.
    """

    most: int = 3
    spare: int = 6
    longest: int = 16_000
    looked_at: int = 60


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
        round: 1 for a composite of the tools that were called; more for one that calls composites
            mined before.
    """

    definition: ToolDefinition
    lifting: Lifting
    support: int
    uses: int
    gain: int
    evidence: tuple[str, ...]
    worked: tuple[WorkedCall, ...]
    round: int = 1

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


MOST_EVIDENCE = 50
"""Ids of episodes that a candidate names."""


def candidate_of(
    choice: Choice,
    name: str,
    trajectories: Sequence[Trajectory],
    tools: Mapping[str, ToolDefinition],
    *,
    rules: ExampleRules,
    mining_round: int = 1,
) -> MinedComposite:
    """The definition of a composite, from a chosen pattern.

    Args:
        choice: The pattern and where it stands.
        name: The composite's name.
        trajectories: What the occurrences point into.
        tools: Definitions of the children by name.
        rules: Which occurrences become worked calls.
        mining_round: See ``MinedComposite.round``.
    """
    worked = _worked(choice.lifting, choice.occurrences, trajectories, rules)
    ids = dict.fromkeys(trajectories[o.trajectory].trajectory_id for o in choice.placed)
    return MinedComposite(
        definition=_definition(
            choice.lifting, name, tools, [one.example for one in worked[: rules.most]]
        ),
        lifting=choice.lifting,
        support=choice.support,
        uses=len(choice.placed),
        gain=choice.gain,
        evidence=tuple(ids)[:MOST_EVIDENCE],
        worked=worked,
        round=mining_round,
    )


def _definition(
    lifting: Lifting, name: str, tools: Mapping[str, ToolDefinition], examples: Sequence[Example]
) -> ToolDefinition:
    steps = [tools[step.tool] for step in lifting.pattern.steps]
    children = {child.name: child for child in steps}
    return ToolDefinition(
        name=name,
        signature=Signature(
            parameters=_parameters(lifting, steps),
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


# --- L1 -------------------------------------------------------------------------------------------


def _parameters(lifting: Lifting, steps: Sequence[ToolDefinition]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for parameter in lifting.parameters:
        call, argument = parameter.slots[0]
        schema = steps[call].signature.properties.get(argument, {})
        schema = {key: value for key, value in schema.items() if key != "default"}
        if parameter.default is not None:
            schema["default"] = parameter.default.value
        properties[parameter.name] = _apart(schema, call)
        definitions |= _shared_parts(steps[call].signature.parameters, call, schema)
    required = [parameter.name for parameter in lifting.parameters if parameter.default is None]
    schema = {"type": "object", "properties": properties, "required": required}
    return schema | ({"$defs": definitions} if definitions else {})


def _result(lifting: Lifting, steps: Sequence[ToolDefinition]) -> dict[str, Any] | None:
    results = {call: steps[call].signature.result for call in lifting.returned}
    if not lifting.keys:
        single = results[lifting.returned[0]]
        return None if single is None else dict(single)
    properties: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for key, (call, result) in zip(lifting.keys, results.items(), strict=True):
        schema = {k: v for k, v in (result or {}).items() if k not in {"$defs", "definitions"}}
        properties[key] = _apart(schema, call)
        definitions |= _shared_parts(result or {}, call, schema)
    schema = {"type": "object", "properties": properties, "required": list(lifting.keys)}
    return schema | ({"$defs": definitions} if definitions else {})


def _shared_parts(root: JsonObject, call: int, schema: Any) -> dict[str, Any]:
    """The shared parts of a child's schema, under names of their own; empty when not needed."""
    if '"$ref"' not in json.dumps(schema):
        return {}
    return {
        f"call{call}_{name}": _apart(part, call)
        for keyword in ("$defs", "definitions")
        for name, part in root.get(keyword, {}).items()
    }


def _apart(schema: Any, call: int) -> Any:
    """A schema whose references point at the shared parts under the names given above."""
    if isinstance(schema, list):
        return [_apart(item, call) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: _apart(item, call) for key, item in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str):
        for start in ("#/$defs/", "#/definitions/"):
            if reference.startswith(start):
                made["$ref"] = f"#/$defs/call{call}_{reference.removeprefix(start)}"
    return made


# --- L2 -------------------------------------------------------------------------------------------


def _summary(steps: Sequence[ToolDefinition]) -> str:
    """What the calls do, in order, told once for each tool."""
    told = dict.fromkeys(_sentence(child) for child in steps)
    return f"{len(steps)} calls in one. " + " Then: ".join(told)


def _sentence(child: ToolDefinition) -> str:
    text = " ".join(child.description.summary.split()) or " ".join(naming.words(child.name))
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
    rules: ExampleRules,
) -> tuple[WorkedCall, ...]:
    """Occurrences with distinct arguments whose calls were recorded whole, the shortest first.

    A call with something that is no JSON data, such as NaN, can not be kept.
    """
    found: dict[str, tuple[int, WorkedCall]] = {}
    for occurrence in occurrences[: rules.looked_at]:
        trajectory = trajectories[occurrence.trajectory]
        steps = [trajectory.steps[position] for position in occurrence.positions]
        if not all(step.is_whole for step in steps):
            continue
        try:
            calls = [trajectory.arguments(position) for position in occurrence.positions]
            recorded = [one for at in occurrence.positions for one in trajectory.recorded(at)]
        except LookupError:  # an argument that the recording does not hold
            continue
        if not all(is_json(one.arguments) and is_json(one.result) for one in recorded):
            continue
        arguments = {p.name: _filled(calls, p.slots[0]) for p in lifting.parameters}
        key = json.dumps(arguments, sort_keys=True)
        length = len(key) + len(json.dumps([one.result for one in recorded]))
        if key not in found and length <= rules.longest:
            result = lifting.result_of([step.result for step in steps])
            example = Example(arguments=arguments, result=result, query=trajectory.request)
            found[key] = length, WorkedCall(example=example, recorded=tuple(recorded))
    shortest = sorted(found.items(), key=lambda item: (item[1][0], item[0]))
    return tuple(worked for _, (_, worked) in shortest[: rules.most + rules.spare])


def _filled(calls: Sequence[JsonObject], slot: Slot) -> Any:
    call, name = slot
    return calls[call][name]
