"""3. Which tools the model gets to see."""

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
