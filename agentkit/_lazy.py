"""The lazy door of a package: importing it loads nothing, each name loads its module on first use.

A module that needs a name on rare paths only takes it through the door (``from agentkit import
retrieval``, later ``retrieval.default_retriever()``); one that always needs it imports the module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def lazy_door(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """The module-level ``__getattr__`` of ``package`` (PEP 562).

    Args:
        package: Its ``__name__``.
        modules: For each public name the module that defines it.
    """

    def load(name: str) -> object:
        module = modules.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)  # the next look-up is a plain attribute
        return value

    return load
