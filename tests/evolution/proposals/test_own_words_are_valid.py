"""The sentences that the evidence proposer writes pass the checks that every suggestion passes."""

from __future__ import annotations

import pytest

from agentkit import Library, ToolDefinition
from agentkit.evolution.proposers.observed import RuleSuggestion, applied
from agentkit.evolution.validation import validate
from agentkit.evolution.validation.report import ProposedChange
from agentkit.tools.rules import Between, CallBefore, Condition, Form, OneOf, Requires

FORECAST = ToolDefinition.from_schema(
    "read_forecast",
    "Read the forecast of a station for a number of days ahead.",
    {
        "type": "object",
        "properties": {
            "station": {"type": "string", "description": "Id of the station."},
            "first": {"type": "integer", "description": "First day."},
            "last": {"type": "integer", "description": "Last day."},
            "unit": {"type": "string", "description": "Unit of temperature."},
        },
        "required": ["station"],
    },
)
STATION = ToolDefinition(name="find_station")
LIBRARY = Library([FORECAST, STATION])


@pytest.mark.parametrize(
    "said",
    [
        {"rule": OneOf(parameter="unit", values=("celsius", "kelvin"))},
        {"rule": Between(parameter="last", minimum=1, maximum=14, unit="days")},
        {"rule": Form(parameter="station", pattern="^[A-Z]{2}$", words="2 capital letters")},
        {"rule": Requires(parameter="first", others=("last",))},
        {"rule": Condition(expression="first <= last", words="first must be at most last")},
        {"rule": CallBefore(tool="find_station", parameter="station")},
    ],
)
def test_no_check_objects(said):
    """Each kind of lesson, put into a definition, has nothing against it."""
    lesson = RuleSuggestion(basis="seen", failures=2, episodes=("a", "b"), **said)
    candidate = applied(FORECAST, [lesson])
    change = ProposedChange(base=FORECAST, candidate=candidate, library=LIBRARY)
    assert validate(change).failed == ()
