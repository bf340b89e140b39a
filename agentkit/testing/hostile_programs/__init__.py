"""Programs that mean harm, or do it by mistake, to try a reader or an engine of composites on.

``REFUSED_PROGRAMS`` are outside the language; ``STOPPED_PROGRAMS`` are inside it and must be ended
by a limit. Both call the children of ``agentkit.testing.random_programs``.
"""

from __future__ import annotations

from agentkit.testing.hostile_programs.refused import REFUSED_PROGRAMS, RefusedProgram
from agentkit.testing.hostile_programs.stopped import STOPPED_PROGRAMS, StoppedProgram

__all__ = ["REFUSED_PROGRAMS", "STOPPED_PROGRAMS", "RefusedProgram", "StoppedProgram"]
