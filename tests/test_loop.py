"""One story: a tool refuses what its definition hides, a round learns it, and everybody sees it.

The same folder is driven through the command line, through its servers with official clients, and
through Python. The model is a double that reads the schema that it is offered, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from importlib import import_module

import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from openai import AsyncOpenAI

from agentkit import Agent, ModelRetry, open_store, tool
from agentkit.cli.loading import load_tools
from agentkit.cli.main import main
from agentkit.evaluation import episodes_of_run, evaluate, load_tasks, summarise
from agentkit.evaluation.held_out import HeldOut
from agentkit.evolution import ToolManager, evolve
from agentkit.evolution.proposals.evidence_proposer import EvidenceProposer
from agentkit.export import artifact_of
from agentkit.interop import Toolset

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
CLERK = '''
from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel

def answer(request):
    """The term that the customer said, or the nearest one that the schema lists."""
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
REQUEST = "A loan of 4800 euro over 50 months"
OLD, NEW = "It was refused.", "100.0 a month over 48"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a tool, its tasks and the model double as a plugin."""
    (tmp_path / "bank.py").write_text(BANK)
    rows = []
    for number in range(24):
        months = 30 + 7 * number % 37
        gold = min((36, 48, 60), key=lambda term: abs(term - months))
        arguments = {"euro": 1000 + number, "periods": gold}
        rows.append(
            {
                "id": f"task-{number}",
                "request": f"A loan of {1000 + number} euro over {months} months",
                "expects": {"calls": [{"name": "loan_rate", "arguments": arguments}]},
            }
        )
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    info = tmp_path / "plugins" / "agentkit_clerk-1.0.dist-info"
    info.mkdir(parents=True)
    (info.parent / "agentkit_clerk.py").write_text(CLERK)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agentkit-clerk\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentkit.models]\nclerk = agentkit_clerk:open_clerk\n")
    (tmp_path / "agentkit.toml").write_text(
        'store = "library.db"\ntools = ["bank.py"]\ntasks = "tasks.jsonl"\nmodel = "clerk:a"\n'
    )
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("agentkit_clerk", None)


@pytest.fixture
def environment(folder):
    """The environment of a process of its own that finds the plugin."""
    places = [str(folder / "plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONUNBUFFERED": "1"}


def run(*words, typed=None):
    """A command, as it is typed in the folder."""
    done = CliRunner().invoke(main, list(words), input=typed, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def accuracy():
    """How many tasks ``agentkit eval`` finds right."""
    total = json.loads(run("eval", "--json").stdout)["total"]
    return total["passed"], total["attempts"]


@asynccontextmanager
async def serving(folder, environment):
    """``agentkit serve`` in a process of its own; gives an official client of it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MAIN, "serve", "--port", "0", "--refresh", "0.1"),
        cwd=folder,
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        greeting = (await process.stderr.readuntil(b"Ctrl-C")).decode()
        url = re.search(r"at (http://\S+)/v1", greeting)[1]
        async with AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            yield client
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def answer_of(client, version):
    """What the running server answers, asked until it serves the wanted library version."""
    for _ in range(200):
        done = await client.chat.completions.create(
            model="agent", messages=[{"role": "user", "content": REQUEST}]
        )
        if done.agentkit["library_version"] == version:
            break
        await asyncio.sleep(0.1)
    return done.agentkit["library_version"], done.choices[0].message.content


async def served_terms(folder, environment):
    """The terms that ``agentkit serve --mcp stdio`` lists, to an official client."""
    started = StdioServerParameters(
        command=sys.executable,
        args=["-c", MAIN, "serve", "--mcp", "stdio"],
        cwd=folder,
        env=environment,
    )
    async with Client(started) as client:
        [listed] = (await client.list_tools()).tools
    return listed.input_schema["properties"]["periods"].get("enum")


async def toolset_terms():
    """The terms that the loop of another framework is offered."""
    [bank] = load_tools(["bank.py"])
    with closing(open_store("library.db")) as store:
        offered = await Toolset(store, tools=[bank]).start(REQUEST)
    [shown] = offered.offered
    return shown.parameters_schema["properties"]["periods"].get("enum")


async def test_what_was_promoted_is_what_everybody_sees(folder, environment):
    """A failing eval, one round, and every way in shows the gain; a rollback, and the old again."""
    before, of = accuracy()
    assert before <= 2
    assert run("run", REQUEST).stdout == f"{OLD}\n"
    async with serving(folder, environment) as client:
        assert await answer_of(client, 1) == (1, OLD)
        assert await served_terms(folder, environment) is None

        told = json.loads(run("evolve", "--json").stdout)
        [proposal] = told["proposals"]
        assert (proposal["state"], told["after"]) == ("active", 2)
        assert accuracy() == (of, of)
        assert run("run", REQUEST).stdout == f"{NEW}\n"
        assert NEW in run("chat", typed=f"{REQUEST}\n").stdout
        assert await answer_of(client, 2) == (2, NEW)
        assert await served_terms(folder, environment) == [36, 48, 60]
        assert await toolset_terms() == [36, 48, 60]
        exported = run("export", "--format", "openai").stdout
        assert '"enum": [' in exported

        run("rollback", "loan_rate", "--reason", "to see the old")
        assert accuracy() == (before, of)
        assert run("run", REQUEST).stdout == f"{OLD}\n"
        assert OLD in run("chat", typed=f"{REQUEST}\n").stdout
        assert await answer_of(client, 3) == (3, OLD)
        assert await served_terms(folder, environment) is None
        assert await toolset_terms() is None
        assert run("run", REQUEST, "--pin", "2").stdout == f"{NEW}\n"


@tool(effects=("reads",))
def loan_rate(euro: int, periods: int) -> str:
    """What a loan costs a month.

    Args:
        euro: The sum.
        periods: Term in months.
    """
    if periods not in {36, 48, 60}:
        raise ModelRetry(f"periods must be one of 36, 48, 60, got {periods}")
    return f"{round(euro / periods, 2)} a month over {periods}"


async def test_the_same_story_in_python(folder, tmp_path):
    """Evaluate, evolve, evaluate, run, export and roll back, with what agentkit exports."""
    clerk = import_module("agentkit_clerk").open_clerk("a")
    tasks = load_tasks(folder / "tasks.jsonl", tools=[loan_rate])
    seen, unseen = tasks.tasks[::2], tasks.tasks[1::2]
    with closing(open_store("memory:")) as store, closing(open_store("memory:")) as answers:

        async def right(name):
            library = Agent(clerk, tools=[loan_rate], store=store).library
            await evaluate(tasks, model=clerk, store=answers, run=name, library=library)
            return summarise(episodes_of_run(answers, name)).total.passed

        agent = Agent(clerk, tools=[loan_rate], store=store)
        assert agent.binding.registered == ("loan_rate",)
        assert await right("before") <= 2
        lessons = replace(tasks, tasks=seen)
        await evaluate(lessons, model=clerk, store=answers, run="lessons", library=agent.library)
        manager = ToolManager(store, tools=[loan_rate])
        held_out = HeldOut(
            benchmark=replace(tasks, tasks=unseen), model=clerk, store=answers, name="gate"
        )
        outcome = await evolve(
            manager,
            [EvidenceProposer()],
            episodes=episodes_of_run(answers, "lessons"),
            compare=held_out,
        )
        assert len(outcome.promoted) == 1
        agent.refresh()
        assert (await agent.run(REQUEST)).output == NEW
        assert await right("after") == len(tasks.tasks)
        exported = artifact_of(store).library["loan_rate"].definition
        assert exported.parameters_schema["properties"]["periods"]["enum"] == [36, 48, 60]
        manager.roll_back("loan_rate")
        agent.refresh()
        result = await agent.run(REQUEST)
        assert (result.output, result.episode.library_version) == (OLD, 3)
        held = Agent(clerk, tools=[loan_rate], store=store, pin=2)
        assert (await held.run(REQUEST)).output == NEW
