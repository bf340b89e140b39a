"""Shipped doubles and suites, for our tests and yours. A name loads when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.testing.faulty_server import (
        ErrorStatus,
        FaultyServer,
        HalfStream,
        RawReply,
        RawStream,
        Reply,
        Reset,
        Stall,
    )
    from agentkit.testing.function_model import FunctionModel
    from agentkit.testing.primitives import primitive_library
    from agentkit.testing.replay_model import ReplayModel
    from agentkit.testing.sample_definitions import sample_library
    from agentkit.testing.scripted_model import ScriptedModel
    from agentkit.testing.store_conformance import (
        EpisodeStoreConformance,
        EventStoreConformance,
        ToolStoreConformance,
    )

__all__ = [
    "EpisodeStoreConformance",
    "ErrorStatus",
    "EventStoreConformance",
    "FaultyServer",
    "FunctionModel",
    "HalfStream",
    "RawReply",
    "RawStream",
    "ReplayModel",
    "Reply",
    "Reset",
    "ScriptedModel",
    "Stall",
    "ToolStoreConformance",
    "primitive_library",
    "sample_library",
]

_MODULES = {
    "EpisodeStoreConformance": "agentkit.testing.store_conformance",
    "ErrorStatus": "agentkit.testing.faulty_server",
    "EventStoreConformance": "agentkit.testing.store_conformance",
    "FaultyServer": "agentkit.testing.faulty_server",
    "FunctionModel": "agentkit.testing.function_model",
    "HalfStream": "agentkit.testing.faulty_server",
    "RawReply": "agentkit.testing.faulty_server",
    "RawStream": "agentkit.testing.faulty_server",
    "ReplayModel": "agentkit.testing.replay_model",
    "Reply": "agentkit.testing.faulty_server",
    "Reset": "agentkit.testing.faulty_server",
    "ScriptedModel": "agentkit.testing.scripted_model",
    "Stall": "agentkit.testing.faulty_server",
    "ToolStoreConformance": "agentkit.testing.store_conformance",
    "primitive_library": "agentkit.testing.primitives",
    "sample_library": "agentkit.testing.sample_definitions",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
