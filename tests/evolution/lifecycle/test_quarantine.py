"""A proposer that is rejected too often in a row is quarantined, until a person releases it."""

from __future__ import annotations

import pytest

from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.gates import GateReport
from agentkit.evolution.proposal import UnreadableProposal
from agentkit.library.events import Author

STRICT = LifecyclePolicy(quarantine_after=3)
PROPOSER = Author(kind="model", name="proposer")


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
