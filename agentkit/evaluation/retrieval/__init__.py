"""How good retrieval is: corpora, figures and the methods that are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.retrieval.apart import CorpusFiles, measure_apart
    from agentkit.evaluation.retrieval.comparing import compare
    from agentkit.evaluation.retrieval.corpus import (
        RetrievalCorpus,
        RetrievalQuery,
        load_corpus,
    )
    from agentkit.evaluation.retrieval.equipment import Equipment
    from agentkit.evaluation.retrieval.measure import measure_method
    from agentkit.evaluation.retrieval.methods import METHODS, Limits, Method, find_method
    from agentkit.evaluation.retrieval.report import Comparison, MethodReport

__all__ = [
    "METHODS",
    "Comparison",
    "CorpusFiles",
    "Equipment",
    "Limits",
    "Method",
    "MethodReport",
    "RetrievalCorpus",
    "RetrievalQuery",
    "compare",
    "find_method",
    "load_corpus",
    "measure_apart",
    "measure_method",
]

_MODULES = {
    "METHODS": "agentkit.evaluation.retrieval.methods",
    "Comparison": "agentkit.evaluation.retrieval.report",
    "CorpusFiles": "agentkit.evaluation.retrieval.apart",
    "Equipment": "agentkit.evaluation.retrieval.equipment",
    "Limits": "agentkit.evaluation.retrieval.methods",
    "Method": "agentkit.evaluation.retrieval.methods",
    "MethodReport": "agentkit.evaluation.retrieval.report",
    "RetrievalCorpus": "agentkit.evaluation.retrieval.corpus",
    "RetrievalQuery": "agentkit.evaluation.retrieval.corpus",
    "compare": "agentkit.evaluation.retrieval.comparing",
    "find_method": "agentkit.evaluation.retrieval.methods",
    "load_corpus": "agentkit.evaluation.retrieval.corpus",
    "measure_apart": "agentkit.evaluation.retrieval.apart",
    "measure_method": "agentkit.evaluation.retrieval.measure",
}

__getattr__ = lazy_door(__name__, _MODULES)
