"""How good retrieval is: corpora, figures and the methods that are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit_bench.retrieval.apart import CorpusFiles, measure_apart
    from agentkit_bench.retrieval.comparing import compare
    from agentkit_bench.retrieval.corpus import (
        RetrievalCorpus,
        RetrievalQuery,
        load_corpus,
    )
    from agentkit_bench.retrieval.equipment import Equipment
    from agentkit_bench.retrieval.measure import measure_method
    from agentkit_bench.retrieval.methods import METHODS, Limits, Method, find_method
    from agentkit_bench.retrieval.report import Comparison, MethodReport

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
    "METHODS": "agentkit_bench.retrieval.methods",
    "Comparison": "agentkit_bench.retrieval.report",
    "CorpusFiles": "agentkit_bench.retrieval.apart",
    "Equipment": "agentkit_bench.retrieval.equipment",
    "Limits": "agentkit_bench.retrieval.methods",
    "Method": "agentkit_bench.retrieval.methods",
    "MethodReport": "agentkit_bench.retrieval.report",
    "RetrievalCorpus": "agentkit_bench.retrieval.corpus",
    "RetrievalQuery": "agentkit_bench.retrieval.corpus",
    "compare": "agentkit_bench.retrieval.comparing",
    "find_method": "agentkit_bench.retrieval.methods",
    "load_corpus": "agentkit_bench.retrieval.corpus",
    "measure_apart": "agentkit_bench.retrieval.apart",
    "measure_method": "agentkit_bench.retrieval.measure",
}

__getattr__ = lazy_door(__name__, _MODULES)
