"""``CoevolutionSettings``: what learns beside the policy, and every ablation as a configuration.

=========================  =========================================================================
name                       what it is
=========================  =========================================================================
``vanilla``                plain GRPO: the baseline of ToolDNA and SEAL
``tooldna``                evolution and feedback path (ToolDNA, Algorithm 1)
``tooldna-no-feedback``    without lines 15 to 22 (ToolDNA, Table 3: "-Feedback Mechanism")
``tooldna-no-evolution``   without lines 8 to 14 ("-Evolution Mechanism")
``tooldna-no-loop``        neither ("-Tool Metadata Loop")
``cocoda``                 composites, retrieval and graph-aware reward (CoCoDA, Algorithm 1)
``cocoda-no-dag``          a flat library: tools are made, none of other made ones, and no saved
                           call is rewarded (CoCoDA, Table 2 and appendix J: "w/o CTD")
``cocoda-no-retrieval``    dense retrieval of 8 tools ("w/o TDR")
``cocoda-no-reward``       the result alone is rewarded ("w/o GAR")
``cocoda-no-dag-no-retrieval``  neither ("w/o CTD + TDR")
``cocoda-none``            nor does the library grow after the warm-up ("w/o CTD + TDR + GAR")
``cocoda-given``           each task is offered its own tools and composites, unretrieved; ours
``seal``                   interface and weights from the failure profile (SEAL, Algorithm 1)
``seal-no-interface``      SEAL's ablation "w/o Environment-Side Adaptation"
``seal-no-weighting``      "w/o Diagnosis-Guided Reweighting"
``seal-no-closed-loop``    the profile of the first step stays ("w/o Closed-Loop Update")
``evidence``               rules from what tools refuse, without any model; ours
``evidence-shuffled``      the control: each tool learns from what another one did; ours
=========================  =========================================================================

The rewards of ToolDNA's ablation (R1, R2, R3) are a choice of ``Reward``, and a policy that does
not learn is ``FrozenEngine``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from agentkit.episodes import Diagnosis, Episode, Turn
from agentkit.errors import UsageError
from agentkit.evaluation.settings import ToolSource
from agentkit.models.base import ChatModel
from agentkit.retrieval import Retriever
from agentkit_bench.retrieval_variants import FlatLibrary, variant
from agentkit_training.errors import check_least
from agentkit_training.rollout.samples import Rollout


def with_stable_ids(rollouts: Sequence[Rollout], *, run: str, step: int) -> tuple[Rollout, ...]:
    """The rollouts with episodes named after run, step, task, attempt and user turn.

    Ids of the runtime are random. Here they decide too much for that: mining takes trajectories in
    the order of their ids, a store keeps an episode once, and proposals name those that they
    come from. Tokens stay with the rollout's sequences.

    Example:
        >>> from agentkit import Episode
        >>> one = Rollout(
        ...     task_id="t", attempt=2, episodes=(Episode(episode_id="x", request=""),),
        ...     sequences=(), library_version=0)
        >>> with_stable_ids([one], run="r", step=7)[0].episodes[0].episode_id
        'r-000007-t-002-00'
    """
    return tuple(_named(rollout, f"{run}-{step:06}") for rollout in rollouts)


def _named(rollout: Rollout, prefix: str) -> Rollout:
    stem = f"{prefix}-{rollout.task_id}-{rollout.attempt:03}"
    names = {one.episode_id: f"{stem}-{at:02}" for at, one in enumerate(rollout.episodes)}
    episodes = tuple(_renamed(one, names, session=stem) for one in rollout.episodes)
    return replace(rollout, episodes=episodes)


def _renamed(episode: Episode, names: Mapping[str, str], *, session: str) -> Episode:
    resumes = episode.resumes
    return replace(
        episode,
        episode_id=names[episode.episode_id],
        resumes=None if resumes is None else names.get(resumes, resumes),
        session_id=None if episode.session_id is None else session,
        diagnosis=None if episode.diagnosis is None else _diagnosis(episode.diagnosis, names),
    )


def _diagnosis(diagnosis: Diagnosis, names: Mapping[str, str]) -> Diagnosis:
    recoveries = tuple(
        replace(one, episode=names.get(one.episode, one.episode)) for one in diagnosis.recoveries
    )
    return replace(diagnosis, recoveries=recoveries)


def as_learned_from(episode: Episode) -> Episode:
    """The episode as those need it who look at calls and words: without tokens."""
    return replace(episode, turns=tuple(map(_without_tokens, episode.turns)))


def _without_tokens(turn: Turn) -> Turn:
    refine = None if turn.refine is None else replace(turn.refine, tokens=())
    return replace(turn, tokens=None, refine=refine)


RetrieverName: TypeAlias = Literal["default", "paper", "dense", "none"]
"""What finds the tools of a request in the library."""

PAPER_DENSE = 8
"""Tools that CoCoDA's dense retrieval finds (k, appendix J)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CoevolutionSettings:
    """What learns, how much is tried, and when the library may change.

    Attributes:
        evolution: Policies are asked for ``<description>`` blocks, and those of perfect episodes
            are proposed (ToolDNA, Algorithm 1, lines 8 to 14).
        feedback: A feedback model proposes from the others (lines 15 to 22).
        evidence: The evidence proposer reads what tools refused; it asks no model.
        composites: Recurring calls of successful episodes become tools (CoCoDA, Algorithm 1,
            lines 26 to 33; there a teacher writes them, here they are counted, and written by a
            teacher as well where one is given).
        interface: Training prompts get what the failure profile says is lacking (SEAL,
            section 3.3); evaluation never does.
        weighting: Advantages are weighted by diagnosis (SEAL, Eq. 10 to 12).
        closed_loop: The interface follows the profile from step to step; otherwise that of the
            first step stays.
        shuffled: The control: each tool is taught from what another tool did.
        tools: Whether tasks name their tools, or retrieval finds them in the library.
        retriever: What finds them: ours, CoCoDA's Algorithm 2 with the policy as the planner
            (``paper``), vectors alone (``dense``), or nothing: the whole library is offered.
        flat: Whether composites are made of primitives alone.
        grows: Whether composites are made in every step; otherwise the warm-up alone makes them.
        strict_format: Whether an answer without the call that a task asks for counts as malformed
            in ToolDNA's rewards, which then go down to -1 (R1, R3) and -2 (R2), as in the paper;
            otherwise it earns 0.
        group_size: Attempts at a task (G).
        tasks_per_step: Tasks of a step. CoCoDA takes one query at a time.
        epochs: How often all tasks are gone through.
        steps: Steps in all; None for as many as ``epochs`` come to.
        rho: Least score of an episode that composites are mined from (CoCoDA's rho).
        support: Episodes that a sequence of calls must occur in to become a composite.
        composite_coefficient: Reward of each call that a composite saved (CoCoDA's lambda, Eq. 2).
        gated: Whether only rollouts that passed get that reward. CoCoDA gives it to all, which
            pays for calling composites in vain.
        decay: What the weight of earlier failures is multiplied with in each step.
        temperature: Of sampling.
        seed: Of tasks and sampling.
        name: Begins the ids of episodes.

    Raises:
        UsageError: A number is out of range.
    """

    evolution: bool = False
    feedback: bool = False
    evidence: bool = False
    composites: bool = False
    interface: bool = False
    weighting: bool = False
    closed_loop: bool = True
    shuffled: bool = False
    tools: ToolSource = "given"
    retriever: RetrieverName = "default"
    flat: bool = False
    grows: bool = True
    strict_format: bool = False
    group_size: int = 8
    tasks_per_step: int = 4
    epochs: int = 1
    steps: int | None = None
    rho: float = 0.8
    support: int = 3
    composite_coefficient: float = 0.0
    gated: bool = True
    decay: float = 0.9
    temperature: float = 1.0
    seed: int = 0
    name: str = "coevolve"

    def __post_init__(self) -> None:
        check_least(self, "group_size", "tasks_per_step", "epochs", "support")
        if self.steps is not None and self.steps < 0:
            raise UsageError(f"steps is {self.steps}; give 0 or more, or None for whole epochs")
        for name in ("rho", "decay"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"{name} is {getattr(self, name)}; give a number from 0 to 1")
        if not 0 <= self.temperature < math.inf:
            raise UsageError(f"temperature is {self.temperature}; give 0 or more")
        if not 0 <= self.composite_coefficient < math.inf:
            raise UsageError(
                f"composite_coefficient is {self.composite_coefficient}; give 0 or more, as "
                "below 0 it would punish composites"
            )

    @property
    def changes_library(self) -> bool:
        """Whether anything may change the library."""
        return self.evolution or self.feedback or self.evidence or self.composites

    def make_retriever(self, model: ChatModel) -> Retriever | None:
        """What finds tools; None for the default, and where tasks name their tools.

        Args:
            model: Plans and judges in paper mode: the policy, as in CoCoDA.

        Raises:
            UsageError: ``dense`` without the extra ``vectors``.
        """
        if self.tools == "given" or self.retriever == "default":
            return None
        if self.retriever == "none":
            return FlatLibrary(token_budget=None)
        if self.retriever == "dense":
            return variant("flat_dense", shortlist=PAPER_DENSE, offer=PAPER_DENSE)
        return variant("paper", model=model)

    def to_json(self) -> dict[str, Any]:
        """The settings as a JSON object."""
        return asdict(self)


_STRICT = {"strict_format": True}
_COMPOSED = {"composites": True, "tools": "retrieved"}
_REWARDED = {"composite_coefficient": 0.2}
_FLAT = _COMPOSED | {"flat": True}
_FLAT_DENSE = _FLAT | {"retriever": "dense"}

ABLATIONS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "vanilla": _STRICT,
        "tooldna": {"evolution": True, "feedback": True} | _STRICT,
        "tooldna-no-feedback": {"evolution": True} | _STRICT,
        "tooldna-no-evolution": {"feedback": True} | _STRICT,
        "tooldna-no-loop": _STRICT,
        "cocoda": _COMPOSED | _REWARDED,
        "cocoda-no-dag": _FLAT,
        "cocoda-no-retrieval": _COMPOSED | _REWARDED | {"retriever": "dense"},
        "cocoda-no-reward": _COMPOSED,
        "cocoda-no-dag-no-retrieval": _FLAT_DENSE,
        "cocoda-none": _FLAT_DENSE | {"grows": False},
        "cocoda-given": {"composites": True} | _REWARDED,
        "seal": {"interface": True, "weighting": True},
        "seal-no-interface": {"weighting": True},
        "seal-no-weighting": {"interface": True},
        "seal-no-closed-loop": {"interface": True, "weighting": True, "closed_loop": False},
        "evidence": {"evidence": True},
        "evidence-shuffled": {"evidence": True, "shuffled": True},
    }
)
"""What each named configuration sets; every other switch is off."""

_OFF = CoevolutionSettings()
_SWITCHES = {name for one in ABLATIONS.values() for name in one} - {"retriever"}
"""What a named configuration turns off unless it sets it. Which retriever there is, where one is
used, is the user's choice: CoCoDA's own is ``paper``."""


def ablation(name: str, settings: CoevolutionSettings = _OFF) -> CoevolutionSettings:
    """The settings of a named ablation; what is no switch (sizes, seeds) is as in ``settings``.

    Example:
        >>> ablation("tooldna-no-feedback").evolution, ablation("tooldna-no-feedback").feedback
        (True, False)

    Raises:
        UsageError: There is no ablation of that name.
    """
    if name not in ABLATIONS:
        raise UsageError(f"there is no ablation {name!r}; there are {', '.join(ABLATIONS)}")
    off = {switch: getattr(_OFF, switch) for switch in _SWITCHES}
    return replace(settings, **{**off, **ABLATIONS[name]})
