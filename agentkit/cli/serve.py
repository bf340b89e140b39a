"""``agentkit serve``: an agent over HTTP, or a library over MCP."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, cast

import click

from agentkit.agent.agent import Agent
from agentkit.agent.types import OnStoreFailure
from agentkit.cli.loading import load_deps, load_tools
from agentkit.cli.options import AsJson, StoreUrl, command, option, typed_options
from agentkit.cli.output import one_line, print_json_line, say
from agentkit.cli.run import AgentOptions, make_agent, report_binding
from agentkit.cli.stores import opened
from agentkit.episodes.files import encode_episode
from agentkit.errors import LibraryWarning, UsageError
from agentkit.evolution.observers import CanaryJudge, ShadowRunner
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.library import Replica
from agentkit.library.opening import place_of
from agentkit.messages import ToolCall
from agentkit.server.app import create_app
from agentkit.server.chat import CHAT_PATH
from agentkit.server.keys import Keys
from agentkit.server.limits import ServerLimits
from agentkit.server.running import is_loopback, serve as serve_app
from agentkit.tools.error_messages import plural
from agentkit.tools.tool import Tool

_EVOLVE_SECONDS = 30.0
_LEDGER_SECONDS = 5.0
_MAIN = "from agentkit.cli.main import main; main()"
_DEFAULTS = ServerLimits()
_OF_MCP = frozenset(
    {"mcp", "host", "port", "keys_from", "insecure", "drain", "store_url", "targets"}
    | {"refresh", "pin", "deps"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """The options of the server, whatever it serves.

    Attributes:
        host: Address to listen on.
        port: Port to listen on; 0 picks a free one.
        keys_from (VARIABLE|FILE): API keys as name=key, comma-separated in a variable, one a line
            in a file. A changed file is read again.
        insecure: Let other machines in without keys.
        drain: How long runs may continue after SIGTERM.
        refresh: How often to look for a new library version.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, option(type=click.IntRange(0, 65535))] = 8000
    keys_from: str | None = None
    insecure: bool = False
    drain: Annotated[float, option(type=click.FloatRange(min=0))] = _DEFAULTS.drain_seconds
    refresh: float = 1.0

    @property
    def keys(self) -> Keys | None:
        """The keys in a file of that name, or else in a variable; None where none is named."""
        return None if self.keys_from is None else Keys.named(self.keys_from)


@command()
def serve(
    *,
    server: ServerOptions,
    name: str = "agent",
    max_concurrent: int = _DEFAULTS.max_concurrent,
    rate: float | None = None,
    timeout: float = _DEFAULTS.request_seconds,
    approver: tuple[str, ...] = (),
    on_store_failure: Literal["refuse-runs", "refuse-writes", "continue"] = "refuse-runs",
    shadow: bool = False,
    evolve: Annotated[float | None, option(is_flag=False, flag_value=_EVOLVE_SECONDS)] = None,
    log: bool = False,
    mcp: Literal["stdio", "http"] | None = None,
    options: AgentOptions,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Serve an agent over HTTP with an OpenAI-compatible API.

    POST /v1/chat/completions answers, whole or streamed; POST /v1/feedback takes user feedback;
    GET /healthz, /readyz and /metrics are for monitoring. Every run is recorded as an episode.
    SIGTERM and Ctrl-C let runs finish first. Calls of destructive tools wait for approval unless
    --yes is given.

    Needs the extra serve: pip install "agentkit-evolve[serve]".

    Args:
        name: The model's name as clients see it.
        max_concurrent: Most concurrent runs; further requests get 503.
        rate (N): Most requests a minute for each key; further requests get 429.
        timeout: Longest run.
        approver (NAME): A key that lists and decides the calls that wait, at /v1/approvals.
        on_store_failure: While no episode can be kept: start no run, run only read-only tools, or
            continue.
        shadow: Also ask the model, unseen, with definitions in shadow; no tool is run, and at most
            200,000 tokens an hour are spent.
        evolve ([SECONDS]): Run 'agentkit evolve --watch' beside the server.
        log: Log each request on stderr.
        mcp: Serve the library as an MCP server instead, without a model.

    Examples:
      agentkit serve --tools my_shop.py --instructions "You sell used cars."
      agentkit serve --host 0.0.0.0 --keys-from /etc/agentkit/keys --evolve
      AGENTKIT_KEYS=shop=sk-... agentkit serve --keys-from AGENTKIT_KEYS --rate 120
      agentkit serve --mcp stdio --tools my_shop.py
    """
    if mcp is not None:
        _check_fitting(mcp)
        _serve_mcp(store_url, server, transport=mcp, options=options)
        return
    keys = server.keys
    limits = ServerLimits(
        max_concurrent=max_concurrent,
        requests_per_minute=rate,
        request_seconds=timeout,
        drain_seconds=server.drain,
    )
    _write_log(each_request=log)
    with ExitStack() as held:
        source = held.enter_context(opened(store_url))
        store = held.enter_context(Replica(source, refresh_seconds=server.refresh))
        held.enter_context(_evolving_beside(options.targets, store_url, evolve))
        # Some sessions are answered with canaries, and what judges these sees every run.
        watch = LedgerWatch(store, refresh_seconds=min(server.refresh, _LEDGER_SECONDS))
        judge = CanaryJudge(store)
        agent = make_agent(
            options,
            store,
            on_store_failure=cast("OnStoreFailure", on_store_failure.replace("-", "_")),
            router=None if options.pin is not None else CanaryRouter(watch),
            observers=[judge, ShadowRunner(store, watch=watch)] if shadow else [judge],
            approve=_approved if options.yes else None,
            name=name,
        )
        app = create_app(
            agent,
            keys=keys,
            limits=limits,
            approvers=approver,
            deps_factory=load_deps(options.deps)[0],
            allowed_hosts=("*",) if server.insecure else None,
        )
        serve_app(
            app,
            host=server.host,
            port=server.port,
            insecure=server.insecure,
            on_start=lambda url: _greet(agent, keys, url, as_json=as_json),
            on_stop=lambda: _part(len(app.state.runs), server.drain),
        )
        judge.drain_sync()
        _finish(agent, store_url)


def _check_fitting(transport: str) -> None:
    """Refuse options that would make no difference: somebody may rely on one, such as a rate."""
    options = typed_options()
    if transport == "stdio" and "keys_from" in options:
        raise UsageError("--mcp stdio serves who starts it, without keys; leave --keys-from out")
    if unused := [word for name, word in options.items() if name not in _OF_MCP]:
        words = ", ".join(unused)
        raise UsageError(f"--mcp serves the library without an agent, so leave {words} out")


def _serve_mcp(
    store_url: str, server: ServerOptions, *, transport: str, options: AgentOptions
) -> None:
    """Serve the library of a store until the client hangs up (stdio) or Ctrl-C (http).

    Every call is kept in the store as an episode. Tools that need approval are listed only to
    clients that can ask their person. Messages go to stderr: with stdio, stdout is the wire.

    Args:
        store_url: Where the library is.
        server: Where to listen, and for whom.
        transport: ``stdio`` for a client that starts this process, ``http`` for streamable HTTP
            at ``http://host:port/mcp``.
        options: The agent options; the tools and the version served are used.
    """
    from agentkit.interop.mcp.library_server import LibraryServer  # of another extra

    keys, code = server.keys, load_tools(options.targets)
    with opened(store_url) as store, Replica(store, refresh_seconds=server.refresh) as source:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LibraryWarning)  # tell_binding says it
            served = LibraryServer(
                source,
                tools=code,
                name="agentkit",
                pin=options.pin,
                deps_factory=load_deps(options.deps)[0],
            )
        report_binding(served.binding)
        exposure = served.exposure
        needing = len(exposure.runnable) - len(exposure.open)
        waits = f"; {needing} more for clients that can ask for approval" if needing else ""
        version = exposure.library.version
        say(f"Serving {plural(len(exposure.open), 'tool')} of library version {version}{waits}.")
        for name, reason in served.hidden.items():
            say(f"  not served: {one_line(name)}: {one_line(reason)}")
        if transport == "stdio":
            asyncio.run(served.serve_stdio())
            return
        app = served.http_app(host=server.host, holder=None if keys is None else keys.holder)
        app.state.has_keys = keys is not None
        app.state.limits = ServerLimits(drain_seconds=server.drain)
        app.state.runs = served  # what is drained before the end
        serve_app(
            app,
            host=server.host,
            port=server.port,
            insecure=server.insecure,
            on_start=lambda url: say(f"MCP at {url}/mcp. Ctrl-C stops it. Process {os.getpid()}."),
        )


@contextmanager
def _evolving_beside(
    targets: tuple[str, ...], store_url: str, seconds: float | None
) -> Iterator[None]:
    """Rounds of evolution beside the server, in a process of their own; none without seconds.

    A round computes for seconds, and a thread of the server would hold up answers meanwhile.
    """
    if seconds is None:
        yield
        return
    if store_url.startswith("memory:"):
        raise UsageError("--evolve needs a store that another process reaches; give --store")
    words = ["evolve", "--watch", str(seconds), "--while-process", str(os.getpid())]
    words += ["--store", store_url, *(part for one in targets for part in ("--tools", one))]
    process = subprocess.Popen([sys.executable, "-c", _MAIN, *words])  # noqa: S603 - our own words
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _approved(call: ToolCall, tool: Tool) -> bool:  # noqa: ARG001 - an Approver gets both
    return True


def _finish(agent: Agent, store_url: str) -> None:
    """Say whether every run is kept. What the store did not take goes to a file beside it."""
    waiting, state = agent.queue.waiting, agent.queue.state
    if state.refused:
        say(f"The store refused the episodes of {plural(state.refused, 'run')}; the log says why")
    if not waiting:
        every = "every other run" if state.refused else "every run that began"
        say(f"Stopped; {every} is kept as an episode.")
        return
    count = plural(len(waiting), "run")
    place = place_of(store_url) or Path("episodes")
    path = place.with_name(f"{place.stem}-unkept-{time.time_ns():x}.jsonl")
    say(f"Stopped; {count} of {state.kept + len(waiting)} are not in the store: {state.last_error}")
    try:
        with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
            file.writelines(f"{encode_episode(episode)}\n".encode() for episode in waiting)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        say(f"{count} are lost: {path} could not be written either ({error})")
    else:
        say(f"{count} are in {path}; once the store is back: agentkit import --own {path}")


def _write_log(*, each_request: bool) -> None:
    """Errors are always logged; bad requests of strangers only with request logging."""
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING if each_request else logging.ERROR)
    if each_request:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
        logging.getLogger("agentkit.server").setLevel(logging.INFO)


def _greet(agent: Agent, keys: Keys | None, url: str, *, as_json: bool) -> None:
    """Say where the server listens, and how to try it; for programs in one line of JSON."""
    library = agent.library
    if as_json:
        at = {"url": f"{url}/v1", "model": agent.name, "process": os.getpid()}
        print_json_line(at | {"library_version": library.version})
    key = "" if keys is None else ' -H "Authorization: Bearer $KEY"'
    body = f'{{"model": "{agent.name}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    tools = f"{plural(len(library), 'tool')} of library version {library.version}"
    say(f"{agent.name} ({agent.model.name}), {tools}, at {url}/v1")
    if keys is not None:
        say(f"Keys: {', '.join(keys.names)}")
    elif not is_loopback(url.partition("//")[2].rpartition(":")[0].strip("[]")):
        say("Anybody who reaches this address can use the agent and its tools.")
    say(f"Try: curl {url}{CHAT_PATH}{key} -H 'Content-Type: application/json' -d '{body}'")
    say(f"Ctrl-C stops it. Process {os.getpid()}.")


def _part(runs: int, seconds: float) -> None:
    """Say what the server waits for before it ends, below the ^C that a terminal shows."""
    if runs and seconds:
        within = f"{plural(runs, 'run')} may end within {seconds:g} s"
        say(f"\nStopping; {within}. A second Ctrl-C stops at once.")
