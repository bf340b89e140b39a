"""What a run of a benchmark found: episodes to reports, reports side by side, reports to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.results.records import EvaluationReport
    from agentkit.evaluation.results.summary import summarise

__all__ = [
    "EvaluationReport",
    "summarise",
]

_MODULES = {
    "EvaluationReport": "agentkit.evaluation.results.records",
    "summarise": "agentkit.evaluation.results.summary",
}

__getattr__ = lazy_door(__name__, _MODULES)
