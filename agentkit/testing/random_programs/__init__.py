"""Random programs in the composite language, to compare an engine with another one.

``random_program(seed)`` makes the text and some arguments; ``ChildrenInUse`` gives the children
that it calls, each call logged. The project compares its own interpreter with CPython this way.
"""

from __future__ import annotations

from agentkit.testing.random_programs.children import (
    CHILDREN,
    ChildError,
    ChildrenInUse,
    ChildSpec,
    LoggedCall,
)
from agentkit.testing.random_programs.outcome import GUARDS, Outcome, code_of, difference, same
from agentkit.testing.random_programs.program import RandomProgram, random_program

__all__ = [
    "CHILDREN",
    "GUARDS",
    "ChildError",
    "ChildSpec",
    "ChildrenInUse",
    "LoggedCall",
    "Outcome",
    "RandomProgram",
    "code_of",
    "difference",
    "random_program",
    "same",
]
