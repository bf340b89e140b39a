"""``hidden_constraints``: the family as a benchmark in three parts, for either world."""

from __future__ import annotations

import json
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

from agentkit.composites import RuleChecker
from agentkit.errors import ModelRetry, UsageError
from agentkit.evaluation import (
    Benchmark,
    Environment,
    ExactCalls,
    Expectation,
    FinalState,
    GoldCall,
    Task,
)
from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit.tools.definition import Specification, ToolDefinition
from agentkit.tools.rules import EarlierCall, Rule, rule_sentence
from agentkit.tools.tool import Tool
from agentkit_training.tasks.hidden_constraints.tools import (
    LOOKUPS,
    TOOLS,
    ConstraintKind,
    Filling,
    HiddenTool,
    Slot,
    World,
    looked_up,
)
from agentkit_training.tasks.splits import TaskSplits

Says: TypeAlias = Literal["nothing", "rule"]
"""What a refusal tells beyond the fact: nothing more, or the demand in a sentence."""

REFUSED = "The call was refused."


class HiddenWorld:
    """One attempt's world, an ``Environment`` of ``agentkit.evaluation``.

    Args:
        names: The tools in it.
        world: Which demands hold.
        says: What a refusal tells.

    Example:
        >>> world = HiddenWorld(["request_loan"], "first")
        >>> world.refusal("request_loan", {"amount": 5000, "term": 4})
        'The call was refused. term must be one of 36, 48, 60.'
        >>> world.refusal("request_loan", {"amount": 5000, "term": 48})
        ''
    """

    def __init__(self, names: Iterable[str], world: World, says: Says = "rule") -> None:
        self._names = tuple(names)
        self._world = world
        self._says = says
        self._taken: list[GoldCall] = []
        self._told: list[EarlierCall] = []

    def tools(self) -> Sequence[Tool]:
        """The tools, bound to this world, under their plain definitions."""
        return tuple(self._tool(name) for name in self._names)

    def state(self) -> JsonObject:
        """The calls that were taken, in an order that does not tell when."""
        taken = [{"tool": one.name, "arguments": dict(one.arguments)} for one in self._taken]
        return {"taken": sorted(taken, key=lambda one: json.dumps(one, sort_keys=True))}

    def refusal(self, name: str, arguments: JsonObject) -> str:
        """What the world says to a call that fits the contract; empty when it takes it.

        Args:
            name: The tool.
            arguments: Its arguments.
        """
        if name in LOOKUPS:
            return ""
        rule = TOOLS[name].demands[self._world]
        ruled = replace(TOOLS[name].definition, specification=Specification(rules=(rule,)))
        if RuleChecker(ruled).refusal(arguments, self._told) is None:
            return ""
        return f"{REFUSED} {rule_sentence(rule)}" if self._says == "rule" else REFUSED

    def _tool(self, name: str) -> Tool:
        definition = LOOKUPS[name] if name in LOOKUPS else TOOLS[name].definition

        def call(**arguments: Any) -> str:
            refusal = self.refusal(name, arguments)
            if refusal:
                raise ModelRetry(refusal)
            if name in LOOKUPS:
                self._told.append(EarlierCall(name=name, text=looked_up(name, arguments["name"])))
                return self._told[-1].text
            self._taken.append(GoldCall(name=name, arguments=arguments))
            return "done"

        return Tool(definition=definition, function=call)


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
    ordered = {name: arguments[name] for name in tool.definition.signature.properties}
    gold = (*before, GoldCall(name=tool.name, arguments=ordered))
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


def gold_calls(task: Task) -> tuple[GoldCall, ...]:
    """The calls that a task of this family wants, in order."""
    (expected,) = task.expects
    assert isinstance(expected, ExactCalls | FinalState)  # questions() makes no others
    return expected.calls


def tool_of(task: Task) -> HiddenTool:
    """The tool that a question of this family is about."""
    return TOOLS[gold_calls(task)[-1].name]


ONE_CALL: tuple[ConstraintKind, ...] = ("enum", "unit", "form", "condition", "requires")
"""Kinds whose questions one call answers."""

ALL_KINDS: tuple[ConstraintKind, ...] = get_args(ConstraintKind)


def hidden_constraints(
    world: World = "first",
    *,
    seed: int = 0,
    kinds: Collection[ConstraintKind] = ONE_CALL,
    train: int = 40,
    validation: int = 10,
    test: int = 20,
    distractors: int = 0,
    says: Says = "rule",
    judged: Judged = "calls",
) -> TaskSplits:
    """Questions about tools that demand what their definitions do not say.

    The demand is an enum, a unit, a form, a choice that another parameter decides, a parameter
    that goes with another, or a value that another tool has to be asked for. The executor refuses
    a call that breaks it. A question says in plain words what is needed, as "over four years"
    where the tool wants 48.

    No question and no entity (name, place, number) stands in two parts. In the world ``swapped``
    the same tools demand other words and units, and the same questions have other gold answers: a
    policy that has learned the first world by heart is wrong there, and only the texts of the
    tools can help. Its training part is there to learn such texts from.

    Args:
        world: Which demands hold.
        seed: Of everything that is drawn; both worlds ask the same for the same seed.
        kinds: Which kinds of demands; ``call_before`` needs two steps.
        train: Questions about each tool in the first part, as far as there are so many.
        validation: In the second.
        test: In the third.
        distractors: Tools offered beside those that the answer needs.
        says: Whether a refusal tells the demand.
        judged: What a right answer is.

    Raises:
        UsageError: There is no such kind.

    Example:
        >>> task = hidden_constraints(kinds=["enum"], train=1).train.tasks[0]
        >>> task.category, task.offered
        ('enum', ('request_loan',))
    """
    names = _names(kinds)
    asking = Asking(world=world, seed=seed, distractors=distractors, judged=judged)
    counts: dict[Part, int] = {"train": train, "validation": validation, "test": test}

    def made(_task: Task) -> Environment:
        return HiddenWorld(names, world, says)

    def benchmark(part: Part) -> Benchmark:
        tasks = (
            task
            for name in names
            if name in TOOLS
            for task in questions(TOOLS[name], part, counts[part], asking, among=names)
        )
        return Benchmark(
            name=f"hidden constraints, {world}",
            tasks=tuple(tasks),
            definitions=tuple(tool.definition for tool in HiddenWorld(names, world).tools()),
            environment=made,
        )

    return TaskSplits(
        train=benchmark("train"), validation=benchmark("validation"), test=benchmark("test")
    )


def _names(kinds: Collection[ConstraintKind]) -> tuple[str, ...]:
    unknown = sorted(set(kinds) - set(ALL_KINDS))
    if unknown or not kinds:
        raise UsageError(
            f"there are no kinds of hidden demands {', '.join(unknown) or '(none given)'}; "
            f"choose among {', '.join(ALL_KINDS)}"
        )
    tools = [name for name, tool in TOOLS.items() if tool.kind in kinds]
    return (*tools, *(LOOKUPS if "call_before" in kinds else ()))


Repair: TypeAlias = Literal["fixed", "words", "rules"]
"""Which texts the tools have: as they are, with the demand unsaid; with the demand as a sentence;
with the demand as a learned rule, which also narrows the schema."""


def oracle_rules(tool: str, world: World = "first") -> tuple[Rule, ...]:
    """The learned rules that state what a tool demands; none for a lookup.

    Example:
        >>> oracle_rules("request_loan", "swapped")
        (OneOf(parameter='term', values=(12, 16, 20), kind='one_of'),)
    """
    return (TOOLS[tool].demands[world],) if tool in TOOLS else ()


def library_of(
    repair: Repair, world: World = "first", *, names: Iterable[str] | None = None
) -> Library:
    """The tools of the family under other texts, to be given to ``evaluate`` or ``collect``.

    Args:
        repair: Which texts.
        world: Whose demands they state.
        names: The tools; None for all.
    """
    wanted = list(TOOLS) + list(LOOKUPS) if names is None else list(names)
    return Library([_repaired(name, repair, world) for name in wanted])


def _repaired(name: str, repair: Repair, world: World) -> ToolDefinition:
    definition = LOOKUPS[name] if name in LOOKUPS else TOOLS[name].definition
    rules = oracle_rules(name, world)
    if repair == "rules":
        return replace(definition, specification=Specification(rules=rules))
    if repair == "words":
        sentences = tuple(map(rule_sentence, rules))
        described = replace(definition.description, usage_rules=sentences)
        return replace(definition, description=described)
    return definition
