"""What the library learns after a step: proposals of texts, and composites of what went well.

Composites (CoCoDA, Algorithm 1, Stage 1 and 3d): ``distil`` counts what recurs; ``taught`` has a
model write them, as the paper's teacher does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from agentkit.diagnosis import FailureProfile
from agentkit.episodes import Episode
from agentkit.errors import ModelError
from agentkit.evolution import (
    Added,
    CompositeStream,
    InsertOutcome,
    InsertPolicy,
    Merged,
    MiningConfig,
    Observations,
    Proposer,
    ToolManager,
    UnreadableProposal,
    evolve,
    insert_mined,
    mine,
    trajectories_of,
)
from agentkit.evolution.compare import Compare
from agentkit.evolution.repository import LibraryStore
from agentkit.evolution.round import ProposalOutcome as RoundOutcome
from agentkit.library import Library
from agentkit.library.dag import depth
from agentkit.models.base import ChatModel
from agentkit.retrieval.cards import estimate_tokens, schema_text
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool
from agentkit_bench.language.measures import texts_of, word_distance
from agentkit_training.coevolution.records import LibrarySize, ProposalOutcome


@dataclass(frozen=True, kw_only=True, slots=True)
class LibraryRound:
    """What came of one look at the library.

    Attributes:
        proposals: What was suggested, in order, with what became of it.
        silent: Proposers that could not say anything, and why.
    """

    proposals: tuple[ProposalOutcome, ...] = ()
    silent: tuple[str, ...] = ()


async def library_round(
    manager: ToolManager,
    proposers: Sequence[Proposer],
    episodes: Sequence[Episode],
    profile: FailureProfile,
    *,
    compare: Compare | None = None,
) -> LibraryRound:
    """Let the proposers look at episodes, and the Tool Manager decide (ToolDNA, lines 7 to 24).

    It is a round of the runtime (``agentkit.evolution.evolve``): the paper takes up each valid
    proposal at once, and so does this, one after another, each on what the one before left. Tools
    come in the order of the profile, those first that have failed most in the recent steps.

    Args:
        manager: The only writer.
        proposers: Who suggests.
        episodes: Those of the steps since the last round.
        profile: Failures of these and of earlier episodes.
        compare: Does held-out tasks; None where the checks alone decide.
    """
    if not proposers or not episodes:
        return LibraryRound()
    done = await evolve(
        manager,
        proposers,
        episodes=episodes,
        compare=compare,
        tools=_order(manager.library, profile),
    )
    return LibraryRound(
        proposals=tuple(_outcome(one, manager) for one in done.considered),
        silent=tuple(f"{one.proposer}: {one.error}" for one in done.silent),
    )


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


def _words(definition: ToolDefinition) -> str:
    return "\n".join(texts_of(definition).values())


def _outcome(one: RoundOutcome, manager: ToolManager) -> ProposalOutcome:
    record = one.record
    candidate = record.candidate
    base = None if candidate is None else manager.revision(record.tool_name, record.base)
    edit = 0.0
    if candidate is not None and base is not None:
        edit = word_distance(_words(base), _words(candidate))
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

_POLICY = InsertPolicy()


def distil(
    store: LibraryStore,
    episodes: Iterable[Episode],
    *,
    rho: float = 0.8,
    support: int = 3,
    tools: Sequence[Tool] = (),
    policy: InsertPolicy = _POLICY,
) -> tuple[ProposalOutcome, ...]:
    """Mine recurring calls of successful episodes, and hand what is found to the Tool Manager.

    Args:
        store: Where the library is kept.
        episodes: What happened, with verdicts; of one without, nobody knows how it went.
        rho: Least score of a verdict (CoCoDA's success threshold).
        support: Episodes that a sequence must occur in.
        tools: Code of primitives, to try composites of pure tools on; those that touch the world
            are answered from what the episodes recorded.
        policy: What is asked of a candidate.

    Returns:
        What became of each candidate, children before those that call them.
    """
    good = [episode for episode in episodes if is_success(episode, rho)]
    definitions = {one.name: one for one in store.load().definitions}
    rules = MiningConfig(min_support=support)
    found = mine(trajectories_of(good, failed_too=True).trajectories, definitions, rules)
    manager = ToolManager(store, tools=tools, policy=policy, author=AUTHOR)
    outcomes = insert_mined(manager, found.composites)
    return tuple(_inserted(name, one) for name, one in outcomes.items())


async def taught(
    manager: ToolManager, episodes: Iterable[Episode], teacher: ChatModel, *, rho: float = 0.8
) -> tuple[ProposalOutcome, ...]:
    """Have a model write composites from successful episodes, and hand them to the Tool Manager.

    Args:
        manager: The only writer. What it has no code for can not be tried, and is not taken.
        episodes: What happened, with verdicts.
        teacher: Writes them.
        rho: Least score of a verdict.

    Returns:
        What became of each function that the model wrote; or that it did not answer, which is no
        reason to end a run.
    """
    good = tuple(episode for episode in episodes if is_success(episode, rho))
    if not good:
        return ()
    seen = Observations(library=manager.refresh(), episodes=good)
    found: list[ProposalOutcome] = []
    try:
        suggested = await CompositeStream(teacher).propose(seen)
    except ModelError as error:
        return (_rejected("", f"{teacher.name} did not answer: {error}", "no_answer"),)
    for one in suggested:
        if isinstance(one, UnreadableProposal):
            why = "; ".join(check.message for check in one.failed)
            found.append(_rejected(one.tool_name, why, *(check.code for check in one.failed)))
        else:
            done = await manager.insert_async(
                one.candidate, evidence=one.evidence, reason=one.reason
            )
            found.append(_inserted(one.candidate.name, done))
    return tuple(found)


def is_success(episode: Episode, rho: float) -> bool:
    """Whether an episode is one to learn composites from: R_res >= rho (Algorithm 1, line 26).

    Without a verdict that is unknown, however it ended, and nothing is learned from it.
    """
    verdict = episode.verdict
    if verdict is None or verdict.fault is not None:
        return False
    return max(float(verdict.passed), verdict.score) >= rho


def _rejected(tool: str, why: str, *codes: str) -> ProposalOutcome:
    return ProposalOutcome(
        tool=tool,
        stream="composite",
        state="rejected",
        why=why,
        codes=tuple(dict.fromkeys(codes)),
    )


def _inserted(name: str, outcome: InsertOutcome) -> ProposalOutcome:
    match outcome:
        case Added():
            return ProposalOutcome(tool=name, stream="composite", state="active", why=str(outcome))
        case Merged():
            return ProposalOutcome(
                tool=outcome.into, stream="composite", state="merged", why=str(outcome)
            )
        case _:
            return _rejected(name, outcome.explanation, outcome.code)
