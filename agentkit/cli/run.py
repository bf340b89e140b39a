"""``agentkit run``: ask an agent, once or turn by turn."""

from __future__ import annotations

import asyncio
import importlib
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from agentkit.agent.agent import Agent
from agentkit.agent.session import Router, new_episode_id
from agentkit.agent.types import (
    Approval,
    Approver,
    CallsRefined,
    Instructions,
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
    ToolProgress,
    ToolsRetrieved,
)
from agentkit.cli.episodes import call_line, result_line
from agentkit.cli.loading import load_deps, load_tools, read_content
from agentkit.cli.options import (
    AsJson,
    LibraryPlace,
    ModelName,
    Pin,
    Refine,
    StoreUrl,
    Targets,
    command,
)
from agentkit.cli.output import is_interactive, one_line, print_json, say
from agentkit.cli.stores import opened, read_source, retriever_of
from agentkit.episodes import Episode
from agentkit.errors import LibraryWarning, RunError, UsageError
from agentkit.evaluation.results.texts import visible
from agentkit.library import Store
from agentkit.library.code_binding import CodeBinding
from agentkit.messages import ToolCall
from agentkit.models.base import TextDelta, ToolChoice
from agentkit.tools.definition import is_instructions
from agentkit.tools.error_messages import plural
from agentkit.tools.invocation import made_deps, run_in_daemon_thread
from agentkit.tools.tool import Tool
from agentkit.tracing.tracing import Tracing


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentOptions:
    """The options that describe an agent.

    Attributes:
        catalogue: Also offer library tools without code here; their calls are validated, printed
            and left to you.
        deps (FILE.py:FUNCTION): Function that makes RunContext.deps of a run, annotated with its
            type. It gets the request under 'serve', None otherwise.
        instructions (TEXT): The system message; 'instructions/NAME' stands for the library's.
        tool_choice: Whether the model may, must not or must call a tool in its first turn.
        max_steps: Most model turns for one question.
        yes: Run destructive tools without asking.
        trace: Emit OpenTelemetry spans; start the command with opentelemetry-instrument, which
            configures the exporter.
    """

    model: ModelName
    targets: Targets
    catalogue: bool = False
    pin: Pin
    deps: str | None = None
    instructions: str = ""
    refine: Refine
    tool_choice: ToolChoice = "auto"
    max_steps: int = 10
    yes: bool = False
    trace: bool = False


def make_agent(
    options: AgentOptions,
    store: Store,
    *,
    library_place: str | None = None,
    on_store_failure: OnStoreFailure = "refuse_runs",
    approve: Approver | None = None,
    router: Router | None = None,
    observers: Iterable[Observer] = (),
    name: str = "agent",
) -> Agent:
    """The agent that the options describe, keeping its episodes in ``store``.

    Tools in code are bound to the library's definitions; anything a person should know is printed.
    """
    library = None
    if library_place is not None:
        if options.pin is not None:
            raise UsageError("--pin applies to --store, not to --library")
        with read_source(library_place) as source:
            library = source.load()
    tools, text = load_tools(options.targets), options.instructions
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LibraryWarning)  # tell_binding says it
        agent: Agent[Any, Any] = Agent(
            options.model,
            tools=tools,
            deps_type=load_deps(options.deps)[1],
            library=library,
            store=store,
            store_policy=StorePolicy(pin=options.pin, on_failure=on_store_failure),
            tool_policy=ToolPolicy(
                unbound="offer" if options.catalogue else "hide",
                choice=options.tool_choice,
                approve=approve,
            ),
            instructions=Instructions(name=text) if is_instructions(text) else text,
            retriever=retriever_of(store) or "auto",
            refine=options.refine,
            limits=Limits(max_steps=options.max_steps),
            router=router,
            observers=observers,
            tracing=Tracing() if options.trace else None,
            name=name,
        )
    report_binding(agent.binding)
    hidden = len(agent.binding.without_code)
    if hidden and not options.catalogue:
        words = "without code; load code with --tools, or offer all with --catalogue"
        say(f"not offered: {plural(hidden, 'library tool')} {words}")
    return agent


def report_binding(binding: CodeBinding) -> None:
    """Say what binding code to the library came to, a line each; nothing when nothing changed."""
    if binding.registered:
        count = plural(len(binding.registered), "tool")
        say(f"registered {count} in library version {binding.library_version}")
    for note in binding.notes:
        say(one_line(note))


def ask_at_terminal(*, yes: bool) -> Approver:
    """Asks the person at the terminal whether a call may run, one call at a time.

    Args:
        yes: Do not ask, approve.
    """
    turn = asyncio.Lock()

    async def approve(call: ToolCall, tool: Tool) -> Approval:  # noqa: ARG001 - an Approver
        if yes:
            return Approval(approved=True)
        if not is_interactive():
            return Approval(approved=False, reason="Nobody is there to approve it.")
        ask = partial(click.confirm, f"Run {call_line(call)}?", default=False, err=True)
        async with turn:
            try:
                approved = await run_in_daemon_thread(ask)
            except click.Abort:  # Ctrl-D
                approved = False
        return Approval(approved=approved, reason="" if approved else "The user said no.")

    return approve


async def _answer(
    agent: Agent, request: str, session_id: str | None, deps: Any, *, as_json: bool
) -> None:
    """Run a request and print its answer: text as it arrives, all else on stderr; or JSON."""
    if not as_json:
        print_outcome(await _shown(agent, request, session_id, deps))
        return
    result = await agent.run(request, session_id=session_id, deps=deps)
    episode = result.episode
    calls, deferred = ([one.to_json() for one in some] for some in (result.calls, result.deferred))
    print_json({**episode.to_json(), "calls": calls, "deferred": deferred})


def print_outcome(result: RunResult) -> None:
    """Print the calls that are left, and on stderr how a run ended."""
    for call in result.deferred:
        click.echo(call_line(call))
    episode = result.episode
    say(
        f"[{result.stop_reason.replace('_', ' ')}, {plural(len(episode.turns), 'turn')}, "
        f"{result.usage.total_tokens:,} tokens, {episode.seconds:.1f} s, "
        f"library version {episode.library_version}, episode {episode.episode_id}]"
    )


async def _shown(agent: Agent, request: str, session_id: str | None, deps: Any) -> RunResult:
    """Run a request; text goes to stdout as it arrives, everything else to stderr."""
    writing = False
    try:
        async for event in agent.stream(request, session_id=session_id, deps=deps):
            if isinstance(event, TextDelta):
                click.echo(visible(event.text), nl=False)
                writing = writing or bool(event.text)
                continue
            if writing:
                click.echo()
                writing = False
            if isinstance(event, RunFinished):
                return event.result
            if line := _event_line(event):
                say(f"  {line}")
    finally:
        if writing:  # the error gets a line of its own
            click.echo()
    raise AssertionError("unreachable: a stream ends with RunFinished or raises")


def _event_line(event: RunEvent) -> str:
    """Describe an event of a run in one line; empty when there is nothing to show."""
    match event:
        case ToolsRetrieved(trace=found):
            return f"offered {', '.join(found.offered) or 'no tools'}"
        case CallsRefined(trace=trace):
            agreed = "agreed" if trace.converged else "did not agree"
            rounds = plural(trace.iterations, "round")
            return f"refined in {rounds}: the last two answers {agreed}"
        case ToolCallStarted(call=call):
            return f"calls {call_line(call)}"
        case ToolProgress(tool_name=name, text=text):
            return f"{name}: {one_line(text)}"
        case ToolCallFinished(result=answer):
            return f"gives {result_line(answer)}"
        case _:
            return ""


@command()
def run(
    question: str | None = None,
    *,
    session: str | None = None,
    library_place: LibraryPlace,
    options: AgentOptions,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Ask an agent QUESTION ('-' reads it from stdin) and print its answer; without it, chat.

    The answer goes to stdout, tool calls and results to stderr. Calls left to you (tools without
    code) are printed to stdout, one a line. Every run is recorded as an episode; see
    'agentkit episodes show last'. Runs of one --session are one conversation. In a chat each line
    is a turn, and Ctrl-D ends it.

    Args:
        session (ID): Continue this conversation.

    Examples:
      agentkit run "What is 17 * 23?" --tools calculator.py
      agentkit run --tools calculator.py --instructions "Show each step."
      agentkit run "Book a table for two" --catalogue --refine adaptive --json
      echo "Hello" | agentkit run - --model openai:gpt-4o-mini
    """
    if question == "-":
        question = read_content("-").decode(errors="replace")
    if question is not None and not question.strip():
        raise click.UsageError("the question is empty")
    talks = question is None and is_interactive()
    if question is None:
        session = session or new_episode_id()
    # Lines are read outside the event loop, where Ctrl-C ends them at once.
    with opened(store_url) as store, asyncio.Runner() as runner:
        approve = ask_at_terminal(yes=options.yes)
        agent = make_agent(options, store, library_place=library_place, approve=approve)
        deps = runner.run(made_deps(load_deps(options.deps)[0], None))
        if talks:
            tools = f"{plural(len(agent.library), 'tool')} of library version"
            say(f"{agent.model.name}, {tools} {agent.library.version}. Ctrl-D ends the chat.")
        try:
            for text in filter(None, map(str.strip, _turns(question, talks=talks))):
                try:
                    runner.run(_answer(agent, text, session, deps, as_json=as_json))
                except RunError as error:
                    if isinstance(error.episode, Episode):
                        say(f"[error, episode {error.episode.episode_id}]")
                    if not talks:
                        raise
                    say(f"Error: {error}")  # the chat can go on
        finally:
            runner.run(agent.close())
        if talks:
            say(f"To go on: agentkit run --session {session}")


def _turns(question: str | None, *, talks: bool) -> Iterator[str]:
    """What is asked: the question, or lines until there are no more."""
    if question is not None:
        yield question
    elif not talks:
        yield from sys.stdin
    else:
        with suppress(ImportError):  # not on every platform
            importlib.import_module("readline")  # input() edits lines once it is loaded
        with suppress(EOFError):
            while True:
                yield input("> ")
