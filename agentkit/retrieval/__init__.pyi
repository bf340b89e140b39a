from .candidates import (
    Candidates as Candidates,
    Stage as Stage,
)
from .cards import (
    TokenCounter as TokenCounter,
    card as card,
    estimate_tokens as estimate_tokens,
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
from .examples import (
    ExampleChannel as ExampleChannel,
    Examples as Examples,
)
from .in_hand import InHand as InHand, values_in_hand as values_in_hand
from .index import (
    Channel as Channel,
    IndexConfig as IndexConfig,
    Rows as Rows,
    ToolIndex as ToolIndex,
)
from .lexical import LexicalChannel as LexicalChannel
from .planner import (
    ModelPlanner as ModelPlanner,
    Plan as Plan,
    Planner as Planner,
    identity_plan as identity_plan,
)
from .ranking import TextRanker as TextRanker
from .references import References as References
from .retriever import (
    Hit as Hit,
    Retrieval as Retrieval,
    Retriever as Retriever,
    Slot as Slot,
    StepRetriever as StepRetriever,
    SubGoal as SubGoal,
)
from .vectors import VectorChannel as VectorChannel
from .word_vectors import (
    StaticEmbedder as StaticEmbedder,
    TrainedVectors as TrainedVectors,
)
