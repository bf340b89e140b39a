"""The door of the composite language."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from types import ModuleType

import agentkit.composites as door


def test_no_name_is_hidden_by_a_module_of_that_name(runtime_modules: Mapping[str, object]) -> None:
    """A name gives the same object whatever was imported before."""
    inside = {name.rpartition(".")[2] for name in runtime_modules if name.startswith(door.__name__)}
    assert inside & set(door.__all__) == set()
    assert not [name for name in door.__all__ if isinstance(getattr(door, name), ModuleType)]


def test_the_door_loads_no_parser() -> None:
    """An agent without composites pays for none of it."""
    code = (
        "import sys, agentkit.composites as door; door.READING_LIMITS\n"
        "print(sorted({'ast', 'inspect', 'difflib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    plain = (
        "import sys, dataclasses; print(sorted({'ast', 'inspect', 'difflib'} & set(sys.modules)))"
    )
    base = subprocess.run([sys.executable, "-c", plain], capture_output=True, text=True, check=True)
    assert run.stdout == base.stdout
