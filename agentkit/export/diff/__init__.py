"""What changed between two libraries, for reviewers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.export.diff.comparing import LibraryDiff, ToolChange, compare_libraries
    from agentkit.export.diff.contracts import ContractChange, contract_changes
    from agentkit.export.diff.page import diff_markdown, headline

_MODULES = {
    "ContractChange": "agentkit.export.diff.contracts",
    "LibraryDiff": "agentkit.export.diff.comparing",
    "ToolChange": "agentkit.export.diff.comparing",
    "compare_libraries": "agentkit.export.diff.comparing",
    "contract_changes": "agentkit.export.diff.contracts",
    "diff_markdown": "agentkit.export.diff.page",
    "headline": "agentkit.export.diff.page",
}

__all__ = [
    "ContractChange",
    "LibraryDiff",
    "ToolChange",
    "compare_libraries",
    "contract_changes",
    "diff_markdown",
    "headline",
]

__getattr__ = lazy_door(__name__, _MODULES)
