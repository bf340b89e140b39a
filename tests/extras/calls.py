"""A tool call through what each extra brings, and nothing else: ``calls.py EXTRA``.

Each function makes an agent call a tool, and needs neither pytest nor any other extra. It ends with
a line that tells what was done, or with a traceback; without its extra, the last line of that names
the one to install. Whatever an extra brings is imported in its function.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

from agentkit import Agent, Effects, Library, RunResult, ToolDefinition, open_store, tool
from agentkit.library import LibraryChange
from agentkit.messages import ToolCall
from agentkit.models import ModelRequest
from agentkit.testing import FunctionModel

sys.path.append(str(Path(__file__).parents[1]))  # for tests/support

from support.model_server import ProviderServer
from support.server_steps import Reply

AGENTKIT = str(Path(sys.executable).with_name("agentkit"))
"""The command, as it was installed beside this Python."""

TOOLS = f"{__file__}:square"
"""The tool in a file, for the command."""

QUESTION = "What is 12 squared?"


@tool(effects=Effects.pure())
def square(n: int) -> int:
    """The square of n."""
    return n * n


SQUARE_12 = ToolCall(call_id="c1", name="square", arguments={"n": 12})


def caller(call: ToolCall = SQUARE_12) -> FunctionModel:
    """A model that makes one call, and then answers with what came of it."""
    return FunctionModel(
        lambda request: request.messages[-1].text if len(request.messages) > 1 else [call]
    )


def provider() -> ProviderServer:
    """A server that speaks as providers do, and whose model asks for the square of 12."""
    return ProviderServer([Reply(tool_calls=[SQUARE_12]), "144"])


def check(result: RunResult, value: object, what: str, *distributions: str) -> None:
    """See that one call was made and gave the value; tell through what."""
    assert [made.value for made in result.episode.results] == [value], result.episode
    tell(f"{what}: {result.output}", *distributions)


def tell(what: str, *distributions: str) -> None:
    """Say what was done, and by which versions of the distributions."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in distributions)
    print(f"{what} ({versions})")


def with_dir() -> None:
    """A tool is kept as a YAML file, read back, and called."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"dir:{folder}/library")
        change = LibraryChange(proposal_id="first", upserts=(square.definition,))
        store.commit(change, expected_version=0)
        (path,) = Path(folder, "library", "tools").iterdir()
        result = Agent(caller(), tools=[square], store=store).run_sync(QUESTION)
        assert result.episode.library_version == 1
        store.close()
    check(result, 144, f"called from {path.name}", "pyyaml")


def with_fast() -> None:
    """Our own adapter sends through aiohttp, when told to and by itself."""
    from agentkit.models import OpenAICompatibleModel

    for transport in ("aiohttp", "auto"):
        with provider() as server:
            model = OpenAICompatibleModel("gpt", base_url=server.base_url, transport=transport)
            result = Agent(model, tools=[square]).run_sync(QUESTION)
        check(result, 144, f"transport={transport!r}", "aiohttp")
    assert "httpx" not in sys.modules, "the other transport was taken"


def with_gepa() -> None:
    """Agents try texts of a tool, and what made them call it is proposed."""
    from agentkit.evolution.proposal import Observations
    from agentkit.evolution.proposers.optimizer import GepaOptimizer, Score

    good = "The square of a whole number."

    def answer(request: ModelRequest) -> str | list[ToolCall]:
        """Call the tool when its text says what it takes; otherwise do without."""
        is_told = request.tools[0].description.summary == good
        return [SQUARE_12] if is_told and len(request.messages) == 1 else request.messages[-1].text

    async def evaluate(candidate: ToolDefinition, questions: Sequence[str]) -> list[Score]:
        """Whether an agent that is given the candidate finds the answer."""
        agent = Agent(FunctionModel(answer), tools=[square.with_definition(candidate)])
        answers = [(await agent.run(question)).output for question in questions]
        return [Score(value=float(answer == "144")) for answer in answers]

    model = FunctionModel(lambda _: f"```\n{good}\n```")
    optimizer = GepaOptimizer(model, evaluate, [QUESTION], max_evaluations=20)
    seen = Observations(library=Library([square]), tools=("square",))
    (proposal,) = asyncio.run(optimizer.propose(seen))
    assert proposal.candidate.description.summary == good, proposal
    assert proposal.reason.startswith("mean score 1.000 against 0.000"), proposal.reason
    tell(proposal.reason, "gepa")


def with_litellm() -> None:
    """Two providers, for which ours stands in. litellm imports mcp for calls that carry tools."""
    for model in ("litellm:openai/gpt-4o-mini", "litellm:anthropic/claude-sonnet-5-5"):
        with provider() as server:
            os.environ |= {
                "ANTHROPIC_API_KEY": "k",
                "ANTHROPIC_API_BASE": server.root_url,
                "ANTHROPIC_BASE_URL": server.root_url,
                "OPENAI_API_KEY": "k",
                "OPENAI_API_BASE": server.base_url,
                "OPENAI_BASE_URL": server.base_url,
                "no_proxy": "127.0.0.1",
            }
            result = Agent(model, tools=[square]).run_sync(QUESTION)
        check(result, 144, model, "litellm", "mcp")


def with_mcp() -> None:
    """An agent calls a tool of an official server, the official client one of ours."""
    from agentkit.interop.mcp import McpServer

    async def call_their_server() -> RunResult:
        words = [__file__, "mcp_server"]
        async with McpServer.stdio(sys.executable, words, new_tools="screen") as server:
            return await Agent(caller(), tools=server.tools).run(QUESTION)

    async def call_with_their_client() -> str:
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client

        arguments = ["serve", "--mcp", "stdio", "--store", "memory:", "--tools", TOOLS]
        # Their client passes few variables on; this Python is found, and hides modules, by more.
        command = StdioServerParameters(command=AGENTKIT, args=arguments, env=dict(os.environ))
        async with Client(stdio_client(command)) as ours:
            called = await ours.call_tool("square", {"n": 12})
        return called.content[0].text

    # Ours is asked first: without the extra, our error is the one to read.
    check(asyncio.run(call_their_server()), {"result": 144}, "their server", "mcp")
    assert asyncio.run(call_with_their_client()) == "144"


def mcp_server() -> None:
    """A server of the official package, which ``with_mcp`` starts."""
    from mcp.server import MCPServer

    server = MCPServer("squares")
    server.tool(name="square")(square.function)
    server.run()


DESCRIPTION = b"""
openapi: 3.1.0
info: {title: Squares, version: "1"}
paths:
  /squares/{n}:
    get:
      operationId: square
      parameters: [{name: n, in: path, required: true, schema: {type: integer}}]
      responses:
        200:
          description: The square of n.
          content: {application/json: {schema: {type: integer}}}
"""


class Squares(BaseHTTPRequestHandler):
    """An API: its description at one path, its operation at another."""

    def do_GET(self) -> None:
        _, kind, *n = self.path.split("/")
        is_call = kind == "squares"
        self.send_response(200)
        self.send_header("Content-Type", "application/json" if is_call else "application/yaml")
        self.end_headers()
        self.wfile.write(str(int(n[0]) ** 2).encode() if is_call else DESCRIPTION)

    def log_message(self, *_: object) -> None:
        """Say nothing of requests."""


def with_openapi() -> None:
    """An API describes itself in YAML, and its operation is called."""
    import httpx

    from agentkit.interop.openapi import openapi_tools

    with ThreadingHTTPServer(("127.0.0.1", 0), Squares) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/openapi.yaml"
        api = openapi_tools(httpx.get(url, trust_env=False).text, reference=url)
        result = Agent(caller(), tools=api).run_sync(QUESTION)
        server.shutdown()
    check(result, 144, str(api.report.summary), "pyyaml")


def with_otel() -> None:
    """The API alone: spans go nowhere, and the run is as without a tracer."""
    from agentkit.tracing import Tracing

    agent = Agent(caller(), tools=[square], tracing=Tracing())
    check(agent.run_sync(QUESTION), 144, "spans to nowhere", "opentelemetry-api")


def otel_beside_an_sdk() -> None:
    """Beside an SDK that the application chose, the call has its span."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, spans = InMemorySpanExporter(), TracerProvider()
    spans.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(spans)
    with_otel()
    names = [span.name for span in exporter.get_finished_spans()]
    assert "execute_tool square" in names, names


def with_parquet() -> None:
    """A table of episodes that an earlier release exported is read."""
    from agentkit.episodes.files import import_episodes

    table = Path(__file__).parents[1] / "formats/written_2026_11/episodes.parquet"
    assert list(import_episodes(table))
    result = Agent(caller(), tools=[square]).run_sync(QUESTION)
    check(result, 144, "read and called", "pyarrow")


def with_serve() -> None:
    """``agentkit serve`` answers a question with a call, and ends on a signal."""
    import httpx

    question = {"model": "agent", "messages": [{"role": "user", "content": QUESTION}]}
    with provider() as theirs:
        model = f"openai-compatible:gpt@{theirs.base_url}"
        words = ["serve", "--port", "0", "--store", "memory:", "--tools", TOOLS, "--json"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        ours = subprocess.Popen([AGENTKIT, *words, "--model", model], **pipes)
        try:
            if not (said := ours.stdout.readline()):
                sys.exit(ours.stderr.read())
            url = f"{json.loads(said)['url']}/chat/completions"
            answer = httpx.post(url, json=question, trust_env=False).json()
        finally:
            ours.send_signal(signal.SIGTERM)
            last_words = ours.communicate(timeout=60)[1]
    result = theirs.requests[1].body["messages"][-1]
    assert (result["role"], result["content"]) == ("tool", "144"), result
    assert answer["choices"][0]["message"]["content"] == "144", answer
    assert (ours.returncode, "Stopped" in last_words) == (0, True), last_words
    tell("agentkit serve: 144", "starlette", "uvicorn")


def with_sign() -> None:
    """What changed a library is signed by ed25519, checked, and the tool called."""
    from agentkit.evolution import ToolManager
    from agentkit.library.chain import Ed25519Key, read_signer, verify_chain

    head = bytes.fromhex("302e020100300506032b657004220420")  # of a private key, RFC 8410
    body = base64.b64encode(head + secrets.token_bytes(32)).decode()
    key = read_signer(f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")
    store = open_store("memory:")
    ToolManager(store, tools=[square], signer=key).register([square], reason="the first tool")
    signatures = [event.signature for event in store.events()]
    assert [text.partition(":")[0] for text in signatures] == ["ed25519"], signatures
    assert verify_chain(store.events(), verifier=Ed25519Key(public=key.public)) == ()
    agent = Agent(caller(), library=store.load(), tools=[square])
    check(agent.run_sync(QUESTION), 144, "signed and called", "cryptography")


@tool
def forecast() -> str:
    """Weather in the coming days."""
    return "rain"


@tool
def instalment() -> float:
    """Monthly payment of a loan."""
    return 250.0


def with_vectors() -> None:
    """A tool is found that shares no word with what was asked, and called."""
    from agentkit.retrieval import CascadeRetriever, StaticEmbedder

    def choose(request: ModelRequest) -> str | list[ToolCall]:
        """Call the one tool that was offered."""
        if len(request.messages) > 1:
            return request.messages[-1].text
        offered = [one.name for one in request.tools if one.name in {"forecast", "instalment"}]
        return [ToolCall(call_id="c1", name=name, arguments={}) for name in offered]

    StaticEmbedder().embed(["sunshine"])  # says what to install, where words alone would do
    retriever = CascadeRetriever(shortlist=1, offer=1)
    agent = Agent(FunctionModel(choose), tools=[instalment, forecast], retriever=retriever)
    check(agent.run_sync("Will there be sunshine tomorrow?"), "rain", "forecast", "wordllama")


EXTRAS = sorted(name.removeprefix("with_") for name in dict(globals()) if name.startswith("with_"))

if __name__ == "__main__":
    globals()[sys.argv[1]]()
