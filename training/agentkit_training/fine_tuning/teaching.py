"""What fine-tuning on tasks learns from: single answers, and trajectories of several turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.evaluation.task import LeftOut
from agentkit.library import Library
from agentkit_training.fine_tuning.demonstrations import make_demonstrations
from agentkit_training.fine_tuning.examples import Examples, make_examples
from agentkit_training.fine_tuning.prompting import Prompting
from agentkit_training.fine_tuning.rehearsing import rehearsed
from agentkit_training.fine_tuning.solutions import solutions_of
from agentkit_training.policy.policy import Policy
from agentkit_training.tasks.loading import TaskSpec
from agentkit_training.tasks.splits import TaskSplits

_MOST_NAMED = 3


async def taught_examples(
    policy: Policy,
    benchmark: Benchmark,
    spec: TaskSpec,
    *,
    no_call: str = "",
    prompting: Prompting = Prompting(),  # noqa: B008 - immutable
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
    max_tokens: int | None = None,
) -> Examples:
    """Examples of every task whose solution is known, see ``solutions_of``.

    Solutions are acted out in the task's own world, where there is one; what fails there is left
    out.

    Args:
        policy: Whose tokenizer and chat template to use.
        benchmark: The tasks to train on.
        spec: Where they come from.
        no_call: What to answer where no call is right; such tasks are left out without it.
        prompting: How tools and calls are written.
        library: What the tools are called and described as, see ``collect``.
        settings: How the tasks are asked; those of the rollouts.
        max_tokens: Longest example; None for as many as the policy has room for.

    Raises:
        UsageError: There is nothing to teach; it says why.
        DatasetError: A file that the tasks came from can not be read any more.
        PolicyError: The chat template writes no end token after an answer.
    """
    known = solutions_of(benchmark, spec, no_call=no_call, prompting=prompting, settings=settings)
    single = await rehearsed(
        replace(known, trajectories={}), benchmark, library=library, settings=settings
    )
    room = min(max_tokens or policy.context_tokens, policy.context_tokens)
    found = Examples(left_out=single.left_out)
    found += await make_examples(
        policy,
        benchmark,
        single.answers,
        prompting=prompting,
        library=library,
        settings=settings,
        max_tokens=room,
    )
    if known.trajectories:  # these are acted out as they are written
        found += await make_demonstrations(
            policy,
            benchmark,
            known.trajectories,
            prompting=prompting,
            library=library,
            settings=settings,
            max_tokens=room,
        )
    if not found.rows:
        raise nothing_to_teach(benchmark, found.left_out)
    return found


def nothing_to_teach(benchmark: Benchmark, left_out: Iterable[LeftOut]) -> UsageError:
    """What is raised where no task can be taught.

    Args:
        benchmark: The tasks.
        left_out: All of them, and why.
    """
    told = "; ".join(left_out_notes(left_out)) or "there are no tasks"
    return UsageError(
        f"nothing of {benchmark.name} can be taught: {told}. Take other tasks, give more room "
        "(max_tokens of the fine-tuning), or train with rewards alone (agentkit-train grpo)"
    )


def left_out_notes(left_out: Iterable[LeftOut]) -> Iterator[str]:
    """How many tasks were left out for each reason, and the first of them, the most frequent first.

    Example:
        >>> list(left_out_notes([LeftOut(where="t1", reason="too long: 900 tokens")]))
        ['1 task is left out: too long: 900 tokens (t1)']
    """
    for some in _by_reason(left_out):
        first = some[0]
        many = "1 task is" if len(some) == 1 else f"{len(some)} tasks are"
        such = first.where if len(some) == 1 else f"{first.where}, for one"
        yield f"{many} left out: {first.reason} ({such})"


def left_out_rows(parts: TaskSplits, spec: TaskSpec) -> str:
    """How many rows of a source are no tasks, and why; empty where all are.

    The first row of each of the most frequent reasons is named. How many rows there are in all is
    told where no part was made smaller.

    Args:
        parts: What was loaded.
        spec: What was asked for.
    """
    left_out = tuple(dict.fromkeys(one for _, part in parts for one in part.left_out))
    if not left_out:
        return ""
    named = [some[0] for some in _by_reason(left_out)][:_MOST_NAMED]
    told = [f"{one.reason} ({one.where})" for one in named]
    if more := len(left_out) - len(named):
        told.append(f"and {more} more")
    is_whole = spec.train is None and spec.validation is None and spec.test is None
    among = f" of {len(left_out) + sum(parts.sizes.values())}" if is_whole else ""
    rows = "row is" if not among and len(left_out) == 1 else "rows are"
    return f"{len(left_out)}{among} {rows} left out: {'; '.join(told)}"


def _by_reason(left_out: Iterable[LeftOut]) -> list[list[LeftOut]]:
    """What was left out for each reason, up to its colon; the most frequent first."""
    kinds: dict[str, list[LeftOut]] = {}
    for one in left_out:
        kinds.setdefault(one.reason.partition(":")[0], []).append(one)
    return sorted(kinds.values(), key=len, reverse=True)
