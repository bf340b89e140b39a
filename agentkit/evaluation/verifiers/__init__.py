"""Ready verifiers: each judges an episode against one kind of expectation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.verifiers.combining import AllOf, AnyOf
    from agentkit.evaluation.verifiers.guard import guarded
    from agentkit.evaluation.verifiers.making import Scene, verifier_for

__all__ = ["AllOf", "AnyOf", "Scene", "guarded", "verifier_for"]

_MODULES = {
    "AllOf": "agentkit.evaluation.verifiers.combining",
    "AnyOf": "agentkit.evaluation.verifiers.combining",
    "Scene": "agentkit.evaluation.verifiers.making",
    "guarded": "agentkit.evaluation.verifiers.guard",
    "verifier_for": "agentkit.evaluation.verifiers.making",
}

__getattr__ = lazy_door(__name__, _MODULES)
