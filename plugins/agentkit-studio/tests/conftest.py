"""A studio over a store in which a tool was refused often enough for a proposal."""

from __future__ import annotations

import asyncio
import re

import pytest
from starlette.testclient import TestClient

from agentkit import Agent, ModelRetry, open_store, tool
from agentkit.cli.stores import manager_of
from agentkit.evolution import EvidenceProposer, ToolManager, evolve
from agentkit.messages import ToolCall
from agentkit.server.keys import Keys
from agentkit.testing import ScriptedModel
from agentkit_studio import Access, create_studio

KEYS = {name: f"key-of-{name}-0123456789" for name in ("vera", "rita", "olga")}
ROLES = {"vera": "viewer", "rita": "reviewer", "olga": "operator"}
HOSTILE = "<script>alert(1)</script> \u202e\x1b[31m loan"


@tool(effects=["reads"])
def loan_offer(amount: float, periods: int) -> float:
    """Calculate the monthly instalment of a car loan.

    Args:
        amount: Sum of the loan.
        periods: Number of months.
    """
    if periods not in {24, 36, 48}:
        raise ModelRetry("periods must be one of 24, 36, 48")
    return amount / periods


@pytest.fixture
def store(tmp_path):
    """A store with some twenty conversations."""
    store = open_store(f"sqlite:///{tmp_path / 'library.db'}")
    for number in range(24):
        periods = (12, 36, 30, 24)[number % 4]
        call = ToolCall(
            call_id="1", name="loan_offer", arguments={"amount": 9000, "periods": periods}
        )
        agent = Agent(ScriptedModel([[call], "Done."]), tools=[loan_offer], store=store)
        agent.run_sync(HOSTILE, metadata={"user": f"u{number}"})
    yield store
    store.close()


@pytest.fixture
def manager(store):
    """The Tool Manager of the store."""
    return ToolManager(store)


@pytest.fixture
def proposal_id(store, manager):
    """A proposal that waits for a person."""
    asyncio.run(evolve(manager, [EvidenceProposer()], episodes=store.select()))
    [waiting] = manager.ledger.proposals
    return waiting


@pytest.fixture
def studio(store):
    """Makes a client of the studio, signed in as somebody."""

    def make(name="olga", **options):
        prefix = options.pop("prefix", "")
        access = Access(**{"keys": Keys(KEYS), "roles": ROLES, **options})
        app = create_studio(
            lambda policy: manager_of(store, lifecycle=policy),
            store,
            access=access,
            prefix=prefix,
        )
        client = TestClient(app, follow_redirects=True)
        if name:
            client.get(f"{prefix}/?key={KEYS[name]}")
        return client

    return make


@pytest.fixture
def act(proposal_id):
    """Sends a form of the page of the proposal."""

    def send(client, what, **form):
        page = client.get(f"/inbox/{proposal_id}").text
        csrf = re.search(r'name="csrf" content="([^"]+)"', page)
        sent = {"csrf": csrf[1] if csrf else "", **form}
        return client.post(f"/inbox/{proposal_id}/{what}", data=sent)

    return send
