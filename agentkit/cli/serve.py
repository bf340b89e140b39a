"""``agentkit serve``."""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import click
from click.core import ParameterSource

from agentkit.agent.agent import Agent
from agentkit.agent.types import OnStoreFailure
from agentkit.cli.agents import AgentOptions, agent_options, make_agent
from agentkit.cli.options import json_option
from agentkit.cli.output import plural, say
from agentkit.cli.serve_library import Place, serve_library
from agentkit.cli.stores import followed, gathered, opened
from agentkit.episodes.jsonl import encode_episode
from agentkit.errors import UsageError
from agentkit.evolution.observers import CanaryJudge
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.evolution.shadow import ShadowRunner
from agentkit.library.directory.store import folder_of
from agentkit.library.episode_stores import with_episodes
from agentkit.library.opening import file_of
from agentkit.library.store import Store
from agentkit.messages import ToolCall
from agentkit.server.app import CHAT_PATH, create_app
from agentkit.server.keys import Keys
from agentkit.server.limits import ServerLimits
from agentkit.server.running import is_loopback, serve as serve_app
from agentkit.tools.tool import Tool

EVOLVE_SECONDS = 30.0
"""How often ``--evolve`` looks for new episodes."""

_LEDGER_SECONDS = 5.0
_MAIN = "from agentkit.cli.main import main; main()"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULTS = ServerLimits()
_OF_MCP = frozenset(
    {
        *("mcp", "host", "port", "keys_from", "insecure", "drain", "targets", "store_url"),
        *("refresh", "max_staleness", "pin", "frozen"),
    }
)
_OF_DEFINITIONS = frozenset(
    {
        *("definitions", "host", "port", "keys_from", "insecure", "drain", "store_url"),
        *("max_concurrent", "rate", "timeout", "open_metrics", "hosts", "log"),
    }
)


@click.command(
    epilog="""\b
Examples:
  agentkit serve --tools my_shop.py --instructions "You sell used cars."
  agentkit serve --host 0.0.0.0 --keys-from /etc/agentkit/keys --evolve
  AGENTKIT_KEYS=shop=sk-... agentkit serve --keys-from AGENTKIT_KEYS --rate 120
  agentkit serve --mcp stdio --tools my_shop.py
  agentkit serve --definitions --host 0.0.0.0 --keys-from /etc/agentkit/keys"""
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen at; 0 takes a free one.",
)
@click.option(
    "--keys-from",
    metavar="VARIABLE|FILE",
    help="Keys that clients must show, as name=key: several between commas in a variable, one a "
    "line in a file. A file that changes is read again.",
)
@click.option("--insecure", is_flag=True, help="Let other machines in without keys.")
@click.option(
    "--name", default="agent", show_default=True, help="The model's name as clients see it."
)
@click.option(
    "--max-concurrent",
    type=click.IntRange(min=1),
    default=_DEFAULTS.max_concurrent,
    show_default=True,
    help="Most runs at once; more requests are answered with 503.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Most requests a minute for each key; more are answered with 429.",
)
@click.option(
    "--max-body",
    type=click.IntRange(min=1),
    metavar="BYTES",
    default=_DEFAULTS.max_body_bytes,
    show_default=True,
    help="Largest body of a request.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    default=_DEFAULTS.request_seconds,
    show_default=True,
    help="Longest run.",
)
@click.option(
    "--drain",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=_DEFAULTS.drain_seconds,
    show_default=True,
    help="How long runs may go on after SIGTERM.",
)
@click.option(
    "--client-approval",
    is_flag=True,
    help="Let clients approve calls of destructive tools; otherwise such calls wait.",
)
@click.option(
    "--client-settings",
    is_flag=True,
    help="Let clients choose temperature, top_p, max_tokens and seed.",
)
@click.option("--open-metrics", is_flag=True, help="Serve /metrics without a key.")
@click.option(
    "--allow-host", "hosts", multiple=True, metavar="NAME", help="Host names to answer to."
)
@click.option(
    "--allow-origin", "origins", multiple=True, metavar="URL", help="Web pages that may call it."
)
@click.option(
    "--refresh",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    default=1.0,
    show_default=True,
    help="How often to look for a new version of the library. A store that tells of commits is "
    "heard at once.",
)
@click.option(
    "--max-staleness",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Refuse runs while nobody knows for so long whether the library is the newest. Without it "
    "the last one is served.",
)
@click.option(
    "--spill",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Answer on while the store takes no episodes: they wait in files of this folder.",
)
@click.option(
    "--on-store-failure",
    type=click.Choice([name.replace("_", "-") for name in get_args(OnStoreFailure)]),
    default="refuse-runs",
    show_default=True,
    callback=lambda _, __, value: value.replace("-", "_"),
    help="While no episode can be kept: begin no run, run only tools that are declared read-only, "
    "or go on.",
)
@click.option(
    "--shadow",
    is_flag=True,
    help="Ask the model again, unseen, with definitions that are in shadow; no tool is run, and at "
    "most 200,000 tokens an hour are spent.",
)
@click.option(
    "--evolve",
    type=click.FloatRange(min=0, min_open=True),
    is_flag=False,
    flag_value=EVOLVE_SECONDS,
    metavar="[SECONDS]",
    help="Run 'agentkit evolve --watch' beside the server.",
)
@click.option("--log", is_flag=True, help="Write a line on stderr for each request.")
@click.option(
    "--mcp",
    type=click.Choice(["stdio", "http"]),
    help="Serve the store's library as an MCP server instead, without a model.",
)
@click.option(
    "--definitions",
    is_flag=True,
    help="Serve the store's library to other processes, read-only, without a model.",
)
@agent_options
@json_option
@click.pass_context
def serve(  # noqa: PLR0917 - click passes every option
    context: click.Context,
    /,
    host: str,
    port: int,
    keys_from: str | None,
    insecure: bool,
    name: str,
    max_concurrent: int,
    rate: float | None,
    max_body: int,
    timeout: float,
    drain: float,
    client_approval: bool,
    client_settings: bool,
    open_metrics: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    refresh: float,
    max_staleness: float | None,
    spill: str | None,
    on_store_failure: OnStoreFailure,
    shadow: bool,
    evolve: float | None,
    log: bool,
    mcp: str | None,
    definitions: bool,
    store_url: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Serve an agent over HTTP, behind the API that OpenAI's clients speak.

    POST /v1/chat/completions answers, whole or streamed; POST /v1/feedback takes what users say
    of an answer; GET /healthz, /readyz and /metrics are for the machines that watch it. Every run
    is kept as an episode. SIGTERM and Ctrl-C let runs end first. Calls of destructive tools wait
    for an approval, unless --yes lets them run.

    Needs the extra serve: pip install "agentkit-evolve[serve]".
    """
    _check_fitting(context, mcp, definitions=definitions)
    keys = None if keys_from is None else _keys(keys_from)
    if mcp is not None:
        import_module("agentkit.cli.serve_mcp").serve_mcp(  # stands on packages of another extra
            store=store_url,
            tools=tuple(options["targets"]),
            transport=mcp,
            host=host,
            port=port,
            keys=keys,
            insecure=insecure,
            drain=drain,
            refresh=refresh,
            max_staleness=max_staleness,
            pin=options["pin"],
            frozen=options["frozen"],
        )
        return
    limits = ServerLimits(
        max_body_bytes=max_body,
        max_concurrent=max_concurrent,
        requests_per_minute=rate,
        request_seconds=timeout,
        drain_seconds=drain,
    )
    _write_log(each_request=log)
    if definitions:
        place = Place(host=host, port=port, insecure=insecure, hosts=hosts)
        serve_library(store_url, place, keys=keys, limits=limits, open_metrics=open_metrics)
        return
    chosen = AgentOptions(**options, on_store_failure=on_store_failure)
    with (
        opened(store_url) as store,
        gathered(store, spill) as episodes,
        followed(store, refresh, max_staleness) as source,
        evolved(chosen, store_url, evolve),
    ):
        kept = source if spill is None else with_episodes(source, episodes=episodes)
        agent, judge = _routed(chosen, kept, refresh=refresh, shadow=shadow, name=name)
        app = create_app(
            agent,
            keys=keys,
            limits=limits,
            client_approval=client_approval,
            client_settings=client_settings,
            open_metrics=open_metrics,
            allowed_hosts=hosts or (("*",) if insecure else None),
            cors_origins=origins,
        )
        serve_app(
            app,
            host=host,
            port=port,
            insecure=insecure,
            on_start=lambda url: _greet(agent, keys, url, as_json=as_json),
            on_stop=lambda: _part(len(app.state.runs), drain),
        )
        _finish(agent, judge, store_url)


def _finish(agent: Agent, judge: CanaryJudge, store_url: str) -> None:
    """Say whether every run is kept. What the store did not take goes to a file beside it."""
    judge.drain_sync()
    waiting, state = agent.queue.waiting, agent.queue.state
    if state.refused:
        say(f"The store refused the episodes of {plural(state.refused, 'run')}; the log says why")
    if not waiting:
        every = "every other run" if state.refused else "every run that began"
        say(f"Stopped; {every} is kept as an episode.")
        return
    count = plural(len(waiting), "run")
    place = file_of(store_url) or folder_of(store_url) or Path("episodes")
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
        say(f"{count} are in {path}; once the store is back: agentkit import {path}")


def _routed(
    chosen: AgentOptions, store: Store, *, refresh: float, shadow: bool, name: str
) -> tuple[Agent, CanaryJudge]:
    """The agent, some of whose sessions are answered with canaries, and what judges these."""
    watch = LedgerWatch(store, refresh_seconds=min(refresh, _LEDGER_SECONDS))
    judge = CanaryJudge(store)
    is_held = chosen.pin is not None or chosen.library_place is not None
    agent = make_agent(
        chosen,
        store,
        router=None if is_held else CanaryRouter(watch),
        observers=[judge, ShadowRunner(store, watch=watch)] if shadow else [judge],
        approve=_approved if chosen.yes else None,
        name=name,
    )
    return agent, judge


def _check_fitting(context: click.Context, mcp: str | None, *, definitions: bool) -> None:
    """Refuse options that would make no difference: somebody may rely on one, such as a rate."""
    given = {
        option.name: option.opts[-1]
        for option in context.command.params
        if option.name and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE
    }
    if mcp is not None and definitions:
        raise UsageError("--mcp and --definitions are two servers; start one for each")
    if "apis" in given and mcp:
        raise UsageError("--mcp serves the store and --tools; import the API into the store")
    if mcp == "stdio" and "keys_from" in given:
        raise UsageError("--mcp stdio serves who starts it, without keys; leave --keys-from out")
    used = _OF_DEFINITIONS if definitions else _OF_MCP if mcp else frozenset(given)
    unused = [word for name, word in given.items() if name not in used]
    if unused:
        raise UsageError(
            f"--{'definitions' if definitions else 'mcp'} serves the library without an agent, so "
            f"leave {', '.join(unused)} out"
        )


@contextmanager
def evolved(options: AgentOptions, store_url: str, seconds: float | None) -> Iterator[None]:
    """Rounds of evolution beside the server, in a process of their own; none without seconds.

    A round computes for seconds, and a thread of the server would hold up answers meanwhile.

    Raises:
        UsageError: No other process can reach the store.
    """
    if seconds is None:
        yield
        return
    if store_url.startswith("memory:"):
        raise UsageError("--evolve needs a store that another process reaches; give --store")
    words = ["evolve", "--watch", str(seconds), "--while-process", str(os.getpid())]
    words += ["--store", store_url, *(part for one in options.targets for part in ("--tools", one))]
    process = subprocess.Popen([sys.executable, "-c", _MAIN, *words])  # noqa: S603 - our own words
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def _approved(call: ToolCall, tool: Tool) -> bool:  # noqa: ARG001 - an Approver gets both
    return True


def _keys(place: str) -> Keys:
    """The keys in a file of that name, or else in a variable."""
    path = Path(place).expanduser()
    if path.is_file() or not _VARIABLE.fullmatch(place):
        return Keys.from_file(path)
    return Keys.from_environment(place)


def _write_log(*, each_request: bool) -> None:
    """What goes wrong is written in any case; what strangers send wrongly, with each request."""
    of_protocol = logging.getLogger("uvicorn.error")
    if not each_request:
        of_protocol.setLevel(logging.ERROR)
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    of_requests = logging.getLogger(create_app.__module__.rpartition(".")[0])
    of_requests.addHandler(handler)
    of_requests.setLevel(logging.INFO)
    of_protocol.addHandler(handler)
    of_protocol.setLevel(logging.WARNING)


def _greet(agent: Agent, keys: Keys | None, url: str, *, as_json: bool) -> None:
    """Say where the server listens, and how to try it; for programs in one line of JSON."""
    if as_json:
        at = {"url": f"{url}/v1", "model": agent.name, "process": os.getpid()}
        click.echo(json.dumps(at | {"library_version": agent.library.version}))
    key = "" if keys is None else ' -H "Authorization: Bearer $KEY"'
    body = f'{{"model": "{agent.name}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    library = agent.library
    tools = f"{plural(len(library), 'tool')} of library version {library.version}"
    say(f"{agent.name} ({agent.model.name}), {tools}, at {url}/v1")
    if keys is not None:
        say(f"Keys: {', '.join(keys.names)}")
    elif not is_loopback(url.partition("//")[2].rpartition(":")[0].strip("[]")):
        say("Anybody who reaches this address can use the agent and its tools.")
    say(f"Try: curl {url}{CHAT_PATH}{key} -H 'Content-Type: application/json' -d '{body}'")
    say(f"Ctrl-C stops it. Process {os.getpid()}.")


def _part(runs: int, seconds: float) -> None:
    """Say what the server waits for before it ends."""
    if sys.stderr.isatty():
        say("")  # ends the line in which the terminal shows ^C
    if runs and seconds:
        within = f"{plural(runs, 'run')} may end within {seconds:g} s"
        say(f"Stopping; {within}. A second Ctrl-C stops at once.")
