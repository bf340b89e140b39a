"""What proposers suggest is taken in, whatever it is: as validated, waiting or rejected."""

from __future__ import annotations

from dataclasses import replace

from agentkit import Episode, ToolDefinition
from agentkit.evolution.proposal import Proposal, UnreadableProposal
from agentkit.evolution.validation.report import FailedCheck, ValidationReport
from agentkit.library import LibraryChange
from agentkit.library.events import Author
from agentkit.tools.definition import Description, Example

MODEL = Author(kind="model", name="proposer")
NO_BLOCK = FailedCheck(code="no_block", layer="lexical", message="no block", advice="one block")


def answer(text="Sure!", failed=(NO_BLOCK,)):
    """What a proposer answered that is no proposal."""
    return UnreadableProposal(
        author=MODEL, stream="feedback", tool_name="add", text=text, failed=failed
    )


def codes(record):
    """The codes of the failed checks."""
    return [check.code for check in record.failed]


def test_a_proposal_that_passes_is_validated(manager, store, propose):
    """The record holds the proposal as it was made; the library is as it was."""
    proposal = propose(manager)
    record = manager.submit(proposal)
    assert (record.state, record.proposal, record.candidate) == (
        "validated",
        proposal,
        proposal.candidate,
    )
    assert store.load().version == 1
    assert [event.kind for event in store.events()][1:] == ["proposed", "validated"]


def test_a_proposal_that_is_known_changes_nothing(manager, make_manager, store, propose):
    """The same proposal again, also from another manager, writes no event."""
    proposal = propose(manager)
    manager.submit(proposal)
    before = list(store.events())
    assert manager.submit(proposal).state == "validated"
    assert make_manager().submit(proposal).state == "validated"
    assert list(store.events()) == before


def test_a_proposal_that_fails_is_rejected_with_every_reason(make_manager, store, propose):
    """All failed checks are kept with the event, in order."""
    failed = [FailedCheck(code=code, layer="lexical", message=code, advice="") for code in "abc"]

    def strict(change):
        return ValidationReport(failed=tuple(failed))

    manager = make_manager(validate=strict)
    record = manager.submit(propose(manager))
    assert (record.state, codes(record)) == ("rejected", ["a", "b", "c"])
    assert manager.advance() == ()
    assert store.load().version == 1


def test_a_rejected_proposal_stays_rejected(manager, propose):
    """Submitting it again does not look again."""
    proposal = propose(manager, summary="a bad one")
    assert manager.submit(proposal).state == "rejected"
    assert manager.submit(proposal).state == "rejected"
    assert manager.ledger.proposer("feedback:proposer").rejected_in_a_row == 1


def test_an_answer_that_can_not_be_read_is_rejected(manager, store):
    """It is kept with its reasons and the start of its text; each time it comes."""
    first = manager.submit(answer("x" * 1_000_000))
    second = manager.submit(answer())
    assert (first.state, codes(first), second.state) == ("rejected", ["no_block"], "rejected")
    assert first.candidate is None
    assert len(first.unreadable_text) < 3_000
    assert first.proposal_id != second.proposal_id
    assert store.load().version == 1


def test_a_candidate_that_is_no_json_is_rejected(manager):
    """A candidate that no event can keep is rejected as unreadable."""
    base = manager.library["add"].definition
    example = Example(arguments={"a": float("nan")}, result=1)
    proposal = Proposal(
        proposal_id="nan",
        stream="feedback",
        author=MODEL,
        base=base.digest,
        candidate=replace(base, examples=(example,)),
    )
    assert codes(manager.submit(proposal)) == ["not_json"]


def test_a_tool_that_never_was_is_the_proposers_fault(manager):
    """A proposal for a name that the library never had is rejected, with names that are near."""
    ghost = ToolDefinition(name="ad")
    proposal = Proposal.of(
        ghost,
        replace(ghost, description=Description(summary="?")),
        stream="feedback",
        author=MODEL,
    )
    record = manager.submit(proposal)
    assert codes(record) == ["unknown_tool"]
    assert "'add'" in record.failed[0].message
    assert manager.ledger.proposer("feedback:proposer").rejected_in_a_row == 1


def test_a_tool_that_was_removed_meanwhile_is_nobodys_fault(manager, store, propose):
    """A proposal for a tool that is gone is rejected, and not counted against its proposer."""
    proposal = propose(manager)
    store.commit(LibraryChange(proposal_id="drop", removals=("add",)), expected_version=1)
    manager.refresh()
    record = manager.submit(proposal)
    assert codes(record) == ["removed_tool"]
    assert manager.ledger.proposer("feedback:proposer").rejected_in_a_row == 0


def test_a_proposal_that_changes_nothing_is_rejected(manager, propose):
    """A candidate that equals the active definition is rejected."""
    summary = manager.library["add"].definition.description.summary
    assert codes(manager.submit(propose(manager, summary=summary))) == ["no_change"]


def test_texts_of_the_evidence_reach_the_checks(make_manager, store, propose):
    """The checks see what users said and tools returned in the episodes behind a proposal."""
    store.append(Episode(episode_id="e1", request="my pin is 1234"))
    seen = []

    def look(change):
        seen.append(change.sources)
        return ValidationReport()

    manager = make_manager(validate=look)
    manager.submit(replace(propose(manager), evidence=("e1", "gone")))
    assert seen == [("my pin is 1234",)]
