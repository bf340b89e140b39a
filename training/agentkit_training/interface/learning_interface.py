"""``LearningInterface``: what of it is shown, chosen by what the policy fails at."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from math import fsum
from typing import Literal, Self, TypeAlias

from agentkit.diagnosis import FailureProfile
from agentkit.episodes import FailureLabel
from agentkit.library import Library
from agentkit.messages import JsonObject
from agentkit_training.errors import CheckpointError
from agentkit_training.interface.cues import CUES_NOTE, CueKinds, cued_library
from agentkit_training.interface.feedback import FeedbackModel
from agentkit_training.interface.guidelines import GUIDELINES, guideline_text, prevalent_labels
from agentkit_training.rollout.collecting import RolloutModel

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
