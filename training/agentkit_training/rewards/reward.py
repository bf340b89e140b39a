"""What a rollout is worth: verdicts, ToolDNA's rewards, CoCoDA's saved calls, and their sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal, Protocol, TypeAlias

from agentkit.diagnosis.findings import reported_error
from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, Task
from agentkit.evaluation.expectations import AllowedCalls, ExactCalls, Expectation, GoldCall, NoCall
from agentkit.evaluation.task import UserTurn
from agentkit.evaluation.verifiers.calls import MadeCalls
from agentkit.library import Library, dag as questions
from agentkit.messages import ToolCall
from agentkit.metrics import GoldCalls
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.comparable import CallLike
from agentkit_training.rewards.tooldna_metrics import ToolDnaMetrics, tooldna_metrics
from agentkit_training.rollout.samples import Rollout
from agentkit_training.toolace.difficulty import first_choice, nearest_gold


@dataclass(frozen=True, kw_only=True, slots=True)
class Worth:
    """What a reward function says of a rollout, where it says more than the reward.

    Attributes:
        parts: The parts of the reward, by name; their sum is the reward.
        noted: Numbers to record that do not count, by name.
    """

    parts: Mapping[str, float]
    noted: Mapping[str, float] = field(default_factory=dict)


class Reward(Protocol):
    """Judges a rollout. The parts are recorded; their sum is the reward."""

    def __call__(self, rollout: Rollout) -> Mapping[str, float] | Worth:
        """The parts of the reward, by name; as a ``Worth`` where there is more to record."""
        ...


def worth_of(rollout: Rollout, reward: Reward) -> Worth:
    """What a reward function says of a rollout, as numbers; what it raises goes through."""
    said = reward(rollout)
    worth = said if isinstance(said, Worth) else Worth(parts=said)
    return Worth(parts=_numbers(worth.parts), noted=_numbers(worth.noted))


def rewarded(rollouts: Iterable[Rollout], reward: Reward) -> tuple[Rollout, ...]:
    """The rollouts with their rewards.

    A reward function that raises, or gives what is no finite number, makes its rollout one with a
    fault: it is recorded and not trained on. Rollouts that have a fault already are left alone.
    """
    return tuple(_rewarded(one, reward) for one in rollouts)


def _rewarded(rollout: Rollout, reward: Reward) -> Rollout:
    if rollout.fault:
        return rollout
    try:
        worth = worth_of(rollout, reward)
    except Exception as error:  # noqa: BLE001 - a user's function; the fault is recorded
        return replace(rollout, fault=f"the reward raised {type(error).__name__}: {error}")
    judged = replace(rollout, reward_parts=worth.parts, reward_notes=worth.noted)
    total = sum(worth.parts.values())
    if not math.isfinite(total):
        return replace(judged, fault=f"the reward is {total}")
    return replace(judged, reward=total)


def verdict_reward(rollout: Rollout) -> Mapping[str, float]:
    """1 for a rollout that all its verifiers passed, 0 for any other (SEAL, Eq. 3)."""
    return {"passed": float(rollout.passed)}


def _numbers(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


@dataclass(frozen=True)
class RewardSum:
    """Adds rewards up; parts of one name, and notes of one name, add up as well.

    CoCoDA's shaped reward ``R = R_res + lambda R_comp`` (section 3.3) is
    ``RewardSum([verdict_reward, saved_calls_reward(library)])``.

    Attributes:
        rewards: The rewards.

    Raises:
        UsageError: There is none.

    Example:
        >>> from agentkit_training.rewards import verdict_reward
        >>> from agentkit_training.rollout.samples import Rollout
        >>> rollout = Rollout(task_id="t", attempt=0, episodes=(), sequences=(), library_version=0)
        >>> RewardSum([verdict_reward, lambda _: {"brief": 0.5}])(rollout).parts
        {'passed': 0.0, 'brief': 0.5}
    """

    rewards: Sequence[Reward]

    def __post_init__(self) -> None:
        if not self.rewards:
            raise UsageError("a sum of no rewards is 0 for everything; give at least one reward")

    def __call__(self, rollout: Rollout) -> Worth:
        """The parts and the notes of all rewards."""
        worths = [worth_of(rollout, reward) for reward in self.rewards]
        return Worth(
            parts=_added(worth.parts for worth in worths),
            noted=_added(worth.noted for worth in worths),
        )


def _added(several: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for values in several:
        for name, value in values.items():
            total[name] = total.get(name, 0.0) + value
    return total


SAVED_CALLS = "saved_calls"
"""The part of the reward that composites earn."""

_RAN = frozenset({"ok", "deferred"})


def saved_calls(rollout: Rollout, library: Library) -> int:
    """R_comp = the sum of Phi(t) = flat(t) - 1 over the calls t of a rollout (CoCoDA, Eq. 2).

    0 for a rollout of primitives, however many there are. A tool that the library lacks is a
    primitive of the benchmark's own. Other than in the paper, only calls that ran count: one that
    was refused, failed or reported an error has saved nothing, and would be a cheap way to credit.

    Args:
        rollout: What was called.
        library: The version that the rollout's tools came from, for the flat sizes.

    Raises:
        LibraryError: A composite that ran is in a cycle, or a tool below it is missing.
    """
    names = (name for episode in rollout.episodes for name in _ran(episode))
    return sum(questions.flat_size(library, name) - 1 for name in names if name in library)


def saved_calls_reward(library: Library, *, weight: float = 0.2, gated: bool = True) -> Reward:
    """``weight`` times the saved calls: the second half of R = R_res + lambda R_comp (section 3.3).

    Put it beside the reward for the result: ``RewardSum([verdict_reward, ...])``. The gated and
    the ungated credit are both noted, whichever counts.

    * **Gated**, the default, only a rollout that passed is credited. The paper credits every
      rollout, which pays for calling composites instead of solving the task.
    * Primitives earn nothing, so padding with them never pays. Where a block of primitives is
      replaced by one composite and the result is the same, the gain is exactly ``weight`` times its
      saved calls (theorem 3), gated for rollouts that passed.
    * Neither the paper nor the gate keeps a policy from calling composites that the task does not
      need. Verifiers of calls refuse that; those of answers do not: look at ``calls per solved
      task`` there.

    Args:
        library: The version that the rollouts' tools come from; make a new reward when it grows.
        weight: The paper's lambda, reward for each primitive call saved. The paper trains with
            0.2 and finds accuracy the same from 0.1 to 0.3 (appendix K).
        gated: Whether only success is credited.

    Raises:
        UsageError: The weight is negative.
    """
    if weight < 0:
        raise UsageError(f"the weight of saved calls is {weight}; give 0 or more, such as 0.2")

    def reward(rollout: Rollout) -> Worth:
        ungated = weight * saved_calls(rollout, library)
        credit = ungated if rollout.passed else 0.0
        return Worth(
            parts={SAVED_CALLS: credit if gated else ungated},
            noted={f"{SAVED_CALLS}_gated": credit, f"{SAVED_CALLS}_ungated": ungated},
        )

    return reward


def _ran(episode: Episode) -> Iterator[str]:
    """The library's names of the tools whose calls ran, one for each call."""
    made = MadeCalls.of(in_library_names(episode))
    for call, result in zip(made.calls, made.results, strict=True):
        if result and result.status in _RAN and reported_error(result.value) is None:
            yield call.name


def is_readable(episode: Episode) -> bool:
    """Whether no answer was cut off, and none holds a call that could not be read."""
    is_cut = any(turn.finish_reason == "length" for turn in episode.turns)
    return not is_cut and not has_unread_call(episode)


def has_unread_call(episode: Episode) -> bool:
    """Whether a call stayed text, by the diagnosis that ``collect`` has made of the episode.

    False without a diagnosis. Calls whose arguments are no JSON are calls; ``ToolDnaMetrics``
    counts them as not parsed.
    """
    found = () if episode.diagnosis is None else episode.diagnosis.turns
    return any(
        one.label == "invalid_tool_call" and not one.call_id
        for turn in found
        for one in turn.attributions
    )


def gold_calls(
    expects: Sequence[Expectation],
    calls: Sequence[ToolCall],
    known: Mapping[str, ToolDefinition],
) -> tuple[CallLike, ...] | None:
    """The gold calls of one user turn, for metrics that compare with exact values.

    Where gold lists allowed values (BFCL), each argument has the value that the nearest call gave
    where that is allowed, and the first allowed one where it is not, see ``nearest_gold``.

    Args:
        expects: What a right answer is.
        calls: The calls that were made.
        known: The tools by name.

    Returns:
        The calls; empty where none may be made, None where something else than calls is judged.

    Raises:
        UsageError: A gold call can not be read, or names a tool that is not known.
    """
    if len(expects) != 1:
        return None
    match expects[0]:
        case ExactCalls(calls=gold):
            return gold
        case NoCall():
            return ()
        case AllowedCalls() as allowed:
            return _nearest_allowed(allowed, calls, known)
        case _:
            return None


def _nearest_allowed(
    allowed: AllowedCalls, calls: Sequence[ToolCall], known: Mapping[str, ToolDefinition]
) -> tuple[GoldCall, ...]:
    GoldCalls(allowed.calls, known.values(), language=allowed.language).match(())  # or it raises
    plain = [first_choice(one, known[one.name]) for one in allowed.calls]
    return nearest_gold(allowed, calls, known, plain=plain, corrects_optional=True)


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
    strict_format: bool = False,
) -> Reward:
    """One of ToolDNA's rewards (appendix C.3.2), for rollouts of a benchmark's tasks.

    Of a task in which the user speaks several times it is the mean over what is judged; an answer
    that was not reached is a wrong one.

    The seven metrics are noted beside the parts. The reward is 1 exactly for an answer that is
    perfect and well-formed, and structure alone earns nothing. A rollout of another benchmark makes
    it raise ``UsageError``.

    Args:
        benchmark: Where the tasks, their gold and the tools come from.
        design: Which of the three.
        strict_format: Whether an answer in plain words counts as malformed where a call is right.
            The paper's Format asks for all required tags, so that such an answer gets -1 (R1, R3)
            or -2 (R2); otherwise it gets 0.

    Raises:
        UsageError: There is no such design.
    """
    if design not in _EARNED:
        raise UsageError(f"ToolDNA has no reward {design!r}; choose one of {sorted(_EARNED)}")
    tasks = {task.task_id: task for task in benchmark.tasks}
    known = {definition.name: definition for definition in benchmark.definitions}

    def reward(rollout: Rollout) -> Worth:
        task = _task_of(rollout, tasks)
        found = list(_metrics(task, rollout, known, strict_format=strict_format))
        if not found:
            raise UsageError(f"nothing in task {rollout.task_id!r} is judged; leave it out")
        return Worth(
            parts=_means([reward_parts(design, one) for one in found]),
            noted=_means([_noted(one) for one in found]),
        )

    return reward


def answer_metrics(
    episode: Episode,
    turn: UserTurn,
    known: Mapping[str, ToolDefinition],
    *,
    strict_format: bool = False,
) -> ToolDnaMetrics:
    """The seven metrics of the answer to one thing that the user said.

    Args:
        episode: The answer, with verdict and diagnosis.
        turn: What was said, and what a right answer is.
        known: The tools by name.
        strict_format: Whether an answer without a call is malformed where a call is right.
    """
    calls = MadeCalls.of(in_library_names(episode)).calls
    is_unread = has_unread_call(episode)
    has_form = is_readable(episode) and not is_unread
    gold = gold_calls(turn.expects, calls, known)
    if gold is None:
        is_parsed = not is_unread and all(call.malformed is None for call in calls)
        return _of_verdict(episode, has_form=has_form, is_parsed=is_parsed)
    lacks_call = strict_format and bool(gold) and not calls
    return tooldna_metrics(
        calls,
        gold,
        known,
        format_ok=has_form and not lacks_call,
        parsed_ok=not (is_unread or lacks_call),
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
    *,
    strict_format: bool,
) -> Iterator[ToolDnaMetrics]:
    """The metrics of each judged turn."""
    for number, turn in enumerate(task.turns):
        if not turn.expects:
            continue
        if number >= len(rollout.episodes):
            yield _UNREACHED
        else:
            episode = rollout.episodes[number]
            yield answer_metrics(episode, turn, known, strict_format=strict_format)


def _task_of(rollout: Rollout, tasks: Mapping[str, Task]) -> Task:
    task = tasks.get(rollout.task_id)
    if task is None:
        raise UsageError(
            f"task {rollout.task_id!r} is not among the {len(tasks)} of the benchmark that the "
            "reward was made for; make one for the benchmark that the rollouts are of"
        )
    return task


_EARNED: Mapping[ToolDnaDesign, Mapping[str, float]] = {
    "R1": {"perfect_match": 1.0},
    "R2": {"tool_name": 0.25, "param_name": 0.25, "param_value": 0.25, "perfect_match": 0.25},
    "R3": {"perfect_match": 0.5, "resolution": 0.5},
}
"""What each metric earns; a broken format costs 1, and with R2 an unread call, too."""


def reward_parts(design: ToolDnaDesign, metrics: ToolDnaMetrics) -> dict[str, float]:
    """What one answer's reward is the sum of, by the metric that each part comes from."""
    lost = ("format", "tool_parsed") if design == "R2" else ("format",)
    parts = {name: getattr(metrics, name) - 1 for name in lost}
    return parts | {n: share * getattr(metrics, n) for n, share in _EARNED[design].items()}


def _noted(metrics: ToolDnaMetrics) -> dict[str, float]:
    return {f"tooldna_{name}": value for name, value in metrics.to_json().items()}


def _means(several: list[dict[str, float]]) -> dict[str, float]:
    return {name: fmean(one[name] for one in several) for name in several[0]}
