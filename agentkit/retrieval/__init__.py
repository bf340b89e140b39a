"""3. Which tools the model gets to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.retrieval.cards import card, schema_text
    from agentkit.retrieval.cascade import CascadeRetriever, default_retriever, default_stages
    from agentkit.retrieval.mentions import NameIndex
    from agentkit.retrieval.rankers import FieldWeights, LexicalIndex, best
    from agentkit.retrieval.retriever import Hit, Retrieval, Retriever
    from agentkit.retrieval.stages import ExactName, Lexical
    from agentkit.retrieval.survivors import Stage, SubGoal, Survivors
    from agentkit.retrieval.tokens import TokenCounter, estimate_tokens

__all__ = [
    "CascadeRetriever",
    "ExactName",
    "FieldWeights",
    "Hit",
    "Lexical",
    "LexicalIndex",
    "NameIndex",
    "Retrieval",
    "Retriever",
    "Stage",
    "SubGoal",
    "Survivors",
    "TokenCounter",
    "best",
    "card",
    "default_retriever",
    "default_stages",
    "estimate_tokens",
    "schema_text",
]

_MODULES = {
    "CascadeRetriever": "agentkit.retrieval.cascade",
    "ExactName": "agentkit.retrieval.stages",
    "FieldWeights": "agentkit.retrieval.rankers",
    "Hit": "agentkit.retrieval.retriever",
    "Lexical": "agentkit.retrieval.stages",
    "LexicalIndex": "agentkit.retrieval.rankers",
    "NameIndex": "agentkit.retrieval.mentions",
    "Retrieval": "agentkit.retrieval.retriever",
    "Retriever": "agentkit.retrieval.retriever",
    "Stage": "agentkit.retrieval.survivors",
    "SubGoal": "agentkit.retrieval.survivors",
    "Survivors": "agentkit.retrieval.survivors",
    "TokenCounter": "agentkit.retrieval.tokens",
    "best": "agentkit.retrieval.rankers",
    "card": "agentkit.retrieval.cards",
    "default_retriever": "agentkit.retrieval.cascade",
    "default_stages": "agentkit.retrieval.cascade",
    "estimate_tokens": "agentkit.retrieval.tokens",
    "schema_text": "agentkit.retrieval.cards",
}

__getattr__ = lazy_door(__name__, _MODULES)
