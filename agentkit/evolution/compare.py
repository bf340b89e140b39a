"""Compare a candidate with the active definition: scores out of episodes, and the gates on them.

Shadow runs and sessions of a canary are ordinary episodes with labels in their ``metadata``, so
what was decided can be worked out again from them at any time: ``experiment`` is the id of the
proposal, ``arm`` is ``candidate`` or ``control``, and ``shadow_of`` names the episode that a shadow
run repeats. The order is that of time (``started_at``, then the id). An episode that begins later
never changes what was made of earlier ones; one that is *judged* late appears at its own place
among them, so let the verifier keep up, or look only after it did.

Set aside are episodes without a verdict and those whose verdict has a fault, because neither says
anything about the definitions; and those that were imported, which anybody may have written. An
episode without a verdict that ended in an error or at a limit counts as a failure: the
user got no answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeAlias, runtime_checkable

from agentkit.episodes import Episode
from agentkit.episodes.labels import ARM, EXPERIMENT, SHADOW_OF, VIEW_OF, is_imported
from agentkit.evolution.gates import (
    OFFLINE,
    Arm,
    ArmScore,
    GateConfig,
    GateReport,
    PairedScore,
    PairedSelection,
    canary_gate,
    offline_gate,
    regression_gate,
    shadow_gate,
)
from agentkit.evolution.learning import has_passed
from agentkit.evolution.ledger import EXPERIMENTS, Ledger
from agentkit.evolution.proposal import ProposalRecord
from agentkit.evolution.proposers.observed import ObservedCall, refused_by_rules
from agentkit.evolution.repository import with_overrides
from agentkit.library.library import Library
from agentkit.library.store import EpisodeFilter, EpisodeStore
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition

_UNANSWERED = frozenset({"step_limit", "token_limit", "cost_limit", "output_invalid", "error"})
_MAX_NAMED = 5


def shadow_pairs(episodes: Iterable[Episode], experiment: str) -> tuple[PairedScore, ...]:
    """Each episode with its first shadow run, both judged, as right or wrong.

    Args:
        episodes: Shadow runs and the episodes that they repeat, in any order; others are passed
            over.
        experiment: The proposal's id.
    """
    return tuple(
        PairedScore(
            task=control.episode_id,
            control=_passed(control),
            candidate=_passed(candidate),
            group=control.session_id or "",
        )
        for control, candidate in _shadow_runs(episodes, experiment)
        if _is_judged(control) and _is_judged(candidate)
    )


def canary_scores(episodes: Iterable[Episode], experiment: str) -> tuple[ArmScore, ...]:
    """The first judged episode of each session that took part, as right or wrong.

    Later episodes of a session depend on its first one, and would make few sessions look like many.
    A session stays with the arm of its first episode, whatever later ones say. A run without one is
    a session of its own, together with the verdicts that were kept beside it.

    Args:
        episodes: In any order; shadow runs and those of other experiments are passed over.
        experiment: The proposal's id.
    """
    scores: dict[str, ArmScore] = {}
    for episode in _in_order(episodes):
        arm = _arm(episode, experiment)
        session = episode.session_id or episode.metadata.get(VIEW_OF) or episode.episode_id
        if arm is not None and session not in scores and _is_judged(episode):
            scores[session] = ArmScore(session=session, arm=arm, score=_passed(episode))
    return tuple(scores.values())


def shadow_selections(episodes: Iterable[Episode], experiment: str) -> tuple[PairedSelection, ...]:
    """Tools called by each episode and by its first shadow run.

    Where the episode was judged wrong there is nothing to lose, and it is left out; where the run
    was judged right its choice is accepted, whatever it is. Where nobody judged, the episode's own
    choice is the standard.
    """
    return tuple(
        PairedSelection(
            task=control.episode_id,
            control=tuple(call.name for call in control.calls),
            candidate=tuple(call.name for call in candidate.calls),
            accepted=_is_judged(candidate) and bool(_passed(candidate)),
        )
        for control, candidate in _shadow_runs(episodes, experiment)
        if not _is_judged(control) or _passed(control)
    )


def _shadow_runs(episodes: Iterable[Episode], experiment: str) -> Iterator[tuple[Episode, Episode]]:
    """Each episode with its first shadow run; a run whose episode is not given counts for none."""
    ordered = _in_order(episodes)
    known = {episode.episode_id: episode for episode in ordered}
    for run in ordered:
        original = run.metadata.get(SHADOW_OF, "")
        if run.metadata.get(EXPERIMENT) == experiment and original in known:
            yield known.pop(original), run


def _in_order(episodes: Iterable[Episode]) -> Sequence[Episode]:
    ours = (episode for episode in episodes if not is_imported(episode.metadata))
    return sorted(ours, key=lambda episode: (episode.started_at, episode.episode_id))


def _arm(episode: Episode, experiment: str) -> Arm | None:
    labels = episode.metadata
    if labels.get(EXPERIMENT) != experiment or labels.get(SHADOW_OF):
        return None
    arms: dict[str | None, Arm] = {"control": "control", "candidate": "candidate"}
    return arms.get(labels.get(ARM))


def _is_judged(episode: Episode) -> bool:
    if episode.verdict is None:
        return episode.stop_reason in _UNANSWERED
    return not episode.verdict.fault


def _passed(episode: Episode) -> float:
    return float(has_passed(episode))


# --- The stages with traffic ----------------------------------------------------------------------

Assess: TypeAlias = Callable[[ProposalRecord, Ledger], Sequence[GateReport]]
"""What the gates say of an open proposal; nothing for a stage that has no gate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeGates:
    """The gates of the shadow and the canary stage, over the episodes of a store.

    Shadow runs and sessions of a canary are ordinary episodes with labels, so what is decided can
    be worked out again from them at any time. In shadow the gain has to be shown, at the level that
    e-LOND gives the proposal; other tools' requests have a veto, which holds nothing up while it
    says nothing: where a tool has no neighbours it never would.

    Attributes:
        episodes: Where they are kept.
        rules: The knobs of the gates.
    """

    episodes: EpisodeStore
    rules: GateConfig = field(default_factory=GateConfig)

    def __call__(self, record: ProposalRecord, ledger: Ledger) -> Sequence[GateReport]:
        """What the gates say at the stage where a proposal is.

        Raises:
            StoreError: The store failed.
        """
        name, rules = record.proposal_id, self.rules
        if record.state not in EXPERIMENTS:
            return ()
        wanted = EpisodeFilter(labels={EXPERIMENT: name}, oldest_first=True)
        runs = list(self.episodes.select(wanted))
        if record.state == "canary":
            return (canary_gate(canary_scores(runs, name), rules=rules),)
        repeated = {run.metadata[SHADOW_OF] for run in runs if SHADOW_OF in run.metadata}
        controls = (self.episodes.get(episode_id) for episode_id in sorted(repeated))
        both = [*runs, *(control for control in controls if control is not None)]
        level = ledger.place_of(name).level(rules.alpha)
        gain = shadow_gate(shadow_pairs(both, name), rules=rules, level=level)
        selections = shadow_selections(both, name)
        veto = regression_gate(selections, tool=record.tool_name, rules=rules)
        return (gain,) if veto.decision == "wait" else (gain, veto)


# --- Held-out tasks -------------------------------------------------------------------------------

Compare: TypeAlias = Callable[[str, Library, Library], Awaitable[Sequence[PairedScore]]]
"""Does held-out tasks with two libraries that differ in one tool, whose name comes first.

``agentkit.evaluation.held_out.HeldOut`` asks an agent the tasks of a benchmark.
"""


@runtime_checkable
class KnowsGold(Protocol):
    """A ``Compare`` that knows calls which are right, such as ``HeldOut``."""

    def gold_calls(self, tool_name: str) -> Sequence[tuple[str, JsonObject]]:
        """The gold calls of a tool, each as the id of its task and the arguments."""
        ...


async def compare_held_out(
    record: ProposalRecord, control: Library, ledger: Ledger, compare: Compare, rules: GateConfig
) -> GateReport:
    """What held-out tasks say of a proposal, at the level that e-LOND gives it.

    Args:
        record: The proposal.
        control: The library as it is.
        ledger: All other proposals.
        compare: Does the tasks.
        rules: The knobs of the comparison.
    """
    candidate = record.candidate
    if candidate is None or record.tool_name not in control:
        reason = f"{record.tool_name!r} is not in the library any more"
        return GateReport(gate=OFFLINE, decision="wait", reason=reason)
    reason = _refused_gold(record, control, candidate, compare)
    if reason:
        return GateReport(gate=OFFLINE, decision="fail", reason=reason)
    changed = with_overrides(control, {record.tool_name: candidate})
    pairs = await compare(record.tool_name, control, changed)
    level = ledger.place_of(record.proposal_id).level(rules.alpha)
    return offline_gate(pairs, rules=replace(rules, alpha=level))


def _refused_gold(
    record: ProposalRecord, control: Library, candidate: ToolDefinition, compare: object
) -> str:
    """That new rules refuse calls which held-out tasks expect; empty where they do not.

    Such a rule is wrong however much is gained elsewhere, unless a person says so.
    """
    if not isinstance(compare, KnowsGold) or record.author.kind == "person":
        return ""
    base = control[record.tool_name].definition
    had = base.specification.rules
    rules = tuple(rule for rule in candidate.specification.rules if rule not in had)
    gold = [
        ObservedCall(episode_id=task, arguments=arguments, is_accepted=True)
        for task, arguments in compare.gold_calls(record.tool_name)
    ]
    refused = [call.episode_id for _, call in refused_by_rules(rules, base, gold)]
    named = ", ".join(dict.fromkeys(refused[:_MAX_NAMED]))
    return f"its rules refuse {len(refused):,} gold calls, of {named}" if refused else ""
