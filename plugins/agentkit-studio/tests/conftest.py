"""A studio over a store in which a tool was refused often enough for a proposal."""

from __future__ import annotations

import asyncio
import re
import warnings

import pytest
from starlette.testclient import TestClient

from agentkit import Agent, ModelRetry, open_store, tool
from agentkit.agent import StorePolicy
from agentkit.cli.stores import manager_of
from agentkit.errors import LibraryWarning, ModelError
from agentkit.evolution import EvidenceProposer, ToolManager, evolve
from agentkit.messages import ToolCall
from agentkit.server.keys import Keys
from agentkit.testing import FunctionModel, ScriptedModel
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


@tool(effects=["destructive"])
def sell_car(number: str) -> str:
    """Mark a car as sold."""
    return f"{number} is sold"


def follow_orders(request):
    """Sells what it is told to sell, asks for a loan, or repeats what was said."""
    last = request.messages[-1]
    if last.role == "tool":
        return f"It says: {last.text}"
    if last.text.startswith("sell "):
        return [ToolCall(call_id="1", name="sell_car", arguments={"number": last.text[5:]})]
    if last.text == "loan":
        arguments = {"amount": 9000, "periods": 36}
        return [ToolCall(call_id="1", name="loan_offer", arguments=arguments)]
    if last.text == "fail":
        raise ModelError("the model is away")
    return f"You said: {last.text}"


@pytest.fixture
def talks(store):
    """Makes the project's agent."""

    def make(version, model):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LibraryWarning)  # an old version lacks a tool
            return Agent(
                FunctionModel(follow_orders, name=model or "project"),
                tools=[loan_offer, sell_car],
                store=store,
                store_policy=StorePolicy(pin=version),
            )

    return make


@pytest.fixture
def studio(store, talks):
    """Makes a client of the studio, signed in as somebody."""

    def make(name="olga", **options):
        prefix = options.pop("prefix", "")
        agents = talks if options.pop("has_agent", True) else None
        access = Access(**{"keys": Keys(KEYS), "roles": ROLES, **options})
        app = create_studio(
            lambda policy: manager_of(store, lifecycle=policy),
            store,
            access=access,
            agents=agents,
            models=["other"],
            prefix=prefix,
        )
        client = TestClient(app, follow_redirects=True)
        if name:
            client.get(f"{prefix}/?once={access.invite(name)}")
        return client

    return make


@pytest.fixture
def csrf():
    """The token of a client's session."""

    def read(client):
        found = re.search(r'name="csrf" content="([^"]+)"', client.get("/").text)
        return found[1]

    return read


@pytest.fixture
def csrf_of_login():
    """The token of the form that takes a key."""

    def read(client):
        return re.search(r'name="csrf" value="([^"]+)"', client.get("/login").text)[1]

    return read


@pytest.fixture
def act(proposal_id, csrf):
    """Sends a form of the page of the proposal."""

    def send(client, what, **form):
        sent = {"csrf": csrf(client), **form}
        return client.post(f"/inbox/{proposal_id}/{what}", data=sent)

    return send
