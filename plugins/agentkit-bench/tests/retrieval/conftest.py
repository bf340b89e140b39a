"""A small corpus of ours, and corpora that a test writes down."""

import gzip
import json
from pathlib import Path

import pytest

from agentkit import Library, ToolDefinition
from agentkit_bench.retrieval import load_corpus

SAMPLE = Path(__file__).parent / "sample_corpus"


@pytest.fixture
def sample_files():
    """The paths of twelve tools, two of them of one name, and eight questions."""
    return SAMPLE / "tools.jsonl", SAMPLE / "queries.jsonl"


@pytest.fixture
def sample(sample_files):
    """The small corpus, tools of one name counted as one."""
    tools, queries = sample_files
    return load_corpus([tools], [queries], by="name")


@pytest.fixture
def written(tmp_path):
    """Writes records (or raw text) as lines of a file and gives its path."""

    def write(name, *records):
        text = "".join(
            (record if isinstance(record, str) else json.dumps(record)) + "\n" for record in records
        )
        path = tmp_path / name
        data = text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return write


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
