"""A library of primitives, and a manager that may write it."""

import pytest

from agentkit import open_store
from agentkit.evolution import ToolManager
from agentkit.testing import primitive_library


@pytest.fixture
def store():
    """A store that is gone with the test."""
    return open_store("memory:")


@pytest.fixture
def make_manager(store):
    """Makes a manager over the primitives; further tools are registered as well."""

    def make(*further, **options):
        tools = [*primitive_library(), *further]
        manager = ToolManager(store, tools=tools, **options)
        manager.register(tools)
        return manager

    return make


@pytest.fixture
def manager(make_manager):
    """A manager with the strict policy."""
    return make_manager()
