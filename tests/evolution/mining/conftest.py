"""Trajectories and tools that the tests of mining share, all written by us."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentkit import ToolDefinition
from agentkit.evolution.trajectories import Flow, Given, Step, Trajectory
from agentkit.tools.definition import Effects

TEXT = {"type": "string"}


def reader(name: str, **properties: Any) -> ToolDefinition:
    """A tool that only reads; every parameter is required."""
    return ToolDefinition.from_schema(
        name,
        f"Summary of {name}. More words.",
        {"type": "object", "properties": properties, "required": list(properties)},
        effects=Effects.of(["reads"]),
    )


AIRPORT = reader("search_airport", query={**TEXT, "description": "City or airport."})
FLIGHTS = reader(
    "find_flights",
    originSkyId={**TEXT, "description": "Code of the first airport."},
    destinationSkyId=TEXT,
    date=TEXT,
    cabin={"type": "string", "enum": ["economy", "business"]},
)
DETAILS = reader("flight_details", token=TEXT)


@pytest.fixture
def travel_tools() -> Mapping[str, ToolDefinition]:
    """Airports, flights and details of a flight."""
    return {tool.name: tool for tool in (AIRPORT, FLIGHTS, DETAILS)}


@pytest.fixture
def trip() -> Callable[..., Trajectory]:
    """Makes a trajectory that looks up two airports and the flights between them."""

    def make(number: int, origin: str, goal: str, *, swapped: bool = False) -> Trajectory:
        codes = [f"{origin[:3]}{number}", f"{goal[:3]}{number}"]
        lookups = [
            Step(
                tool="search_airport",
                sources={"query": Given(value=place)},
                result=[{"skyId": code, "name": place}],
            )
            for place, code in zip((origin, goal), codes, strict=True)
        ]
        order = [1, 0] if swapped else [0, 1]
        flights = Step(
            tool="find_flights",
            sources={
                "originSkyId": Flow(step=order.index(0), path=(0, "skyId")),
                "destinationSkyId": Flow(step=order.index(1), path=(0, "skyId")),
                "date": Given(value=f"2026-05-{number + 1:02}"),
                "cabin": Given(value="economy"),
            },
            result={"offers": [{"token": f"{codes[0]}-{codes[1]}", "price": 100 + number}]},
        )
        steps = (*(lookups[at] for at in order), flights)
        return Trajectory(
            trajectory_id=f"trip-{number}", steps=steps, request=f"Flights from {origin} to {goal}?"
        )

    return make
