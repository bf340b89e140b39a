"""``LibraryKeeper``: the library of a run, in the process that decides about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import fmean

from agentkit import open_store
from agentkit._waiting import wait_for
from agentkit.diagnosis import FailureProfile
from agentkit.episodes import Episode
from agentkit.episodes.labels import in_library_names
from agentkit.errors import ModelError, UsageError
from agentkit.evaluation import Benchmark
from agentkit.evolution import (
    CheckResult,
    CompositeStream,
    EvidenceProposer,
    EvolutionStream,
    FeedbackStream,
    LifecyclePolicy,
    MiningConfig,
    Observations,
    Proposer,
    ToolManager,
    evolve,
    insert_mined,
    mine,
    trajectories_of,
)
from agentkit.evolution.lifecycle import ProposalOutcome as RoundOutcome
from agentkit.evolution.proposal import PassedOver, Proposal
from agentkit.evolution.validation import ValidationPolicy
from agentkit.evolution.validation.checks import validate
from agentkit.interop.export import Artifact, ArtifactStore, artifact_of
from agentkit.library import Library
from agentkit.library.copying import copy_store
from agentkit.library.dag import depth
from agentkit.library.memory import MemoryStore
from agentkit.library.store import Retention, Store
from agentkit.models.base import ChatModel
from agentkit.retrieval.cards import estimate_tokens, schema_text
from agentkit.tools.tool import Tool
from agentkit_bench.language.measures import texts_of, word_distance
from agentkit_training.coevolution.records import LibrarySize, ProposalOutcome
from agentkit_training.coevolution.settings import CoevolutionSettings
from agentkit_training.errors import CheckpointError


def library_size(library: Library) -> LibrarySize:
    """How large a library is, and how deep."""
    depths = [depth(library, tool.name) for tool in library if tool.definition.is_composite]
    return LibrarySize(
        tools=len(library),
        composites=len(depths),
        mean_depth=fmean(depths) if depths else 0.0,
        max_depth=max(depths, default=0),
        tokens=sum(estimate_tokens(schema_text(one)) for one in library.definitions),
    )


def _order(library: Library, profile: FailureProfile) -> tuple[str, ...]:
    """All tools, those that fail most first."""
    worst = [rate.tool for rate in profile.worst_tools(len(library)) if rate.tool in library]
    return tuple(dict.fromkeys([*worst, *library.tools]))


def _outcome(one: RoundOutcome, manager: ToolManager) -> ProposalOutcome:
    record = one.record
    candidate = record.candidate
    base = None if candidate is None else manager.revision(record.tool_name, record.base)
    edit = 0.0
    if candidate is not None and base is not None:
        edit = word_distance(*("\n".join(texts_of(one).values()) for one in (base, candidate)))
    return ProposalOutcome(
        tool=record.tool_name,
        stream=record.stream,
        state=record.state,
        why=one.why or record.last_word,
        codes=tuple(dict.fromkeys(check.code for check in record.failed)),
        proposal_id="" if candidate is None else record.proposal_id,  # that of a text is random
        edit=edit,
    )


AUTHOR = "coevolve"
"""Who is noted in a library's history as the writer."""


async def taught(
    manager: ToolManager, good: Sequence[Episode], teacher: ChatModel, *, flat: bool = False
) -> tuple[ProposalOutcome, ...]:
    """Have a model write composites from successful episodes, and hand them to the Tool Manager.

    Args:
        manager: The only writer. What it has no code for can not be tried, and is not taken.
        good: What happened, and went well.
        teacher: Writes them.
        flat: Whether it may call primitives alone.

    Returns:
        What became of each function that the model wrote; or that it did not answer, which is no
        reason to end a run.
    """
    if not good:
        return ()
    unread: list[PassedOver] = []
    library = manager.refresh()
    if flat:
        library = library.without(library.dag.composites)
    seen = Observations(library=library, episodes=tuple(good), pass_over=unread.append)
    found: list[ProposalOutcome] = []
    try:
        suggested = await CompositeStream(teacher).propose(seen)
    except ModelError as error:
        return (_rejected("", f"{teacher.name} did not answer: {error}", "no_answer"),)
    for one in suggested:
        done = await manager.insert_async(one.candidate, evidence=one.evidence, reason=one.reason)
        found.append(_inserted(one.candidate.name, done))
    found += [_rejected("", one.why, one.reason) for one in unread]
    return tuple(found)


def is_success(episode: Episode, rho: float) -> bool:
    """Whether an episode is one to learn composites from: R_res >= rho (Algorithm 1, line 26).

    Without a verdict that is unknown, however it ended, and nothing is learned from it.
    """
    verdict = episode.verdict
    if verdict is None or verdict.fault is not None:
        return False
    return max(float(verdict.passed), verdict.score) >= rho


def _rejected(tool: str, why: str, *codes: str, stream: str = "composite") -> ProposalOutcome:
    return ProposalOutcome(
        tool=tool,
        stream=stream,
        state="rejected",
        why=why,
        codes=tuple(dict.fromkeys(codes)),
    )


def _inserted(name: str, outcome: CheckResult) -> ProposalOutcome:
    if outcome.failed:
        failed = outcome.failed[0]
        return _rejected(name, failed.message, failed.code)
    if outcome.duplicate is not None:
        name = outcome.duplicate.name
    state = "active" if outcome.duplicate is None else "merged"
    return ProposalOutcome(tool=name, stream="composite", state=state, why=str(outcome))


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

    async def propose(self, observations: Observations) -> Sequence[Proposal]:
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


_TRUSTING = ValidationPolicy(untrusted=(), model_texts=(), new_rules=(), lost_rules=())
_VALIDATE = partial(validate, policy=_TRUSTING)
"""The tools of tasks are simulated by the run itself, and numbers alone decide what is kept."""

_CHECKS = LifecyclePolicy(evidence="none")
"""The three layers of checks alone decide, as in ToolDNA."""

MOST_IN_MEMORY = 5_000
"""Episodes that a store in memory keeps; more than any round of the library looks at."""


@dataclass(kw_only=True)
class LibraryKeeper:
    """Holds the store, and has the Tool Manager write to it; nobody else does.

    Attributes:
        settings: What may change the library.
        benchmark: Whose tools are registered in an empty store.
        store: Where the library is kept: empty, or one that holds a library to begin with.
        tools: Code of primitives, to try composites on.
        feedback_model: Answers for the feedback path.
        teacher: Writes composites beside those that are mined, where composites are on; None for
            mining alone.
    """

    settings: CoevolutionSettings
    benchmark: Benchmark
    store: Store = field(default_factory=lambda: open_store("memory:"))
    tools: Sequence[Tool] = ()
    feedback_model: ChatModel | None = None
    teacher: ChatModel | None = None
    _manager: ToolManager | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.settings.feedback and self.feedback_model is None:
            raise UsageError("feedback is on and there is no feedback_model to ask; give one")

    @property
    def manager(self) -> ToolManager:
        """The writer; made when it is first asked for, when the benchmark's tools are registered.

        Until then a checkpoint can be restored into an empty store.
        """
        if self._manager is None:
            self._manager = self._opened()
            own = self.benchmark.definitions
            known = {definition.name for definition in own}
            others = [tool for tool in self.tools if tool.name not in known]
            self._manager.register([*own, *others], reason="the benchmark's tools")
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
        self, episodes: Sequence[Episode], profile: FailureProfile
    ) -> tuple[tuple[ProposalOutcome, ...], tuple[str, ...]]:
        """Hear the proposers, then mine composites; what passes is committed (ToolDNA, 7 to 24).

        Each change is committed once: proposals are known by their content, so that a second call
        with the same episodes finds them done.

        Args:
            episodes: Those of the step.
            profile: Failures so far; tools that fail most come first.

        Returns:
            What became of each suggestion, and which proposers could not answer, with their errors.
        """
        proposals: list[ProposalOutcome] = []
        silent: tuple[str, ...] = ()
        proposers = self._proposers()
        if proposers and episodes:
            tools = _order(self.library, profile)
            done = wait_for(evolve(self.manager, proposers, episodes=episodes, tools=tools))
            proposals += [_outcome(one, self.manager) for one in done.considered]
            proposals += [  # what a policy or a feedback model wrote, and nobody can read
                _rejected(one.tool, one.why, one.reason, stream="unreadable")
                for one in done.passed_over
                if one.reason == "unreadable"
            ]
            silent = tuple(f"{name}: {error}" for name, error in done.silent.items())
        if self.settings.composites and self.settings.grows:
            proposals += self.distil(episodes)
        return tuple(proposals), silent

    def distil(self, episodes: Sequence[Episode]) -> tuple[ProposalOutcome, ...]:
        """Have recurring calls of successful episodes mined, and written where there is a teacher.

        What is found goes to the Tool Manager (CoCoDA, Algorithm 1, lines 26 to 33). A call that
        stands in ``support`` trajectories is found; flat libraries build on primitives alone.
        """
        settings = self.settings
        library = self.manager.refresh()  # an empty store gets its tools first
        good = [episode for episode in episodes if is_success(episode, settings.rho)]
        known = [t for t in library.definitions if not (settings.flat and t.is_composite)]
        mined = mine(
            trajectories_of(good, failed_too=True).trajectories,
            {one.name: one for one in known},
            MiningConfig(min_support=settings.support),
        )
        outcomes = insert_mined(self.manager, mined.composites)
        found = tuple(_inserted(name, one) for name, one in outcomes.items())
        if self.teacher is not None:
            found += wait_for(taught(self.manager, good, self.teacher, flat=settings.flat))
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
            copy_store(ArtifactStore(artifact), self.store)
        self._manager = self._opened()

    def _proposers(self) -> tuple[Proposer, ...]:
        """The proposers that the switches ask for, in the order in which they are heard."""
        found: list[Proposer] = []
        if self.settings.evolution:
            found.append(EvolutionStream())
        if self.settings.feedback and self.feedback_model is not None:
            found.append(FeedbackStream(self.feedback_model))
        if self.settings.evidence:
            found.append(EvidenceProposer())
        return tuple(map(Shuffled, found)) if self.settings.shuffled else tuple(found)

    def _opened(self) -> ToolManager:
        return ToolManager(
            self.store, tools=self.tools, lifecycle=_CHECKS, author=AUTHOR, validate=_VALIDATE
        )
