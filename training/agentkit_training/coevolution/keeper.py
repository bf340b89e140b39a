"""``LibraryKeeper``: the library of a run, in the process that decides about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from agentkit import open_store
from agentkit._waiting import wait_for
from agentkit.diagnosis import FailureProfile
from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names
from agentkit.errors import UsageError
from agentkit.evaluation import Benchmark, EvaluationSettings
from agentkit.evaluation.held_out import HeldOut
from agentkit.evolution import (
    EvidenceConfig,
    EvidenceProposer,
    EvolutionStream,
    FeedbackStream,
    Observations,
    Proposer,
    ToolManager,
)
from agentkit.evolution.compare import Compare
from agentkit.evolution.proposal import Suggestion
from agentkit.evolution.validation import ValidationPolicy
from agentkit.evolution.validation.checks import validate
from agentkit.interop.export import Artifact, artifact_of, restore_artifact
from agentkit.library import Library
from agentkit.library.memory import MemoryStore
from agentkit.library.store import Retention, Store
from agentkit.models.base import ChatModel, ModelSettings
from agentkit.tools.tool import Tool
from agentkit_training.coevolution.library_round import (
    AUTHOR,
    LibraryRound,
    distil,
    library_round,
    taught,
)
from agentkit_training.coevolution.records import ProposalOutcome
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.coevolution.tasks import with_composites
from agentkit_training.errors import CheckpointError


class Shuffled:
    """Shows a proposer what each tool did under the name of the next one.

    What is then learned is as much, and as well-formed, and about the wrong tools: if it helps as
    much, the content does not matter. With one tool alone there is nothing to exchange, and nothing
    is suggested.

    Args:
        proposer: Who suggests.
    """

    def __init__(self, proposer: Proposer) -> None:
        self._proposer = proposer

    @property
    def name(self) -> str:
        """That of the proposer, which is who answers for it."""
        return self._proposer.name

    async def propose(self, observations: Observations) -> Sequence[Suggestion]:
        """What the proposer suggests about the wrong tools."""
        names = _next_names(observations)
        if not names:
            return ()
        episodes = tuple(_exchanged(one, names) for one in observations.episodes)
        return await self._proposer.propose(replace(observations, episodes=episodes))


def _next_names(observations: Observations) -> Mapping[str, str]:
    """For each tool of the library that was called, or is offered beside it, the next by name."""
    primitives = sorted(
        tool.name for tool in observations.library if not tool.definition.is_composite
    )
    if len(primitives) < 2:
        return {}
    return dict(zip(primitives, [*primitives[1:], primitives[0]], strict=True))


def _exchanged(episode: Episode, names: Mapping[str, str]) -> Episode:
    """The episode as if each tool had been another: calls, results, verdict and diagnosis."""
    return in_library_names(replace(in_library_names(episode), library_names=names))


_KNOBS = EvidenceConfig()


def proposers_of(
    settings: CoevolutionSettings,
    *,
    feedback_model: ChatModel | None = None,
    knobs: EvidenceConfig = _KNOBS,
) -> tuple[Proposer, ...]:
    """The proposers that the switches ask for, in the order in which they are heard.

    Composites are no proposals of this kind; see ``distil``.

    Args:
        settings: The switches.
        feedback_model: Answers for the feedback path.
        knobs: How much must have happened before the evidence proposer says anything.

    Raises:
        UsageError: The feedback path has no model.
    """
    found: list[Proposer] = []
    if settings.evolution:
        found.append(EvolutionStream())
    if settings.feedback:
        if feedback_model is None:
            raise UsageError("feedback is on and there is no feedback_model to ask; give one")
        found.append(FeedbackStream(feedback_model))
    if settings.evidence:
        found.append(EvidenceProposer(knobs))
    return tuple(Shuffled(one) for one in found) if settings.shuffled else tuple(found)


_VALIDATE = partial(validate, policy=ValidationPolicy(untrusted=(), new_words=(), new_rules=()))
"""The tools of tasks are simulated by the run itself: nobody else words what they say."""

MOST_IN_MEMORY = 5_000
"""Episodes that a store in memory keeps; more than any round of the library looks at."""


@dataclass(kw_only=True)
class LibraryKeeper:
    """Holds the store, and has the Tool Manager write to it; nobody else does.

    Attributes:
        settings: What may change the library.
        benchmark: Whose tools are registered in an empty store.
        model: The policy, which does the held-out tasks.
        store: Where the library is kept: empty, or one that holds a library to begin with.
        tools: Code of primitives, to try composites on.
        feedback_model: Answers for the feedback path.
        teacher: Writes composites beside those that are mined, where composites are on; None for
            mining alone.
        held_out: Tasks that decide about proposals, where the settings ask for it.
        knobs: How much must have happened before the evidence proposer says anything.
    """

    settings: CoevolutionSettings
    benchmark: Benchmark
    model: ChatModel
    store: Store = field(default_factory=lambda: open_store("memory:"))
    tools: Sequence[Tool] = ()
    feedback_model: ChatModel | None = None
    teacher: ChatModel | None = None
    held_out: Benchmark | None = None
    knobs: EvidenceConfig = field(default_factory=EvidenceConfig)
    _manager: ToolManager | None = field(init=False, default=None)

    @property
    def manager(self) -> ToolManager:
        """The writer; made when it is first asked for, when the benchmark's tools are registered.

        Until then a checkpoint can be restored into an empty store.
        """
        if self._manager is None:
            self._manager = self._opened()
            self._manager.register(
                [*self.benchmark.definitions, *self._other_tools()], reason="the benchmark's tools"
            )
        return self._manager

    @property
    def library(self) -> Library:
        """The newest version."""
        return self.manager.library

    def keep(self, episodes: Iterable[Episode]) -> None:
        """Keep episodes in the store; a known one is kept once.

        The checks compare suggested texts with what was said in the episodes behind them. In
        memory only the newest stay, ``MOST_IN_MEMORY`` of them.
        """
        for episode in episodes:
            self.store.append(episode)
        if isinstance(self.store, MemoryStore):
            self.store.prune(Retention(max_count=MOST_IN_MEMORY))

    def decide(
        self,
        episodes: Sequence[Episode],
        profile: FailureProfile,
        *,
        step: int,
        asking: EvaluationSettings | None = None,
    ) -> LibraryRound:
        """Hear the proposers, then mine composites; what passes is committed.

        Each change is committed once: proposals are known by their content, so that a second call
        with the same episodes finds them done.

        Args:
            episodes: Those since the library last had a chance to change.
            profile: Failures so far.
            step: Of the run.
            asking: How held-out tasks are asked, where they decide: as all others, greedily.
        """
        settings = self.settings
        proposers = proposers_of(settings, feedback_model=self.feedback_model, knobs=self.knobs)
        compare = self._compare(step, asking or EvaluationSettings())
        done = wait_for(library_round(self.manager, proposers, episodes, profile, compare=compare))
        found = self.distil(episodes) if settings.composites else ()
        return replace(done, proposals=(*done.proposals, *found))

    def distil(self, episodes: Sequence[Episode]) -> tuple[ProposalOutcome, ...]:
        """Have composites mined, and written where there is a teacher; see ``distil``."""
        self.manager.refresh()  # an empty store gets its tools first
        settings = self.settings
        found = distil(
            self.store, episodes, rho=settings.rho, support=settings.support, tools=self.tools
        )
        if self.teacher is not None:
            asked = taught(self.manager, episodes, self.teacher, rho=settings.rho)
            found += wait_for(asked)
        self.manager.refresh()
        return found

    def artifact(self) -> Artifact:
        """The library with its whole history, as it is exported and put into checkpoints."""
        self.manager.refresh()  # an empty store gets its tools first
        return artifact_of(self.store)

    def restore(self, artifact: Artifact) -> None:
        """Go on from a library with its history.

        Raises:
            CheckpointError: The store holds another library.
        """
        wanted = artifact.library
        if self.store.versions():
            held = self.store.load()
            if (held.version, held.digest) != (wanted.version, wanted.digest):
                raise CheckpointError(
                    f"the store holds library version {held.version} ({held.digest[:12]}), the "
                    f"checkpoint has version {wanted.version} ({wanted.digest[:12]}); give an "
                    "empty store, into which the checkpoint's library is put, or begin anew"
                )
        else:
            restore_artifact(artifact, self.store, trusted=True)  # our own, by its digest
        self._manager = self._opened()

    def _opened(self) -> ToolManager:
        lifecycle = self.settings.lifecycle
        return ToolManager(
            self.store, tools=self.tools, lifecycle=lifecycle, author=AUTHOR, validate=_VALIDATE
        )

    def _other_tools(self) -> list[Tool]:
        known = {definition.name for definition in self.benchmark.definitions}
        return [tool for tool in self.tools if tool.name not in known]

    def _compare(self, step: int, asking: EvaluationSettings) -> Compare | None:
        """Held-out tasks, asked anew in each step, for the policy has changed."""
        if self.settings.acceptance == "validation" or self.held_out is None:
            return None
        return HeldOut(
            benchmark=with_composites(self.held_out, self.library),
            model=self.model,
            store=open_store("memory:"),
            learned_from=frozenset(task.task_id for task in self.benchmark.tasks),
            settings=replace(
                asking,
                tools=self.settings.tools,
                attempts=1,
                settings=ModelSettings(temperature=0.0),
            ),
            concurrency=len(self.held_out.tasks),
            name=f"held-out-{step}",
        )
