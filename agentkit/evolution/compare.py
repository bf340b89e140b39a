"""Compare a candidate with the active definition: scores out of episodes, and the gates on them.

Shadow runs and sessions of a canary are ordinary episodes with labels in their ``metadata``, so
what was decided can be worked out again from them at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias, TypeVar

from agentkit.episodes import Episode
from agentkit.episodes.labels import ARM, EXPERIMENT, SHADOW_OF, VIEW_OF
from agentkit.evolution.gate_statistics import Elond
from agentkit.evolution.gates import (
    Arm,
    ArmScore,
    GateConfig,
    GateReport,
    PairedScore,
    PairedSelection,
    canary_gate,
    cost_gate,
    regression_gate,
    shadow_gate,
)
from agentkit.evolution.ledger import Ledger
from agentkit.evolution.proposal import ProposalRecord
from agentkit.library.store import EpisodeFilter, EpisodeStore

# --- What gates ask for, taken out of stored episodes by the labels in their ``metadata`` --------
# ``experiment`` is the id of the proposal, ``arm`` is ``candidate`` or ``control``, and
# ``shadow_of``
# names the episode that a shadow run repeats. The order is that of time (``started_at``, then the
# id,
# so that equal times are put in order the same way each time). An episode that begins later never
# changes what was made of earlier ones; one that is *judged* late appears at its own place among
# them, so let the verifier keep up, or look only after it did.
#
# Set aside and counted are episodes without a verdict and those whose verdict has a fault, because
# neither says anything about the definitions. An episode without a verdict that ended in an error
# or
# at a limit counts as a failure: the user got no answer.


SetAside = Literal[
    "no_control",  # the repeated episode is not among those given
    "repeated",  # a second shadow run of the same episode
    "no_verdict",  # nobody has judged it, or one of the two
    "fault",  # the judgement says nothing, because the reference or the verifier is broken
    "later_in_session",  # a later episode of a session, which depends on the first
]

_UNANSWERED = frozenset({"step_limit", "token_limit", "cost_limit", "output_invalid", "error"})

_Score = TypeVar("_Score", PairedScore, ArmScore)


@dataclass(frozen=True, kw_only=True, slots=True)
class Collected(Generic[_Score]):
    """Scores out of episodes.

    Attributes:
        scores: In the order of time.
        set_aside: How many episodes or pairs are not among them, by reason.
    """

    scores: tuple[_Score, ...]
    set_aside: Mapping[SetAside, int]


def shadow_pairs(episodes: Iterable[Episode], experiment: str) -> Collected[PairedScore]:
    """Each episode with its first shadow run, both judged, as right or wrong.

    Args:
        episodes: Shadow runs and the episodes that they repeat, in any order; others are passed
            over.
        experiment: The proposal's id.
    """
    scores: list[PairedScore] = []
    aside: dict[SetAside, int] = {}
    for control, candidate, reason in _shadow_runs(episodes, experiment):
        found = reason or _unjudged(candidate) or (control and _unjudged(control))
        if found or control is None:
            found = found or "no_control"
            aside[found] = aside.get(found, 0) + 1
            continue
        scores.append(
            PairedScore(
                task=control.episode_id,
                control=_passed(control),
                candidate=_passed(candidate),
                group=control.session_id or "",
            )
        )
    return Collected(scores=tuple(scores), set_aside=aside)


def canary_scores(episodes: Iterable[Episode], experiment: str) -> Collected[ArmScore]:
    """The first judged episode of each session that took part, as right or wrong.

    Later episodes of a session depend on its first one, and would make few sessions look like many.
    A session stays with the arm of its first episode, whatever later ones say. A run without one is
    a session of its own, together with the verdicts that were kept beside it.

    Args:
        episodes: In any order; shadow runs and those of other experiments are passed over.
        experiment: The proposal's id.
    """
    scores: dict[str, ArmScore] = {}
    aside: dict[SetAside, int] = {}
    for episode in _in_order(episodes):
        arm = _arm(episode, experiment)
        if arm is None:
            continue
        session = episode.session_id or episode.metadata.get(VIEW_OF) or episode.episode_id
        reason: SetAside | None = "later_in_session" if session in scores else _unjudged(episode)
        if reason is not None:
            aside[reason] = aside.get(reason, 0) + 1
            continue
        scores[session] = ArmScore(session=session, arm=arm, score=_passed(episode))
    return Collected(scores=tuple(scores.values()), set_aside=aside)


def shadow_tokens(episodes: Iterable[Episode], experiment: str) -> tuple[PairedScore, ...]:
    """Tokens read and written by each episode and by its first shadow run."""
    return tuple(
        PairedScore(
            task=control.episode_id,
            control=control.usage.total_tokens,
            candidate=candidate.usage.total_tokens,
            group=control.session_id or "",
        )
        for control, candidate in _both(episodes, experiment)
    )


def shadow_seconds(episodes: Iterable[Episode], experiment: str) -> tuple[PairedScore, ...]:
    """Wall time of each episode and of its first shadow run; see ``cost_gate`` for its worth."""
    return tuple(
        PairedScore(
            task=control.episode_id,
            control=control.seconds,
            candidate=candidate.seconds,
            group=control.session_id or "",
        )
        for control, candidate in _both(episodes, experiment)
    )


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
        for control, candidate in _both(episodes, experiment)
        if not _is_judged(control) or _passed(control)
    )


def _both(episodes: Iterable[Episode], experiment: str) -> Sequence[tuple[Episode, Episode]]:
    runs = _shadow_runs(episodes, experiment)
    return [(control, run) for control, run, reason in runs if control and not reason]


def _shadow_runs(
    episodes: Iterable[Episode], experiment: str
) -> Sequence[tuple[Episode | None, Episode, SetAside | None]]:
    """Each shadow run with the episode that it repeats, or why it has none of its own."""
    ordered = _in_order(episodes)
    known = {episode.episode_id: episode for episode in ordered}
    runs: list[tuple[Episode | None, Episode, SetAside | None]] = []
    repeated: set[str] = set()
    for run in ordered:
        original = run.metadata.get(SHADOW_OF, "")
        if run.metadata.get(EXPERIMENT) != experiment or not original:
            continue
        control = known.get(original)
        reason: SetAside | None = "no_control" if control is None else None
        if control is not None and original in repeated:
            reason = "repeated"
        repeated.add(original)
        runs.append((control, run, reason))
    return runs


def _in_order(episodes: Iterable[Episode]) -> Sequence[Episode]:
    return sorted(episodes, key=lambda episode: (episode.started_at, episode.episode_id))


def _arm(episode: Episode, experiment: str) -> Arm | None:
    labels = episode.metadata
    if labels.get(EXPERIMENT) != experiment or labels.get(SHADOW_OF):
        return None
    arms: dict[str | None, Arm] = {"control": "control", "candidate": "candidate"}
    return arms.get(labels.get(ARM))


def _unjudged(episode: Episode) -> SetAside | None:
    if episode.verdict is None:
        return None if episode.stop_reason in _UNANSWERED else "no_verdict"
    return "fault" if episode.verdict.fault else None


def _is_judged(episode: Episode) -> bool:
    return _unjudged(episode) is None


def _passed(episode: Episode) -> float:
    return float(episode.verdict is not None and episode.verdict.passed)


# --- What the gates say of a proposal that is being tried, from the episodes that are there b ----
# What the gates say of a proposal that is being tried, from the episodes that are there by now.


Assess: TypeAlias = Callable[[ProposalRecord, Ledger], Sequence[GateReport]]
"""What the gates say of an open proposal; nothing for a stage that has no gate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpisodeGates:
    """The gates of the shadow and the canary stage, over the episodes of a store.

    Shadow runs and sessions of a canary are ordinary episodes with labels, so what is decided can
    be worked out again from them at any time. In shadow the gain has to be shown, at the level that
    e-LOND gives the proposal; cost and other tools' requests have a veto, and hold nothing up while
    they say nothing: where a tool has no neighbours they never would.

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
        if record.state == "shadow":
            return self._shadow(record, ledger)
        if record.state == "canary":
            return (self._canary(record),)
        return ()

    def _shadow(self, record: ProposalRecord, ledger: Ledger) -> Sequence[GateReport]:
        place = ledger.place_of(record.proposal_id)
        elond = Elond(opened=place.number - 1, promoted=place.discoveries)
        level = elond.level(self.rules.alpha)
        name, both = record.proposal_id, self._both_arms(record)
        gain = shadow_gate(shadow_pairs(both, name).scores, rules=self.rules, level=level)
        selections = shadow_selections(both, name)
        vetoes = (
            cost_gate(shadow_tokens(both, name), measure="tokens", rules=self.rules),
            regression_gate(selections, tool=record.tool_name, rules=self.rules),
        )
        return (gain, *(veto for veto in vetoes if veto.decision != "wait"))

    def _both_arms(self, record: ProposalRecord) -> list[Episode]:
        """The shadow runs, and the episodes that they repeat."""
        runs = list(self._labelled(record))
        repeated = {run.metadata[SHADOW_OF] for run in runs if SHADOW_OF in run.metadata}
        controls = (self.episodes.get(episode_id) for episode_id in sorted(repeated))
        return [*runs, *(control for control in controls if control is not None)]

    def _canary(self, record: ProposalRecord) -> GateReport:
        found = canary_scores(self._labelled(record), record.proposal_id)
        return canary_gate(found.scores, rules=self.rules)

    def _labelled(self, record: ProposalRecord) -> Iterator[Episode]:
        wanted = EpisodeFilter(labels={EXPERIMENT: record.proposal_id}, oldest_first=True)
        return self.episodes.select(wanted)
