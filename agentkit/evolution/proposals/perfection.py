"""Which episodes are perfect (r = 1 exactly), and which went wrong for the agent's own fault.

ToolDNA learns descriptions from rollouts with a reward of exactly 1 and shows all others to the
feedback model (algorithm 1, lines 8 and 15). The reward is R1, R2 or R3 over its seven metrics
(``agentkit.metrics.rewards``), each of which is 1 exactly when every metric it is made of is 1. A
runtime has verdicts of any verifier, so r = 1 is read off what the verdict holds.
"""

from __future__ import annotations

from agentkit.episodes import Episode, Verdict
from agentkit.metrics.tooldna import ToolDnaMetrics

_DONE = frozenset({"finished", "deferred"})
_METRICS = tuple(ToolDnaMetrics.__dataclass_fields__)


def is_perfect(episode: Episode) -> bool:
    """Whether an episode has r = 1.

    Its verdict passed with a score of 1 and no evidence, each of ToolDNA's metrics that the verdict
    holds is 1, and the run finished without a failed call: a call that was refused and mended is an
    execution defect, which the paper's gate keeps out too. Where tools are not run, as in
    benchmarks of single calls, the run is finished when its calls wait for somebody outside. Where
    it had one step, the limit of steps is where it was to end. Without a verdict nothing is
    perfect.
    """
    verdict = episode.verdict
    if verdict is None or verdict.fault is not None or not verdict.passed:
        return False
    if verdict.score != 1 or verdict.evidence or not _has_ended(episode):
        return False
    metrics = [verdict.metrics[name] for name in _METRICS if name in verdict.metrics]
    fine = {"ok", "deferred"} if episode.stop_reason == "deferred" else {"ok"}
    return all(value == 1 for value in metrics) and all(r.status in fine for r in episode.results)


def is_imperfect(episode: Episode) -> bool:
    """Whether an episode has r < 1 by a verdict that says something about the agent.

    An episode that nobody judged, or whose reference or verifier is broken, is neither perfect nor
    imperfect.
    """
    return _says_something(episode.verdict) and not is_perfect(episode)


def _has_ended(episode: Episode) -> bool:
    """Whether nothing more was to come.

    A run that reached its limit of steps with its first turn had one step: its calls are the answer
    that was asked for. After more turns the limit has cut the run off.
    """
    if episode.stop_reason == "step_limit":
        return len(episode.turns) == 1 and bool(episode.results)
    return episode.stop_reason in _DONE


def _says_something(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.fault is None
