"""The ablation *text hierarchy*: descend a tree of summaries instead of the DAG of composites."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agentkit.library.library import Library
from agentkit.retrieval.candidates import Candidates
from agentkit.retrieval.embedders import Embedder
from agentkit.retrieval.retriever import SubGoal
from agentkit.retrieval.vectors import vector_text
from agentkit.retrieval.words import terms
from agentkit.tools.definition import ToolDefinition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROUNDS = 8
_WORDS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """A cluster, or a tool.

    Attributes:
        text: Its summary, the words that tell it from the rest of the library; for a tool its
            name and first sentence.
        children: Places of its children in ``TextTree.nodes``; empty for a tool.
        tool: The name of the tool; empty for a cluster.
    """

    text: str
    children: tuple[int, ...] = ()
    tool: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TextTree:
    """A tree over the tools of a library.

    Attributes:
        nodes: The root first, each child behind its parent; empty for an empty library.
        vectors: float32[nodes, dimensions], each of length 1, or 0 where nothing is known. Of a
            cluster it is the mean of its tools.
    """

    nodes: tuple[Node, ...]
    vectors: NDArray[np.float32]

    def children(self, places: Collection[int]) -> list[int]:
        """The children of some nodes, in order."""
        return [child for place in places for child in self.nodes[place].children]


def text_tree(
    definitions: Sequence[ToolDefinition], embedder: Embedder, branching: int
) -> TextTree:
    """Cluster tools from the top down until no cluster has more than ``branching`` children."""
    import numpy as np

    if not definitions:
        return TextTree(nodes=(), vectors=np.zeros((0, 1), np.float32))
    texts = [vector_text(definition) for definition in definitions]
    leaves = normalised(embedder.embed(texts))
    counts = _counts(texts)
    rarities = {word: math.log(1 + len(texts) / count) for word, count in counts.items()}
    nodes: list[Node] = []
    vectors: list[NDArray[np.float32]] = []
    waiting: list[tuple[int | None, NDArray[np.int64]]] = [(None, np.arange(len(definitions)))]
    while waiting:
        parent, members = waiting.pop(0)
        if parent is not None:
            children = (*nodes[parent].children, len(nodes))
            nodes[parent] = replace(nodes[parent], children=children)
        if len(members) == 1 and parent is not None:
            only = int(members[0])
            nodes.append(Node(text=texts[only], tool=definitions[only].name))
            vectors.append(leaves[only])
            continue
        summary = salient_words([texts[at] for at in members.tolist()], rarities)
        waiting += [(len(nodes), part) for part in _split(leaves, members, branching)]
        nodes.append(Node(text=summary))
        vectors.append(normalised(leaves[members].mean(axis=0, keepdims=True))[0])
    return TextTree(nodes=tuple(nodes), vectors=np.stack(vectors))


def salient_words(texts: Sequence[str], rarities: dict[str, float]) -> str:
    """The words that tell a cluster from the rest of the library, most telling first.

    Example:
        >>> salient_words(["a red car", "a red bus"], {"red": 2.0, "car": 1.0, "bus": 1.5})
        'red, bus, car'
    """
    weight = {word: count * rarities.get(word, 0.0) for word, count in _counts(texts).items()}
    ranked = sorted(weight, key=lambda word: (-weight[word], word))
    return ", ".join(ranked[:_WORDS])


def _counts(texts: Sequence[str]) -> Counter[str]:
    """In how many texts each word stands."""
    return Counter(word for text in texts for word in dict.fromkeys(terms(text)))


def _split(
    vectors: NDArray[np.float32], members: NDArray[np.int64], parts: int
) -> list[NDArray[np.int64]]:
    """Members in at most ``parts`` clusters; each on its own where there are no more than that."""
    import numpy as np

    if len(members) <= parts:
        return [members[at : at + 1] for at in range(len(members))]
    labels = _clusters(vectors[members], parts)
    found = [members[labels == label] for label in np.unique(labels)]
    if len(found) > 1:
        return found
    return np.array_split(members, parts)  # texts that are all alike can not be told apart


def _clusters(rows: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Spherical k-means; the first centres are far from each other, so it is deterministic."""
    import numpy as np

    centres = _far_apart(rows, count)
    labels = np.zeros(len(rows), np.int64)
    for _ in range(_ROUNDS):
        nearest = np.argmax(rows @ centres.T, axis=1)
        if (nearest == labels).all() and labels.any():
            break
        labels = nearest
        for label in np.unique(labels):
            centres[label] = rows[labels == label].mean(axis=0)
        centres = normalised(centres)
    return labels


def _far_apart(rows: NDArray[np.float32], count: int) -> NDArray[np.float32]:
    """Rows that are unlike each other: each next one is least like those before."""
    import numpy as np

    chosen = [int(np.argmax(rows @ rows.mean(axis=0)))]
    nearest = rows @ rows[chosen[0]]
    for _ in range(count - 1):
        chosen.append(int(np.argmin(nearest)))
        nearest = np.maximum(nearest, rows @ rows[chosen[-1]])
    return rows[chosen].copy()


def normalised(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1; rows of zeros stay."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows / np.where(lengths > 0, lengths, 1)).astype(np.float32)


class Hierarchy:
    """A stage that descends from the root, opening the ``beam`` most alike nodes of each layer.

    What it keeps are the tools that it meets, most alike first. What lies below a node that is not
    opened is lost: that is what a text hierarchy pays for reading few summaries. The tree has no
    cheap update, as one changed tool changes the clusters above it; it is built anew for each
    library.

    Args:
        embedder: From texts to vectors.
        branching: Children of a cluster at most.
        beam: Nodes opened a layer.
        keep: How many tools it keeps.
    """

    name = "text hierarchy"

    def __init__(
        self, embedder: Embedder, *, branching: int = 10, beam: int = 8, keep: int = 32
    ) -> None:
        self._embedder = embedder
        self._branching = branching
        self._beam = beam
        self._keep = keep
        self._built: tuple[str, TextTree] | None = None

    async def __call__(self, query: str, goal: SubGoal, candidates: Candidates) -> Candidates:
        """Keep the tools that the descent meets."""
        tree = self._tree(candidates.library)
        if not tree.nodes:
            return candidates
        likeness = self._likeness(tree, goal.intent)
        met, _ = descent(tree, likeness, self._beam)
        scores = {tree.nodes[place].tool: float(likeness[place]) for place in met}
        found = candidates.add(scores, reason="near in the text hierarchy", field="hierarchy")
        return found.best(self._keep)

    def summaries(self, text: str, library: Library) -> tuple[str, ...]:
        """The summaries read on the way down: what the hierarchy costs beside its cards."""
        tree = self._tree(library)
        if not tree.nodes:
            return ()
        _, read = descent(tree, self._likeness(tree, text), self._beam)
        return tuple(tree.nodes[place].text for place in read)

    def _tree(self, library: Library) -> TextTree:
        if self._built is None or self._built[0] != library.digest:
            tree = text_tree(library.definitions, self._embedder, self._branching)
            self._built = library.digest, tree
        return self._built[1]

    def _likeness(self, tree: TextTree, text: str) -> NDArray[np.float32]:
        likeness: NDArray[np.float32] = tree.vectors @ normalised(self._embedder.embed([text]))[0]
        return likeness


def descent(
    tree: TextTree, likeness: NDArray[np.float32], beam: int
) -> tuple[list[int], list[int]]:
    """Walk down a tree.

    Args:
        tree: At least one node.
        likeness: Of each node to what is looked for.
        beam: Nodes opened a layer; ties go to the earlier one.

    Returns:
        The tools met, and all clusters whose summary was read on the way.
    """
    met: list[int] = []
    read: list[int] = []
    layer = [0]
    while layer:
        opened = heapq.nsmallest(beam, layer, key=lambda place: (-likeness[place], place))
        below = tree.children(opened)
        met += [place for place in below if tree.nodes[place].tool]
        layer = [place for place in below if not tree.nodes[place].tool]
        read += layer
    return met, read
