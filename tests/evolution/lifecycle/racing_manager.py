"""A program that submits and promotes proposals, to be run beside others that do the same.

``python racing_manager.py URL SEED COUNT`` says ``ready``, waits for a line, and takes COUNT
proposals, which are the same whoever takes them, through the life cycle, in an order of its own. It
prints how often others were faster.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace

from agentkit import ToolDefinition, open_store
from agentkit.errors import StaleVersionError
from agentkit.evolution import ToolManager
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.validation.report import ValidationReport
from agentkit.library.events import Author

TOOLS, PARAMETERS = 20, 25
AUTHOR = Author(kind="program", name="racer")


class Counting:
    """A store that counts how often a commit came too late."""

    def __init__(self, store):
        self._store, self.stale = store, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def commit(self, change, *, expected_version):
        """As the store does."""
        try:
            return self._store.commit(change, expected_version=expected_version)
        except StaleVersionError:
            self.stale += 1
            raise


def definitions():
    """The tools before anybody proposes anything."""
    schema = {
        "type": "object",
        "properties": {f"p{at}": {"type": "string"} for at in range(PARAMETERS)},
    }
    names = [f"tool_{at}" for at in range(TOOLS)]
    return [ToolDefinition.from_schema(name, f"Does {name}.", schema) for name in names]


def proposals(count):
    """Each changes the text of another parameter, of the revision that was there at first."""
    bases = definitions()
    for number in range(count):
        base = bases[number % TOOLS]
        texts = {f"p{number // TOOLS % PARAMETERS}": f"Text number {number}."}
        words = replace(base.description, parameters=texts)
        candidate = replace(base, description=words)
        yield Proposal.of(base, candidate, stream="evidence", author=AUTHOR)


def manager_of(store):
    """A manager that promotes whatever is submitted, and tries for long."""
    return ToolManager(
        store,
        lifecycle=LifecyclePolicy(evidence="none"),
        validate=lambda _change: ValidationReport(),
    )


def take_through(store, seed, count):
    """Submit and promote all, in an order of one's own."""
    manager = manager_of(store)
    given = list(proposals(count))
    random.Random(seed).shuffle(given)
    for proposal in given:
        manager.submit(proposal)
        manager.advance(proposal.proposal_id)


if __name__ == "__main__":
    counting = Counting(open_store(sys.argv[1]))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    take_through(counting, sys.argv[2], int(sys.argv[3]))
    sys.stdout.write(f"{counting.stale}\n")
