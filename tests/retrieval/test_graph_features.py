"""Where a tool stands in the DAG, checked against networkx."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.errors import ToolNotFoundError
from agentkit.retrieval import GraphFeatures, graph_features


def calling(name, *children):
    """A tool, or a composite that calls others; its program is not run here."""
    if not children:
        return ToolDefinition(name=name)
    calls = [{"kind": "Call", "child": child} for child in children]
    return ToolDefinition(name=name, body={"body": calls})


def graph_of(library):
    """The DAG as networkx has it."""
    return nx.DiGraph(dict(library.dag.children))


@st.composite
def graphs(draw):
    """Any graph of calls, with circles and missing tools."""
    names = [f"t{number}" for number in range(draw(st.integers(1, 12)))]
    targets = st.lists(st.sampled_from([*names, "missing"]), max_size=4)
    return Library([calling(name, *draw(targets)) for name in names])


@given(graphs())
def test_features_are_those_of_the_graph(library):
    """Depth, children and reachable tools are what networkx says, also in a broken library."""
    graph = graph_of(library)
    for tool in library:
        features = graph_features(library, tool.name)
        below = nx.descendants(graph, tool.name)
        assert set(features.children) == set(graph.successors(tool.name))
        assert features.subgraph_size == len(below | {tool.name})
        part = graph.subgraph(below | {tool.name})
        if nx.is_directed_acyclic_graph(part) and "missing" not in below:
            assert features.depth == nx.dag_longest_path_length(part)
        else:
            assert features.depth is None


def test_a_primitive_has_no_parts():
    """It stands at the bottom, and no DAG is worked out to say so."""
    library = Library([calling("one"), calling("two", "one")])
    assert graph_features(library, "one") == GraphFeatures(depth=0, children=(), subgraph_size=1)


def test_an_unknown_tool_is_an_error():
    """The message is that of the library."""
    with pytest.raises(ToolNotFoundError, match="nowhere"):
        graph_features(Library(), "nowhere")
