"""ToolDNA's rewards R1, R2 and R3 of a rollout (appendix C.3.2).

    R1 = (Format - 1) + PerfectMatch
    R2 = (Format - 1) + (ToolParsed - 1) + .25 (ToolName + ParamName + ParamValue + PerfectMatch)
    R3 = (Format - 1) + .5 PerfectMatch + .5 Resolution

The metrics are those of ``agentkit.metrics.tooldna``. They are worked out here, from the calls of
the rollout and the gold of its task: verdicts say what is wrong in the terms of their verifier, and
verifiers know nothing of Format. Where the paper is silent:

* **Tasks that are judged otherwise** than by their calls, such as by the final state or a number,
  have no gold calls to compare with. The verdict stands for all five metrics that compare: 1 when
  it passed, else 0. So has a task with several expectations in one turn.
* **Several user turns** give the mean over the judged turns. One that was not reached, because an
  earlier one ended the conversation, has 0 in the metrics that compare; Format costs nothing there.
* **Format** is what ``agentkit_training.rewards.formats`` says, and is 0 as well, like ToolParsed,
  where a call could not be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal, TypeAlias

from agentkit.episodes import Episode
from agentkit.episodes.naming import in_library_names
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, Task
from agentkit.evaluation.task import UserTurn
from agentkit.evaluation.verifiers.calls import MadeCalls
from agentkit.metrics import FieldKind, ToolDnaMetrics, tooldna_metrics
from agentkit.tools.definition import ToolDefinition
from agentkit_training.rewards.formats import FormatCheck, has_unread_call, is_readable
from agentkit_training.rewards.gold import gold_calls
from agentkit_training.rewards.reward import Reward, Worth
from agentkit_training.rollout.samples import Rollout

ToolDnaDesign: TypeAlias = Literal["R1", "R2", "R3"]
"""Which of the paper's designs; it finds R3 the best (table 3)."""

_UNREACHED = ToolDnaMetrics(
    format=1.0,
    tool_parsed=1.0,
    tool_name=0.0,
    param_name=0.0,
    param_value=0.0,
    perfect_match=0.0,
    resolution=0.0,
)


def tooldna_reward(
    benchmark: Benchmark,
    design: ToolDnaDesign = "R3",
    *,
    has_format: FormatCheck = is_readable,
    kinds: Mapping[str, FieldKind] | None = None,
) -> Reward:
    """One of ToolDNA's rewards, for rollouts of a benchmark's tasks; see the module's text.

    The seven metrics are noted beside the parts. The reward is 1 exactly for an answer that is
    perfect and well-formed, and structure alone earns nothing. A rollout of another benchmark makes
    it raise ``UsageError``.

    Args:
        benchmark: Where the tasks, their gold and the tools come from.
        design: Which of the three.
        has_format: Says whether Format is 1.
        kinds: How to compare the values of parameters, see ``tooldna_metrics``.

    Raises:
        UsageError: There is no such design.
    """
    if design not in _PARTS:
        raise UsageError(f"ToolDNA has no reward {design!r}; choose one of {sorted(_PARTS)}")
    return _ToolDnaReward(
        tasks={task.task_id: task for task in benchmark.tasks},
        known={definition.name: definition for definition in benchmark.definitions},
        design=design,
        has_format=has_format,
        kinds=kinds or {},
    )


@dataclass(frozen=True, kw_only=True)
class _ToolDnaReward:
    """The reward, with its settings."""

    tasks: Mapping[str, Task] = field(repr=False)
    known: Mapping[str, ToolDefinition] = field(repr=False)
    design: ToolDnaDesign
    has_format: FormatCheck
    kinds: Mapping[str, FieldKind]

    def __call__(self, rollout: Rollout) -> Worth:
        task = _task_of(rollout, self.tasks)
        found = list(_metrics(task, rollout, self.known, self.has_format, self.kinds))
        if not found:
            raise UsageError(f"nothing in task {rollout.task_id!r} is judged; leave it out")
        return Worth(
            parts=_means([_PARTS[self.design](one) for one in found]),
            noted=_means([_noted(one) for one in found]),
        )


def answer_metrics(
    episode: Episode,
    turn: UserTurn,
    known: Mapping[str, ToolDefinition],
    *,
    has_format: FormatCheck = is_readable,
    kinds: Mapping[str, FieldKind] | None = None,
) -> ToolDnaMetrics:
    """The seven metrics of the answer to one thing that the user said.

    Args:
        episode: The answer, with verdict and diagnosis.
        turn: What was said, and what a right answer is.
        known: The tools by name.
        has_format: Says whether Format is 1.
        kinds: How to compare the values of parameters, see ``tooldna_metrics``.
    """
    calls = MadeCalls.of(in_library_names(episode)).calls
    is_unread = has_unread_call(episode)
    has_form = has_format(episode) and not is_unread
    gold = gold_calls(turn.expects, calls, known)
    if gold is None:
        is_parsed = not is_unread and all(call.malformed is None for call in calls)
        return _of_verdict(episode, has_form=has_form, is_parsed=is_parsed)
    return tooldna_metrics(
        calls, gold, known, format_ok=has_form, parsed_ok=not is_unread, kinds=kinds
    )


def _of_verdict(episode: Episode, *, has_form: bool, is_parsed: bool) -> ToolDnaMetrics:
    passed = float(episode.verdict is not None and episode.verdict.passed)
    return ToolDnaMetrics(
        format=float(has_form),
        tool_parsed=float(is_parsed),
        tool_name=passed,
        param_name=passed,
        param_value=passed,
        perfect_match=passed,
        resolution=passed * has_form * is_parsed,
    )


def _metrics(
    task: Task,
    rollout: Rollout,
    known: Mapping[str, ToolDefinition],
    has_format: FormatCheck,
    kinds: Mapping[str, FieldKind],
) -> Iterator[ToolDnaMetrics]:
    """The metrics of each judged turn."""
    for number, turn in enumerate(task.turns):
        if not turn.expects:
            continue
        if number >= len(rollout.episodes):
            yield _UNREACHED
        else:
            episode = rollout.episodes[number]
            yield answer_metrics(episode, turn, known, has_format=has_format, kinds=kinds)


def _task_of(rollout: Rollout, tasks: Mapping[str, Task]) -> Task:
    task = tasks.get(rollout.task_id)
    if task is None:
        raise UsageError(
            f"task {rollout.task_id!r} is not among the {len(tasks)} of the benchmark that the "
            "reward was made for; make one for the benchmark that the rollouts are of"
        )
    return task


def _r1(metrics: ToolDnaMetrics) -> dict[str, float]:
    return {"format": metrics.format - 1, "perfect_match": metrics.perfect_match}


def _r2(metrics: ToolDnaMetrics) -> dict[str, float]:
    return {
        "format": metrics.format - 1,
        "tool_parsed": metrics.tool_parsed - 1,
        "tool_name": 0.25 * metrics.tool_name,
        "param_name": 0.25 * metrics.param_name,
        "param_value": 0.25 * metrics.param_value,
        "perfect_match": 0.25 * metrics.perfect_match,
    }


def _r3(metrics: ToolDnaMetrics) -> dict[str, float]:
    return {
        "format": metrics.format - 1,
        "perfect_match": 0.5 * metrics.perfect_match,
        "resolution": 0.5 * metrics.resolution,
    }


_PARTS: Mapping[str, Callable[[ToolDnaMetrics], dict[str, float]]] = {
    "R1": _r1,
    "R2": _r2,
    "R3": _r3,
}


def _noted(metrics: ToolDnaMetrics) -> dict[str, float]:
    return {f"tooldna_{name}": value for name, value in metrics.to_json().items()}


def _means(several: list[dict[str, float]]) -> dict[str, float]:
    return {name: fmean(one[name] for one in several) for name in several[0]}
