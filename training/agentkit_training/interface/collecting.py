"""``collect_through``: training rollouts, made through the learning interface."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from types import MappingProxyType
from typing import Literal, Self, TypeAlias

from agentkit.diagnosis import FailureProfile
from agentkit.diagnosis.labels import NOT_FAILURES
from agentkit.episodes import FailureLabel
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit_training.errors import CheckpointError
from agentkit_training.interface.cues import CUES_NOTE, CueKinds, cued_library
from agentkit_training.interface.feedback import FeedbackModel
from agentkit_training.rollout.collecting import RolloutModel, collect
from agentkit_training.rollout.samples import Rollout

GUIDELINES: Mapping[FailureLabel, str] = MappingProxyType(
    {
        "invalid_tool_call": (
            "Write each call in the format that was asked for, whole and without a word around it, "
            "and call only tools that are listed."
        ),
        "argument_mismatch": (
            "Before a call, go through the tool's parameters: give each one that is required, in "
            "its type and from its allowed values, with what the user or an earlier result said."
        ),
        "state_mismatch": (
            "Before a call that changes something, look at the newest results: the call must fit "
            "the state that they show, and every change that was asked for needs its call."
        ),
        "recovery_failure": (
            "After an error, read which rule was broken, change the call accordingly or look up "
            "what is missing, and go on; neither repeat the same call nor give up."
        ),
        "spurious_tool_call": (
            "When no listed tool does what is asked, or something that it needs was not said, "
            "answer in words instead of calling one."
        ),
        "missing_tool_call": (
            "When a listed tool does a part of what is asked, call it before answering; go on "
            "until no part is open."
        ),
        "response_mismatch": (
            "Take the final answer from the results, answer everything that was asked, and keep to "
            "the form and units of the request."
        ),
    }
)
"""The sentence for each failure label."""

MOST_GUIDELINES = 3
"""Sentences that are shown at a time, as in the released code."""

_HEADER = "Keep in mind:"


def prevalent_labels(
    profile: FailureProfile, *, share: float = 0.1, turns: float = 8.0
) -> tuple[FailureLabel, ...]:
    """The failures that a policy has often, the most frequent first (SEAL, Eq. 14 and 15).

    The thresholds on share and count are those of the released code. It relates the share to failed
    turns, and leaves out labels whose rollouts have a mean reward of .6 or more. Here the share is
    one of all turns, passed ones included, so that a failure drops out as it becomes rare.

    Args:
        profile: The diagnoses of recent rollouts.
        share: Least share of a label among all turns.
        turns: Least weight of its turns; a fresh one weighs 1.
    """
    observed = fsum(one.observed for one in profile.by_position())
    return tuple(
        label
        for label, part in profile.label_distribution().items()
        if label not in NOT_FAILURES and part >= share and part * observed >= turns - 1e-9
    )


def guideline_text(labels: Iterable[FailureLabel], *, most: int = MOST_GUIDELINES) -> str:
    """The guidelines for failures, the first ones only; empty when there are none.

    Example:
        >>> print(guideline_text(["missing_tool_call"]))
        Keep in mind:
        - When a listed tool does a part of what is asked, call it before answering; go on until \
no part is open.
    """
    chosen = [GUIDELINES[label] for label in labels if label in GUIDELINES][:most]
    return "\n".join([_HEADER, *(f"- {sentence}" for sentence in chosen)]) if chosen else ""


Mode: TypeAlias = Literal["off", "by_profile", "always"]
"""Whether a component is shown: never, when the failures that it is for are frequent, or always."""

CUE_LABELS: frozenset[FailureLabel] = frozenset(
    {"argument_mismatch", "invalid_tool_call", "missing_tool_call"}
)
"""Failures that cues are for. The paper names the first and the last (section 3.3); cues hold the
format of valid calls, too."""

FEEDBACK_LABELS: frozenset[FailureLabel] = frozenset({"recovery_failure", "invalid_tool_call"})
"""Failures that feedback is for. The paper names the first; a call of a tool that is not there is
the second, and its feedback is in the paper's appendix D.3."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LearningInterface:
    """The training-time interface o' = T(o, tools, diagnosis, profile) of SEAL (Eq. 8 and 9).

    It changes what the policy reads and nothing else: texts of parameters, instructions, and what
    failed calls say. Tools, validation, rewards and verdicts stay, and it is not at hand where a
    policy is evaluated: ``collect`` knows nothing of it, ``collect_through`` does.

    The default is all off. The configuration that the authors released has ``cues="always"`` and
    the other two off. Where tools are retrieved, a cue is text like any other and may move a rank.

    Attributes:
        cues: Schema cues (``cues.py``).
        feedback: Help with recovering from failed calls (``feedback.py``).
        guidelines: Sentences for frequent failures (``guidelines.py``). The paper selects them from
            the profile, so that a clean one leaves nothing to say (section 3.3); ``always`` does
            not wait for it, and shows the first ones until the profile can tell.
        cue_kinds: Which demands of schemas are said again.
        plain_errors: Whether failed calls are worded as the paper's environments word them, by the
            bare error. It is no help, so it is for evaluation too: give it to ``FeedbackModel``.
        share: Least share among all turns for a failure to count as frequent.
        turns: Least number of turns for that.
        labels: The frequent failures of the last profile, the most frequent first.
        is_clean: Whether the last profile has enough turns and no failure with the share.
    """

    cues: Mode = "off"
    feedback: Mode = "off"
    guidelines: Mode = "off"
    cue_kinds: CueKinds = field(default_factory=CueKinds)
    plain_errors: bool = False
    share: float = 0.1
    turns: float = 8.0
    labels: tuple[FailureLabel, ...] = ()
    is_clean: bool = False

    def updated(self, profile: FailureProfile) -> Self:
        """The interface for the next round, I_{k+1} = Update(I_k, F_k) (SEAL, Eq. 15).

        Args:
            profile: The diagnoses of recent rollouts. ``profile.observe_all(rollout.episodes)``
                counts a round, ``profile.decay(0.5)`` before it lets earlier ones fade.
        """
        labels = prevalent_labels(profile, share=self.share, turns=self.turns)
        return replace(self, labels=labels, is_clean=self._finds_clean(profile))

    @property
    def has_cues(self) -> bool:
        """Whether cues are shown now."""
        return self._is_on(self.cues, CUE_LABELS)

    @property
    def has_feedback(self) -> bool:
        """Whether failed calls come with help now."""
        return self._is_on(self.feedback, FEEDBACK_LABELS)

    @property
    def has_guidelines(self) -> bool:
        """Whether guidelines are shown now."""
        return bool(guideline_text(self._guided))

    @property
    def can_show(self) -> bool:
        """Whether anything may ever be shown or worded otherwise than at evaluation."""
        return {self.cues, self.feedback, self.guidelines} != {"off"} or self.plain_errors

    @property
    def helps(self) -> bool:
        """Whether anything is shown now that the policy is not to see at evaluation."""
        return self.has_cues or self.has_feedback or self.has_guidelines

    def library(self, library: Library, *, names: Collection[str] | None = None) -> Library:
        """The library as it is shown in training; the same object without cues.

        Args:
            library: The tools.
            names: Those that are offered; None for all.
        """
        return cued_library(library, self.cue_kinds, names=names) if self.has_cues else library

    def instructions(self, said: str = "") -> str:
        """The instructions of training: those that are given anyway, and what comes with them."""
        more = (CUES_NOTE if self.has_cues else "", guideline_text(self._guided))
        return "\n\n".join(filter(None, (said, *more)))

    def model(self, model: RolloutModel) -> RolloutModel:
        """The model with failed calls in training's words; the same object without any."""
        if not self.has_feedback and not self.plain_errors:
            return model
        return FeedbackModel(model, recovery=self.has_feedback, plain=self.plain_errors)

    def state(self) -> JsonObject:
        """What it has learned from profiles, for a checkpoint and for the log of a round."""
        return {"labels": list(self.labels), "is_clean": self.is_clean}

    def restored(self, state: JsonObject) -> Self:
        """The interface with what ``state`` gave.

        Raises:
            CheckpointError: It is no such state.
        """
        found = state.get("labels")
        if not isinstance(found, list) or not all(label in GUIDELINES for label in found):
            raise CheckpointError(
                f"the checkpoint holds {str(dict(state))[:200]} for the learning interface, which "
                f"is no list of failures among {', '.join(GUIDELINES)}; it is of another version"
            )
        return replace(self, labels=tuple(found), is_clean=state.get("is_clean") is True)

    @property
    def _guided(self) -> tuple[FailureLabel, ...]:
        """The failures that guidelines are for now, of which the first few are shown."""
        if self.guidelines == "off":
            return ()
        if self.guidelines == "always" and not self.labels and not self.is_clean:
            return tuple(GUIDELINES)
        return self.labels

    def _finds_clean(self, profile: FailureProfile) -> bool:
        """Whether no failure is frequent, and not just because too few turns were seen."""
        observed = fsum(one.observed for one in profile.by_position())
        if not observed or observed < self.turns - 1e-9:
            return False
        return not prevalent_labels(profile, share=self.share, turns=0.0)

    def _is_on(
        self, mode: Mode, labels: Collection[FailureLabel] | Mapping[FailureLabel, str]
    ) -> bool:
        return mode == "always" or (
            mode == "by_profile" and any(label in labels for label in self.labels)
        )


async def collect_through(
    interface: LearningInterface,
    model: RolloutModel,
    benchmark: Benchmark,
    *,
    library: Library | None = None,
    attempts: int = 8,
    temperature: float = 1.0,
    seed: int = 0,
    settings: EvaluationSettings | None = None,
) -> tuple[Rollout, ...]:
    """Let the policy try every task, shown what the interface adds (SEAL, Eq. 8 and 13).

    Tasks, tools, worlds and verifiers are those of ``collect``, which is what an interface that is
    off comes to.

    Args:
        interface: What is added.
        model: The policy's model, without anything around it.
        benchmark: The tasks, their tools and how they are judged.
        library: What the tools are called and described as; None for the benchmark's own texts.
        attempts: Rollouts of each task.
        temperature: Of sampling; above 0 unless nothing is added.
        seed: Of the first attempt.
        settings: How to ask.

    Raises:
        UsageError: The temperature is 0, which evaluates, and the interface adds something.
    """
    if temperature == 0 and interface.helps:
        raise UsageError(
            "temperature 0 evaluates, and the learning interface is for training alone; use "
            "collect, or give a temperature above 0"
        )
    asked = settings or EvaluationSettings()
    shown = _shown(interface, benchmark, library, retrieves=asked.tools == "retrieved")
    return await collect(
        interface.model(model),
        benchmark,
        library=shown,
        attempts=attempts,
        temperature=temperature,
        seed=seed,
        settings=replace(asked, instructions=interface.instructions(asked.instructions)),
    )


def _shown(
    interface: LearningInterface, benchmark: Benchmark, library: Library | None, *, retrieves: bool
) -> Library | None:
    """The library as it is shown; of tools that no task offers the texts stay as they are."""
    if not interface.has_cues:
        return library
    known = Library() if library is None else library
    own = [one for one in benchmark.definitions if one.name not in known]
    offered = {name for task in benchmark.tasks for turn in task.turns for name in turn.offers}
    return interface.library(known.with_tools(own), names=None if retrieves else offered)
