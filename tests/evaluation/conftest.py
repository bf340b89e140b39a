"""A sample of BFCL, files of tasks, small tools to examine, and episodes to judge."""

from pathlib import Path

import pytest
from support.judging import call, episode, returned, row, tools, write  # noqa: F401 - fixtures

from agentkit import ToolDefinition
from agentkit.evaluation.doctor import Catalogue, examine
from agentkit_bench.bfcl import load_bfcl

SAMPLE = Path(__file__).parents[2] / "plugins/agentkit-bench/tests/sample_bfcl"


@pytest.fixture
def sample():
    """The sample, loaded."""
    return load_bfcl(SAMPLE)


SHOP = Path("examples") / "shop_tasks"


@pytest.fixture
def shop(project_root):
    """The folder of the example with the shop."""
    return project_root / SHOP


@pytest.fixture
def a_tool():
    """Makes a definition whose schema is taken as it is written."""

    def make(name="find_city", text="Find a city by its name.", properties=None, **schema):
        properties = (
            {"name": {"type": "string", "description": "What people call it, such as Oslo."}}
            if properties is None
            else properties
        )
        parameters = {"type": "object", "properties": properties, **schema}
        return ToolDefinition.from_schema(
            name, text, parameters, result={"type": "array", "items": {"type": "string"}}
        )

    return make


@pytest.fixture
def look():
    """The findings about some tools, of given codes or all."""

    def find(*definitions, codes=(), **options):
        catalogue = Catalogue.of(definitions, **options)
        return list(examine(catalogue, codes=codes).findings)

    return find


@pytest.fixture
def codes(look):
    """The codes of what is found in some tools."""

    def find(*definitions, **options):
        return {finding.kind.code for finding in look(*definitions, **options)}

    return find
