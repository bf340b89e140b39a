"""Composites out of episodes that went well (CoCoDA, Algorithm 1, Stage 1 and 3d).

``distil`` counts what recurs; ``taught`` has a model write them, as the paper's teacher does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
    ToolManager,
    UnreadableProposal,
    mine,
    trajectories_of,
)
from agentkit.evolution.mined import insert_mined
from agentkit.evolution.repository import LibraryStore
from agentkit.models.base import ChatModel
from agentkit.tools.tool import Tool
from agentkit_training.coevolution.records import ProposalOutcome

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
    outcomes = insert_mined(store, found.composites, tools=tools, policy=policy, author=AUTHOR)
    return tuple(_outcome(name, one) for name, one in outcomes.items())


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
            found.append(_outcome(one.candidate.name, done))
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


def _outcome(name: str, outcome: InsertOutcome) -> ProposalOutcome:
    match outcome:
        case Added():
            return ProposalOutcome(tool=name, stream="composite", state="active", why=str(outcome))
        case Merged():
            return ProposalOutcome(
                tool=outcome.into, stream="composite", state="merged", why=str(outcome)
            )
        case _:
            return _rejected(name, outcome.explanation, outcome.code)
