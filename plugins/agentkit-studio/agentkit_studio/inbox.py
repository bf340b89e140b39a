"""The inbox: what waits for a person, one proposal with its evidence and numbers, and the acts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.differences import model_view
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import ProposalRecord
from agentkit.evolution.review import STATE_WORDS, Review, review_of
from agentkit.evolution.validation.checks import (
    LEXICAL_CHECKS,
    SEMANTIC_CHECKS,
    STRUCTURAL_CHECKS,
)
from agentkit.library.events import Author
from agentkit_studio.figures import budget_of, gate_figure
from agentkit_studio.pages import Asked, BadRequestError, Goto, NotThereError, Page, Place
from agentkit_studio.views import lines, pretty, side_by_side

_PAGE = 50

_CHECKS = (
    f"{len(LEXICAL_CHECKS)} of the words, {len(STRUCTURAL_CHECKS)} of the contract, "
    f"{len(SEMANTIC_CHECKS)} that hold words against schema and rules"
)


def listed(asked: Asked) -> Page:
    """Open proposals, oldest first, or those that were decided, newest first."""
    manager = asked.studio.manager
    manager.refresh()
    decided = asked.query.get("state") == "decided"
    tool = asked.query.get("tool", "")
    after = asked.query.get("after", "")
    records = [
        record
        for record in manager.ledger.proposals.values()
        if record.is_open != decided and tool in {"", record.tool_name}
    ]
    if decided:
        records.reverse()
    found, more = _page(records, after)
    reviews = [review_of(manager, record.proposal_id) for record in found]
    waiting = sum(record.is_open for record in manager.ledger.proposals.values())
    values = {"reviews": reviews, "decided": decided, "more": more, "waiting": waiting}
    return Page(
        template="inbox.html",
        section="inbox",
        values={**values, "tool": tool, "words": STATE_WORDS},
    )


def _page(records: Sequence[ProposalRecord], after: str) -> tuple[Sequence[ProposalRecord], str]:
    """The records behind one of them, and the last one's id where more follow."""
    behind = iter(records)
    if after:
        for record in behind:
            if record.proposal_id == after:
                break
    found = list(islice(behind, _PAGE + 1))
    return found[:_PAGE], found[_PAGE - 1].proposal_id if len(found) > _PAGE else ""


def proposal(asked: Asked) -> Page:
    """All that a person needs to decide about one proposal."""
    manager, record = _found(asked)
    health = asked.studio.health
    health.update()
    review = review_of(
        manager, record.proposal_id, find=asked.studio.find, traffic=lambda _: health.traffic
    )
    rules = asked.studio.gates
    before, after = (
        {} if one is None else model_view(one) for one in (review.before, review.after)
    )
    values = {
        "review": review,
        "parts": side_by_side(review.before, review.after),
        "json": list(lines(pretty(before), pretty(after))) if before != after else [],
        "unseen": [
            (one.field, list(lines(str(one.before), str(one.after))))
            for one in review.other_changes
        ],
        "gates": [gate_figure(report, rules) for report in review.comparisons],
        "budget": budget_of(manager.ledger, record.proposal_id, rules),
        "is_open": record.is_open,
        "checks": _CHECKS,
        "pin": manager.ledger.pins.get(record.tool_name),
        "served": _served_since(review),
        "version": manager.library.version,
        "is_counting": health.is_working,
    }
    return Page(template="proposal.html", section="inbox", values=values)


def _found(asked: Asked) -> tuple[ToolManager, ProposalRecord]:
    """The manager, at its newest, and the proposal that the address names."""
    manager, which = asked.studio.manager, asked.path["proposal_id"]
    manager.refresh()
    record = manager.ledger.proposals.get(which)
    if record is None:
        raise NotThereError(f"There is no proposal {which[:100]!r}.")
    return manager, record


def _served_since(review: Review) -> int:
    """The library version before the one that a promotion made; 0 where it was not promoted."""
    made = [one.library_version for one in review.history if one.library_version]
    return made[0] - 1 if made and review.state == "active" else 0


def approve(asked: Asked) -> Goto:
    """A person agrees; the proposal goes on as far as its stages let it."""
    manager, record = _found(asked)
    manager.approve(record.proposal_id, person=author(asked), reason=typed_reason(asked))
    manager.advance_until(record.proposal_id)
    return _back(asked, manager)


def reject(asked: Asked) -> Goto:
    """A person refuses, and says why."""
    manager, record = _found(asked)
    reason = typed_reason(asked)
    if not reason:
        raise BadRequestError("Say why it is rejected: the reason stands in the log.")
    manager.reject(record.proposal_id, person=author(asked), reason=reason)
    return _back(asked, manager)


def canary(asked: Asked) -> Goto:
    """The proposal serves a share of the sessions first."""
    _, record = _found(asked)
    try:
        share = float(asked.form.get("share", "")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise BadRequestError("The share of sessions is a percentage above 0, at most 100.")
    manager = asked.studio.managed(LifecyclePolicy(canary=True, canary_share=share))
    if record.awaits:
        manager.approve(record.proposal_id, person=author(asked), reason=typed_reason(asked))
    manager.advance_until(record.proposal_id, "canary")
    asked.studio.manager.refresh()
    return _back(asked, asked.studio.manager)


def take_back(asked: Asked) -> Goto:
    """What a promoted proposal, or one in canary, changed is undone."""
    manager, record = _found(asked)
    manager.roll_back(record.proposal_id, reason=typed_reason(asked), author=author(asked))
    return _back(asked, manager)


def author(asked: Asked) -> Author:
    """Who acts, for the log."""
    return Author(kind="person", name=asked.user.name)


def typed_reason(asked: Asked) -> str:
    """Why, as it was typed."""
    return asked.form.get("reason", "").strip()[:2_000]


def _back(asked: Asked, manager: ToolManager) -> Goto:
    which = asked.path["proposal_id"]
    state = manager.ledger.proposals[which].state
    notice = f"{manager.ledger.proposals[which].tool_name}: {STATE_WORDS[state]}"
    return Goto(route="proposal", values={"proposal_id": which}, notice=notice)


_ONE = "/inbox/{proposal_id}"
PLACES = (
    Place(path="/", name="inbox", view=listed, title="Inbox"),
    Place(path=_ONE, name="proposal", view=proposal),
    Place(path=f"{_ONE}/approve", name="approve", view=approve, role="reviewer", acts=True),
    Place(path=f"{_ONE}/reject", name="reject", view=reject, role="reviewer", acts=True),
    Place(path=f"{_ONE}/canary", name="canary", view=canary, role="reviewer", acts=True),
    Place(path=f"{_ONE}/rollback", name="take_back", view=take_back, role="operator", acts=True),
)
