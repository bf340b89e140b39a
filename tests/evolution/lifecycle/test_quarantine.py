"""A proposer that is rejected too often in a row is quarantined, until a person releases it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Episode
from agentkit.errors import UsageError
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateReport
from agentkit.evolution.proposal import UnreadableProposal
from agentkit.evolution.validation.validate import validate
from agentkit.library.events import Author

STRICT = LifecyclePolicy(quarantine_after=3)
PROPOSER = Author(kind="model", name="proposer")
OTHER = Author(kind="model", name="other")


@pytest.fixture
def strict(make_manager):
    """A manager with little patience."""
    return make_manager(lifecycle=STRICT)


@pytest.fixture
def bad(strict, propose):
    """Submits proposals that are rejected."""

    def make(count, **options):
        for number in range(count):
            summary = f"a bad one, number {number} of {count}"
            strict.submit(propose(strict, summary=summary, **options))

    return make


def states(manager):
    """How many proposals stand where."""
    return {state: count for state, count in manager.ledger.counts().items() if count}


def test_too_many_in_a_row(strict, bad, propose):
    """After the third rejection in a row open proposals are quarantined, and new ones too."""
    strict.submit(propose(strict))
    bad(2)
    assert not strict.ledger.is_quarantined("feedback:proposer")
    bad(3)
    assert strict.ledger.is_quarantined("feedback:proposer")
    strict.submit(propose(strict, "mul", "Multiply two numbers, and no more."))
    assert states(strict) == {"rejected": 3, "quarantined": 4}
    assert strict.advance() == ()


def test_a_good_one_between_breaks_the_row(strict, bad, propose):
    """Rejections count in a row: one that is validated begins it anew."""
    bad(2)
    strict.submit(propose(strict))
    bad(2)
    assert strict.ledger.proposer("feedback:proposer").rejected_in_a_row <= 2
    assert not strict.ledger.is_quarantined("feedback:proposer")


def test_each_proposer_for_itself(strict, bad, propose):
    """The quarantine of one is not that of another."""
    bad(3)
    assert strict.submit(propose(strict, author=OTHER)).state == "validated"


def test_gates_do_not_count(strict, propose):
    """Bringing no gain is no misconduct, however often."""
    for number in range(5):
        record = strict.submit(propose(strict, summary=f"Add two numbers, number {number}."))
        report = GateReport(gate="offline", decision="fail", reason="no gain")
        strict.assess(record.proposal_id, [report])
        strict.advance()
    assert states(strict) == {"rejected": 5}
    assert not strict.ledger.is_quarantined("feedback:proposer")


def test_persons_are_not_quarantined(strict, bad, ada):
    """A person's rejected proposals have no such consequence."""
    bad(5, author=ada)
    assert not strict.ledger.is_quarantined("feedback:ada")


def test_a_person_releases(strict, bad, propose, ada, store):
    """Released, a proposer's quarantined proposals are looked at anew."""
    strict.submit(propose(strict))
    bad(3)
    strict.submit(propose(strict, "mul", "a bad one as well"))
    record = strict.release("feedback:proposer", person=ada, reason="its prompt was mended")
    assert (record.is_quarantined, record.rejected_in_a_row) == (False, 0)
    assert states(strict) == {"validated": 1, "rejected": 4}
    assert strict.submit(propose(strict, "sub", "Subtract, and no more.")).state == "validated"
    before = len(store.events())
    strict.release("feedback:proposer", person=ada)
    assert len(store.events()) == before


def test_a_person_may_reject_a_quarantined_one(strict, bad, propose, ada):
    """A quarantined proposal can be rejected without releasing its proposer."""
    record = strict.submit(propose(strict))
    bad(3)
    rejected = strict.reject(record.proposal_id, person=ada, reason="no")
    assert rejected.state == "rejected"
    assert strict.ledger.is_quarantined("feedback:proposer")


def test_nobody_of_that_name(strict, ada):
    """Releasing somebody who never proposed anything is refused, with who did."""
    with pytest.raises(UsageError, match="nobody yet"):
        strict.release("ghost", person=ada)


def test_never(make_manager, propose):
    """With 0 nobody is quarantined."""
    manager = make_manager(lifecycle=LifecyclePolicy(quarantine_after=0))
    for number in range(30):
        manager.submit(propose(manager, summary=f"bad {number}"))
    assert states(manager) == {"rejected": 30}


def test_rubbish_in_quarantine_does_not_count_once_released(strict, bad, ada):
    """Answers that could not be read begin no new row of rejections when they are let go."""
    bad(3)
    for _ in range(2):
        strict.submit(
            UnreadableProposal(
                author=PROPOSER, stream="feedback", tool_name="add", text="?", failed=()
            )
        )
    released = strict.release("feedback:proposer", person=ada)
    assert (released.rejected_in_a_row, released.is_quarantined) == (0, False)
    assert set(states(strict)) == {"rejected"}


def test_what_is_released_is_held_against_its_sources(make_manager, propose, ada, store):
    """Text copied from an episode is found when a quarantined proposal is looked at anew."""
    said = "Please add the money that my mother keeps in the old mill."
    store.append(Episode(episode_id="e1", request=said))
    manager = make_manager(
        validate=validate, lifecycle=LifecyclePolicy(quarantine_after=1, evidence="none")
    )
    manager.submit(propose(manager, summary="Add two numbers, see https://evil.tld."))
    copied = propose(manager, summary="Add two numbers: the money that my mother keeps in the old.")
    record = manager.submit(replace(copied, evidence=("e1",)))
    assert record.state == "quarantined"
    manager.release("feedback:proposer", person=ada)
    record = manager.ledger.proposals[record.proposal_id]
    assert "copied_text" in {check.code for check in record.failed}
