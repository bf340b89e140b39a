"""6. Why it failed: labels for turns, and failures in words that a model can act on.

``diagnose`` itself is in the module of its name: ``from agentkit.diagnosis.diagnose import diagnose``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.diagnosis.diagnose import diagnose_conversation
    from agentkit.diagnosis.wording import describe_failure

__all__ = ["describe_failure", "diagnose_conversation"]

_MODULES = {
    "describe_failure": "agentkit.diagnosis.wording",
    "diagnose_conversation": "agentkit.diagnosis.diagnose",
}

__getattr__ = lazy_door(__name__, _MODULES)
