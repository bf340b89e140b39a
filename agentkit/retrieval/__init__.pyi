from .cards import (
    card as card,
    schema_text as schema_text,
)
from .cascade import (
    CascadeRetriever as CascadeRetriever,
    default_retriever as default_retriever,
    default_stages as default_stages,
)
from .embedders import (
    Embedder as Embedder,
    FunctionEmbedder as FunctionEmbedder,
    as_embedder as as_embedder,
)
from .features import (
    GraphFeatures as GraphFeatures,
    graph_features as graph_features,
)
from .goals import SubGoal as SubGoal
from .index.channel import Channel as Channel
from .index.config import IndexConfig as IndexConfig
from .index.examples import ExampleChannel as ExampleChannel
from .index.lexical import (
    FieldLengths as FieldLengths,
    FieldWeights as FieldWeights,
    LexicalChannel as LexicalChannel,
)
from .index.signatures import SignatureChannel as SignatureChannel
from .index.tool_index import ToolIndex as ToolIndex
from .index.vectors import VectorChannel as VectorChannel
from .planner import (
    ModelPlanner as ModelPlanner,
    Plan as Plan,
    Planner as Planner,
    identity_plan as identity_plan,
)
from .rankers import (
    Ranker as Ranker,
    Ranking as Ranking,
)
from .retriever import (
    Hit as Hit,
    Retrieval as Retrieval,
    Retriever as Retriever,
)
from .stages.abstraction import Abstraction as Abstraction
from .stages.coverage import Coverage as Coverage
from .stages.description import Description as Description
from .stages.exact_name import ExactName as ExactName, NameIndex as NameIndex
from .stages.examples import Examples as Examples
from .stages.lexical import Lexical as Lexical
from .stages.near_duplicates import NearDuplicates as NearDuplicates
from .stages.references import References as References
from .stages.signature import (
    Signature as Signature,
    TypeScoring as TypeScoring,
)
from .stages.specification import (
    Judgement as Judgement,
    Specification as Specification,
    SpecificationJudge as SpecificationJudge,
)
from .survivors import (
    Stage as Stage,
    Survivors as Survivors,
)
from .tokens import (
    TokenCounter as TokenCounter,
    estimate_tokens as estimate_tokens,
)
from .word_vectors import StaticEmbedder as StaticEmbedder
