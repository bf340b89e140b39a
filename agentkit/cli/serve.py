"""``agentkit serve``: an agent over HTTP, or a library over MCP or HTTP."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import click

from agentkit.agent.agent import Agent
from agentkit.agent.types import OnStoreFailure
from agentkit.cli.agents import AgentOptions, agent_options, make_agent
from agentkit.cli.options import (
    command,
    flag,
    json_option,
    number,
    option,
    seconds,
    several,
    typed_options,
)
from agentkit.cli.output import plural, print_json_line, say
from agentkit.cli.stores import followed, opened, opened_to_read
from agentkit.episodes.files import encode_episode
from agentkit.errors import UsageError
from agentkit.evolution.observers import CanaryJudge
from agentkit.evolution.serving import CanaryRouter, LedgerWatch
from agentkit.evolution.shadow import ShadowRunner
from agentkit.library import Store
from agentkit.library.directory.store import folder_of
from agentkit.library.episode_stores import with_episodes
from agentkit.library.episode_writer import EpisodeWriter, WriterSettings
from agentkit.library.opening import file_of
from agentkit.messages import ToolCall
from agentkit.server.app import CHAT_PATH, create_app
from agentkit.server.keys import Keys
from agentkit.server.library.app import create_library_app
from agentkit.server.limits import ServerLimits
from agentkit.server.running import is_loopback, serve as serve_app
from agentkit.tools.tool import Tool

EVOLVE_SECONDS = 30.0
"""How often ``--evolve`` looks for new episodes."""

_LEDGER_SECONDS = 5.0
_MOST_IN_MEMORY = 100  # episodes that wait for a store that is away: a killed server loses those
_MAIN = "from agentkit.cli.main import main; main()"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_DEFAULTS = ServerLimits()
_OF_BOTH = frozenset({"host", "port", "keys_from", "insecure", "drain", "store_url"})
_OF_MCP = _OF_BOTH | {"mcp", "targets", "refresh", "max_staleness", "pin", "frozen"}
_OF_DEFINITIONS = _OF_BOTH | {
    *("definitions", "max_concurrent", "rate", "timeout", "open_metrics", "hosts", "log")
}


@command()
@option("--host", default="127.0.0.1", help="Address to listen at.")
@option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    help="Port to listen at; 0 takes a free one.",
)
@option(
    "--keys-from",
    metavar="VARIABLE|FILE",
    help="Keys that clients must show, as name=key: several between commas in a variable, one a "
    "line in a file. A file that changes is read again.",
)
@flag("--insecure", help="Let other machines in without keys.")
@option("--name", default="agent", help="The model's name as clients see it.")
@number(
    "--max-concurrent",
    default=_DEFAULTS.max_concurrent,
    help="Most runs at once; more requests are answered with 503.",
)
@seconds(
    "--rate", metavar="N", help="Most requests a minute for each key; more are answered with 429."
)
@seconds("--timeout", default=_DEFAULTS.request_seconds, help="Longest run.")
@option(
    "--drain",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    default=_DEFAULTS.drain_seconds,
    help="How long runs may go on after SIGTERM.",
)
@flag(
    "--client-approval",
    help="Let clients approve calls of destructive tools; otherwise such calls wait.",
)
@flag("--open-metrics", help="Serve /metrics without a key.")
@several("--allow-host", "hosts", metavar="NAME", help="A host name to answer to")
@several("--allow-origin", "origins", metavar="URL", help="A web page that may call it")
@seconds(
    "--refresh",
    default=1.0,
    help="How often to look for a new version of the library. A store that announces commits is "
    "heard at once.",
)
@seconds(
    "--max-staleness",
    help="Refuse runs once the library could not be checked for so long. Without it the last one "
    "is served.",
)
@option(
    "--spill",
    type=click.Path(file_okay=False),
    metavar="FOLDER",
    help="Keep answering while the store takes no episodes: they wait in files of this folder.",
)
@option(
    "--on-store-failure",
    type=click.Choice([name.replace("_", "-") for name in get_args(OnStoreFailure)]),
    default="refuse-runs",
    callback=lambda _, __, value: value.replace("-", "_"),
    help="While no episode can be kept: begin no run, run only tools that are declared read-only, "
    "or go on.",
)
@flag(
    "--shadow",
    help="Ask the model again, unseen, with definitions that are in shadow; no tool is run, and at "
    "most 200,000 tokens an hour are spent.",
)
@seconds(
    "--evolve",
    is_flag=False,
    flag_value=EVOLVE_SECONDS,
    metavar="[SECONDS]",
    help="Run 'agentkit evolve --watch' beside the server.",
)
@flag("--log", help="Write a line on stderr for each request.")
@option(
    "--mcp",
    type=click.Choice(["stdio", "http"]),
    help="Serve the store's library as an MCP server instead, without a model.",
)
@flag(
    "--definitions",
    help="Serve the store's library to other processes, read-only, without a model.",
)
@agent_options
@json_option
def serve(  # noqa: PLR0917 - click passes every option
    host: str,
    port: int,
    keys_from: str | None,
    insecure: bool,
    name: str,
    max_concurrent: int,
    rate: float | None,
    timeout: float,
    drain: float,
    client_approval: bool,
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
    of an answer; GET /healthz, /readyz and /metrics are for monitoring. Every run is kept as an
    episode. SIGTERM and Ctrl-C let runs end first. Calls of destructive tools wait for an
    approval, unless --yes lets them run.

    Needs the extra serve: pip install "agentkit-evolve[serve]".

    Examples:
      agentkit serve --tools my_shop.py --instructions "You sell used cars."
      agentkit serve --host 0.0.0.0 --keys-from /etc/agentkit/keys --evolve
      AGENTKIT_KEYS=shop=sk-... agentkit serve --keys-from AGENTKIT_KEYS --rate 120
      agentkit serve --mcp stdio --tools my_shop.py
      agentkit serve --definitions --host 0.0.0.0 --keys-from /etc/agentkit/keys
    """
    _check_fitting(mcp, definitions=definitions)
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
        max_concurrent=max_concurrent,
        requests_per_minute=rate,
        request_seconds=timeout,
        drain_seconds=drain,
    )
    allowed = hosts or (("*",) if insecure else None)
    _write_log(each_request=log)
    with ExitStack() as held:
        if definitions:
            store = held.enter_context(opened_to_read(store_url))
            app = create_library_app(
                store, keys=keys, limits=limits, open_metrics=open_metrics, allowed_hosts=allowed
            )
            serve_app(
                app,
                host=host,
                port=port,
                insecure=insecure,
                on_start=lambda url: _greet_readers(store, keys, url),
                on_stop=lambda: _part(0, drain),
            )
            say("Stopped.")
            return
        chosen = AgentOptions(**options, on_store_failure=on_store_failure)
        store = held.enter_context(_serving_store(store_url, spill, refresh, max_staleness))
        held.enter_context(_evolving_beside(chosen, store_url, evolve))
        agent, judge = _routed(chosen, store, refresh=refresh, shadow=shadow, name=name)
        app = create_app(
            agent,
            keys=keys,
            limits=limits,
            client_approval=client_approval,
            open_metrics=open_metrics,
            allowed_hosts=allowed,
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


@contextmanager
def _serving_store(
    url: str, spill: str | None, refresh: float, max_staleness: float | None
) -> Iterator[Store]:
    """The store of a server: followed, with episodes in files of ``spill`` while it is away."""
    with opened(url) as store, ExitStack() as held:
        writer = None
        if spill is not None:
            settings = WriterSettings(max_count=_MOST_IN_MEMORY, wait_seconds=1, close_seconds=2)
            writer = held.enter_context(EpisodeWriter(store, spill=spill, settings=settings))
        source = held.enter_context(followed(store, refresh, max_staleness))
        yield source if writer is None else with_episodes(source, episodes=writer)


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


def _check_fitting(mcp: str | None, *, definitions: bool) -> None:
    """Refuse options that would make no difference: somebody may rely on one, such as a rate."""
    given = typed_options()
    if mcp is not None and definitions:
        raise UsageError("--mcp and --definitions are two servers; start one for each")
    if "apis" in given and mcp:
        raise UsageError("--mcp serves the store and --tools; import the API into the store")
    if mcp == "stdio" and "keys_from" in given:
        raise UsageError("--mcp stdio serves who starts it, without keys; leave --keys-from out")
    used = _OF_DEFINITIONS if definitions else _OF_MCP if mcp else given.keys()
    if unused := [word for name, word in given.items() if name not in used]:
        raise UsageError(
            f"--{'definitions' if definitions else 'mcp'} serves the library without an agent, so "
            f"leave {', '.join(unused)} out"
        )


@contextmanager
def _evolving_beside(
    options: AgentOptions, store_url: str, seconds: float | None
) -> Iterator[None]:
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
    library = agent.library
    if as_json:
        at = {"url": f"{url}/v1", "model": agent.name, "process": os.getpid()}
        print_json_line(at | {"library_version": library.version})
    key = "" if keys is None else ' -H "Authorization: Bearer $KEY"'
    body = f'{{"model": "{agent.name}", "messages": [{{"role": "user", "content": "Hello"}}]}}'
    tools = f"{plural(len(library), 'tool')} of library version {library.version}"
    say(f"{agent.name} ({agent.model.name}), {tools}, at {url}/v1")
    _say_who(keys, url, "use the agent and its tools")
    say(f"Try: curl {url}{CHAT_PATH}{key} -H 'Content-Type: application/json' -d '{body}'")
    say(f"Ctrl-C stops it. Process {os.getpid()}.")


def _greet_readers(store: Store, keys: Keys | None, url: str) -> None:
    """Say where a library is served, and how to read it."""
    library = store.load()
    say(f"Library version {library.version}, {plural(len(library), 'tool')}, at {url}/library/v1")
    _say_who(keys, url, "read the library")
    key = "" if keys is None else "AGENTKIT_LIBRARY_KEY=... "
    say(f"Try: {key}agentkit tools list --store {url}")
    say(f"Ctrl-C stops it. Process {os.getpid()}.")


def _say_who(keys: Keys | None, url: str, what: str) -> None:
    """Say who gets in."""
    if keys is not None:
        say(f"Keys: {', '.join(keys.names)}")
    elif not is_loopback(url.partition("//")[2].rpartition(":")[0].strip("[]")):
        say(f"Anybody who reaches this address can {what}.")


def _part(runs: int, seconds: float) -> None:
    """Say what the server waits for before it ends."""
    if sys.stderr.isatty():
        say("")  # ends the line in which the terminal shows ^C
    if runs and seconds:
        within = f"{plural(runs, 'run')} may end within {seconds:g} s"
        say(f"Stopping; {within}. A second Ctrl-C stops at once.")
