"""A store with a few tools, a manager over it, and proposals to change them."""

from dataclasses import replace

import pytest

from agentkit import open_store
from agentkit.evolution import ToolManager
from agentkit.evolution.decide import LifecyclePolicy
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.validation.report import FailedCheck, ValidationReport
from agentkit.library.events import Author
from agentkit.testing import primitive_library

MODEL = Author(kind="model", name="proposer", prompt_hash="0" * 64)


def check(change):
    """Checks of a test: a summary that says 'bad' fails; a tool named ``pay`` needs everybody."""
    failed = ()
    if "bad" in change.candidate.description.summary:
        failed = (
            FailedCheck(code="bad_word", layer="lexical", message="says bad", advice="do not"),
        )
    needs = ("judge", "person") if "pay" in change.candidate.name else ()
    return ValidationReport(failed=failed, needs=needs)


@pytest.fixture
def ada():
    """A person."""
    return Author(kind="person", name="ada")


@pytest.fixture
def store():
    """A store that is gone with the test."""
    return open_store("memory:")


@pytest.fixture
def make_manager(store):
    """Makes a manager over the primitives; by default nobody is asked for evidence."""

    def make(*further, over=None, **options):
        tools = [*primitive_library(), *further]
        options.setdefault("lifecycle", LifecyclePolicy(evidence="none"))
        options.setdefault("validate", check)
        manager = ToolManager(over or store, tools=tools, **options)
        manager.register(tools)
        return manager

    return make


@pytest.fixture
def manager(make_manager):
    """A manager that promotes what every check lets pass."""
    return make_manager()


@pytest.fixture
def propose():
    """Makes a proposal to change the summary, or other words, of a tool."""

    def make(manager, name="add", summary="Add two numbers, exactly.", *, author=MODEL, **changes):
        base = manager.library[name].definition
        told = replace(base.description, **({"summary": summary} if summary else {}))
        parts = {"description": told, **changes}
        return Proposal.of(
            base, replace(base, **parts), stream="feedback", author=author, reason="clearer"
        )

    return make
