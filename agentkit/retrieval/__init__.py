"""3. Which tools the model gets to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.retrieval.cards import card, schema_text
    from agentkit.retrieval.cascade import CascadeRetriever, default_retriever, default_stages
    from agentkit.retrieval.goals import SubGoal
    from agentkit.retrieval.index.config import IndexConfig
    from agentkit.retrieval.index.lexical import FieldLengths, FieldWeights, LexicalChannel
    from agentkit.retrieval.index.tool_index import ToolIndex
    from agentkit.retrieval.mentions import NameIndex
    from agentkit.retrieval.retriever import Hit, Retrieval, Retriever
    from agentkit.retrieval.stages.exact_name import ExactName
    from agentkit.retrieval.stages.lexical import Lexical
    from agentkit.retrieval.survivors import Stage, Survivors
    from agentkit.retrieval.tokens import TokenCounter, estimate_tokens

__all__ = [
    "CascadeRetriever",
    "ExactName",
    "FieldLengths",
    "FieldWeights",
    "Hit",
    "IndexConfig",
    "Lexical",
    "LexicalChannel",
    "NameIndex",
    "Retrieval",
    "Retriever",
    "Stage",
    "SubGoal",
    "Survivors",
    "TokenCounter",
    "ToolIndex",
    "card",
    "default_retriever",
    "default_stages",
    "estimate_tokens",
    "schema_text",
]

_MODULES = {
    "CascadeRetriever": "agentkit.retrieval.cascade",
    "ExactName": "agentkit.retrieval.stages.exact_name",
    "FieldLengths": "agentkit.retrieval.index.lexical",
    "FieldWeights": "agentkit.retrieval.index.lexical",
    "Hit": "agentkit.retrieval.retriever",
    "IndexConfig": "agentkit.retrieval.index.config",
    "Lexical": "agentkit.retrieval.stages.lexical",
    "LexicalChannel": "agentkit.retrieval.index.lexical",
    "NameIndex": "agentkit.retrieval.mentions",
    "Retrieval": "agentkit.retrieval.retriever",
    "Retriever": "agentkit.retrieval.retriever",
    "Stage": "agentkit.retrieval.survivors",
    "SubGoal": "agentkit.retrieval.goals",
    "Survivors": "agentkit.retrieval.survivors",
    "TokenCounter": "agentkit.retrieval.tokens",
    "ToolIndex": "agentkit.retrieval.index.tool_index",
    "card": "agentkit.retrieval.cards",
    "default_retriever": "agentkit.retrieval.cascade",
    "default_stages": "agentkit.retrieval.cascade",
    "estimate_tokens": "agentkit.retrieval.tokens",
    "schema_text": "agentkit.retrieval.cards",
}

__getattr__ = lazy_door(__name__, _MODULES)
