"""``hidden_constraints``: the family as a benchmark in three parts, for either world."""

from __future__ import annotations

from collections.abc import Collection
from typing import get_args

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, Environment, EvaluationSettings, Task
from agentkit_training.tasks.hidden_constraints.catalogue import TOOLS
from agentkit_training.tasks.hidden_constraints.constraints import ConstraintKind
from agentkit_training.tasks.hidden_constraints.enforcing import HiddenWorld, Says
from agentkit_training.tasks.hidden_constraints.hidden_tool import World
from agentkit_training.tasks.hidden_constraints.lookups import LOOKUPS
from agentkit_training.tasks.hidden_constraints.questions import Asking, Judged, Part, questions
from agentkit_training.tasks.splits import TaskSplits

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
        kinds: Which kinds of demands; ``call_before`` needs several steps, see ``settings_for``.
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


def settings_for(
    kinds: Collection[ConstraintKind] = ONE_CALL, *, tries: int = 1
) -> EvaluationSettings:
    """How to ask: so many steps that each call can be tried as often as wanted.

    Args:
        kinds: The kinds that are asked about.
        tries: How often a refused call may be mended; more than one goes with ``judged="world"``.
    """
    if tries < 1:
        raise UsageError(f"tries is {tries}; give at least 1")
    calls = 2 if "call_before" in kinds else 1
    is_one = calls * tries == 1
    return EvaluationSettings(max_steps=calls * tries, tool_choice="required" if is_one else "auto")


def _names(kinds: Collection[ConstraintKind]) -> tuple[str, ...]:
    unknown = sorted(set(kinds) - set(ALL_KINDS))
    if unknown or not kinds:
        raise UsageError(
            f"there are no kinds of hidden demands {', '.join(unknown) or '(none given)'}; "
            f"choose among {', '.join(ALL_KINDS)}"
        )
    tools = [name for name, tool in TOOLS.items() if tool.kind in kinds]
    return (*tools, *(LOOKUPS if "call_before" in kinds else ()))
