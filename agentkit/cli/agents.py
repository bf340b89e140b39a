"""What ``run`` and ``chat`` share: the agent's options, and showing what happens."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

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
    RunFinished,
    RunResult,
    StorePolicy,
    ToolCallFinished,
    ToolCallStarted,
    ToolPolicy,
    ToolsRetrieved,
)
from agentkit.cli.episode_view import call_line, result_line
from agentkit.cli.loading import load_tools
from agentkit.cli.options import (
    Decorated,
    binding_options,
    flag,
    model_option,
    number,
    option,
    several,
    store_option,
    tools_option,
)
from agentkit.cli.output import is_interactive, plural, say, say_some
from agentkit.cli.project import current_project
from agentkit.cli.stores import read_source
from agentkit.episodes import RefineMode
from agentkit.errors import LibraryWarning, UsageError
from agentkit.interop import openapi  # a door: it loads when there is a description
from agentkit.library import Store
from agentkit.library.code_binding import CodeBinding
from agentkit.messages import ToolCall
from agentkit.models.base import TextDelta, ToolChoice
from agentkit.tools.invocation import run_in_daemon_thread
from agentkit.tools.tool import Tool
from agentkit.tracing.tracing import Tracing

refine_option = option(
    "--refine",
    type=click.Choice(get_args(RefineMode)),
    default="none",
    help="Let the model look over its calls before they run.",
)


_OPTIONS = (
    several(
        "--openapi",
        "apis",
        metavar="FILE",
        help="An OpenAPI 3 description whose operations are offered, and called over HTTP",
    ),
    option(
        "--api-server", metavar="URL", help="The base URL of these calls, instead of the file's."
    ),
    several(
        "--api-auth",
        metavar="SCHEME=VARIABLE",
        help="The environment variable that holds the secret of a security scheme of the file",
    ),
    model_option,
    tools_option,
    flag(
        "--catalogue",
        help="Also offer tools of the library that have no code here: a call to one is checked, "
        "printed and left to you.",
    ),
    binding_options,
    option("--instructions", default="", metavar="TEXT", help="The system message."),
    refine_option,
    option(
        "--tool-choice",
        type=click.Choice(get_args(ToolChoice)),
        default="auto",
        help="Whether the model may, must not or must call a tool in its first turn.",
    ),
    number("--max-steps", default=10, help="Most model turns in answer to one question."),
    flag("--yes", help="Run destructive tools without asking."),
    flag(
        "--trace",
        help="Make OpenTelemetry spans of runs (start the command with opentelemetry-instrument, "
        "which says where they go).",
    ),
    store_option,
)


def agent_options(command: Decorated) -> Decorated:
    """Give a command the options that describe an agent."""
    for one in reversed(_OPTIONS):
        command = one(command)
    return command


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
    trace: bool = False
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

    Raises:
        UsageError: Options do not go together.
    """
    tools = (*load_tools(options.targets), *_api_tools(options))
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
            tracing=Tracing() if options.trace else None,
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


def _api_tools(options: AgentOptions) -> tuple[Tool, ...]:
    """The tools of API descriptions; what could not be mapped is told on stderr.

    With several files each takes the secrets of the security schemes that it knows.

    Raises:
        DefinitionError: A file is no OpenAPI 3 description.
        UsageError: A file can not be read, or an option does not fit.
    """
    variables = _variables(options.api_auth)
    tools: list[Tool] = []
    known: set[str] = set()
    for file in options.apis:
        opened = openapi.read_document(Path(file))
        schemes = _schemes(opened.root)
        known |= schemes.keys()
        found = openapi.openapi_tools(
            opened.root,
            reference=opened.reference,
            server=options.api_server,
            auth={name: variables[name] for name in variables if name in schemes},
        )
        say_some(
            (f"{one.label} is not mapped: {one.reason}" for one in found.report.unusable),
            rest=" (agentkit tools import --json names all)",
        )
        tools += found.tools
    if unknown := sorted(variables.keys() - known):
        raise UsageError(
            f"--api-auth: no security scheme is named {unknown[0]!r}; there are: "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    return tuple(tools)


def _schemes(root: Mapping[str, Any]) -> Mapping[str, Any]:
    components = root.get("components")
    schemes = components.get("securitySchemes") if isinstance(components, Mapping) else None
    return schemes if isinstance(schemes, Mapping) else {}


def _variables(auth: Sequence[str]) -> dict[str, openapi.Env]:
    found = {}
    for pair in auth:
        name, equals, variable = pair.partition("=")
        if not equals or not name:
            raise UsageError("--api-auth is written SCHEME=VARIABLE, such as api_key=PETSTORE_KEY")
        found[name.strip()] = openapi.Env(variable.strip())
    return found


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
        if not is_interactive():
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
            match event:
                case RunFinished(result=result):
                    return result
                case ToolsRetrieved(trace=found):
                    say(f"  offered {', '.join(found.offered) or 'no tools'}")
                case CallsRefined(trace=trace):
                    agreed = "agreed" if trace.converged else "did not agree"
                    rounds = plural(trace.iterations, "round")
                    say(f"  refined in {rounds}: the last two answers {agreed}")
                case ToolCallStarted(call=call):
                    say(f"  calls {call_line(call)}")
                case ToolCallFinished(result=answer):
                    say(f"  gives {result_line(answer)}")
    finally:
        if writing:  # what went wrong is told on a line of its own
            click.echo()
    raise AssertionError("unreachable: a stream ends with RunFinished or raises")


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
