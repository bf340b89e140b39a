"""Writing small tools down, and looking at them."""

import pytest

from agentkit import ToolDefinition
from agentkit.evaluation.doctor import Catalogue, examine


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

    def find(*definitions, codes=(), tools=(), **options):
        catalogue = Catalogue.of(definitions, **options)
        return list(examine(catalogue, codes=codes, tools=tools).findings)

    return find


@pytest.fixture
def codes(look):
    """The codes of what is found in some tools."""

    def find(*definitions, **options):
        return {finding.kind.code for finding in look(*definitions, **options)}

    return find
