"""Shipped doubles and suites, for our tests and yours. A name loads when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.testing.faulty_server import FaultyServer
    from agentkit.testing.function_model import FunctionModel
    from agentkit.testing.local_server import LocalServer
    from agentkit.testing.primitives import primitive_library
    from agentkit.testing.provider_server import ProviderServer
    from agentkit.testing.replay_model import ReplayModel
    from agentkit.testing.sample_definitions import sample_library
    from agentkit.testing.scripted_model import ScriptedModel
    from agentkit.testing.server_steps import (
        ErrorStatus,
        HalfStream,
        RawReply,
        RawStream,
        Reply,
        Reset,
        Stall,
    )
    from agentkit.testing.store_conformance import (
        EpisodeStoreConformance,
        EventStoreConformance,
        StoreConformance,
        ToolStoreConformance,
    )
    from agentkit.testing.tcp_proxy import TcpProxy

__all__ = [
    "EpisodeStoreConformance",
    "ErrorStatus",
    "EventStoreConformance",
    "FaultyServer",
    "FunctionModel",
    "HalfStream",
    "LocalServer",
    "ProviderServer",
    "RawReply",
    "RawStream",
    "ReplayModel",
    "Reply",
    "Reset",
    "ScriptedModel",
    "Stall",
    "StoreConformance",
    "TcpProxy",
    "ToolStoreConformance",
    "primitive_library",
    "sample_library",
]

_MODULES = {
    "EpisodeStoreConformance": "agentkit.testing.store_conformance",
    "ErrorStatus": "agentkit.testing.server_steps",
    "EventStoreConformance": "agentkit.testing.store_conformance",
    "FaultyServer": "agentkit.testing.faulty_server",
    "FunctionModel": "agentkit.testing.function_model",
    "HalfStream": "agentkit.testing.server_steps",
    "LocalServer": "agentkit.testing.local_server",
    "ProviderServer": "agentkit.testing.provider_server",
    "RawReply": "agentkit.testing.server_steps",
    "RawStream": "agentkit.testing.server_steps",
    "ReplayModel": "agentkit.testing.replay_model",
    "Reply": "agentkit.testing.server_steps",
    "Reset": "agentkit.testing.server_steps",
    "ScriptedModel": "agentkit.testing.scripted_model",
    "Stall": "agentkit.testing.server_steps",
    "StoreConformance": "agentkit.testing.store_conformance",
    "TcpProxy": "agentkit.testing.tcp_proxy",
    "ToolStoreConformance": "agentkit.testing.store_conformance",
    "primitive_library": "agentkit.testing.primitives",
    "sample_library": "agentkit.testing.sample_definitions",
}

__getattr__ = lazy_door(__name__, _MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)
