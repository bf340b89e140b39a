"""``CoevolutionStep``: everything about one step, for logs, plots and comparisons of runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from pydantic import TypeAdapter

from agentkit.diagnosis import FailureProfile
from agentkit.episodes import Episode
from agentkit.messages import JsonObject
from agentkit_training.engines.base import StepReport
from agentkit_training.runs import StepRecord

NOTHING_LEARNED = "nothing was learned"
"""How the note of a step begins in which no sequence had anything to teach."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProposalOutcome:
    """One suggested change, and what became of it.

    Attributes:
        tool: The tool that it would change or bring; empty for a text about no known tool.
        stream: Where it comes from.
        state: Where it stands now: a state of the life cycle, or ``merged``.
        why: Why it stands there, in words.
        codes: Checks that refused it.
        proposal_id: In the ledger; empty for a text that could not be read.
        edit: How much of the tool's text it changes, in words, from 0 to 1 (ToolDNA, Table 4).
    """

    tool: str
    stream: str
    state: str
    why: str = ""
    codes: tuple[str, ...] = ()
    proposal_id: str = ""
    edit: float = 0.0

    @property
    def is_taken(self) -> bool:
        """Whether the library has it now."""
        return self.state in {"active", "merged"}

    def __str__(self) -> str:
        codes = f" [{', '.join(self.codes)}]" if self.codes else ""
        return f"{self.stream}, {self.tool or 'no tool'}: {self.state}{codes}, {self.why}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RolloutSums:
    """The rollouts of one step, added up.

    Attributes:
        tasks: Ids of the tasks that were tried.
        count: How many rollouts there were.
        passed: Those that passed.
        faults: Those that say nothing about the policy and were not trained on.
        fault: Why, of the first of them.
        blocks: Those whose answers hold a ``<description>`` block.
        calls: Tool calls in all of them.
        reward: Mean reward of those without a fault.
        reward_parts: Mean of each part.
        reward_notes: Mean of what else the reward function recorded.
        weight: Mean weight.
        weight_scale: ``sum |w A| / sum |A|`` over the advantages A: how much larger they become.
        labels: How often each failure label was given to a turn.
    """

    tasks: tuple[str, ...] = ()
    count: int = 0
    passed: int = 0
    faults: int = 0
    fault: str = ""
    blocks: int = 0
    calls: int = 0
    reward: float = 0.0
    reward_parts: Mapping[str, float] = field(default_factory=dict)
    reward_notes: Mapping[str, float] = field(default_factory=dict)
    weight: float = 1.0
    weight_scale: float = 1.0
    labels: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class LibrarySize:
    """How large a library is.

    Attributes:
        tools: How many tools.
        composites: How many of them are composites.
        mean_depth: Mean depth of the composites; 0 without any.
        max_depth: Of the deepest.
        tokens: What all definitions cost in a prompt, estimated.
    """

    tools: int = 0
    composites: int = 0
    mean_depth: float = 0.0
    max_depth: int = 0
    tokens: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class CoevolutionStep:
    """What one step did. Equal runs give equal records; time is not compared.

    Attributes:
        step: Its number, from 0.
        version: Library version that the prompts were rendered from.
        digest: Of that library.
        next_version: Library version that the next step begins with.
        next_digest: Of that library.
        rollouts: What was tried, added up.
        proposals: What was suggested after the step.
        silent: Proposers that could not say anything, and why.
        library: Size of the library after the step.
        update: What the engine says of all processes' updates together.
        library_seconds: Wall time of the library's part: profile, proposals, checks, commits.
    """

    step: int
    version: int
    digest: str
    next_version: int
    next_digest: str
    rollouts: RolloutSums = field(default_factory=RolloutSums)
    proposals: tuple[ProposalOutcome, ...] = ()
    silent: tuple[str, ...] = ()
    library: LibrarySize = field(default_factory=LibrarySize)
    update: StepReport
    library_seconds: float = field(default=0.0, compare=False)

    @property
    def taken(self) -> tuple[ProposalOutcome, ...]:
        """The proposals that the library has now."""
        return tuple(one for one in self.proposals if one.is_taken)

    @property
    def edit(self) -> float:
        """Mean edit size of the changes of texts that were taken; 0 without any."""
        sizes = [one.edit for one in self.taken if one.stream != "composite"]
        return fmean(sizes) if sizes else 0.0

    def to_record(self, *, phase: str = "coevolve", is_frozen: bool = False) -> StepRecord:
        """The step as a line of the run's log, in the names that the report knows.

        Args:
            phase: What the run does: ``coevolve``, or ``grpo`` where the library stays.
            is_frozen: Whether the policy stays as it is, and nothing can be said of its update.
        """
        sums, size, update = self.rollouts, self.library, self.update
        figures = {
            "reward": sums.reward,
            "passed": sums.passed / max(1, sums.count - sums.faults),
            "weight": sums.weight,
            "weight_scale": sums.weight_scale,
            "rollouts/faults": sums.faults,
            "rollouts/calls": sums.calls,
            "rollouts/blocks": sums.blocks,
            "library/version": self.next_version,
            "library/rendered_version": self.version,
            "library/tools": size.tools,
            "library/composites": size.composites,
            "library/depth": size.mean_depth,
            "library/tokens": size.tokens,
            "library/edit_size": self.edit,
            "library/proposed": len(self.proposals),
            "library/accepted": len(self.taken),
            "rollout_seconds": update.rollout_seconds,
            "library_seconds": self.library_seconds,
        }
        if not is_frozen:
            figures |= {
                "loss": update.loss,
                "gradient_norm": update.gradient_norm,
                "learning_rate": update.learning_rate,
                "entropy": update.entropy,
                "kl": update.divergence,
                "skipped": update.skipped,
                "clip_share": update.clip_share,
                "max_log_ratio": update.max_log_ratio,
                "completion_tokens": update.loss_tokens,
                "read_tokens": update.read_tokens,
                "update_seconds": update.update_seconds,
            }
        parts = {f"reward/{name}": value for name, value in sums.reward_parts.items()}
        noted = {f"noted/{name}": value for name, value in sums.reward_notes.items()}
        return StepRecord(
            step=self.step,
            phase=phase,
            figures=figures | parts | noted,
            labels=sums.labels,
            notes=(*map(str, self.proposals), *self.silent, *self._warnings()),
        )

    def _warnings(self) -> Iterator[str]:
        """What a user has to know of rollouts that nothing was learned from."""
        sums = self.rollouts
        if sums.faults:
            told = f"{sums.faults} of {sums.count} rollouts have a fault and are not trained on"
            yield f"{told}; the first: {sums.fault}"
        if self.update.too_long:
            yield (
                f"{self.update.too_long} sequences are longer than the model's window and are not "
                "trained on"
            )
        if sums.faults < sums.count and self.update.has_learned_nothing:
            parts = "" if len(sums.reward_parts) > 1 else "a reward with parts (R2), "
            yield (
                f"{NOTHING_LEARNED}: the rewards within each group are equal. Give more attempts "
                f"(group_size), {parts}a cold start, or tasks that the policy solves now and then"
            )

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, record: JsonObject) -> CoevolutionStep:
        """The inverse of ``to_json``; records of earlier releases have the loss beside the update.

        Raises:
            ValueError: It is no such record.
        """
        if "loss" in record:
            own = {name: record[name] for name in ("step", "loss", "gradient_norm")}
            record = {**record, "update": {**record["update"], **own}}
        return TypeAdapter(cls).validate_python(record)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Failures so far.

    Attributes:
        profile: Failures of all episodes; each step fades those before it (SEAL, Eq. 14).
        first_profile: That of the first step, for SEAL's ablation without a closed loop.
    """

    profile: FailureProfile = field(
        default_factory=lambda: FailureProfile(half_life_days=None, name="coevolve")
    )
    first_profile: FailureProfile | None = None

    def after(self, episodes: Iterable[Episode], *, decay: float) -> Memory:
        """The memory after a step; this one stays as it is.

        Args:
            episodes: Of the step.
            decay: What the weight of earlier failures is multiplied with.
        """
        profile = self.profile.copy()
        profile.decay(decay)
        profile.observe_all(episodes)
        first = profile.copy() if self.first_profile is None else self.first_profile
        return Memory(profile=profile, first_profile=first)

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
        }

    @classmethod
    def from_json(cls, record: JsonObject) -> Memory:
        """The inverse of ``to_json``.

        Raises:
            KeyError: A part is absent.
            StoreFormatError: A profile can not be read.
        """
        first = record["first_profile"]
        return cls(
            profile=FailureProfile.from_json(record["profile"]),
            first_profile=None if first is None else FailureProfile.from_json(first),
        )
