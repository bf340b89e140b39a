"""A small catalogue and a way to ask it."""

import pytest

from agentkit import Library, ToolDefinition
from agentkit.retrieval import CascadeRetriever


def _define(name, summary, **parameters):
    properties = {
        key: text if isinstance(text, dict) else {"type": "string", "description": text}
        for key, text in parameters.items()
    }
    return ToolDefinition.from_schema(
        name, summary, {"type": "object", "properties": properties, "required": list(parameters)}
    )


@pytest.fixture(scope="session")
def define():
    """Builds a definition from a name, a summary and a text (or a schema) for each parameter."""
    return _define


@pytest.fixture(scope="session")
def catalogue():
    """A library of everyday tools; some bear names that are ordinary words."""
    return Library(
        [
            _define("get_weather", "Weather forecast for a city.", city="Name of the city."),
            _define("get_time", "Current time in a time zone.", zone="IANA time zone."),
            _define("add", "Add two numbers.", a={"type": "number"}, b={"type": "number"}),
            _define("math.add", "Add two matrices.", left="Matrix.", right="Matrix."),
            _define("search", "Search the web.", terms="What to look for."),
            _define("searchFlights", "Find flights between airports.", origin="From.", to="To."),
            _define("book_hotel", "Reserve a room.", hotel_id="The hotel.", nights="How many."),
            _define("cancel_booking", "Cancel a reservation.", reference="Booking reference."),
            _define("calculate_loan", "Monthly payment of a loan.", term="36, 48 or 60 months."),
            _define("send_mail", "Send a mail to a person.", recipient="Address.", body="Text."),
        ]
    )


@pytest.fixture
def names_for(catalogue):
    """Asks a retriever and gives the names of the hits, best first."""

    async def ask(query, retriever=None, library=catalogue):
        found = await (retriever or CascadeRetriever()).retrieve(query, library)
        return [hit.definition.name for hit in found.hits]

    return ask
