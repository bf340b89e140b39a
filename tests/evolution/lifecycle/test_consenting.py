"""A judge and a person agree, or not, and only they can."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Tool, ToolDefinition
from agentkit.errors import ModelError, UsageError
from agentkit.evolution.checker import Judgement
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.validation import validate
from agentkit.library import LibraryChange
from agentkit.library.events import Author
from agentkit.tools.definition import Description

JUDGE = Author(kind="model", name="judge", prompt_hash="1" * 64)
PAY = Tool(definition=ToolDefinition(name="pay", description=Description(summary="Pay a bill.")))


class Judge:
    """Says what it is told to, and remembers what it read."""

    def __init__(self, *, agrees=True, error=None):
        self.read = []
        self._agrees, self._error = agrees, error

    async def __call__(self, change):
        self.read.append(change)
        if self._error is not None:
            raise self._error
        return Judgement(agrees=self._agrees, reason="because", author=JUDGE)


@pytest.fixture
def waiting(make_manager, propose):
    """Makes a manager and a proposal that needs a judge and a person."""

    def make(**options):
        manager = make_manager(PAY, **options)
        return manager, propose(manager, "pay", "Pay a bill at once.")

    return make


def test_without_a_judge_it_waits(waiting):
    """A proposal for a tool that needs a judge waits where none is configured, however often."""
    manager, proposal = waiting()
    record = manager.submit(proposal)
    assert (record.state, record.awaits) == ("proposed", ("judge", "person"))
    for _ in range(3):
        (advance,) = manager.advance()
        assert (advance.after, advance.why) == (
            "proposed",
            "waits for a judge of another model and a person to agree",
        )


def test_new_words_wait_for_a_judge_or_a_person(make_manager, propose, ada):
    """Where nothing else asks for anybody, either of the two is enough."""
    manager = make_manager(validate=validate)
    first = propose(manager, summary="Add two numbers, rounded up.")
    record = manager.submit(first)
    assert (record.state, record.awaits) == ("proposed", ("judge",))
    (advance,) = manager.advance()
    assert advance.why == "waits for a judge of another model or a person to agree"
    record = manager.approve(first.proposal_id, person=ada)
    assert (record.state, record.awaits) == ("validated", ())
    judged = replace(first, proposal_id="judged")
    manager.submit(judged)
    said = Judgement(agrees=True, reason="yes", author=JUDGE)
    assert manager.judge("judged", said).state == "validated"
    grounded = replace(propose(manager, summary="Add numbers."), proposal_id="grounded")
    assert manager.submit(grounded).awaits == ()


def test_when_both_agree_it_is_validated(waiting, ada):
    """The last one who must agree brings the proposal on, in either order."""
    manager, proposal = waiting(change_judge=Judge())
    assert manager.submit(proposal).awaits == ("person",)
    assert manager.approve(proposal.proposal_id, person=ada).state == "validated"
    manager, other = waiting()
    other = replace(other, proposal_id="other")
    manager.submit(other)
    manager.approve("other", person=ada)
    said = Judgement(agrees=True, reason="yes", author=JUDGE)
    assert manager.judge("other", said).state == "validated"


def test_a_judge_that_says_no_rejects(waiting):
    """A judge's no ends the proposal, with the judge's words, and counts against its proposer."""
    manager, proposal = waiting(change_judge=Judge(agrees=False))
    record = manager.submit(proposal)
    assert (record.state, record.last_word) == ("rejected", "because")
    assert [event.author for event in record.events if event.kind == "judged"] == [JUDGE]
    assert manager.ledger.proposer("feedback:proposer").rejected_in_a_row == 1


def test_a_judge_that_can_not_answer_is_asked_again(waiting):
    """The proposal is kept and waits; the next step asks again."""
    broken = Judge(error=ModelError("gone"))
    manager, proposal = waiting(change_judge=broken)
    with pytest.raises(ModelError):
        manager.submit(proposal)
    assert manager.ledger.proposals[proposal.proposal_id].state == "proposed"
    (advance,) = manager.advance()
    assert (advance.after, advance.why) == ("proposed", "the judge could not answer: gone")
    assert len(broken.read) == 2
    assert broken.read[0].candidate == proposal.candidate


def test_nobody_judges_their_own(waiting):
    """A judgement by the proposer itself is refused."""
    manager, proposal = waiting()
    manager.submit(proposal)
    with pytest.raises(UsageError, match="can not judge it"):
        manager.judge(
            proposal.proposal_id, Judgement(agrees=True, reason="", author=proposal.author)
        )


@pytest.mark.parametrize("kind", ["model", "program"])
def test_only_persons_approve_reject_and_release(manager, propose, kind):
    """Models and programs can not take a person's part."""
    robot = Author(kind=kind, name="ada")
    record = manager.submit(propose(manager))
    with pytest.raises(UsageError, match="only a person"):
        manager.approve(record.proposal_id, person=robot)
    with pytest.raises(UsageError, match="only a person"):
        manager.reject(record.proposal_id, person=robot, reason="no")
    with pytest.raises(UsageError, match="only a person"):
        manager.release("feedback:proposer", person=robot)


def test_a_person_rejects_what_is_open(manager, propose, ada):
    """An open proposal is rejected with the person's words; twice is once."""
    record = manager.submit(propose(manager))
    manager.reject(record.proposal_id, person=ada, reason="not ours")
    record = manager.reject(record.proposal_id, person=ada, reason="again")
    assert (record.state, record.last_word) == ("rejected", "not ours")


def test_what_is_decided_can_not_be_decided_again(manager, propose, ada):
    """An active proposal is not approved or rejected; a message says what to do."""
    record = manager.submit(propose(manager))
    manager.advance()
    with pytest.raises(UsageError, match="roll_back"):
        manager.reject(record.proposal_id, person=ada, reason="late")
    with pytest.raises(UsageError, match="active"):
        manager.approve(record.proposal_id, person=ada)


def test_a_person_does_not_stand_for_numbers_where_they_are_asked_for(make_manager, propose, ada):
    """With evidence='gate' an approval alone does not promote."""
    manager = make_manager(lifecycle=LifecyclePolicy(evidence="gate"))
    record = manager.submit(propose(manager))
    manager.approve(record.proposal_id, person=ada)
    (advance,) = manager.advance()
    assert advance.after == "validated"


def test_a_judge_reads_what_was_suggested_alone(waiting):
    """What somebody else changed meanwhile is no part of the change that the judge reads."""
    manager, proposal = waiting()
    manager.submit(proposal)
    base = manager.library["pay"].definition
    tagged = replace(base, description=replace(base.description, tags=("money",)))
    manager.edit(lambda _library: LibraryChange(proposal_id="tagged", upserts=(tagged,)))
    judge = Judge()
    later, _ = waiting(change_judge=judge)
    later.advance()
    (change,) = judge.read
    assert (change.base, change.candidate) == (base, proposal.candidate)
    assert [edit.field for edit in change.edits] == ["summary"]
