"""What ``run`` and ``chat`` share: the agent's options, and showing what happens."""

from __future__ import annotations

import asyncio
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import click

from agentkit.agent.agent import Agent
from agentkit.agent.session import Router
from agentkit.agent.types import (
    Approval,
    Approver,
    CallsRefined,
    Limits,
    Observer,
    OnStoreFailure,
    RunEvent,
    RunFinished,
    RunResult,
    StorePolicy,
    ToolCallFinished,
    ToolCallStarted,
    ToolPolicy,
    ToolsRetrieved,
)
from agentkit.cli.apis import api_options, load_apis
from agentkit.cli.episode_view import call_line, result_line
from agentkit.cli.loading import load_tools
from agentkit.cli.options import binding_options, model_option, store_option, tools_option
from agentkit.cli.output import plural, say
from agentkit.cli.project import current_project
from agentkit.cli.sources import read_source
from agentkit.episodes import RefineMode
from agentkit.errors import LibraryWarning, UsageError
from agentkit.library import Store
from agentkit.library.code_binding import CodeBinding
from agentkit.messages import ToolCall
from agentkit.models.base import TextDelta, ToolChoice
from agentkit.tools.invocation import run_in_daemon_thread
from agentkit.tools.tool import Tool
from agentkit.tracing.tracing import LOGGER, Tracing

TraceKind = Literal["log", "otel"]

trace_option = click.option(
    "--trace",
    type=click.Choice(["log", "otel"]),
    help="Tell what runs do: log writes a line on stderr for each step, otel makes OpenTelemetry "
    "spans (start the command with opentelemetry-instrument, which says where they go).",
)


def tracer_of(kind: TraceKind | None) -> Tracing | None:
    """What tells of runs in that way; None for nobody.

    Raises:
        MissingExtraError: ``opentelemetry-api`` is not installed.
    """
    if kind is None:
        return None
    if kind == "log":
        return _on_stderr()
    tracing = Tracing()
    if not _has_sdk():
        say(
            "Nobody takes the spans: no OpenTelemetry SDK is set up in this process. Install "
            "opentelemetry-distro and an exporter, and start with opentelemetry-instrument."
        )
    return tracing


def _has_sdk() -> bool:
    """Whether somebody set up where spans go; the API alone drops them."""
    from opentelemetry.trace import ProxyTracerProvider, get_tracer_provider

    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def _on_stderr() -> Tracing:
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger(LOGGER)
    logger.handlers = [handler]
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return Tracing(log=logger)


Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    model_option,
    tools_option,
    click.option(
        "--catalogue",
        is_flag=True,
        help="Also offer tools of the library that have no code here: a call to one is checked, "
        "printed and left to you.",
    ),
    binding_options,
    click.option("--instructions", default="", metavar="TEXT", help="The system message."),
    click.option(
        "--refine",
        type=click.Choice(get_args(RefineMode)),
        default="none",
        show_default=True,
        help="Let the model look over its calls before they run.",
    ),
    click.option(
        "--tool-choice",
        type=click.Choice(get_args(ToolChoice)),
        default="auto",
        show_default=True,
        help="Whether the model may, must not or must call a tool in its first turn.",
    ),
    click.option(
        "--max-steps",
        type=click.IntRange(min=1),
        metavar="N",
        default=10,
        show_default=True,
        help="Most model turns in answer to one question.",
    ),
    click.option("--yes", is_flag=True, help="Run destructive tools without asking."),
    trace_option,
    store_option,
)


def agent_options(command: Command) -> Command:
    """Give a command the options that describe an agent."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return api_options(command)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentOptions:
    """The values of ``agent_options``."""

    model: str
    targets: Sequence[str]
    catalogue: bool
    instructions: str
    refine: RefineMode
    tool_choice: ToolChoice
    max_steps: int
    yes: bool
    trace: TraceKind | None = None
    apis: Sequence[str] = ()
    api_server: str | None = None
    api_auth: Sequence[str] = ()
    on_store_failure: OnStoreFailure = "refuse_runs"
    library_place: str | None = None
    pin: int | None = None
    frozen: bool = False


def make_agent(
    options: AgentOptions,
    store: Store,
    *,
    approve: Approver | None = None,
    router: Router | None = None,
    observers: Iterable[Observer] = (),
    name: str = "agent",
) -> Agent:
    """The agent that the options describe, keeping its episodes in ``store``.

    Tools in code are bound to the library's definitions; what a person should know of that is told.

    Args:
        options: What the command line says.
        store: The library, and where episodes are kept.
        approve: Decides about destructive calls.
        router: Chooses the library version of each run.
        observers: Are told of every run.
        name: What the agent is called in records.
    """
    tools = load_all(options)
    library = None
    if options.library_place is not None:
        if options.pin is not None or options.frozen:
            raise UsageError("--pin and --frozen speak of the library of --store, not of --library")
        with read_source(options.library_place) as source:
            library = source.load()
    with binding_told():
        agent = Agent(
            options.model,
            tools=tools,
            library=library,
            store=store,
            store_policy=StorePolicy(
                pin=options.pin, frozen=options.frozen, on_failure=options.on_store_failure
            ),
            tool_policy=ToolPolicy(
                unbound="offer" if options.catalogue else "hide",
                choice=options.tool_choice,
                approve=approve,
            ),
            instructions=options.instructions,
            retriever=current_project().retriever or "auto",
            refine=options.refine,
            limits=Limits(max_steps=options.max_steps),
            router=router,
            observers=observers,
            tracing=tracer_of(options.trace),
            name=name,
        )
    tell_binding(agent.binding)
    hidden = len(agent.binding.without_code)
    if hidden and not options.catalogue:
        say(
            f"not offered: {plural(hidden, 'tool')} of the library without code here; --catalogue "
            "offers all, --tools gives code"
        )
    return agent


@contextmanager
def binding_told() -> Iterator[None]:
    """What ``tell_binding`` says needs no warning by Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LibraryWarning)
        yield


def tell_binding(binding: CodeBinding) -> None:
    """Say what binding code to the library came to, a line each; nothing when nothing changed."""
    if binding.registered:
        count = plural(len(binding.registered), "tool")
        say(f"registered {count} in library version {binding.library_version}")
    for note in binding.notes:
        say(note)


def load_all(options: AgentOptions) -> tuple[Tool, ...]:
    """The tools in code that the options name: of Python, and of API descriptions."""
    apis = load_apis(options.apis, server=options.api_server, auth=options.api_auth)
    return (*load_tools(options.targets), *apis)


class AskAtTerminal:
    """Asks the person at the terminal whether a call may run, one call at a time.

    Args:
        yes: Do not ask, approve.
    """

    def __init__(self, *, yes: bool) -> None:
        self._yes = yes
        self._turn = asyncio.Lock()

    async def __call__(self, call: ToolCall, tool: Tool) -> Approval:
        """The decision; without a terminal to ask on, no."""
        if self._yes:
            return Approval(approved=True)
        if not _is_interactive():
            return Approval(approved=False, reason="Nobody is there to approve it.")
        async with self._turn:
            approved = await run_in_daemon_thread(lambda: _confirm(f"Run {call_line(call)}?"))
        return Approval(approved=approved, reason="" if approved else "The user said no.")


def _confirm(question: str) -> bool:
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort:  # Ctrl-D
        return False


async def show(agent: Agent, request: str, *, session_id: str | None = None) -> RunResult:
    """Run a request; text goes to stdout as it arrives, everything else to stderr.

    Raises:
        RunError: The model failed; the episode is kept.
    """
    writing = False
    try:
        async for event in agent.stream(request, session_id=session_id):
            if isinstance(event, TextDelta):
                click.echo(event.text, nl=False)
                writing = writing or bool(event.text)
                continue
            if writing:
                click.echo()
                writing = False
            if isinstance(event, RunFinished):
                return event.result
            _tell(event)
    finally:
        if writing:  # what went wrong is told on a line of its own
            click.echo()
    raise AssertionError("unreachable: a stream ends with RunFinished or raises")


def _tell(event: RunEvent) -> None:
    match event:
        case ToolsRetrieved(trace=found):
            say(f"  offered {', '.join(found.offered) or 'no tools'}")
        case CallsRefined(trace=trace):
            agreed = "agreed" if trace.converged else "did not agree"
            say(f"  refined in {plural(trace.iterations, 'round')}: the last two answers {agreed}")
        case ToolCallStarted(call=call):
            say(f"  calls {call_line(call)}")
        case ToolCallFinished(result=result):
            say(f"  gives {result_line(result)}")
        case _:
            pass


def outline(result: RunResult) -> str:
    """One line on how a run went."""
    usage = result.usage
    return (
        f"[{result.stop_reason.replace('_', ' ')}, {plural(len(result.episode.turns), 'turn')}, "
        f"{usage.total_tokens:,} tokens, {result.episode.seconds:.1f} s, "
        f"library version {result.episode.library_version}, "
        f"episode {result.episode.episode_id}]"
    )


def result_json(result: RunResult) -> dict[str, Any]:
    """A run as ``--json`` prints it."""
    return {
        "output": result.episode.output,
        "stop_reason": result.stop_reason,
        "calls": [call.to_json() for call in result.calls],
        "deferred": [call.to_json() for call in result.deferred],
        "usage": result.usage.to_json(),
        "library_version": result.episode.library_version,
        "episode_id": result.episode.episode_id,
    }


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
