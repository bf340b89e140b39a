"""Questions about hidden demands: drawn from templates, deterministic for a seed."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from agentkit.evaluation import ExactCalls, Expectation, FinalState, GoldCall, Task
from agentkit.messages import JsonObject
from agentkit_training.tasks.hidden_constraints.catalogue import TOOLS
from agentkit_training.tasks.hidden_constraints.hidden_tool import (
    Filling,
    HiddenTool,
    Slot,
    World,
)

Part: TypeAlias = Literal["train", "validation", "test"]

Judged: TypeAlias = Literal["calls", "world"]
"""What a right answer is: exactly the gold calls, or a world that took what the gold calls ask for.
With ``world`` a call that was refused and then mended is right as well."""

_CUTS: Mapping[Part, tuple[float, float]] = {
    "train": (0.0, 0.6),
    "validation": (0.6, 0.8),
    "test": (0.8, 1.0),
}
_DRAWS = 60


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """How questions are asked.

    Attributes:
        world: Which demands hold.
        seed: Of entities, words and distractors.
        distractors: Tools that are offered beside those that the answer needs.
        judged: What a right answer is.
    """

    world: World = "first"
    seed: int = 0
    distractors: int = 0
    judged: Judged = "calls"


def questions(
    tool: HiddenTool, part: Part, count: int, asking: Asking, *, among: Collection[str] = ()
) -> tuple[Task, ...]:
    """Different questions about one tool.

    Both worlds ask the same for the same seed, with however many distractors; only what is right
    differs.

    Args:
        tool: The tool.
        part: Whose entities to ask about.
        count: How many; fewer when there are not as many.
        asking: How to ask.
        among: Names of the tools that distractors are drawn from.
    """
    key = f"{asking.seed}/{tool.name}/{part}"
    draw, mix = random.Random(key), random.Random(f"{key}/offers")  # noqa: S311 - to be repeated
    slots = {slot.name: fillings_of(slot, part, asking.seed) for slot in tool.slots}
    others = sorted(set(among) - _needed(tool))
    found: dict[str, Task] = {}
    for _ in range(count * _DRAWS):
        if len(found) == count:
            break
        template = draw.choice(tool.templates)
        chosen = {name: draw.choice(fillings) for name, fillings in slots.items()}
        beside = mix.sample(others, min(asking.distractors, len(others)))
        task = _task(tool, template, chosen, asking)
        offered = [*task.offered, *beside]
        mix.shuffle(offered)
        task_id = f"{part}:{tool.name}:{len(found)}"
        found.setdefault(task.request, replace(task, task_id=task_id, offered=tuple(offered)))
    return tuple(found.values())


def fillings_of(slot: Slot, part: Part, seed: int) -> Sequence[Filling]:
    """What may stand in a slot in one part; the entities of different parts are disjoint.

    Slots that hold the same entities, of whichever tools, are divided in the same way.
    """
    if not slot.is_entity:
        return slot.fillings
    pool = sorted(slot.fillings, key=lambda one: one.words)
    key = "|".join(one.words for one in pool)
    random.Random(f"{seed}/{key}").shuffle(pool)  # noqa: S311 - to be repeated
    low, high = (round(share * len(pool)) for share in _CUTS[part])
    return pool[low:high]


def _needed(tool: HiddenTool) -> set[str]:
    return {tool.name, *tool.lookups.values()}


def _task(tool: HiddenTool, template: str, chosen: Mapping[str, Filling], asking: Asking) -> Task:
    words = {name: filling.words for name, filling in chosen.items()}
    arguments: dict[str, object] = {}
    for filling in chosen.values():
        arguments.update(filling.gold[asking.world])
    lookup = tool.lookups.get(asking.world)
    before = (GoldCall(name=lookup, arguments={"name": words["name"]}),) if lookup else ()
    gold = (*before, GoldCall(name=tool.name, arguments=_ordered(tool, arguments)))
    expected: Expectation = (
        ExactCalls(calls=gold) if asking.judged == "calls" else FinalState(calls=gold)
    )
    return Task(
        task_id="",
        category=tool.kind,
        request=template.format(**words),
        offered=tuple(sorted(_needed(tool))),
        expects=(expected,),
    )


def _ordered(tool: HiddenTool, arguments: JsonObject) -> JsonObject:
    return {name: arguments[name] for name in tool.definition.signature.properties}


def gold_calls(task: Task) -> tuple[GoldCall, ...]:
    """The calls that a task of this family wants, in order."""
    (expected,) = task.expects
    assert isinstance(expected, ExactCalls | FinalState)  # questions() makes no others
    return expected.calls


def tool_of(task: Task) -> HiddenTool:
    """The tool that a question of this family is about."""
    return TOOLS[gold_calls(task)[-1].name]
