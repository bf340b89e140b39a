"""The door of the composite language."""

from __future__ import annotations

import subprocess
import sys


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
