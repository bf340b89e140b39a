"""BFCL's multi-turn questions: simulated worlds that calls change, judged by what they did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.bfcl_multi_turn.environment import BfclEnvironment, BfclWorlds
    from agentkit.evaluation.bfcl_multi_turn.files import (
        CATEGORIES,
        SIMULATORS,
        fetch_bfcl_multi_turn,
        installed_bfcl,
    )
    from agentkit.evaluation.bfcl_multi_turn.loading import (
        ADDED_FUNCTIONS_REQUEST,
        load_bfcl_multi_turn,
    )

__all__ = [
    "ADDED_FUNCTIONS_REQUEST",
    "CATEGORIES",
    "SIMULATORS",
    "BfclEnvironment",
    "BfclWorlds",
    "fetch_bfcl_multi_turn",
    "installed_bfcl",
    "load_bfcl_multi_turn",
]

_MODULES = {
    "ADDED_FUNCTIONS_REQUEST": "agentkit.evaluation.bfcl_multi_turn.loading",
    "CATEGORIES": "agentkit.evaluation.bfcl_multi_turn.files",
    "SIMULATORS": "agentkit.evaluation.bfcl_multi_turn.files",
    "BfclEnvironment": "agentkit.evaluation.bfcl_multi_turn.environment",
    "BfclWorlds": "agentkit.evaluation.bfcl_multi_turn.environment",
    "fetch_bfcl_multi_turn": "agentkit.evaluation.bfcl_multi_turn.files",
    "installed_bfcl": "agentkit.evaluation.bfcl_multi_turn.files",
    "load_bfcl_multi_turn": "agentkit.evaluation.bfcl_multi_turn.loading",
}

__getattr__ = lazy_door(__name__, _MODULES)
