"""What an exception says reaches only those that it was meant for."""

import logging
import time

import pytest
from mcp import Client, MCPError

from agentkit import Agent, Library, composite, tool
from agentkit.agent import ToolPolicy
from agentkit.errors import ModelRetry, StoreError, ToolFailed
from agentkit.interop.mcp import LibraryServer
from agentkit.interop.toolset import Toolset
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.testing import ScriptedModel
from agentkit.tools.definition import Effects

PASSWORD = "hunter2-Tr0ub4dor"
URL = f"postgres://admin:{PASSWORD}@db.internal/orders"


class DriverError(Exception):
    """What some database driver raises."""


@tool(effects=Effects.pure())
def fetch(kind: str) -> str:
    """Fetch something."""
    raise {
        "driver": DriverError(f"login failed for admin with {PASSWORD}"),
        "runtime": RuntimeError(f"cannot reach {URL}"),
        "os": ConnectionError(f"{PASSWORD} was refused"),
        "refusal": ValueError(f"kind must be 'a' or 'b' (asked {URL})"),
        "retry": ModelRetry("Use kind 'a'."),
        "final": ToolFailed("This is over."),
    }[kind]


@composite(tools=[fetch])
def fetch_twice(kind: str) -> str:
    """Fetch something, twice."""
    return fetch(kind=kind) + fetch(kind=kind)


@tool(effects=Effects.pure())
async def fetch_later(kind: str) -> str:
    """Fetch something, in its own time."""
    return fetch(kind=kind)


@composite(tools=[fetch_twice, fetch_later])
def fetch_nested(kind: str) -> str:
    """Fetch something through others."""
    later = fetch_later(kind=kind)
    return later + fetch_twice(kind=kind)


NAMES = ("fetch", "fetch_twice", "fetch_later", "fetch_nested")
KINDS = ("driver", "runtime", "os", "refusal", "retry", "final")
SHOWN = {
    "driver": "DriverError",
    "runtime": "RuntimeError",
    "os": "ConnectionError",
    "refusal": "kind must be 'a' or 'b'",
    "retry": "Use kind 'a'.",
    "final": "This is over.",
}


def called(name, kind):
    """A call of one of the tools."""
    return ToolCall(call_id="c1", name=name, arguments={"kind": kind})


def read_by_model(name, kind, **options):
    """What an agent's model reads, and the run."""
    agent = Agent(
        ScriptedModel([[called(name, kind)], "Done."]),
        library=Library([fetch, fetch_twice, fetch_later, fetch_nested]),
        tool_policy=ToolPolicy(repeats=0, **options),
    )
    return agent.run_sync("Go.").episode.results[0].text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_reads_what_was_meant_for_it(name, kind, caplog):
    """Refusals and signals keep their words, without secrets; of other exceptions only the class."""
    text = read_by_model(name, kind)
    assert PASSWORD not in text
    assert SHOWN[kind] in text
    is_hidden = kind in {"driver", "runtime", "os"}
    assert ("call c1" in caplog.text) is is_hidden
    if is_hidden:
        assert (PASSWORD in caplog.text) is (kind != "runtime")  # of a URL it is recognised
        reference = text.partition("under reference ")[2].split()[0].rstrip(".,")
        assert f"reference {reference}: " in caplog.text


def test_no_exception_forges_a_line_of_the_log(caplog):
    """What an exception quotes is indented, and characters that steer a terminal are written out."""
    forged = "2026-11-27 23:00:00 ERROR all is lost"
    steering = "\x1b[31m \r \u202e \u2028 \x85 \x0b"

    @tool
    def load(name: str) -> str:
        """Load a file."""
        raise RuntimeError(f"no {name}")

    call = ToolCall(
        call_id=f"c1\n{forged}", name="load", arguments={"name": f"{steering}\n{forged}"}
    )
    Agent(ScriptedModel([[call], "No."]), tools=[load]).run_sync("Load it")
    assert forged in caplog.text
    assert forged not in caplog.text.splitlines()
    assert not [sign for sign in steering.replace("[31m", "").split() if sign in caplog.text]
    assert "\u27e8U+001B\u27e9[31m" in caplog.text


def test_a_developer_may_show_everything():
    """With the switch the texts of all exceptions are there."""
    assert PASSWORD in read_by_model("fetch", "driver", expose_errors=True)
    assert PASSWORD in read_by_model("fetch_twice", "runtime", expose_errors=True)


@pytest.mark.parametrize("kind", KINDS)
async def test_frameworks_read_what_an_agent_reads(kind):
    """The toolset behind all framework adapters runs calls under the same policy."""
    run = await Toolset(Library([fetch])).start("Go.")
    run.answered(AssistantMessage(tool_calls=(called("fetch", kind),)))
    result = await run.call(called("fetch", kind))
    assert PASSWORD not in result.text
    assert SHOWN[kind] in result.text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_outside_reads_the_class_and_an_incident(name, kind, caplog):
    """A client of MCP reads no exception's text, and is given an id that stands in the log."""
    caplog.set_level(logging.WARNING)
    server = LibraryServer(Library([fetch, fetch_twice, fetch_later, fetch_nested]))
    async with Client(server.sdk_server()) as client:
        answer = await client.call_tool(name, {"kind": kind})
    text = answer.content[0].text
    assert answer.is_error
    assert PASSWORD not in text
    if kind in {"retry", "final"}:
        assert SHOWN[kind] in text
        return
    assert "must be" not in text
    assert "incident" in text
    incident = text.partition("incident ")[2].split()[0]
    assert f"incident {incident}" in caplog.text


async def test_the_server_itself_does_not_tell_what_broke(caplog):
    """An error around a call, such as one of an approver, is no more shown than one of the tool."""

    @tool(effects=("destructive",))
    def delete() -> str:
        """Delete everything."""
        return "gone"

    def broken(call, definition):
        raise StoreError(f"cannot read from {URL}")

    server = LibraryServer(Library([delete]), approve=broken)
    async with Client(server.sdk_server()) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("delete", {})
    assert PASSWORD not in str(caught.value)
    incident = str(caught.value).partition("incident ")[2].split()[0]
    assert f"incident {incident}" in caplog.text


class UnreachableError(OSError, ValueError):
    """An error of the system that is also one of a value, as some libraries raise."""


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            UnreachableError(f"cannot reach {URL}"),
            "UnreachableError. What it says is in the log under reference ",
        ),
        (ValueError("bad \x1b[2Jcolour\x00"), "ValueError: bad \ufffd[2Jcolour\ufffd"),
    ],
)
async def test_what_is_no_refusal_or_no_text_is_not_shown(error, shown):
    """Errors of the system give their class, and control characters do not reach a model."""

    @tool
    def broken() -> str:
        """Break."""
        raise error

    calls = [[ToolCall(call_id="1", name="broken", arguments={})], "done"]
    run = await Agent(ScriptedModel(calls), tools=[broken]).run("Go.")
    assert shown in run.episode.results[0].text


async def test_a_long_text_is_cut_before_it_is_read():
    """What a model reads of ten megabytes costs what it costs of two thousand characters."""

    @tool
    async def broken() -> str:
        """Break."""
        raise ValueError("sk-" * 3_000_000 + PASSWORD)

    calls = [[ToolCall(call_id="1", name="broken", arguments={})], "done"]
    began = time.thread_time()
    run = await Agent(ScriptedModel(calls), tools=[broken]).run("Go.")
    assert time.thread_time() - began < 3
    assert len(run.episode.results[0].text) < 1_000
