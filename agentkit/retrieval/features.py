"""Graph features of a tool: where it stands in the DAG of composites (CoCoDA, Algorithm 2)."""

from __future__ import annotations

from dataclasses import dataclass

from agentkit.library.dag import reachable
from agentkit.library.library import Library


@dataclass(frozen=True, kw_only=True, slots=True)
class GraphFeatures:
    """The triple (d(v), Ch(v), |G_v|) that Algorithm 2 attaches to a tool that it returns.

    Attributes:
        depth: 0 for a primitive, 1 + the deepest child for a composite; None when the library is
            broken there (the tool is in or above a cycle, or above a tool that is missing).
        children: What it calls, each once.
        subgraph_size: How many tools can be reached from it, itself included.
    """

    depth: int | None = 0
    children: tuple[str, ...] = ()
    subgraph_size: int = 1


PRIMITIVE = GraphFeatures()
"""The features of every tool that calls nothing."""


def graph_features(library: Library, name: str) -> GraphFeatures:
    r"""A tool's place in the DAG of its library.

    Args:
        library: The library.
        name: A tool.

    Raises:
        ToolNotFoundError: The library has no such tool.

    Example:
        >>> from agentkit.testing import primitive_library
        >>> from agentkit.composites.source import compose
        >>> library = primitive_library()
        >>> text = "def plus(a: float, b: float) -> float:\n    return add(a, mul(a, b))"
        >>> library = library.with_tools([compose(text, library.tools)])
        >>> graph_features(library, "plus")
        GraphFeatures(depth=1, children=('add', 'mul'), subgraph_size=3)

    Cost: a look-up for a primitive, which needs no DAG; for a composite the tools and edges below.
    """
    if not library[name].definition.is_composite:
        return PRIMITIVE
    dag = library.dag
    return GraphFeatures(
        depth=dag.depths.get(name),
        children=dag.children[name],
        subgraph_size=len(reachable([name], dag.children)),
    )
