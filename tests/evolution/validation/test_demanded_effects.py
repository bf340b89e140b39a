"""What a rule demands counts as the effect of the tool that carries it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentkit import Library, ToolDefinition, open_store
from agentkit.cli.review_view import print_review
from agentkit.evolution import ToolManager
from agentkit.evolution.proposal import Proposal
from agentkit.evolution.review import review_of
from agentkit.evolution.validation import ProposedChange, ValidationPolicy, validate
from agentkit.interop.export import (
    ImportRequest,
    artifact_of,
    artifact_text,
    import_artifact,
    parse_artifact,
)
from agentkit.library.events import Author
from agentkit.tools.definition import ChildReference, Effects
from agentkit.tools.rules import CallBefore
from agentkit.tools.rules.checking import demanded

BOTH = ("judge", "person")
ADA = Author(kind="person", name="ada")


def made(name, effects, *demands, children=()):
    """A tool whose rules demand others, and that may be made of others."""
    definition = ToolDefinition.from_schema(
        name, f"Tool {name}.", {"properties": {}}, effects=effects
    )
    specification = replace(
        definition.specification, rules=tuple(CallBefore(tool=one) for one in demands)
    )
    pins = tuple(ChildReference(name=one, digest="0") for one in children)
    signature = replace(definition.signature, children=pins)
    return replace(definition, specification=specification, signature=signature)


READS = Effects.of(["reads"])
SEND = made("send_email", Effects.of(["writes", "destructive"]))
SEARCH = made("search_inbox", READS)


def with_demand(definition, name):
    """The tool with a rule that another one is called first."""
    rules = (*definition.specification.rules, CallBefore(tool=name))
    return replace(definition, specification=replace(definition.specification, rules=rules))


@pytest.mark.parametrize(
    ("others", "demand"),
    [
        ([SEND], "send_email"),
        ([SEND, made("draft", READS, "send_email")], "draft"),
        ([SEND, made("draft", READS, "outline"), made("outline", READS, "send_email")], "draft"),
        ([SEND, made("draft", READS, children=["send_email"])], "draft"),
        ([made("loop", READS, "loop_too"), made("loop_too", READS, "loop", "gone")], "loop"),
        ([made("wire_money", Effects())], "wire_money"),
    ],
    ids=["directly", "through one", "through two", "in a composite", "unknown", "money"],
)
def test_a_demanded_tool_lends_its_effects(others, demand):
    """The strongest effects win, however many rules and programs lie between."""
    library = Library([SEARCH, *others])
    change = ProposedChange(base=SEARCH, candidate=with_demand(SEARCH, demand), library=library)
    assert validate(change).needs == BOTH


def test_a_harmless_demand_needs_nobody():
    """A look-up before a reading tool stays what evolution may add by itself."""
    library = Library([SEARCH, made("find_contact", READS)])
    candidate = with_demand(SEARCH, "find_contact")
    assert validate(ProposedChange(base=SEARCH, candidate=candidate, library=library)).needs == ()


def test_a_tool_that_nobody_knows_counts_as_the_worst():
    """Without a library every demanded tool may do everything."""
    assert ValidationPolicy().needs_for(with_demand(SEARCH, "send_email")) == BOTH
    assert demanded(with_demand(SEARCH, "gone"), {}) == {"gone": None}


@pytest.fixture
def waiting():
    """A manager, and a proposal that makes a reading tool demand a destructive one."""
    manager = ToolManager(open_store("memory:"))
    manager.register([SEND, SEARCH])
    author = Author(kind="program", name="evidence")
    candidate = with_demand(SEARCH, "send_email")
    record = manager.submit(Proposal.of(SEARCH, candidate, stream="evidence", author=author))
    return manager, record


def test_the_proposal_waits_and_the_review_says_why(waiting, capsys):
    """Nobody is made to send an e-mail before a judge and a person agreed; the page names it."""
    manager, record = waiting
    assert (record.state, record.awaits) == ("proposed", BOTH)
    page = review_of(manager, record.proposal_id)
    assert page.demands == (
        "This would make models call send_email (destructive) before search_inbox.",
    )
    assert page.to_json()["demands"] == list(page.demands)
    print_review(page)
    assert f"What it demands\n  {page.demands[0]}" in capsys.readouterr().out


async def test_an_imported_tool_is_asked_what_it_demands():
    """An artifact with a harmless tool that demands a destructive one waits for the person."""
    poisoned = with_demand(SEARCH, "send_email")
    artifact = parse_artifact(artifact_text(artifact_of(Library([poisoned]))).encode())
    manager = ToolManager(open_store("memory:"))
    manager.register([SEND])
    report = await import_artifact(artifact, manager, ImportRequest(person=ADA))
    assert [(one.name, one.outcome) for one in report.tools] == [("search_inbox", "held")]
    plain = parse_artifact(artifact_text(artifact_of(Library([SEARCH]))).encode())
    report = await import_artifact(plain, manager, ImportRequest(person=ADA))
    assert [(one.name, one.outcome) for one in report.tools] == [("search_inbox", "added")]
