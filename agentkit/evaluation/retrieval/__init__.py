"""How good retrieval is: corpora, figures and the methods that are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.evaluation.retrieval.apart import CorpusFiles, measure_apart
    from agentkit.evaluation.retrieval.corpus import (
        RetrievalCorpus,
        RetrievalQuery,
        load_corpus,
    )
    from agentkit.evaluation.retrieval.measure import measure_method
    from agentkit.evaluation.retrieval.methods import METHODS, Limits, Method, find_method
    from agentkit.evaluation.retrieval.report import MethodReport

__all__ = [
    "METHODS",
    "CorpusFiles",
    "Limits",
    "Method",
    "MethodReport",
    "RetrievalCorpus",
    "RetrievalQuery",
    "find_method",
    "load_corpus",
    "measure_apart",
    "measure_method",
]

_MODULES = {
    "METHODS": "agentkit.evaluation.retrieval.methods",
    "CorpusFiles": "agentkit.evaluation.retrieval.apart",
    "Limits": "agentkit.evaluation.retrieval.methods",
    "Method": "agentkit.evaluation.retrieval.methods",
    "MethodReport": "agentkit.evaluation.retrieval.report",
    "RetrievalCorpus": "agentkit.evaluation.retrieval.corpus",
    "RetrievalQuery": "agentkit.evaluation.retrieval.corpus",
    "find_method": "agentkit.evaluation.retrieval.methods",
    "load_corpus": "agentkit.evaluation.retrieval.corpus",
    "measure_apart": "agentkit.evaluation.retrieval.apart",
    "measure_method": "agentkit.evaluation.retrieval.measure",
}

__getattr__ = lazy_door(__name__, _MODULES)
