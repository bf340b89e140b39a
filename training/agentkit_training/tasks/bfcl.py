"""BFCL for training: a pool that shares nothing with held-out questions; multi-turn in two ways."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path

from agentkit.errors import DatasetError, UsageError
from agentkit.evaluation import Benchmark, LeftOut, Task
from agentkit.fetch import cache_directory
from agentkit_bench import fetch_bfcl, load_bfcl
from agentkit_bench.bfcl import RELEASE
from agentkit_bench.bfcl_multi_turn import (
    SIMULATORS,
    fetch_bfcl_multi_turn,
    installed_bfcl,
    load_bfcl_multi_turn,
)
from agentkit_training.tasks.splits import (
    Functions,
    Shares,
    TaskSplits,
    divided,
    split,
    without_leakage,
)

POOL = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
"""The categories whose gold calls are Python values, which one answer can be taught for."""


def bfcl_tasks(
    folder: Path | None = None,
    *,
    categories: Collection[str] = POOL,
    held_out: str = "simple_python",
    shares: Shares | None = None,
    seed: int = 0,
    functions: Functions = "offered",
    fetch: bool = False,
) -> TaskSplits:
    """The single-turn part: one category is held out, the others are trained on.

    Tasks of the pool that share a question or a function name with a held-out one are dropped;
    ``train.left_out`` says which, and what they share. Training and validation are divided in the
    same way. So no number that is measured on the test part owes anything to a question or a
    function that was seen.

    Args:
        folder: Holds BFCL's files; None for those that ``agentkit`` has fetched.
        categories: What to train on.
        held_out: The category to test on.
        shares: How training and validation divide the pool; the share of the test part is that of
            ``held_out``.
        seed: Of the divisions.
        functions: Which function names must not be shared.
        fetch: Whether to download the files when they are not there.

    Raises:
        DatasetError: The files are not there, or no task of the category is.
        UsageError: The tasks can not be divided so.
    """
    what = "the questions of BFCL are"
    benchmark = load_bfcl(_data(folder, f"bfcl-{RELEASE}", fetch_bfcl if fetch else None, what))
    test = _of_categories(benchmark, {held_out})
    if not test.tasks:
        known = ", ".join(sorted({task.category for task in benchmark.tasks}))
        raise DatasetError(f"there is no task of {held_out!r} to hold out; there are {known}")
    wanted = set(categories) - {held_out}
    pool, dropped = without_leakage(_of_categories(benchmark, wanted), test, functions=functions)
    left_out = tuple(
        LeftOut(where=one, reason=f"shares a question or a function name with {held_out}")
        for one in dropped.tasks
    )
    pool = replace(pool, left_out=(*pool.left_out, *left_out))
    if not pool.tasks:
        raise DatasetError(
            f"no task of {', '.join(sorted(wanted)) or held_out} is left to train on: all "
            f"{len(dropped.tasks)} share something with the held-out {held_out}"
        )
    kept = replace(shares or Shares(), test=0)
    return replace(split(pool, shares=kept, seed=seed, functions=functions), test=test)


def _of_categories(benchmark: Benchmark, wanted: Collection[str]) -> Benchmark:
    return replace(benchmark, tasks=tuple(t for t in benchmark.tasks if t.category in wanted))


def _data(folder: Path | None, name: str, fetch: Callable[[], Path] | None, what: str) -> Path:
    """The folder that is given, fetched, or was fetched before."""
    if folder is not None:
        return folder
    if fetch is not None:
        return fetch()
    cached = cache_directory() / name
    if cached.is_dir():
        return cached
    raise DatasetError(
        f"{what} not in {cached}; give the folder, or let it be downloaded with fetch=True (fetch: "
        "true in a configuration)"
    )


def bfcl_multi_turn_tasks(
    folder: Path | None = None,
    *,
    shares: Shares | None = None,
    seed: int = 0,
    fetch: bool = False,
    simulators: Mapping[str, str] = SIMULATORS,
) -> TaskSplits:
    """The multi-turn part; all variants of a conversation are in one part.

    The four categories are variants of the same 200 conversations. SEAL's split (400 to train, 400
    to test) divides each category by itself, so that 173 of the 187 conversations in its test part
    stand in its training part as another variant.

    Args:
        folder: Holds the files and the simulators, see ``load_bfcl_multi_turn``; None for those of
            an installed ``bfcl_eval`` or those that ``agentkit`` has fetched.
        shares: How much each part gets.
        seed: Of the division.
        fetch: Whether to download the files when they are not there.
        simulators: As in ``load_bfcl_multi_turn``.

    Raises:
        DatasetError: The files are not there.
        UsageError: There are too few conversations for the parts.
    """
    what = "bfcl_eval is not installed, and the multi-turn part of BFCL is"
    name, fetched = f"bfcl-multi-turn-{RELEASE}", fetch_bfcl_multi_turn if fetch else None
    found = _data(folder or installed_bfcl(), name, fetched, what)
    benchmark = load_bfcl_multi_turn(found, simulators=simulators)
    groups: dict[str, list[Task]] = {}
    for task in benchmark.tasks:
        groups.setdefault(conversation_of(task), []).append(task)
    parts = divided(benchmark, groups.values(), shares=shares, seed=seed)
    if parts is None:
        raise UsageError(
            f"{len(groups)} conversations are too few for the parts {shares or Shares()}; give a "
            "share of 0 to those that are not needed"
        )
    return parts


def conversation_of(task: Task) -> str:
    """What the variants of a conversation have in common: the number in their id."""
    return task.task_id.rpartition("_")[2]
