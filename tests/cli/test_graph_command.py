"""``agentkit tools graph``, and what ``show`` and ``list`` tell of composites."""

import json
import re

import pytest

from agentkit import Library, ToolDefinition, open_store
from agentkit.composites.codec import program_to_json
from agentkit.composites.language import Call, ListLiteral, Program, Return
from agentkit.composites.source import compose
from agentkit.library import LibraryChange
from agentkit.testing import primitive_library

GROSS = """def gross_total(net: float, rate: float) -> float:
    "A net amount with tax."
    return add(net, mul(net, rate))
"""
BILL = """def bill(net: float, rate: float, rebate: float) -> float:
    "What a customer pays."
    return sub(gross_total(net, rate), rebate)
"""


@pytest.fixture
def keep(store_url):
    """Puts definitions into the store in one version."""

    def put(*definitions):
        store = open_store(store_url)
        version = len(store.versions())
        change = LibraryChange(proposal_id=f"p{version}", upserts=tuple(definitions))
        store.commit(change, expected_version=version)
        store.close()

    return put


@pytest.fixture
def shop(keep):
    """Three primitives that are used, one that is not, and bill over gross_total."""
    primitives = primitive_library()
    library = Library(primitives[name] for name in ("add", "mul", "sub", "mean"))
    for text in (GROSS, BILL):
        library = library.with_tools([compose(text, library.tools)])
    keep(*library.definitions)
    return library


def composite(name, *children):
    """A composite that calls ``children`` one after the other, without pins."""
    items = tuple(Call(child=child) for child in children)
    program = Program(parameters=(), body=(Return(value=ListLiteral(items=items)),))
    return ToolDefinition(name=name, body=program_to_json(program))


def test_the_graph_is_mermaid(invoke, shop):
    """Shapes by kind, an arrow a call; a name chooses a part."""
    told = invoke("tools", "graph").stdout
    assert told.startswith("flowchart TD\n")
    assert 'n4("bill<br/>depth 2, saves 2 calls")' in told
    assert 'n0(["add"])' in told
    assert told.count("-->") == 4
    part = invoke("tools", "graph", "gross_total").stdout
    assert ("add" in part, "mul" in part, "bill" in part) == (True, True, False)
    assert "mean" in invoke("tools", "graph", "mean").stdout


def test_names_can_not_break_out_of_a_label(invoke, keep):
    """Quotes, brackets, backslashes and markup in a name are text, and missing tools are marked."""
    name = 'a"]; b --> c <img src=x> \\" \\N &amp; `#`'
    keep(ToolDefinition(name=name), composite("c", name, "gone"))
    mermaid = invoke("tools", "graph").stdout
    assert '["gone<br/>not in the library"]:::missing' in mermaid
    label = re.search(r'n0\(\["(.*)"\]\)', mermaid)
    assert label
    plain = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), label[1])
    assert plain.replace(" ", "") == name.replace(" ", "")
    assert not set('"<>`') & set(label[1])


def test_json_has_nodes_and_edges(invoke, shop):
    """For programs: kinds, depths, sizes and faults."""
    found = json.loads(invoke("tools", "graph", "gross_total", "--json").stdout)
    assert found["library_version"] == 1
    assert found["nodes"][2] == {
        "name": "gross_total",
        "kind": "composite",
        "depth": 1,
        "saved_calls": 1,
    }
    assert found["edges"][0] == {"parent": "gross_total", "child": "add", "fault": None}


# --- show and list --------------------------------------------------------------------------------


def test_show_prints_the_program_of_a_composite(invoke, shop):
    """Its place in the DAG, its pins, who uses it, and a source that composes to the same."""
    told = invoke("tools", "show", "gross_total").stdout
    assert "depth    1\n" in told
    assert "saves    1 call\n" in told
    assert f"calls    add {shop['add'].definition.digest[:12]}\n" in told
    assert "used by  bill\n" in told
    source = told[told.index("def gross_total") :]
    again = compose(source, shop.without(["gross_total", "bill"]).tools)
    assert again.body == shop["gross_total"].definition.body
    assert again.signature == shop["gross_total"].definition.signature
    assert "def " not in invoke("tools", "show", "add").stdout
