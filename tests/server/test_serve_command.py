"""``agentkit serve`` as a user starts it, with rounds beside it, and the support bot of the examples."""

import asyncio
import importlib.util
import re
import sqlite3
import sys
import time
from contextlib import asynccontextmanager, closing
from pathlib import Path

import httpx
import openai
import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters
from openai import OpenAI

from agentkit import open_store
from agentkit.cli.main import main
from agentkit.evolution import ToolManager
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.library import EpisodeFilter
from agentkit.server import serving
from agentkit.testing import FunctionModel

KEY = "sk-0123456789abcdef"
TOOLS = '''
from agentkit import tool
from agentkit.tools.definition import Effects

@tool(effects=Effects.pure())
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b
'''


@pytest.fixture
def invoke(tmp_path, monkeypatch):
    """Runs ``agentkit serve ...`` in this process, as far as it comes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTKIT_STORE", f"sqlite:///{tmp_path / 'library.db'}")
    monkeypatch.setenv("AGENTKIT_MODEL", "sleepy:a")

    def run(*arguments):
        return CliRunner().invoke(main, ["serve", *arguments], catch_exceptions=False)

    return run


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "can be reached from other machines and there are no keys"),
        (["--keys-from", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE is not set"),
        (["--keys-from", "no/such/file"], "no/such/file cannot be read"),
        (["--keys-from", "ann=key-of-ann-0123456789"], "the name of an environment variable"),
        (["--mcp", "stdio", "--keys-from", "X"], "without keys"),
        (["--mcp", "stdio", "--rate", "60", "--yes"], "so leave --rate, --yes out"),
        (["--timeout", "nan"], "request_seconds is nan"),
    ],
)
def test_misuse_is_refused(invoke, plugin, monkeypatch, options, message):
    """Exit status 2, one line that says what to do, and nothing listens."""
    monkeypatch.syspath_prepend(str(plugin))
    result = invoke(*options)
    assert result.exit_code == 2, result.output
    assert message in result.stderr


def test_a_port_that_is_taken(invoke, plugin, monkeypatch):
    """Exit status 1, with the port and what to do."""
    import socket

    monkeypatch.syspath_prepend(str(plugin))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = invoke("--port", str(port))
    assert result.exit_code == 1
    assert f"port {port} is taken; choose another with --port" in result.stderr


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_the_extra_is_named_when_it_is_absent(invoke, plugin, monkeypatch, package):
    """The error holds the pip line."""
    monkeypatch.syspath_prepend(str(plugin))
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, package, None)
    result = invoke("--port", "0")
    assert result.exit_code == 1
    assert f"needs the package '{package}'" in result.stderr
    assert 'pip install "agentkit-evolve[serve]"' in result.stderr


async def test_the_library_is_served_over_mcp(tmp_path, plugin):
    """``--mcp stdio`` speaks to the official client, and keeps what was called."""
    (tmp_path / "shop.py").write_text(TOOLS)
    store = tmp_path / "library.db"
    server = StdioServerParameters(
        command=sys.executable,
        args=[
            *("-c", "from agentkit.cli.main import main; main()", "serve", "--mcp", "stdio"),
            *("--tools", str(tmp_path / "shop.py"), "--store", str(store)),
        ],
    )
    async with Client(server) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        called = await client.call_tool("add", {"a": 1, "b": 2})
    assert listed == ["add"]
    assert called.content[0].text == "3"
    with closing(open_store(f"sqlite:///{store}")) as kept:
        assert [one.results[0].value for one in kept.select()] == [3]


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


@pytest.fixture
def bank(tmp_path, monkeypatch, plug_in):
    """A folder with the bank's tool and a model that reads the schema; gives the store's URL."""
    (tmp_path / "bank.py").write_text(BANK)
    plug_in("agentkit_clerk", PLUGIN, "[agentkit.models]\nclerk = agentkit_clerk:open_clerk\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return f"sqlite:///{tmp_path / 'library.db'}"


@pytest.fixture
def served(bank, start, tmp_path):
    """Starts ``agentkit serve`` with the bank's tool; gives an official client of it."""

    @asynccontextmanager
    async def run(*options):
        (tmp_path / "keys").write_text(f"shop={KEY}\n")
        bank = ("--model", "clerk:a", "--tools", "bank.py", "--refresh", "0.1")
        async with start(*bank, "--keys-from", "keys", *options) as (process, url):
            with OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
                yield client
            process.terminate()
            await process.communicate()

    return run


def evolve(store_url, *options):
    """A round, as another process would make it."""
    done = CliRunner().invoke(main, ["evolve", "--store", store_url, *options])
    assert done.exit_code == 0, done.output
    return done


def ask(client, months=50, session=None):
    """The answer to a customer of the shop who wants a loan over so many months."""
    headers = {} if session is None else {"X-Session-Id": session}
    return client.chat.completions.create(
        model="agent",
        messages=[{"role": "user", "content": f"A loan of 4800 euro over {months} months"}],
        user=f"customer {months}",
        extra_headers=headers,
    )


def test_a_canary_serves_its_share_and_says_so(bank, served):
    """Sessions are divided between the candidate and what there is, and each answer names which."""

    async def story():
        async with served() as client:
            await asyncio.to_thread(act, client)

    def act(client):
        for months in (50, 51, 52):
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
        for months in (50, 51, 52):
            ask(client, months)
        store = open_store(bank)
        manager = ToolManager(store)
        until = time.monotonic() + 60
        states = []
        while states != ["validated"] and time.monotonic() < until:
            time.sleep(0.1)
            manager.refresh()
            states = [one.state for one in manager.ledger.proposals.values()]
        assert states == ["validated"]
        busy = CliRunner().invoke(main, ["evolve", "--store", bank])
        assert busy.exit_code == 1
        assert re.search(r"process \d+ on .+ since .+ evolves .+; wait for its end", busy.stderr)
        store.close()

    asyncio.run(story())
    assert CliRunner().invoke(main, ["evolve", "--store", bank]).exit_code == 0


FILE = Path(__file__).parents[2] / "examples" / "support_bot" / "bot.py"


@pytest.fixture(scope="module")
def bot():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("support_bot", FILE)
    module = importlib.util.module_from_spec(spec)
    sys.modules["support_bot"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["support_bot"]


@pytest.fixture
def shop(bot, tmp_path):
    """The address of a bot with a shop of its own, and where its episodes are kept."""
    store = f"sqlite:///{tmp_path / 'agent.db'}"
    billing = FunctionModel(bot.scripted_billing)
    agent = bot.build_agent(FunctionModel(bot.scripted_support), store, billing=billing)
    with (
        closing(bot.open_shop(tmp_path / "shop.db")) as database,
        serving(bot.build_app(agent, database)) as url,
    ):
        yield url, store


def customer(bot, url, name):
    """Asks for a customer, in one session; gives the events of each answer."""
    headers = {"x-customer": name}
    client = openai.OpenAI(
        base_url=f"{url}/v1", api_key=bot.KEYS["website"], default_headers=headers, max_retries=0
    )

    def ask(text, *parts):
        fields = {"extra_body": {"session_id": name}, "user": name, "stream": True}
        content = [{"type": "text", "text": text}, *parts] if parts else text
        messages = [{"role": "user", "content": content}]
        chunks = list(client.chat.completions.create(model="support", messages=messages, **fields))
        said = "".join(one.choices[0].delta.content or "" for one in chunks if one.choices)
        return said, [one.model_extra.get("agentkit") for one in chunks if one.model_extra]

    return ask


def test_customers_see_their_own_orders_and_progress(bot, shop):
    """The handle and the name come with the request; what tools say of progress is streamed."""
    url, _ = shop
    said, extras = customer(bot, url, "ada")("What are my orders?")
    assert said == '["A17: delivered","A18: shipped"]'
    progress = [one["progress"]["text"] for one in extras if one and "progress" in one]
    assert progress == ["order A17, 1 of 2", "order A18, 2 of 2"]
    assert "no order 'A17'" in customer(bot, url, "ben")("What does A17 cost?")[0]


def test_a_photo_of_damage_is_uploaded(bot, shop, tmp_path):
    """The model sees it, the tool that reports the damage finds it, and a false one is refused."""
    url, store = shop
    ada = customer(bot, url, "ada")

    def photo(media_type):
        image = {"url": f"data:{media_type};base64,{bot.PHOTO}"}
        return {"type": "image_url", "image_url": image}

    assert "ask the customer for a photo" in ada("A17 is broken")[0]
    with pytest.raises(openai.BadRequestError, match="the bytes are image/png"):
        ada("A17 is broken", photo("image/jpeg"))
    said, _ = ada("A17 is broken", photo("image/png"))
    assert said == "the damage of A17 is reported, with a photo of 69 bytes"
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        assert database.execute("SELECT id, media_type, length(photo) FROM claims").fetchall() == [
            ("A17", "image/png", 69)
        ]
    with closing(open_store(store)) as kept:
        (medium,) = next(iter(kept.select())).media
    assert medium.base64 == bot.PHOTO


def test_billing_takes_over_and_the_session_goes_on(bot, shop):
    """The stream says so and goes on with its answer; both runs are one conversation."""
    url, store = shop
    ada = customer(bot, url, "ada")
    said, extras = ada("What does A17 cost?")
    assert said == "A17 costs 49.00 euros"
    assert {"tool": "billing", "text": "takes over"} in [
        (one or {}).get("progress") for one in extras
    ]
    assert ada("What are my orders?")[0] == '["A17: delivered","A18: shipped"]'
    with closing(open_store(store)) as kept:
        first, second = kept.select(EpisodeFilter(oldest_first=True))
    assert first.results[0].value["agent"] == "billing"
    assert (first.output, second.history_length) == ("A17 costs 49.00 euros", 4)


def test_refunds_wait_for_the_desk(bot, shop):
    """The desk decides, the run goes on for the customer who asked, and nothing runs twice."""
    url, _ = shop
    ada = customer(bot, url, "ada")
    ada("Refund A17")
    desk = {"authorization": f"Bearer {bot.KEYS['desk']}"}
    (waiting,) = httpx.get(f"{url}/v1/approvals", headers=desk).json()["data"]
    decide = {"headers": desk, "json": {"approved": True}}
    decided = httpx.post(f"{url}/v1/approvals/{waiting['id']}", **decide)
    assert decided.json()["content"] == "49.00 euros of A17 are on their way"
    assert httpx.post(f"{url}/v1/approvals/{waiting['id']}", **decide).status_code == 409
    assert "A17: refunded" in ada("What are my orders?")[0]
    own = {"authorization": f"Bearer {bot.KEYS['website']}"}
    assert httpx.get(f"{url}/v1/approvals", headers=own).json()["data"] == []


def test_card_numbers_are_kept_nowhere(bot, shop):
    """The guardrail hides them before the model and the store see them."""
    url, store = shop
    said, _ = customer(bot, url, "ada")("My card is 4111 1111 1111 1111.")
    assert said == "You wrote: My card is [card number]."
    with closing(open_store(store)) as kept:
        (episode,) = kept.select()
    assert "4111" not in str(episode.to_json())


def test_clients_of_the_responses_api_are_served_too(bot, shop):
    """The same bot streams, waits for the desk and takes photos there, with OpenAI's client."""
    url, _ = shop
    website = {"base_url": f"{url}/v1", "api_key": bot.KEYS["website"], "max_retries": 0}
    client = openai.OpenAI(default_headers={"x-customer": "ada"}, **website)
    with client.responses.stream(model="support", input="What are my orders?") as stream:
        pieces = [one.delta for one in stream if one.type == "response.output_text.delta"]
        first = stream.get_final_response()
    assert "".join(pieces) == first.output_text == '["A17: delivered","A18: shipped"]'
    photo = {"type": "input_image", "image_url": f"data:image/png;base64,{bot.PHOTO}"}
    content = [{"type": "input_text", "text": "A17 is broken"}, photo]
    broken = client.responses.create(
        model="support", input=[{"role": "user", "content": content}], previous_response_id=first.id
    )
    assert broken.output_text == "the damage of A17 is reported, with a photo of 69 bytes"
    client.responses.create(
        model="support", input="Refund A17", previous_response_id=broken.id, user="ada"
    )
    desk = {"authorization": f"Bearer {bot.KEYS['desk']}"}
    (waiting,) = httpx.get(f"{url}/v1/approvals", headers=desk).json()["data"]
    decided = httpx.post(
        f"{url}/v1/approvals/{waiting['id']}", headers=desk, json={"approved": False}
    )
    assert "was not approved" in decided.json()["content"]
    again = client.responses.create(model="support", input="What are my orders?")
    assert "A17: delivered" in again.output_text


def test_the_tour_runs(bot, capsys):
    """The command that the file names shows a customer and the desk."""
    bot.main([])
    shown = capsys.readouterr().out
    assert "A17 costs 49.00 euros" in shown
    assert "reported, with a photo of 69 bytes" in shown
    assert "49.00 euros of A17 are on their way" in shown
