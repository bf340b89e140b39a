"""Shipped doubles and suites, for our tests and yours. A name loads when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentkit.testing.function_model import FunctionModel
    from agentkit.testing.sample_definitions import sample_library
    from agentkit.testing.scripted_model import ScriptedModel
    from agentkit.testing.store_conformance import (
        EpisodeStoreConformance,
        ToolStoreConformance,
    )

__all__ = [
    "EpisodeStoreConformance",
    "FunctionModel",
    "ScriptedModel",
    "ToolStoreConformance",
    "sample_library",
]

_MODULES = {
    "EpisodeStoreConformance": "agentkit.testing.store_conformance",
    "FunctionModel": "agentkit.testing.function_model",
    "ScriptedModel": "agentkit.testing.scripted_model",
    "ToolStoreConformance": "agentkit.testing.store_conformance",
    "sample_library": "agentkit.testing.sample_definitions",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'agentkit.testing' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(module), name)
    globals()[name] = value  # the next look-up is a plain attribute
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
