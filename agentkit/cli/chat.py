"""``agentkit chat``."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from agentkit.agent.agent import Agent
from agentkit.agent.session import new_episode_id
from agentkit.cli.agents import (
    AgentOptions,
    AskAtTerminal,
    agent_options,
    make_agent,
    outline,
    result_json,
    show,
)
from agentkit.cli.episode_view import call_line
from agentkit.cli.options import json_option, library_option
from agentkit.cli.output import plural, say
from agentkit.cli.stores import opened
from agentkit.errors import RunError

_HELP = "/tools: what is offered, /new: start afresh, /exit or Ctrl-D: leave"


@click.command(
    epilog="""\b
Examples:
  agentkit chat --tools my_shop.py --instructions "You sell used cars."
  agentkit chat --session 019a5c2b7d10
  printf 'Hello\\nWhat did I say?\\n' | agentkit chat"""
)
@click.option("--session", metavar="ID", help="Continue this conversation; see episodes list.")
@library_option
@agent_options
@json_option
def chat(session: str | None, store_url: str, *, as_json: bool, **options: Any) -> None:
    """Talk with an agent, turn by turn; it remembers the conversation.

    On a terminal you are asked before a destructive tool runs. Piped in, each line is one
    message. /help lists what else you can type. With --json each answer is one line of JSON.
    """
    with opened(store_url) as store, asyncio.Runner() as runner:
        chosen = AgentOptions(**options)
        agent = make_agent(chosen, store, approve=AskAtTerminal(yes=chosen.yes))
        talk = _Conversation(runner, agent, session or new_episode_id(), as_json=as_json)
        try:
            talk.hold()
        finally:
            say(f"To go on: agentkit chat --session {talk.session_id}")
            runner.run(agent.close())
    if talk.failure is not None and not sys.stdin.isatty():
        raise talk.failure


class _Conversation:
    """What is said, line by line.

    Lines are read outside the event loop, where Ctrl-C ends them at once.
    """

    def __init__(
        self, runner: asyncio.Runner, agent: Agent, session_id: str, *, as_json: bool
    ) -> None:
        self._as_json = as_json
        self.session_id = session_id
        self.failure: RunError | None = None
        self._runner = runner
        self._agent = agent

    def hold(self) -> None:
        """Answer every line, until the input ends or the user leaves."""
        if sys.stdin.isatty():
            tools = plural(len(self._agent.library), "tool")
            version = self._agent.library.version
            say(f"{self._agent.model.name}, {tools} of library version {version}. {_HELP}")
        for line in _typed() if sys.stdin.isatty() else sys.stdin:
            text = line.strip()
            if text == "/exit":
                return
            if text.startswith("/"):
                self._obey(text)
            elif text:
                answer = _say_to(self._agent, text, self.session_id, as_json=self._as_json)
                self.failure = self._runner.run(answer)

    def _obey(self, command: str) -> None:
        if command == "/new":
            self.session_id = new_episode_id()
            say("A new conversation.")
        else:
            say("\n".join(self._agent.library.tools) if command == "/tools" else _HELP)


async def _say_to(agent: Agent, text: str, session_id: str, *, as_json: bool) -> RunError | None:
    """One message; a failure is told and the conversation can go on."""
    try:
        if as_json:
            result = await agent.run(text, session_id=session_id)
            click.echo(json.dumps(result_json(result), ensure_ascii=False))
            return None
        result = await show(agent, text, session_id=session_id)
    except RunError as error:
        say(f"Error: {error}")
        return error
    for call in result.deferred:
        click.echo(call_line(call))
    say(outline(result))
    return None


def _typed() -> Iterator[str]:
    """Lines from the terminal, with line editing where Python has it, until Ctrl-D."""
    with suppress(ImportError):  # not on every platform
        importlib.import_module("readline")  # input() edits lines once it is loaded
    while True:
        try:
            yield input("> ")
        except EOFError:
            say("")
            return
