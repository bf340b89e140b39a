"""Serving and learning: a canary for a share of the sessions, and rounds beside the server."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from contextlib import asynccontextmanager

import pytest
from click.testing import CliRunner
from openai import OpenAI

from agentkit import open_store
from agentkit.cli.main import main
from agentkit.evolution import ToolManager
from agentkit.evolution.decide import LifecyclePolicy

BANK = '''
from agentkit import ModelRetry, tool

@tool(effects=("reads",))
def loan_rate(euro: int, periods: int) -> str:
    """What a loan costs a month.

    Args:
        euro: The sum.
        periods: Term in months.
    """
    if periods not in (36, 48, 60):
        raise ModelRetry(f"periods must be one of 36, 48, 60, got {periods}")
    return f"{round(euro / periods, 2)} a month over {periods}"
'''
PLUGIN = '''
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel

def answer(request):
    """Asks for the term that the customer said, or for the nearest one that the schema lists."""
    last = request.messages[-1]
    if last.role == "tool":
        return last.text if "a month" in last.text else "It was refused."
    euro, months = (int(word) for word in last.text.split() if word.isdigit())
    terms = request.tools[0].parameters_schema["properties"]["periods"].get("enum")
    months = min(terms, key=lambda term: abs(term - months)) if terms else months
    return [ToolCall(call_id="1", name="loan_rate", arguments={"euro": euro, "periods": months})]

def open_clerk(name):
    return FunctionModel(answer, name="clerk")
'''
MAIN = "from agentkit.cli.main import main; main()"


@pytest.fixture
def bank(tmp_path, monkeypatch):
    """A folder with the bank's tool and a model that reads the schema; gives the store's URL."""
    (tmp_path / "bank.py").write_text(BANK)
    info = tmp_path / "plugins" / "agentkit_clerk-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "agentkit_clerk.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentkit-clerk\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentkit.models]\nclerk = agentkit_clerk:open_clerk\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return f"sqlite:///{tmp_path / 'library.db'}"


@pytest.fixture
def served(bank, tmp_path):
    """Starts ``agentkit serve`` with the bank's tool; gives an official client of it."""

    @asynccontextmanager
    async def run(*options):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", MAIN, "serve", "--model", "clerk:a", "--tools", "bank.py"),
            *("--port", "0", "--store", bank, "--refresh", "0.1", *options),
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(
                    [str(tmp_path / "plugins"), os.environ.get("PYTHONPATH", "")]
                ),
                "PYTHONUNBUFFERED": "1",
            },
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            greeting = (await process.stderr.readuntil(b"Ctrl-C")).decode()
            url = re.search(r"at (http://\S+)/v1", greeting)[1]
            with OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
                yield client
        finally:
            if process.returncode is None:
                process.terminate()
            await process.communicate()

    return run


def evolve(store_url, *options):
    """A round, as another process would make it."""
    done = CliRunner().invoke(main, ["evolve", "--store", store_url, *options])
    assert done.exit_code == 0, done.output
    return done


def ask(client, months=50, session=None):
    """The answer to a customer who wants a loan over so many months."""
    headers = {} if session is None else {"X-Session-Id": session}
    return client.chat.completions.create(
        model="agent",
        messages=[{"role": "user", "content": f"A loan of 4800 euro over {months} months"}],
        user=f"customer {months}",  # one person is one witness
        extra_headers=headers,
    )


def test_a_canary_serves_its_share_and_says_so(bank, served):
    """Sessions are divided between the candidate and what there is, and each answer names which."""

    async def story():
        async with served() as client:
            await asyncio.to_thread(act, client)

    def act(client):
        for months in (50, 51):
            ask(client, months)
        evolve(bank, "--tools", "bank.py", "--canary", "--only", "evidence")
        store = open_store(bank)
        manager = ToolManager(store, lifecycle=LifecyclePolicy(canary=True))
        [record] = manager.ledger.proposals.values()
        assert record.state == "canary"
        until, found = time.monotonic() + 60, {}
        while len(found) < 2 and time.monotonic() < until:
            session = f"s{time.monotonic_ns()}"
            answer = ask(client, session=session)
            found[answer.agentkit["route"]] = answer.choices[0].message.content
            if len(found) == 2:
                break
        assert found == {"control": "It was refused.", record.proposal_id: "100.0 a month over 48"}
        store.close()

    asyncio.run(story())


def test_evolve_beside_a_server_learns_as_traffic_comes_in(bank, served):
    """``serve --evolve`` makes rounds in a process of its own, which ends with the server."""

    async def story():
        async with served("--evolve", "0.2") as client:
            await asyncio.to_thread(act, client)

    def act(client):
        for months in (50, 51):
            ask(client, months)
        store = open_store(bank)
        manager = ToolManager(store)
        until = time.monotonic() + 60
        while not manager.ledger.proposals and time.monotonic() < until:
            time.sleep(0.1)
            manager.refresh()
        assert [one.state for one in manager.ledger.proposals.values()] == ["validated"]
        busy = CliRunner().invoke(main, ["evolve", "--store", bank])
        assert busy.exit_code == 1
        assert re.search(r"process \d+ on .+ since .+ evolves .+; wait for its end", busy.stderr)
        store.close()

    asyncio.run(story())
    assert CliRunner().invoke(main, ["evolve", "--store", bank]).exit_code == 0
