"""What an agent makes for itself when it is constructed; loaded then, not at import.

Stores and the ranking of tools are a third of the runtime's modules, and many agents need neither.
"""

from __future__ import annotations

from agentkit import library, retrieval
from agentkit.library.store import Store
from agentkit.retrieval.retriever import Retriever


def opened_store(store: Store | str | None) -> Store | None:
    """The store behind a URL; a store, or none, is passed through."""
    return library.open_store(store) if isinstance(store, str) else store


def default_retriever() -> Retriever:
    """What ``retriever="auto"`` ranks a large library with."""
    return retrieval.default_retriever()
