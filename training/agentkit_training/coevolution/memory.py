"""``Memory``: what a run remembers beside weights and library, as a value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from agentkit.diagnosis import FailureProfile
from agentkit.episodes import Episode
from agentkit.messages import JsonObject

_REPLICA = "coevolve"


def _empty() -> FailureProfile:
    return FailureProfile(half_life_days=None, replica=_REPLICA)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Failures so far, and the episodes that the library has not learned from yet.

    Attributes:
        profile: Failures of all episodes; each step fades those before it (SEAL, Eq. 14).
        first_profile: That of the first step, for SEAL's ablation without a closed loop.
        pending: Episodes since the library last had a chance to change.
    """

    profile: FailureProfile = field(default_factory=_empty)
    first_profile: FailureProfile | None = None
    pending: tuple[Episode, ...] = ()

    def after(self, episodes: Iterable[Episode], *, decay: float) -> Memory:
        """The memory after a step; this one stays as it is.

        Args:
            episodes: Of the step.
            decay: What the weight of earlier failures is multiplied with.
        """
        seen = tuple(episodes)
        profile = self.profile.merge(_empty())
        profile.decay(decay)
        profile.observe_all(seen)
        first = profile.merge(_empty()) if self.first_profile is None else self.first_profile
        return replace(self, profile=profile, first_profile=first, pending=(*self.pending, *seen))

    def shown(self, *, closed_loop: bool) -> FailureProfile:
        """The profile that the interface follows."""
        if closed_loop or self.first_profile is None:
            return self.profile
        return self.first_profile

    def to_json(self) -> dict[str, Any]:
        """The memory as a JSON object."""
        first = self.first_profile
        return {
            "profile": self.profile.to_json(),
            "first_profile": None if first is None else first.to_json(),
            "pending": [one.to_json() for one in self.pending],
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> Memory:
        """The inverse of ``to_json``.

        Raises:
            KeyError: A part is absent.
            StoreFormatError: A profile can not be read.
            EpisodeFormatError: An episode can not be read.
        """
        first = record["first_profile"]
        return cls(
            profile=FailureProfile.from_json(record["profile"]),
            first_profile=None if first is None else FailureProfile.from_json(first),
            pending=tuple(Episode.from_json(one) for one in record["pending"]),
        )
