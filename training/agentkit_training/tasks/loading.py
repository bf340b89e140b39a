"""``load_tasks_for_training``: one door to all tasks, by what a configuration says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import (
    AllowedCalls,
    AnyCall,
    CustomExpectation,
    ExactCalls,
    NumberAnswer,
    Rubric,
    Task,
    TextAnswer,
    load_benchmark,
)
from agentkit.fetch import cache_directory
from agentkit_bench.nestful import RELEASE as NESTFUL_RELEASE, fetch_nestful
from agentkit_bench.nestful_benchmark import nestful_benchmark
from agentkit_training.tasks.arithmetic import RECIPES, arithmetic, gsm8k_tasks
from agentkit_training.tasks.bfcl import POOL, bfcl_multi_turn_tasks, bfcl_tasks
from agentkit_training.tasks.hidden_constraints.family import ONE_CALL, Says, hidden_constraints
from agentkit_training.tasks.hidden_constraints.tools import TOOLS, ConstraintKind, World
from agentkit_training.tasks.splits import Functions, Shares, TaskSplits, split, split_before


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskSpec:
    """Which tasks to train, choose and report on. An option of another source is an error.

    Attributes:
        source: ``hidden-constraints``, ``arithmetic``, ``bfcl``, ``bfcl-multi-turn``, ``nestful``,
            ``gsm8k``, or the path of a file of tasks (JSON lines).
        data: Folder or file of a public benchmark; empty for what ``agentkit`` has fetched. In a
            folder of ``gsm8k`` its train.jsonl and test.jsonl are taken.
        fetch: Whether to download a public benchmark that is not there.
        environment: For a file of tasks: where its world or its tools are found, such as
            ``tools.py:World``. The code there runs.
        test_file: For ``gsm8k`` and files of tasks: another file, to test on.
        seed: Of everything that is drawn.
        shares: How much each part gets, where the tasks are divided.
        functions: Which function names must not stand in two parts; None for the source's own
            default.
        train: Most tasks of the first part; None for all. The families that are made up on the
            spot make as many, and the others are sampled, spread over the categories.
        validation: Of the second.
        test: Of the third.
        categories: For ``bfcl``: what to train on.
        held_out: For ``bfcl``: the category to test on.
        world: For ``hidden-constraints``: whose demands hold.
        kinds: For ``hidden-constraints``: which kinds of demands.
        distractors: For ``hidden-constraints``: tools offered beside those needed.
        says: For ``hidden-constraints``: what a refusal tells.
        mends: For ``hidden-constraints``: whether a call that was refused and then mended is right.
    """

    source: str
    data: str = ""
    fetch: bool = False
    environment: str = ""
    test_file: str = ""
    seed: int = 0
    shares: Shares = Shares()  # noqa: RUF009 - immutable
    functions: Functions | None = None
    train: int | None = None
    validation: int | None = None
    test: int | None = None
    categories: tuple[str, ...] = POOL
    held_out: str = "simple_python"
    world: World = "first"
    kinds: tuple[ConstraintKind, ...] = ONE_CALL
    distractors: int = 0
    says: Says = "rule"
    mends: bool = False


_FILE = "a file of tasks"
_OPTIONS: Mapping[str, frozenset[str]] = {
    "hidden-constraints": frozenset({"world", "kinds", "distractors", "says", "mends"}),
    "arithmetic": frozenset(),
    "bfcl": frozenset({"data", "fetch", "shares", "functions", "categories", "held_out"}),
    "bfcl-multi-turn": frozenset({"data", "fetch", "shares"}),
    "nestful": frozenset({"data", "fetch", "shares", "functions"}),
    "gsm8k": frozenset({"data", "shares", "test_file"}),
    _FILE: frozenset({"environment", "shares", "functions", "test_file"}),
}
_COMMON = frozenset({"source", "seed", "train", "validation", "test"})


def load_tasks_for_training(spec: TaskSpec) -> TaskSplits:
    """The tasks that a specification names, in three parts that share no question.

    Args:
        spec: Which tasks.

    Raises:
        UsageError: There is no such source, or it does not have an option that is given.
        DatasetError: Data is absent, or not what it has to be.

    Example:
        >>> load_tasks_for_training(TaskSpec(source="arithmetic", train=12)).sizes["train"]
        12
    """
    kind = spec.source if spec.source in _LOADERS else _FILE
    _check(spec, kind)
    _check_places(spec, kind)
    parts = _LOADERS[kind](spec)
    return parts.sampled(
        train=spec.train, validation=spec.validation, test=spec.test, seed=spec.seed
    )


def _check(spec: TaskSpec, kind: str) -> None:
    if kind == _FILE and not spec.source.endswith((".jsonl", ".jsonl.gz")):
        known = ", ".join(name for name in _LOADERS if name != _FILE)
        raise UsageError(
            f"there are no tasks {spec.source!r}; name one of {known}, or a file of tasks whose "
            "name ends in .jsonl"
        )
    allowed = _OPTIONS[kind] | _COMMON
    for field in fields(spec):
        if field.name not in allowed and getattr(spec, field.name) != field.default:
            having = [name for name, options in _OPTIONS.items() if field.name in options]
            raise UsageError(
                f"{spec.source} has no option {field.name}; it is for {' and '.join(having)}"
            )
    for name in ("train", "validation", "test"):
        size = getattr(spec, name)
        if size is not None and size < 0:
            raise UsageError(f"{name} is {size}; give a number of tasks, or leave it out")


def _check_places(spec: TaskSpec, kind: str) -> None:
    """Say from where a path is looked up that leads nowhere."""
    places = {"data": spec.data} | ({"source": spec.source} if kind == _FILE else {})
    for key, place in places.items():
        path = Path(place).expanduser()
        if place and not path.is_absolute() and not path.exists():
            raise DatasetError(
                f"tasks.{key} is {place}, which does not exist in {Path.cwd()}; paths are those "
                "from where the command is started"
            )


def _each(wanted: int | None, groups: int, default: int) -> int:
    """How many to make for each tool or recipe, so that as many as wanted can be drawn."""
    return default if wanted is None else math.ceil(wanted / max(groups, 1))


def _hidden(spec: TaskSpec) -> TaskSplits:
    tools = sum(tool.kind in spec.kinds for tool in TOOLS.values())
    return hidden_constraints(
        spec.world,
        seed=spec.seed,
        kinds=spec.kinds,
        train=_each(spec.train, tools, 40),
        validation=_each(spec.validation, tools, 10),
        test=_each(spec.test, tools, 20),
        distractors=spec.distractors,
        says=spec.says,
        judged="world" if spec.mends else "calls",
    )


def _arithmetic(spec: TaskSpec) -> TaskSplits:
    recipes = len(RECIPES)
    return arithmetic(
        seed=spec.seed,
        train=_each(spec.train, recipes, 20),
        validation=_each(spec.validation, recipes, 5),
        test=_each(spec.test, recipes, 10),
    )


def _bfcl(spec: TaskSpec) -> TaskSplits:
    return bfcl_tasks(
        Path(spec.data) if spec.data else None,
        categories=spec.categories,
        held_out=spec.held_out,
        shares=spec.shares,
        seed=spec.seed,
        functions=spec.functions or "offered",
        fetch=spec.fetch,
    )


def _multi_turn(spec: TaskSpec) -> TaskSplits:
    return bfcl_multi_turn_tasks(
        Path(spec.data) if spec.data else None,
        shares=spec.shares,
        seed=spec.seed,
        fetch=spec.fetch,
    )


def nestful_folder(spec: TaskSpec) -> Path:
    """Where the files of NESTFUL are; downloaded where that is allowed.

    Raises:
        DatasetError: They are not there.
    """
    folder = Path(spec.data) if spec.data else cache_directory() / f"nestful-{NESTFUL_RELEASE}"
    if not spec.data and spec.fetch:
        folder = fetch_nestful()
    if not folder.is_dir():
        raise DatasetError(
            f"NESTFUL is not in {folder}; say where it is (data), or let it be downloaded (fetch)"
        )
    return folder


def _nestful(spec: TaskSpec) -> TaskSplits:
    whole = nestful_benchmark(nestful_folder(spec), asking="executed")
    # Almost all of its questions use the same few functions for arithmetic.
    return split(whole, shares=spec.shares, seed=spec.seed, functions=spec.functions or "free")


def _gsm8k(spec: TaskSpec) -> TaskSplits:
    if not spec.data:
        raise UsageError(
            "GSM8K is in no package, so say in data where the folder of its train.jsonl and "
            "test.jsonl is: grade_school_math/data of github.com/openai/grade-school-math"
        )
    train, test = Path(spec.data), Path(spec.test_file) if spec.test_file else None
    if train.is_dir():  # upstream's folder: its test file is not to be trained on
        test = test or train / "test.jsonl"
        train = train / "train.jsonl"
    return gsm8k_tasks(train, test, shares=spec.shares, seed=spec.seed)


def _file(spec: TaskSpec) -> TaskSplits:
    environment = spec.environment or None
    whole = load_benchmark(spec.source, environment=environment)
    functions = spec.functions or "free"
    if not spec.test_file:
        return split(whole, shares=spec.shares, seed=spec.seed, functions=functions)
    test = load_benchmark(spec.test_file, environment=environment)
    return split_before(whole, test, shares=spec.shares, seed=spec.seed, functions=functions)


_LOADERS: Mapping[str, Callable[[TaskSpec], TaskSplits]] = {
    "hidden-constraints": _hidden,
    "arithmetic": _arithmetic,
    "bfcl": _bfcl,
    "bfcl-multi-turn": _multi_turn,
    "nestful": _nestful,
    "gsm8k": _gsm8k,
    _FILE: _file,
}


_CALLS = (AllowedCalls, AnyCall, CustomExpectation, ExactCalls)
_WORDS = (NumberAnswer, Rubric, TextAnswer)


def out_of_reach(parts: TaskSplits, max_steps: int | None) -> str:
    """How many tasks expect calls and words where one turn has room for either; empty for none.

    Nothing is learned from such a task by rewards, and measured it says nothing.

    Args:
        parts: The tasks.
        max_steps: Turns of a policy; None for what the tasks have: one where nothing runs tools.
    """
    told = [
        f"{sum(map(_wants_both, part.tasks))} of {len(part.tasks)} in {name}"
        for name, part in parts
        if (max_steps == 1 or (max_steps is None and part.environment is None))
        and any(map(_wants_both, part.tasks))
    ]
    if not told:
        return ""
    return (
        f"tasks that expect calls and words after them can not be passed in one turn: "
        f"{', '.join(told)}; give asking.max_steps 2 or more"
    )


def _wants_both(task: Task) -> bool:
    return any(
        any(isinstance(one, _CALLS) for one in turn.expects)
        and any(isinstance(one, _WORDS) for one in turn.expects)
        for turn in task.turns
    )
