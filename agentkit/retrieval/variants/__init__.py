"""The retrievers that the typed cascade is compared with, all behind the same protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.retrieval.variants.dense import Dense, flat_dense
    from agentkit.retrieval.variants.flat_library import FlatLibrary
    from agentkit.retrieval.variants.hierarchy import Hierarchy, text_hierarchy
    from agentkit.retrieval.variants.registry import VARIANTS, variant
    from agentkit.retrieval.variants.text_tree import TextTree, TreeKind

__all__ = [
    "VARIANTS",
    "Dense",
    "FlatLibrary",
    "Hierarchy",
    "TextTree",
    "TreeKind",
    "flat_dense",
    "text_hierarchy",
    "variant",
]

_MODULES = {
    "VARIANTS": "agentkit.retrieval.variants.registry",
    "Dense": "agentkit.retrieval.variants.dense",
    "FlatLibrary": "agentkit.retrieval.variants.flat_library",
    "Hierarchy": "agentkit.retrieval.variants.hierarchy",
    "TextTree": "agentkit.retrieval.variants.text_tree",
    "TreeKind": "agentkit.retrieval.variants.text_tree",
    "flat_dense": "agentkit.retrieval.variants.dense",
    "text_hierarchy": "agentkit.retrieval.variants.hierarchy",
    "variant": "agentkit.retrieval.variants.registry",
}

__getattr__ = lazy_door(__name__, _MODULES)
