"""``agentkit chat``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import click

from agentkit.agent.agent import Agent
from agentkit.agent.recording import new_episode_id
from agentkit.cli.agents import AgentOptions, agent_options, make_agent, outline, show
from agentkit.cli.episode_view import call_line
from agentkit.cli.output import plural, say
from agentkit.cli.stores import opened
from agentkit.errors import RunError

_HELP = "/tools  what is offered    /new  start afresh    /exit  leave (also Ctrl-D)"


@click.command(
    epilog="""\b
Examples:
  agentkit chat --tools my_shop.py --instructions "You sell used cars."
  agentkit chat --session 019a5c2b7d10
  printf 'Hello\\nWhat did I say?\\n' | agentkit chat"""
)
@click.option("--session", metavar="ID", help="Continue this conversation; see episodes list.")
@agent_options
def chat(session: str | None, store_url: str, **options: Any) -> None:
    """Talk with an agent, turn by turn; it remembers the conversation.

    On a terminal you are asked before a destructive tool runs. Piped in, each line is one
    message. /help lists what else you can type.
    """
    with opened(store_url) as store, asyncio.Runner() as runner:
        agent = make_agent(AgentOptions(**options), store)
        try:
            _talk(runner, agent, session or new_episode_id())
        finally:
            runner.run(agent.close())


def _talk(runner: asyncio.Runner, agent: Agent, session_id: str) -> None:
    """The conversation. Lines are read outside the event loop, where Ctrl-C ends them at once."""
    interactive = sys.stdin.isatty()
    if interactive:
        say(f"{agent.model.name}, {plural(len(agent.library), 'tool')}. {_HELP}")
    failed: RunError | None = None
    for line in _typed() if interactive else sys.stdin:
        text = line.strip()
        if text == "/exit":
            break
        if text == "/new":
            session_id = new_episode_id()
            say("A new conversation.")
        elif text.startswith("/"):
            say("\n".join(agent.library.tools) if text == "/tools" else _HELP)
        elif text:
            failed = runner.run(_say_to(agent, text, session_id))
    say(f"To go on: agentkit chat --session {session_id}")
    if failed is not None and not interactive:
        raise failed


async def _say_to(agent: Agent, text: str, session_id: str) -> RunError | None:
    """One message; a failure is told and the conversation can go on."""
    try:
        result = await show(agent, text, session_id=session_id)
    except RunError as error:
        say(f"Error: {error}")
        return error
    for call in result.deferred:
        click.echo(call_line(call))
    say(outline(result))
    return None


def _typed() -> Iterator[str]:
    """Lines from the terminal, with line editing, until Ctrl-D."""
    while True:
        try:
            yield input("> ")
        except EOFError:
            say("")
            return
