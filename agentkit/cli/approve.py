"""``agentkit tools approve``: show what an MCP server lists, and keep what a person agrees to."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated

import click

from agentkit.cli.options import AsJson, StoreUrl, argument, command
from agentkit.cli.output import is_interactive, one_line, plural, print_json, print_text, say
from agentkit.cli.stores import manager_of, opened, person
from agentkit.errors import UsageError
from agentkit.interop.mcp.client import McpServer, approved_in, keep_tools
from agentkit.interop.mcp.listing import HeldTool
from agentkit.interop.mcp.transports import HttpPlace, Place, StdioPlace


@command(short_help="Approve the tools of an MCP server.")
def approve(
    name: str,
    place: Annotated[tuple[str, ...], argument("URL|-- COMMAND...", required=True)],
    *,
    tool: tuple[str, ...] = (),
    env: tuple[str, ...] = (),
    yes: bool = False,
    store_url: StoreUrl,
    as_json: AsJson,
) -> None:
    """Show the tools that an MCP server lists, and approve them.

    Approved tools are kept in the library with a fingerprint of everything the server said about
    them. A server that is given these approvals offers no other tool, and none that has changed.

    Args:
        tool (TOOL): Approve this tool, even if a check found something in it or it changed.
            Otherwise all new tools without findings
        env (VARIABLE): Pass this environment variable to COMMAND
        yes: Do not ask; needed without a terminal.

    Examples:
      agentkit tools approve orders -- python orders_server.py
      agentkit tools approve orders http://localhost:8000/mcp --yes
      agentkit tools approve orders --tool cancel --yes -- python orders_server.py

    In code:
      McpServer.stdio("python", ["orders_server.py"], name="orders",
                      approved=approved_in(library, "orders"))
    """
    with (
        opened(store_url) as store,
        McpServer(
            _place(place, env),
            name=name,
            approved=approved_in(store.load(), name),
        ) as server,
    ):
        chosen = _chosen(server, tool)
        if not as_json:
            _show(server, chosen)
        what = f"{plural(len(chosen), 'tool')} of {name}"
        if chosen and not yes:
            if not is_interactive():
                raise UsageError(
                    f"nobody can be asked here to approve {what}; read the list, then repeat the "
                    "command with --yes"
                )
            click.confirm(f"Approve {what}?", abort=True, err=True)
        version = store.load().version
        if chosen:
            server.approve(*(held.name for held in chosen))
            manager = manager_of(store, author=person())
            version = keep_tools(manager, server.tools)
        if as_json:
            held = [
                {"name": one.name, "code": one.code, "reasons": list(one.reasons)}
                for one in server.held
            ]
            approved = [one.name for one in chosen]
            print_json({"server": name, "version": version, "approved": approved, "held": held})
        elif chosen:
            say(f"approved {what}; library version {version}")


def _place(values: Sequence[str], variables: Sequence[str]) -> Place:
    if len(values) == 1 and values[0].startswith(("http://", "https://")):
        if variables:
            raise UsageError("--env is for a COMMAND; a URL gets no environment variables")
        return HttpPlace(url=values[0])
    absent = [one for one in variables if one not in os.environ]
    if absent:
        raise UsageError(f"the environment variable {absent[0]} is not set")
    environment = {one: os.environ[one] for one in variables}
    return StdioPlace(command=values[0], args=tuple(values[1:]), env=environment)


def _chosen(server: McpServer, names: Sequence[str]) -> list[HeldTool]:
    """The tools to approve.

    Raises:
        UsageError: A name is not listed, or nobody can approve it.
    """
    approved = {tool.name for tool in server.listing.tools}
    for name in names:
        held = server.listing.holding(name)
        if held is not None and not held.is_approvable:
            raise UsageError(f"{held} It cannot be approved.")
        if held is None and name not in approved:
            raise UsageError(f"{server.name} lists no tool {name!r}")
    return [
        held
        for held in server.held
        if held.is_approvable and (held.name in names if names else held.code == "unapproved")
    ]


def _show(server: McpServer, chosen: Sequence[HeldTool]) -> None:
    for tool in server.listing.tools:
        print_text(f"approved  {one_line(tool.name)}")
    for held in server.held:
        mark = "new" if held in chosen and held.code == "unapproved" else held.code
        print_text(f"{mark}  {one_line(held.name)}")
        if held.tool is not None:
            print_text(one_line(held.tool.definition.description.summary), indent="    ")
            hints = [hint for hint, is_set in held.tool.hints.items() if is_set]
            if hints:
                print_text(f"says of itself: {', '.join(hints)}", indent="    ")
        if held.code != "unapproved":
            print_text(one_line(" ".join(held.reasons)), indent="    ")
