"""What fine-tuning on tasks learns from: single answers, and trajectories of several turns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit.episodes import Episode
from agentkit.errors import UsageError
from agentkit.evaluation import AllowedCalls, Benchmark, EvaluationSettings, ExactCalls, Task
from agentkit.evaluation.task import LeftOut, UserTurn
from agentkit.library import Library
from agentkit.messages import FailureKind, ToolResult
from agentkit.models import render_calls
from agentkit_training.errors import PolicyError
from agentkit_training.fine_tuning.examples import (
    Example,
    Examples,
    Prompting,
    closing_token,
    make_examples,
)
from agentkit_training.fine_tuning.solutions import shortened, solutions_of
from agentkit_training.generation.decoding import Completion, Prompt
from agentkit_training.policy.policy import Policy
from agentkit_training.rollout.collecting import collect
from agentkit_training.rollout.rendering import Renderer
from agentkit_training.rollout.samples import Rollout
from agentkit_training.tasks.loading import TaskSpec
from agentkit_training.tasks.splits import TaskSplits

_SIGNALS: frozenset[FailureKind] = frozenset({"tool_failed", "retry_requested"})
"""Failures in which a tool spoke to the model on purpose, with ToolFailed or ModelRetry."""


def why_untaught(task: Task, done: Rollout) -> str:
    """Why a trajectory that was acted out is not taught; empty when it is.

    It is not when its task's verifiers say no, and when one of its calls fails, see
    ``failed_call``.
    """
    if failed := failed_call(task, done):
        return failed
    if done.fault:
        return f"could not be acted out: {done.fault}"
    return "" if done.passed else f"the gold trajectory does not solve the task: {_why_not(done)}"


def failed_call(task: Task, done: Rollout) -> str:
    """The first call that failed where nothing expects it to, with its error; empty for none.

    A call that raises or is refused teaches nothing but the mistake. An error that a tool returns
    as its value is no failure. Neither is ``ToolFailed`` or ``ModelRetry`` where the task expects
    more than calls, such as a state or words: the expectation says that the refusal belongs there.
    """
    for told, episode in zip(task.turns, done.episodes, strict=False):
        for turn in episode.turns:
            for call, result in zip(turn.message.tool_calls, turn.results, strict=False):
                if result.failure is not None and not _belongs(result, told):
                    error = result.failure.rule
                    return f"a gold call fails: {render_calls([call])[1:-1]}: {error}"
    return ""


def _belongs(result: ToolResult, told: UserTurn) -> bool:
    """Whether a failed result is part of a right solution, as far as what is expected says it."""
    is_signal = result.failure is not None and result.failure.kind in _SIGNALS
    return is_signal and any(not isinstance(one, AllowedCalls | ExactCalls) for one in told.expects)


def _why_not(done: Rollout) -> str:
    """What a trajectory lacked, in words."""
    last = done.episodes[-1]
    if last.stop_reason == "error":  # such as results that fill the window
        return last.error or "it ended with an error"
    if last.stop_reason != "finished":
        return f"it ended with {last.stop_reason} (max_steps of the section asking may be too low)"
    told = [
        one.message
        for episode in done.episodes
        if episode.verdict is not None and not episode.verdict.passed
        for one in episode.verdict.evidence
    ]
    return next(iter(told), "no verifier says why")


async def make_demonstrations(
    policy: Policy,
    benchmark: Benchmark,
    gold: Mapping[str, Episode],
    *,
    prompting: Prompting = Prompting(),  # noqa: B008 - immutable
    library: Library | None = None,
    settings: EvaluationSettings | None = None,
    max_tokens: int | None = None,
) -> Examples:
    """Examples of each task that has a gold trajectory: all of its answers bear loss.

    A trajectory is left out when its task's verifiers say no, and when one of its calls fails, see
    ``failed_call``.

    Args:
        policy: Whose tokenizer and chat template to use; its weights are not touched.
        benchmark: The tasks; where composites are taught, with them (``with_composites``).
        gold: By the id of the task an episode that solves it. Its calls are made anew, in the
            names under which tools are offered; what they returned then is not looked at.
        prompting: How tools and calls are written. Tools must stand in the prompt.
        library: What the tools are called and described as, see ``collect``.
        settings: How the tasks are asked; those of the rollouts. Nothing is refined.
        max_tokens: Longest example; None for as many as the policy has room for.

    Raises:
        PolicyError: The chat template writes no end token after an answer, or ``prompting`` leaves
            the tools to it.
    """
    if prompting.tools_in == "template":
        raise PolicyError(
            "demonstrations are written with tools in the prompt, and the prompting leaves them "
            "to the chat template; use tools_in='prompt'"
        )
    writer = _Reciting(policy=policy, prompting=prompting)
    model = prompting.model(policy, writer=writer, max_tokens=policy.context_tokens)
    rows: list[Example] = []
    left_out: list[LeftOut] = []
    for task in benchmark.tasks:
        if task.task_id not in gold:
            continue
        writer.begin(gold[task.task_id])
        (done,) = await collect(
            model,
            replace(benchmark, tasks=(task,)),
            library=library,
            attempts=1,
            temperature=0,
            settings=replace(settings or EvaluationSettings(), refine="none"),
        )
        made = _examples(task, done, max_tokens or policy.context_tokens)
        if isinstance(made, str):
            left_out.append(LeftOut(where=task.task_id, reason=made))
        else:
            rows += made
    return Examples(rows=tuple(rows), left_out=tuple(left_out))


def _examples(task: Task, done: Rollout, max_tokens: int) -> list[Example] | str:
    """The examples of a trajectory, or why there is none.

    There is one, unless a later prompt was written anew, as where only the first turn must call a
    tool: each of the texts is taught then.
    """
    if why := why_untaught(task, done):
        return why
    if not done.sequences:
        return "could not be acted out: no prompt was rendered"
    longest = max(map(len, done.sequences))
    if longest > max_tokens:
        return f"too long: {longest} tokens, and there is room for {max_tokens}"
    return [
        Example(
            task_id=done.task_id,
            prompt=one.prompt,
            completion=one.completion,
            written=one.written,
        )
        for one in done.sequences
    ]


@dataclass(kw_only=True)
class _Reciting:
    """Writes the answers of one episode, turn by turn, whatever it reads; then nothing more."""

    policy: Policy
    prompting: Prompting

    def __post_init__(self) -> None:
        self._renderer = Renderer(self.policy)
        self._end = closing_token(self.policy)
        self._answers: Iterator[tuple[int, ...]] = iter(())

    def begin(self, episode: Episode) -> None:
        """Recite this one from now on."""
        self._answers = (
            self._renderer.tokens(self.prompting.answer(self._renderer, said.tool_calls, said.text))
            for said in (turn.message for turn in episode.turns)
        )

    async def write(self, prompts: Sequence[Prompt]) -> Sequence[Completion]:
        """The next answer to each prompt; there is one task, so there is one prompt."""
        return [self._completion(next(self._answers, ())) for _ in prompts]

    def _completion(self, ids: tuple[int, ...]) -> Completion:
        whole = (*ids, self._end)
        return Completion(ids=whole, logprobs=(0.0,) * len(whole), is_ended=True)


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

    Trajectories are acted out in the task's own world; what fails there is left out. Where the
    tasks offer composites of the library (``with_composites``), they are written with them.

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
    if library is not None and _offers_composites(benchmark, library):
        known = replace(known, trajectories=shortened(known.trajectories, library))
    room = min(max_tokens or policy.context_tokens, policy.context_tokens)
    given: dict[str, Any] = {"prompting": prompting, "library": library, "settings": settings}
    found = Examples(left_out=known.left_out)
    found += await make_examples(policy, benchmark, known.answers, max_tokens=room, **given)
    if known.trajectories:  # these are acted out as they are written
        found += await make_demonstrations(
            policy, benchmark, known.trajectories, max_tokens=room, **given
        )
    if not found.rows:
        raise nothing_to_teach(benchmark, found.left_out)
    return found


def _offers_composites(benchmark: Benchmark, library: Library) -> bool:
    offered = frozenset().union(*(task.offered for task in benchmark.tasks))
    return any(tool.definition.is_composite for tool in library if tool.name in offered)


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
