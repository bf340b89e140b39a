"""A studio over a store in which a tool was refused often enough for a proposal."""

from __future__ import annotations

import asyncio
import re
import shutil
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import pytest
from starlette.testclient import TestClient

from agentkit import Agent, ModelRetry, open_store, tool
from agentkit.agent import Approval, StorePolicy
from agentkit.agent.types import deferred_calls
from agentkit.cli.stores import manager_of
from agentkit.errors import LibraryWarning, ModelError, StoreUnavailableError
from agentkit.evolution import EvidenceProposer, ToolManager, evolve
from agentkit.messages import ToolCall
from agentkit.server import serving
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


def agent_of(store, answer, version, model, tools=()):
    """An agent of a version of the library; what its tools lack of it is no warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LibraryWarning)
        return Agent(
            FunctionModel(answer, name=model or "project"),
            tools=tools,
            store=store,
            store_policy=StorePolicy(pin=version),
        )


@pytest.fixture
def talks(store):
    """Makes the project's agent."""
    return partial(agent_of, store, follow_orders, tools=[loan_offer, sell_car])


@pytest.fixture
def replays(store):
    """Makes agents that run no call: those of ``talks`` without the code of their tools."""
    return partial(agent_of, store, follow_orders)


def studio_of(store, access=None, **options):
    """A studio over a store; where nobody is named, a proxy names its users."""
    access = access or Access(user_header="x-user")

    def managed(policy):
        return manager_of(store, lifecycle=policy)

    return create_studio(managed, store, access=access, **options)


@pytest.fixture
def studio(store, talks, replays):
    """Makes a client of the studio, signed in as somebody."""

    def make(name="olga", **options):
        prefix = options.pop("prefix", "")
        agents = talks if options.pop("has_agent", True) else None
        access = Access(**{"keys": Keys(KEYS), "roles": ROLES, **options})
        app = studio_of(
            store, access, agents=agents, replays=replays, models=["other"], prefix=prefix
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
def post(csrf):
    """Sends a form of a page."""

    def send(client, path, **form):
        return client.post(path, data={"csrf": csrf(client), **form})

    return send


@pytest.fixture
def act(proposal_id, post):
    """Sends a form of the page of the proposal."""

    def send(client, what, **form):
        return post(client, f"/inbox/{proposal_id}/{what}", **form)

    return send


@pytest.fixture
def proposals(manager):
    """The proposals by their ids, as they stand by now."""

    def read():
        manager.refresh()
        return manager.ledger.proposals

    return read


# --- A studio in a real browser -------------------------------------------------------------------


@tool(effects=["reads"])
def car_loan(amount: float, months: int) -> float:
    """Calculate the monthly instalment of a car loan.

    Args:
        amount: Sum of the loan in euros.
        months: Number of months.
    """
    if months not in {24, 36, 48}:
        raise ModelRetry("months must be one of 24, 36, 48")
    return round(amount / months * 1.05, 2)


def reads_the_schema(request):
    """Takes the customer's number of months, unless the schema allows others: then the nearest."""
    last = request.messages[-1]
    if last.role == "tool":
        failed = "must be" in last.text
        return "I could not work that out." if failed else f"That is {last.text} euros a month."
    if last.text.startswith("sell"):
        number = last.text.split()[-1]
        arguments = {"number": number if number.startswith("C-") else "C-101"}
        return [ToolCall(call_id="1", name="sell_car", arguments=arguments)]
    [offered] = [one for one in request.tools if one.name == "car_loan"]
    allowed = offered.parameters_schema["properties"]["months"].get("enum", [])
    wanted = int(last.text.split()[-2])
    months = wanted if not allowed else min(allowed, key=lambda one: abs(one - wanted))
    return [ToolCall(call_id="1", name="car_loan", arguments={"amount": 9000, "months": months})]


class FaultyStore:
    """A store that can be slow, or go away.

    Attributes:
        seconds: How long each call takes at least.
        calls_left: How many calls still work; None for all.
    """

    def __init__(self, store):
        self._store, self._lock = store, threading.Lock()
        self.seconds, self.calls_left = 0.0, None

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if not callable(found) or name == "close":
            return found

        def call(*args, **options):
            time.sleep(self.seconds)
            with self._lock:
                if self.calls_left is not None:
                    if self.calls_left <= 0:
                        raise StoreUnavailableError("the store is away")
                    self.calls_left -= 1
            return found(*args, **options)

        return call


@dataclass(frozen=True, kw_only=True)
class Project:
    """A studio that is served."""

    url: str
    store: FaultyStore
    manager: ToolManager
    access: Access
    agents: Callable[..., Agent]

    def learn(self):
        """One round of evolution."""
        episodes = list(self.store.select())
        elsewhere(lambda: evolve(self.manager, [EvidenceProposer()], episodes=episodes))
        return next(iter(self.manager.ledger.proposals))

    def ask(self, text):
        """A question of a user elsewhere; the run, which may wait for a person."""
        return elsewhere(lambda: self.agents(None, "").run(text)).episode

    def approve(self, run):
        """The calls of a run are approved elsewhere."""
        approvals = {call.call_id: Approval(approved=True) for call in deferred_calls(run)}
        elsewhere(lambda: self.agents(None, "").resume(run, approvals=approvals))


def elsewhere(work):
    """Await something in a thread: Playwright has a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


@contextmanager
def served_project(store_url):
    """A studio over a store with conversations, of which some failed."""
    store = FaultyStore(open_store(store_url))

    agents = partial(agent_of, store, reads_the_schema, tools=[car_loan, sell_car])
    first = agents(None, "")
    for number, months in enumerate([30, 24, 12, 36, 60, 48] * 4):
        first.run_sync(f"A loan over {months} months", metadata={"user": f"u{number}"})
    asyncio.run(first.close())
    names = ("olga", "rita")
    access = Access(
        keys=Keys({name: KEYS[name] for name in names}),
        roles={"olga": "operator", "rita": "reviewer"},
    )
    replays = partial(agent_of, store, reads_the_schema)
    app = studio_of(store, access, agents=agents, replays=replays)
    with serving(app) as url:
        yield Project(
            url=url, store=store, manager=ToolManager(store), access=access, agents=agents
        )
    store.calls_left = None
    store.close()


@pytest.fixture
def project(tmp_path):
    """A studio over SQLite."""
    with served_project(f"sqlite:///{tmp_path / 'library.db'}") as made:
        yield made


@pytest.fixture
def sign_in():
    """Opens a page of a person's own in Chromium; an error of its scripts or policy fails the test.

    Without Playwright or a Chromium the test is skipped. A connection that a test cuts is no error,
    nor is a page that says what could not be done. The browser starts with the first page, since
    its loop bars others from the thread.
    """
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs a Chromium, such as Debian's")
    problems: list[str] = []
    expected = ("net::ERR", "Failed to load resource")

    def heard(message):
        if message.type == "error" and not any(one in message.text for one in expected):
            problems.append(message.text)

    with ExitStack() as stack:
        browsers = []

        def open_page(project, name="olga", **options):
            if not browsers:
                driver = stack.enter_context(api.sync_playwright())
                started = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                stack.callback(started.close)
                browsers.append(started)
            context = browsers[0].new_context(viewport={"width": 1280, "height": 860}, **options)
            page = context.new_page()
            page.set_default_timeout(20_000)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", heard)
            page.on("dialog", lambda dialog: problems.append(f"dialog: {dialog.message}"))
            page.goto(f"{project.url}/?once={project.access.invite(name)}")
            return page

        yield open_page
    assert problems == []


@pytest.fixture
def page(project, sign_in):
    """A page of an operator."""
    return sign_in(project)
