"""The inbox: what waits for a person, one proposal with its evidence and numbers, and the acts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from agentkit.errors import UsageError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.differences import PARAMETER, ViewChange
from agentkit.evolution.gates import GateReport
from agentkit.evolution.manager import ToolManager
from agentkit.evolution.proposal import ProposalRecord
from agentkit.evolution.review import STATE_WORDS, review_of
from agentkit.library.events import Author
from agentkit_studio.pages import Asked, Goto, Page, Place

_PAGE = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffRow:
    """Two lines side by side.

    Attributes:
        before: On the left; None for nothing.
        after: On the right; None for nothing.
    """

    before: str | None
    after: str | None

    @property
    def is_same(self) -> bool:
        """Whether nothing changed."""
        return self.before == self.after


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownChange:
    """One change of what models see.

    Attributes:
        place: The parameter; empty for the tool.
        sentence: The change in words; empty for a text, which speaks for itself.
        rows: Both sides, line by line.
    """

    place: str
    sentence: str
    rows: tuple[DiffRow, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownGate:
    """A gate's numbers as a picture.

    Attributes:
        report: What it said.
        gained: Tasks that the candidate did better.
        lost: Tasks that it did worse.
        interval: The difference with its bounds, in points; None where the gate has none.
        level: The error budget of this test, a probability; None where the gate has none.
    """

    report: GateReport
    gained: int
    lost: int
    interval: tuple[float, float, float] | None = None
    level: float | None = None


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
    manager = asked.studio.manager
    manager.refresh()
    review = review_of(manager, asked.path["proposal_id"], find=asked.studio.store.get)
    values = {
        "review": review,
        "changes": list(shown_changes(review.changes)),
        "gates": list(map(shown_gate, review.comparisons)),
        "is_open": manager.ledger.proposals[review.proposal_id].is_open,
    }
    return Page(template="proposal.html", section="inbox", values=values)


def shown_changes(changes: Sequence[ViewChange]) -> Iterator[ShownChange]:
    """What models see otherwise, both sides next to each other."""
    for change in changes:
        is_part = change.keyword != PARAMETER and any(
            one.place == change.place and one.keyword == PARAMETER for one in changes
        )
        if is_part and not change.is_text:
            continue  # a new parameter is told by one sentence
        yield ShownChange(
            place=change.place,
            sentence="" if change.is_text else change.sentence,
            rows=tuple(side_by_side(change.before, change.after)),
        )


def side_by_side(before: str, after: str) -> Iterator[DiffRow]:
    """Two texts, line by line."""
    old, new = before.splitlines(), after.splitlines()
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        left, right = old[i1:i2], new[j1:j2]
        if kind == "equal":
            yield from (DiffRow(before=one, after=one) for one in left)
            continue
        for at in range(max(len(left), len(right))):
            yield DiffRow(
                before=left[at] if at < len(left) else None,
                after=right[at] if at < len(right) else None,
            )


def shown_gate(report: GateReport) -> ShownGate:
    """The numbers of a gate that a picture shows."""
    numbers = report.statistics
    bounds = [numbers.get(name) for name in ("gain_low", "gain", "gain_high")]
    low, middle, high = (None if one is None else 100 * one for one in bounds)
    return ShownGate(
        report=report,
        gained=int(numbers.get("wins", len(report.gained))),
        lost=int(numbers.get("losses", len(report.lost))),
        interval=None if low is None or middle is None or high is None else (low, middle, high),
        level=numbers.get("level"),
    )


def approve(asked: Asked) -> Goto:
    """A person agrees; the proposal goes on as far as its stages let it."""
    manager, which = asked.studio.manager, asked.path["proposal_id"]
    manager.refresh()
    manager.approve(which, person=author(asked), reason=typed_reason(asked))
    manager.advance_until(which)
    return _back(asked, manager)


def reject(asked: Asked) -> Goto:
    """A person refuses, and says why."""
    manager, which = asked.studio.manager, asked.path["proposal_id"]
    manager.refresh()
    reason = typed_reason(asked)
    if not reason:
        raise UsageError("say why it is rejected: the reason stands in the log")
    manager.reject(which, person=author(asked), reason=reason)
    return _back(asked, manager)


def canary(asked: Asked) -> Goto:
    """The proposal serves a share of the sessions first."""
    try:
        share = float(asked.form.get("share", "10")) / 100
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError("the share of sessions is a percentage above 0, at most 100")
    manager = asked.studio.managed(LifecyclePolicy(canary=True, canary_share=share))
    record = manager.ledger.find(asked.path["proposal_id"])
    if record.awaits:
        manager.approve(record.proposal_id, person=author(asked), reason=typed_reason(asked))
    manager.advance_until(record.proposal_id, "canary")
    asked.studio.manager.refresh()
    return _back(asked, asked.studio.manager)


def take_back(asked: Asked) -> Goto:
    """What a promoted proposal, or one in canary, changed is undone."""
    manager, which = asked.studio.manager, asked.path["proposal_id"]
    manager.refresh()
    manager.roll_back(which, reason=typed_reason(asked), author=author(asked))
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
