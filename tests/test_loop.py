"""One story: a tool refuses what its definition hides, a round learns it, and everybody sees it.

The same folder is driven through the command line, through its servers with official clients, and
through Python. The model is a double that reads the schema that it is offered, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager, closing

import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from openai import AsyncOpenAI

from agentkit import open_store
from agentkit.cli.loading import load_tools
from agentkit.cli.main import main
from agentkit.interop import Toolset

CLERK = '''
from difflib import get_close_matches

from agentkit.messages import ToolCall
from agentkit.testing import FunctionModel

def answer(request):
    """What the customer said of the ticket, or the word of the schema that is most like it."""
    last = request.messages[-1]
    if last.role == "tool":
        return last.text if "is closed" in last.text else "It was refused."
    words = last.text.rstrip(".").split()
    said = words[-1]
    allowed = request.tools[0].parameters_schema["properties"]["outcome"].get("enum")
    outcome = get_close_matches(said, allowed, cutoff=0)[0] if allowed else f"it is {said}"
    ticket = next(int(word.strip(",:")) for word in words if word.strip(",:").isdigit())
    return [ToolCall(call_id="1", name="close_ticket", arguments=dict(ticket=ticket, outcome=outcome))]

def open_clerk(name):
    return FunctionModel(answer, name="clerk")
'''
MAIN = "from agentkit.cli.main import main; main()"
REQUEST = "Close ticket 7001, it is solved."
OLD, NEW = "It was refused.", "Ticket 7001 is closed: resolved."
OUTCOMES = ["resolved", "duplicate", "cancelled"]


@pytest.fixture
def folder(tmp_path, monkeypatch, plug_in):
    """A new project, and the model double as a plugin."""
    plug_in("agentkit_clerk", CLERK, "[agentkit.models]\nclerk = agentkit_clerk:open_clerk\n")
    monkeypatch.chdir(tmp_path)
    for name in ("AGENTKIT_STORE", "AGENTKIT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    typed("init", "--model", "clerk:a")
    return tmp_path


@pytest.fixture
def environment(folder):
    """The environment of a process of its own that finds the plugin."""
    places = [str(folder / "plugins"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "PYTHONUNBUFFERED": "1"}


def typed(*words):
    """What a command prints, as it is typed in the folder."""
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


async def run(*words):
    """The same beside the servers; commands have event loops of their own."""
    return await asyncio.to_thread(typed, *words)


async def accuracy():
    """How many tasks ``agentkit eval`` finds right."""
    total = json.loads(await run("eval", "--json"))["total"]
    return total["passed"], total["attempts"]


@asynccontextmanager
async def serving(folder, environment):
    """``agentkit serve`` in a process of its own; gives an official client of it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", MAIN, "serve", "--port", "0", "--refresh", "0.1", "--json"),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        started = json.loads(await process.stdout.readline())
        async with AsyncOpenAI(base_url=started["url"], api_key="none", max_retries=0) as client:
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


async def served_outcomes(folder, environment):
    """The outcomes that ``agentkit serve --mcp stdio`` lists, to an official client."""
    started = StdioServerParameters(
        command=sys.executable,
        args=["-c", MAIN, "serve", "--mcp", "stdio"],
        cwd=folder,
        env=environment,
    )
    async with Client(started) as client:
        [listed] = (await client.list_tools()).tools
    return listed.input_schema["properties"]["outcome"]["enum"]


async def toolset_outcomes():
    """The outcomes that the loop of another framework is offered."""
    tools = load_tools(["tools.py"])
    with closing(open_store(".agentkit/library.db")) as store:
        offered = await Toolset(store, tools=tools).start(REQUEST)
    [shown] = offered.offered
    return shown.parameters_schema["properties"]["outcome"].get("enum")


async def test_what_was_promoted_is_what_everybody_sees(folder, environment):
    """A failing eval, one round, and every way in shows the gain; a rollback, and the old again."""
    before, of = await accuracy()
    assert before <= 2
    assert await run("run", REQUEST) == f"{OLD}\n"
    async with serving(folder, environment) as client:
        assert await answer_of(client, 1) == (1, OLD)

        told = json.loads(await run("evolve", "--json"))
        [proposal] = told["proposals"]
        assert (proposal["state"], told["after"]) == ("active", 2)
        assert await accuracy() == (of, of)
        shown = await run("review", "show", "last")
        assert '+ enum: ["resolved", "duplicate", "cancelled"]' in shown
        assert "Conversations that failed (3 of" in shown
        assert await run("run", REQUEST) == f"{NEW}\n"
        assert await answer_of(client, 2) == (2, NEW)
        assert await served_outcomes(folder, environment) == OUTCOMES
        assert await toolset_outcomes() == OUTCOMES
        exported = await run("export", "--format", "openai")
        assert '"enum": [' in exported

        await run("rollback", "close_ticket", "--reason", "to see the old")
        assert await accuracy() == (before, of)
        assert await run("run", REQUEST) == f"{OLD}\n"
        assert await answer_of(client, 3) == (3, OLD)
        assert await toolset_outcomes() is None
        assert await run("run", REQUEST, "--pin", "2") == f"{NEW}\n"


GARAGE = '''
import json

from agentkit.evolution.validation.semantic_judge import CRITERIA
from agentkit.testing import FunctionModel

def answer(request):
    """Guesses, unless its instructions say what to ask for."""
    asks = "number plate before" in request.messages[0].text
    return "What is your number plate?" if asks else "Your car is ready."

def critic(request):
    text = "You answer customers of a garage. Ask for the number plate before you answer."
    return "<description>" + json.dumps(dict(tool="instructions/garage", summary=text)) + "</description>"

def judge(request):
    return json.dumps({name: {"reason": "It does.", "holds": "yes"} for name in CRITERIA})

def open_garage(name):
    return FunctionModel({"answer": answer, "critic": critic, "judge": judge}[name], name=name)
'''


def test_instructions_take_the_same_way(tmp_path, monkeypatch, plug_in):
    """Typed: tasks that fail, a round that rewrites the instructions, the log, and back."""
    plug_in("agentkit_garage", GARAGE, "[agentkit.models]\ngarage = agentkit_garage:open_garage\n")
    monkeypatch.chdir(tmp_path)
    text = "You answer customers of a garage."
    (tmp_path / "garage.py").write_text(
        f"from agentkit import Instructions\nsaid = Instructions(name='garage', text={text!r})\n"
    )
    answer = {"contains": "number plate"}
    tasks = [
        {"id": f"t{at}", "request": f"Is car {at} ready?", "expects": answer} for at in range(24)
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    name = "instructions/garage"
    who = ("--model", "garage:answer")
    assert "1 added" in typed("tools", "add", "garage.py")
    said = ("--tools", "garage.py", "--instructions", name)
    assert typed("run", "Is my car ready?", *who, *said).startswith("Your car is ready.")
    typed("eval", "tasks.jsonl", *who, "--instructions", name)
    helpers = ("--feedback-model", "garage:critic", "--judge", "garage:judge")
    told = typed("evolve", "--tasks", "tasks.jsonl", *who, *helpers, "--tool", name)
    assert f"{name}: in use" in told
    assert typed("run", "Is my car ready?", *who, *said).startswith("What is your number plate?")
    assert "+ You answer customers of a garage. Ask for" in typed("review", "show", name)
    assert name in typed("log", "--tool", name, "--json")
    typed("rollback", name)
    assert typed("run", "Is my car ready?", *who, *said).startswith("Your car is ready.")
