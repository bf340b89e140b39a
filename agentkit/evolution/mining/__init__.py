"""Composites mined from episodes, without asking any model.

``sources`` makes trajectories of episodes, ``dataflow`` finds where arguments came from,
``patterns`` finds recurring groups of calls, ``lifting`` makes programs of them, ``selection``
takes those that save most, ``candidates`` writes their definitions, ``rewriting`` puts them in the
place of calls and ``replaying`` proves that nothing else changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evolution.mining.candidates import ExampleRules, MinedComposite
    from agentkit.evolution.mining.dataflow import (
        Dataflow,
        FlowRules,
        Route,
        RouteEvidence,
        find_flows,
        trace_flows,
    )
    from agentkit.evolution.mining.inserting import insert_mined
    from agentkit.evolution.mining.lifting import Lifting, LiftingRules
    from agentkit.evolution.mining.miner import MiningResult, MiningRules, apply, mine
    from agentkit.evolution.mining.patterns import Pattern, PatternSearch, SearchLimits
    from agentkit.evolution.mining.replaying import Replay, replay
    from agentkit.evolution.mining.sources import is_success, trajectories_of
    from agentkit.evolution.mining.trajectory import Flow, Given, Step, Trajectory

__all__ = [
    "Dataflow",
    "ExampleRules",
    "Flow",
    "FlowRules",
    "Given",
    "Lifting",
    "LiftingRules",
    "MinedComposite",
    "MiningResult",
    "MiningRules",
    "Pattern",
    "PatternSearch",
    "Replay",
    "Route",
    "RouteEvidence",
    "SearchLimits",
    "Step",
    "Trajectory",
    "apply",
    "find_flows",
    "insert_mined",
    "is_success",
    "mine",
    "replay",
    "trace_flows",
    "trajectories_of",
]

_MODULES = {
    "Dataflow": "agentkit.evolution.mining.dataflow",
    "ExampleRules": "agentkit.evolution.mining.candidates",
    "Flow": "agentkit.evolution.mining.trajectory",
    "FlowRules": "agentkit.evolution.mining.dataflow",
    "Given": "agentkit.evolution.mining.trajectory",
    "Lifting": "agentkit.evolution.mining.lifting",
    "LiftingRules": "agentkit.evolution.mining.lifting",
    "MinedComposite": "agentkit.evolution.mining.candidates",
    "MiningResult": "agentkit.evolution.mining.miner",
    "MiningRules": "agentkit.evolution.mining.miner",
    "Pattern": "agentkit.evolution.mining.patterns",
    "PatternSearch": "agentkit.evolution.mining.patterns",
    "Replay": "agentkit.evolution.mining.replaying",
    "Route": "agentkit.evolution.mining.dataflow",
    "RouteEvidence": "agentkit.evolution.mining.dataflow",
    "SearchLimits": "agentkit.evolution.mining.patterns",
    "Step": "agentkit.evolution.mining.trajectory",
    "Trajectory": "agentkit.evolution.mining.trajectory",
    "apply": "agentkit.evolution.mining.miner",
    "find_flows": "agentkit.evolution.mining.dataflow",
    "insert_mined": "agentkit.evolution.mining.inserting",
    "is_success": "agentkit.evolution.mining.sources",
    "mine": "agentkit.evolution.mining.miner",
    "replay": "agentkit.evolution.mining.replaying",
    "trace_flows": "agentkit.evolution.mining.dataflow",
    "trajectories_of": "agentkit.evolution.mining.sources",
}

__getattr__ = lazy_door(__name__, _MODULES)
