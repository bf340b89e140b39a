"""A small library, and episodes that real runs on it leave behind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentkit import Agent, Library, ModelRetry, ToolFailed, tool
from agentkit.agent import ToolPolicy
from agentkit.episodes import Episode, Evidence, Verdict
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

ROOMS = {"kitchen": "off", "hall": "on"}


@tool(effects=("reads",))
def lamp_state(room: str) -> str:
    """Whether the lamp of a room is on."""
    if room not in ROOMS:
        raise ModelRetry(f"no room {room!r}; known: {', '.join(ROOMS)}")
    return ROOMS[room]


@tool(effects=("writes",))
def set_lamp(room: str, state: str, level: int = 100) -> dict[str, str]:
    """Switch a lamp."""
    return {"room": room, "state": state, "level": str(level)}


@tool
def raising(kind: str, text: str = "") -> str:
    """Fail as it is told."""
    errors: dict[str, Exception] = {
        "value": ValueError("the number is too large"),
        "key": KeyError(text),
        "runtime": RuntimeError("the socket is closed"),
        "final": ToolFailed("the house has burnt down"),
    }
    raise errors[kind]


@tool
def reporting(path: str) -> dict[str, str]:
    """Report an error in place of a result."""
    return {"error": f"cat: '{path}': no such file"}


@tool(timeout_seconds=0.01)
async def hanging() -> str:
    """Never end in time."""
    await asyncio.sleep(5)
    return ""


@tool
def unshowable() -> object:
    """Return what JSON cannot hold."""
    return object()


@tool(effects=("writes", "destructive"))
def sell_house() -> str:
    """Sell the house."""
    return "sold"


@tool(pre=["months in [36, 48, 60]"])
def offer_credit(months: int) -> int:
    """Offer a credit."""
    return months


@tool(post=["result > 0"])
def count_rooms() -> int:
    """Count rooms, wrongly."""
    return -1


TOOLS = (
    lamp_state, set_lamp, raising, reporting, hanging, unshowable, sell_house, offer_credit,
    count_rooms,
)  # fmt: skip

Run = Callable[..., Episode]


@pytest.fixture
def library() -> Library:
    """The tools of the house."""
    return Library(TOOLS)


@pytest.fixture
def call() -> Callable[..., ToolCall]:
    """``call("set_lamp", "c1", room="hall")`` makes a call."""

    def make(name: str, call_id: str = "c1", /, **arguments: Any) -> ToolCall:
        return ToolCall(call_id=call_id, name=name, arguments=arguments)

    return make


@pytest.fixture
def run() -> Run:
    """Runs a script of answers with the tools of the house and gives the episode."""

    def make(*answers: Any, **options: Any) -> Episode:
        history = options.pop("history", ())
        policy = {name: options.pop(name) for name in ("contracts", "approve") if name in options}
        agent = Agent(
            ScriptedModel(list(answers)),
            tools=TOOLS,
            tool_policy=ToolPolicy(retries=9, **policy),
            **options,
        )
        return agent.run_sync("Switch the lamp in the kitchen on.", history=history).episode

    return make


@pytest.fixture
def failed() -> Callable[..., Verdict]:
    """``failed("wrong_value", call_id="c1")`` is a verdict with one finding; none without a kind."""

    def make(kind: str = "", **parts: Any) -> Verdict:
        found = (Evidence(kind=kind, message="it is wrong", **parts),) if kind else ()
        return Verdict(passed=False, evidence=found, verifier="test")

    return make
