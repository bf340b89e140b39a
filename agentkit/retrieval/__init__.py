"""3. Which tools the model gets to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.retrieval.cards import card, schema_text
    from agentkit.retrieval.cascade import CascadeRetriever, default_retriever, default_stages
    from agentkit.retrieval.embedders import Embedder, FunctionEmbedder, as_embedder
    from agentkit.retrieval.features import GraphFeatures, graph_features
    from agentkit.retrieval.goals import SubGoal
    from agentkit.retrieval.index.channel import Channel
    from agentkit.retrieval.index.config import IndexConfig
    from agentkit.retrieval.index.examples import ExampleChannel
    from agentkit.retrieval.index.lexical import FieldLengths, FieldWeights, LexicalChannel
    from agentkit.retrieval.index.signatures import SignatureChannel
    from agentkit.retrieval.index.tool_index import ToolIndex
    from agentkit.retrieval.index.vectors import VectorChannel
    from agentkit.retrieval.mentions import NameIndex
    from agentkit.retrieval.paper.conditions import ConditionJudge
    from agentkit.retrieval.paper.judge import ModelJudge
    from agentkit.retrieval.planner import ModelPlanner, Plan, Planner, identity_plan
    from agentkit.retrieval.rankers import Ranker, Ranking
    from agentkit.retrieval.retriever import Hit, Retrieval, Retriever
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
    from agentkit.retrieval.survivors import Stage, Survivors
    from agentkit.retrieval.tokens import TokenCounter, estimate_tokens
    from agentkit.retrieval.typed_dag import Cascade, Level, TypedDagRetriever, paper_stages
    from agentkit.retrieval.variants.registry import VARIANTS, variant
    from agentkit.retrieval.word_vectors import StaticEmbedder

__all__ = [
    "VARIANTS",
    "Abstraction",
    "Cascade",
    "CascadeRetriever",
    "Channel",
    "ConditionJudge",
    "Coverage",
    "Description",
    "Embedder",
    "ExactName",
    "ExampleChannel",
    "Examples",
    "FieldLengths",
    "FieldWeights",
    "FunctionEmbedder",
    "GraphFeatures",
    "Hit",
    "IndexConfig",
    "Judgement",
    "Level",
    "Lexical",
    "LexicalChannel",
    "ModelJudge",
    "ModelPlanner",
    "NameIndex",
    "NearDuplicates",
    "Plan",
    "Planner",
    "Ranker",
    "Ranking",
    "References",
    "Retrieval",
    "Retriever",
    "Signature",
    "SignatureChannel",
    "Specification",
    "SpecificationJudge",
    "Stage",
    "StaticEmbedder",
    "SubGoal",
    "Survivors",
    "TokenCounter",
    "ToolIndex",
    "TypeScoring",
    "TypedDagRetriever",
    "VectorChannel",
    "as_embedder",
    "card",
    "default_retriever",
    "default_stages",
    "estimate_tokens",
    "graph_features",
    "identity_plan",
    "paper_stages",
    "schema_text",
    "variant",
]

_MODULES = {
    "VARIANTS": "agentkit.retrieval.variants.registry",
    "Abstraction": "agentkit.retrieval.stages.abstraction",
    "Cascade": "agentkit.retrieval.typed_dag",
    "CascadeRetriever": "agentkit.retrieval.cascade",
    "Channel": "agentkit.retrieval.index.channel",
    "ConditionJudge": "agentkit.retrieval.paper.conditions",
    "Coverage": "agentkit.retrieval.stages.coverage",
    "Description": "agentkit.retrieval.stages.description",
    "Embedder": "agentkit.retrieval.embedders",
    "ExactName": "agentkit.retrieval.stages.exact_name",
    "ExampleChannel": "agentkit.retrieval.index.examples",
    "Examples": "agentkit.retrieval.stages.examples",
    "FieldLengths": "agentkit.retrieval.index.lexical",
    "FieldWeights": "agentkit.retrieval.index.lexical",
    "FunctionEmbedder": "agentkit.retrieval.embedders",
    "GraphFeatures": "agentkit.retrieval.features",
    "Hit": "agentkit.retrieval.retriever",
    "IndexConfig": "agentkit.retrieval.index.config",
    "Judgement": "agentkit.retrieval.stages.specification",
    "Level": "agentkit.retrieval.typed_dag",
    "Lexical": "agentkit.retrieval.stages.lexical",
    "LexicalChannel": "agentkit.retrieval.index.lexical",
    "ModelJudge": "agentkit.retrieval.paper.judge",
    "ModelPlanner": "agentkit.retrieval.planner",
    "NameIndex": "agentkit.retrieval.mentions",
    "NearDuplicates": "agentkit.retrieval.stages.near_duplicates",
    "Plan": "agentkit.retrieval.planner",
    "Planner": "agentkit.retrieval.planner",
    "Ranker": "agentkit.retrieval.rankers",
    "Ranking": "agentkit.retrieval.rankers",
    "References": "agentkit.retrieval.stages.references",
    "Retrieval": "agentkit.retrieval.retriever",
    "Retriever": "agentkit.retrieval.retriever",
    "Signature": "agentkit.retrieval.stages.signature",
    "SignatureChannel": "agentkit.retrieval.index.signatures",
    "Specification": "agentkit.retrieval.stages.specification",
    "SpecificationJudge": "agentkit.retrieval.stages.specification",
    "Stage": "agentkit.retrieval.survivors",
    "StaticEmbedder": "agentkit.retrieval.word_vectors",
    "SubGoal": "agentkit.retrieval.goals",
    "Survivors": "agentkit.retrieval.survivors",
    "TokenCounter": "agentkit.retrieval.tokens",
    "ToolIndex": "agentkit.retrieval.index.tool_index",
    "TypeScoring": "agentkit.retrieval.stages.signature",
    "TypedDagRetriever": "agentkit.retrieval.typed_dag",
    "VectorChannel": "agentkit.retrieval.index.vectors",
    "as_embedder": "agentkit.retrieval.embedders",
    "card": "agentkit.retrieval.cards",
    "default_retriever": "agentkit.retrieval.cascade",
    "default_stages": "agentkit.retrieval.cascade",
    "estimate_tokens": "agentkit.retrieval.tokens",
    "graph_features": "agentkit.retrieval.features",
    "identity_plan": "agentkit.retrieval.planner",
    "paper_stages": "agentkit.retrieval.typed_dag",
    "schema_text": "agentkit.retrieval.cards",
    "variant": "agentkit.retrieval.variants.registry",
}

__getattr__ = lazy_door(__name__, _MODULES)
