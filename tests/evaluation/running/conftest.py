"""A small benchmark about lamps: a world with state, and models that know it well or badly."""

from __future__ import annotations

import pytest

from agentkit import Tool, ToolDefinition, open_store
from agentkit.evaluation import AllowedCalls, Benchmark, FinalState, GoldCall, Task, UserTurn
from agentkit.messages import ToolCall
from agentkit.metrics import AllowedCall
from agentkit.testing import FunctionModel


def definition(name, summary="Switch the lamp of a room."):
    """A tool that takes a room and a state."""
    properties = {"room": {"type": "string"}, "state": {"enum": ["on", "off"], "type": "string"}}
    return ToolDefinition.from_schema(
        name, summary, {"type": "object", "properties": properties, "required": list(properties)}
    )


LAMP = definition("set_lamp")
FAN = definition("set_fan", "Switch the fan of a room.")


def gold(room, state="on", tool="set_lamp"):
    """One gold call."""
    return (
        AllowedCalls(calls=(AllowedCall(name=tool, allowed={"room": [room], "state": [state]}),)),
    )


def call(room, state="on", tool="set_lamp"):
    """One call."""
    return ToolCall(call_id="1", name=tool, arguments={"room": room, "state": state})


def lamp_task(room, category="simple"):
    """Asks for light in one room."""
    return Task(
        task_id=f"{category}-{room}",
        category=category,
        request=f"Lamp in the {room}, please.",
        offered=("set_lamp",),
        expects=gold(room),
    )


class House:
    """Lamps and fans that remember."""

    def __init__(self, task):
        self._on = dict.fromkeys(task.start.get("on", ()), True)

    def _set(self, kind):
        def switch(room, state):
            self._on[f"{kind}/{room}"] = state == "on"
            return f"{kind} {room} {state}"

        return switch

    def tools(self):
        """A lamp tool and a fan tool."""
        return [
            Tool(definition=LAMP, function=self._set("lamp")),
            Tool(definition=FAN, function=self._set("fan")),
        ]

    def state(self):
        """What is on."""
        return {"on": sorted(name for name, on in self._on.items() if on)}


@pytest.fixture
def lamps():
    """Four questions in two categories; no tool is run."""
    tasks = [lamp_task(room, kind) for kind in ("simple", "far") for room in ("hall", "attic")]
    return Benchmark(name="lamps 1", tasks=tuple(tasks), definitions=(LAMP, FAN))


@pytest.fixture
def house():
    """One conversation of two turns in a world; the fan is offered in the second one only."""
    task = Task(
        task_id="evening",
        category="talk",
        request="Lamp in the hall.",
        offered=("set_lamp",),
        expects=(
            FinalState(
                calls=(GoldCall(name="set_lamp", arguments={"room": "hall", "state": "on"}),)
            ),
        ),
        follow_ups=(
            UserTurn(
                request="And the fan.",
                offers=("set_fan",),
                expects=(
                    FinalState(
                        calls=(GoldCall(name="set_fan", arguments={"room": "hall", "state": "on"}),)
                    ),
                ),
            ),
        ),
    )
    return Benchmark(name="house 1", tasks=(task,), definitions=(LAMP, FAN), environment=House)


@pytest.fixture
def good():
    """A model that lights the room that is asked for."""

    def answer(request):
        asked = next(m.text for m in request.messages if m.text.startswith("Lamp in the"))
        room = asked.split()[3].rstrip(",.")
        return [call(room)]

    return FunctionModel(answer, name="good")


@pytest.fixture
def store():
    """An empty store."""
    return open_store("memory:")
