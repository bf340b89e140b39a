"""The stages that ship: callables that rank or narrow the survivors, one a file.

Each is an item in the list that ``CascadeRetriever(stages=[...])`` takes; order is meaning. The
scores that stages add are of the same size on purpose: a ranking adds between 0 and 1, a request
answered before up to 1.5, a mention by name 3 or more, so that it wins over both together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.retrieval.stages.abstraction import Abstraction
    from agentkit.retrieval.stages.coverage import Coverage
    from agentkit.retrieval.stages.description import Description
    from agentkit.retrieval.stages.exact_name import ExactName
    from agentkit.retrieval.stages.examples import Examples
    from agentkit.retrieval.stages.lexical import Lexical
    from agentkit.retrieval.stages.near_duplicates import NearDuplicates
    from agentkit.retrieval.stages.references import References
    from agentkit.retrieval.stages.signature import Signature, TypeScoring
    from agentkit.retrieval.stages.specification import (
        Judgement,
        Specification,
        SpecificationJudge,
    )

__all__ = [
    "Abstraction",
    "Coverage",
    "Description",
    "ExactName",
    "Examples",
    "Judgement",
    "Lexical",
    "NearDuplicates",
    "References",
    "Signature",
    "Specification",
    "SpecificationJudge",
    "TypeScoring",
]

_MODULES = {
    "Abstraction": "agentkit.retrieval.stages.abstraction",
    "Coverage": "agentkit.retrieval.stages.coverage",
    "Description": "agentkit.retrieval.stages.description",
    "ExactName": "agentkit.retrieval.stages.exact_name",
    "Examples": "agentkit.retrieval.stages.examples",
    "Judgement": "agentkit.retrieval.stages.specification",
    "Lexical": "agentkit.retrieval.stages.lexical",
    "NearDuplicates": "agentkit.retrieval.stages.near_duplicates",
    "References": "agentkit.retrieval.stages.references",
    "Signature": "agentkit.retrieval.stages.signature",
    "Specification": "agentkit.retrieval.stages.specification",
    "SpecificationJudge": "agentkit.retrieval.stages.specification",
    "TypeScoring": "agentkit.retrieval.stages.signature",
}

__getattr__ = lazy_door(__name__, _MODULES)
