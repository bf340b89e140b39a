"""``agentkit run``."""

from __future__ import annotations

import sys
from typing import Any

import click

from agentkit._waiting import wait_for
from agentkit.agent.agent import Agent
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
from agentkit.cli.options import json_option, library_option
from agentkit.cli.output import print_json, say
from agentkit.cli.stores import opened
from agentkit.episodes import Episode
from agentkit.errors import RunError


@click.command(
    epilog="""\b
Examples:
  agentkit run "What is 17 * 23?" --tools calculator.py
  agentkit run "Book a table for two" --catalogue --refine adaptive --json
  echo "Hello" | agentkit run - --model openai:gpt-4o-mini
  agentkit run "Two apples?" --adapter shop.gguf --library shop.json --tools shop.py"""
)
@click.argument("question")
@click.option("--session", metavar="ID", help="Continue this conversation.")
@library_option
@agent_options
@json_option
def run(question: str, session: str | None, store_url: str, as_json: bool, **options: Any) -> None:
    """Ask an agent QUESTION ('-' reads it from stdin) and print its answer.

    The answer goes to stdout; tool calls and their results are told on stderr. Calls that wait
    for somebody else (a tool without code) are printed to stdout, one a line. Every run is kept
    as an episode, see 'agentkit episodes show last'.
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
        return
    for call in result.deferred:
        click.echo(call_line(call))
    say(outline(result))


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
