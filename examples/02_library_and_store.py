"""Stage 2, library: versions, history and roll-back.

Run it: python examples/02_library_and_store.py
"""

from __future__ import annotations

from dataclasses import replace

from agentkit import open_store, tool
from agentkit.errors import StaleVersionError
from agentkit.library.changes import rollback_change
from agentkit.library.store import LibraryChange


@tool
def calculate_loan(amount: float, months: int) -> float:
    """Calculate a monthly rate."""
    return amount / months


store = open_store("memory:")  # or "sqlite:///library.db"
first = LibraryChange(proposal_id="first", upserts=(calculate_loan.definition,), author="me")
print("version", store.commit(first, expected_version=0))

words = replace(calculate_loan.definition.description, usage_rules=("months is 36, 48 or 60.",))
better = replace(calculate_loan.definition, description=words)
second = LibraryChange(proposal_id="second", upserts=(better,), reason="models asked for 50 months")
print("version", store.commit(second, expected_version=1))
print("again  ", store.commit(second, expected_version=1), "(applied exactly once)")

try:
    store.commit(replace(second, proposal_id="third"), expected_version=1)
except StaleVersionError as error:
    print("stale  ", error)

back = rollback_change(store, "calculate_loan", to_version=1, proposal_id="back")
print("version", store.commit(back, expected_version=2), "is version 1 again")
for revision in store.history("calculate_loan"):
    rules = revision.definition.description.usage_rules if revision.definition else "removed"
    print(" ", revision.version, revision.proposal_id, rules)
