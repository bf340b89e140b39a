"""Histories as a whole: reading one from any store, copying, comparing and checking it."""

from __future__ import annotations

from agentkit.library.copying.changes import changes_of
from agentkit.library.copying.checking import StoreCheck, check_store
from agentkit.library.copying.comparing import Comparison, Extent, compare_stores
from agentkit.library.copying.copying import Amount, Copied, copy_store
from agentkit.library.copying.differences import Difference

__all__ = [
    "Amount",
    "Comparison",
    "Copied",
    "Difference",
    "Extent",
    "StoreCheck",
    "changes_of",
    "check_store",
    "compare_stores",
    "copy_store",
]
