"""``library_round``: what was suggested after a step, and what the Tool Manager made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from agentkit.diagnosis import FailureProfile
from agentkit.episodes import Episode
from agentkit.evolution import Proposer, ToolManager, evolve
from agentkit.evolution.compare import Compare
from agentkit.evolution.round import ProposalOutcome as RoundOutcome
from agentkit.library import Library
from agentkit.library.dag import depth
from agentkit.retrieval.cards import schema_text
from agentkit.retrieval.tokens import estimate_tokens
from agentkit.tools.definition import ToolDefinition
from agentkit_bench.language.measures import texts_of, word_distance
from agentkit_training.coevolution.records import LibrarySize, ProposalOutcome
from agentkit_training.coevolution.text_changes import told_change


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
    edit, change = 0.0, ""
    if candidate is not None and base is not None:
        edit = word_distance(_words(base), _words(candidate))
        change = told_change(base, candidate) if record.state == "active" else ""
    return ProposalOutcome(
        tool=record.tool_name,
        stream=record.stream,
        state=record.state,
        why=one.why or record.last_word,
        codes=tuple(dict.fromkeys(check.code for check in record.failed)),
        proposal_id="" if candidate is None else record.proposal_id,  # that of a text is random
        edit=edit,
        change=change,
    )
