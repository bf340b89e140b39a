"""Taking in what proposers suggest."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from agentkit.episodes import Episode
from agentkit.errors import DefinitionError
from agentkit.evolution.lifecycle.drafts import Scribe, proposed, unreadable
from agentkit.evolution.lifecycle.policy import LifecyclePolicy
from agentkit.evolution.lifecycle.record import Consent, proposer_name
from agentkit.evolution.lifecycle.rejecting import rejection
from agentkit.evolution.lifecycle.screening import RejectedBy, Screen
from agentkit.evolution.lifecycle.step import Position, Step
from agentkit.evolution.proposals.proposal import Proposal, UnreadableProposal
from agentkit.evolution.proposals.proposer import Suggestion
from agentkit.evolution.validation.report import FailedCheck
from agentkit.library.events import Author
from agentkit.library.written import cut
from agentkit.tools.canonical import canonical_json
from agentkit.tools.definition import ToolDefinition


def readable(suggestion: Suggestion, *, most_bytes: int) -> Suggestion:
    """A suggestion that an event can keep, and give back.

    A candidate that is too large, no JSON, or would not be read back as a definition is unreadable.

    Args:
        suggestion: What a proposer suggests.
        most_bytes: Largest candidate, in bytes of its canonical JSON.
    """
    if isinstance(suggestion, UnreadableProposal):
        return suggestion
    try:
        record = suggestion.to_json()
        size = len(canonical_json(record))
        ToolDefinition.from_json(record["candidate"])
    except DefinitionError as error:
        return _unreadable(suggestion, "malformed", f"the candidate is no definition: {error}")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        return _unreadable(suggestion, "not_json", f"the candidate is no JSON data: {error}")
    if size > most_bytes:
        message = f"the candidate has {size:,} bytes, at most {most_bytes:,} are kept"
        return _unreadable(suggestion, "too_large", message)
    return suggestion


def _unreadable(proposal: Proposal, code: str, message: str) -> UnreadableProposal:
    failed = FailedCheck(
        code=code,
        layer="lexical",
        message=message,
        advice="answer with the changed texts alone, as JSON data",
    )
    return UnreadableProposal(
        author=proposal.author,
        stream=proposal.stream,
        tool_name=proposal.tool_name,
        text=str(getattr(proposal.candidate.description, "summary", "")),
        failed=(failed,),
    )


def identified(suggestion: Suggestion) -> tuple[str, Suggestion]:
    """The id by which the ledger knows a suggestion.

    An answer that can not be read has none of its own: the same rubbish twice is two answers.
    """
    if isinstance(suggestion, Proposal):
        return suggestion.proposal_id, suggestion
    return f"unreadable-{uuid.uuid4().hex[:20]}", suggestion


async def taken_in(
    proposal_id: str,
    suggestion: Suggestion,
    on: Position,
    *,
    screen: Screen,
    policy: LifecyclePolicy,
    author: Author,
    sources: tuple[str, ...] = (),
    episodes: Sequence[Episode] = (),
) -> Step | None:
    """What is written of a suggestion; None for a proposal that the ledger knows.

    Args:
        proposal_id: The id that ``identified`` gave it.
        suggestion: What a proposer suggests.
        on: The newest position.
        screen: What candidates are looked at with.
        policy: The rules of the life cycle.
        author: Who writes what comes of it.
        sources: Texts that a candidate must not copy from.
        episodes: Whose accepted calls a new rule may not refuse.
    """
    if proposal_id in on.ledger.proposals:
        return None
    version = on.library.version
    scribe = Scribe(
        author=author,
        proposal_id=proposal_id,
        tool_name=cut(suggestion.tool_name),
        version=version,
    )
    failed: tuple[FailedCheck, ...]
    by: RejectedBy
    needs: tuple[Consent, ...] = ()
    if isinstance(suggestion, UnreadableProposal):
        first = unreadable(suggestion, proposal_id, version=version)
        failed, by = suggestion.failed, "unreadable"
        is_rejected = True
    else:
        base, candidate = suggestion.base, suggestion.candidate
        screened = await screen.look(
            candidate, base, on, sources=sources, proposal=suggestion, episodes=episodes
        )
        first = proposed(suggestion, screened, version=version)
        failed, by, needs = screened.failed, screened.by, screened.needs
        is_rejected = bool(failed)
    proposer = proposer_name(suggestion.stream, suggestion.author)
    if on.ledger.is_quarantined(proposer):
        why = f"nothing is taken from {proposer!r} until a person releases it"
        return Step(drafts=(first, scribe.draft("quarantined", why)))
    if is_rejected:
        is_person = suggestion.author.kind == "person"
        no = rejection(
            scribe,
            on.ledger,
            policy,
            proposer=proposer,
            is_person=is_person,
            by=by,
            failed=failed,
        )
        return Step(drafts=(first, *no))
    if needs:
        return Step(drafts=(first,))
    return Step(drafts=(first, scribe.draft("validated", "every check passed")))
