"""``agentkit run`` and ``agentkit chat``: ask an agent, once or turn by turn."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import click

from agentkit._waiting import wait_for
from agentkit.agent.agent import Agent
from agentkit.agent.session import new_episode_id
from agentkit.agent.types import RunResult
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
from agentkit.cli.options import command, json_option, library_option, option
from agentkit.cli.output import plural, print_json, print_json_line, say
from agentkit.cli.stores import opened
from agentkit.episodes import Episode
from agentkit.errors import RunError

_HELP = "/tools: what is offered, /new: start afresh, /exit or Ctrl-D: leave"

session_option = option("--session", metavar="ID", help="Continue this conversation.")


@command()
@click.argument("question")
@session_option
@library_option
@agent_options
@json_option
def run(question: str, session: str | None, store_url: str, as_json: bool, **options: Any) -> None:
    """Ask an agent QUESTION ('-' reads it from stdin) and print its answer.

    The answer goes to stdout, tool calls and their results to stderr. Calls that wait for somebody
    else (a tool without code) are printed to stdout, one a line. Every run is kept as an episode,
    see 'agentkit episodes show last'.

    Examples:
      agentkit run "What is 17 * 23?" --tools calculator.py
      agentkit run "Book a table for two" --catalogue --refine adaptive --json
      echo "Hello" | agentkit run - --model openai:gpt-4o-mini
      agentkit run "Two apples?" --adapter shop.gguf --library shop.json --tools shop.py
    """
    text = sys.stdin.read() if question == "-" else question
    if not text.strip():
        raise click.UsageError("the question is empty")
    with opened(store_url) as store:
        chosen = AgentOptions(**options)
        agent = make_agent(chosen, store, approve=AskAtTerminal(yes=chosen.yes))
        result = wait_for(_ask(agent, text.strip(), session, as_json=as_json))
    if as_json:
        print_json(result_json(result))
    else:
        _tell_end(result)


async def _ask(agent: Agent, text: str, session: str | None, *, as_json: bool) -> RunResult:
    try:
        if as_json:
            return await agent.run(text, session_id=session)
        return await show(agent, text, session_id=session)
    except RunError as error:
        if isinstance(error.episode, Episode):
            say(f"[error, episode {error.episode.episode_id}]")
        raise
    finally:
        await agent.close()


def _tell_end(result: RunResult) -> None:
    """The calls that wait for somebody else, and how the run went."""
    for call in result.deferred:
        click.echo(call_line(call))
    say(outline(result))


@command()
@session_option
@library_option
@agent_options
@json_option
def chat(session: str | None, store_url: str, *, as_json: bool, **options: Any) -> None:
    r"""Talk with an agent, turn by turn; it remembers the conversation.

    On a terminal you are asked before a destructive tool runs. Piped in, each line is one
    message. /help lists what else you can type. With --json each answer is one line of JSON.

    Examples:
      agentkit chat --tools my_shop.py --instructions "You sell used cars."
      agentkit chat --session 019a5c2b7d10
      printf 'Hello\nWhat did I say?\n' | agentkit chat
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
        self.session_id = session_id
        self.failure: RunError | None = None
        self._runner = runner
        self._agent = agent
        self._as_json = as_json

    def hold(self) -> None:
        """Answer every line, until the input ends or the user leaves."""
        if sys.stdin.isatty():
            library = self._agent.library
            tools = f"{plural(len(library), 'tool')} of library version {library.version}"
            say(f"{self._agent.model.name}, {tools}. {_HELP}")
        for line in _typed() if sys.stdin.isatty() else sys.stdin:
            match line.strip():
                case "":
                    continue
                case "/exit":
                    return
                case "/new":
                    self.session_id = new_episode_id()
                    say("A new conversation.")
                case "/tools":
                    say("\n".join(self._agent.library.tools))
                case text if text.startswith("/"):
                    say(_HELP)
                case text:
                    self.failure = self._runner.run(self._answer(text))

    async def _answer(self, text: str) -> RunError | None:
        """Answer one message; a failure is told and the conversation can go on."""
        try:
            if self._as_json:
                result = await self._agent.run(text, session_id=self.session_id)
                print_json_line(result_json(result))
            else:
                _tell_end(await show(self._agent, text, session_id=self.session_id))
        except RunError as error:
            say(f"Error: {error}")
            return error
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
