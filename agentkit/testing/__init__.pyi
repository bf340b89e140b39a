from .local_server import LocalServer as LocalServer
from .model_server import FaultyServer as FaultyServer, ProviderServer as ProviderServer
from .primitives import primitive_library as primitive_library
from .replay_model import ReplayModel as ReplayModel
from .sample_definitions import sample_library as sample_library
from .scripted_models import FunctionModel as FunctionModel, ScriptedModel as ScriptedModel
from .server_steps import (
    ErrorStatus as ErrorStatus,
    HalfStream as HalfStream,
    RawReply as RawReply,
    RawStream as RawStream,
    Reply as Reply,
    Reset as Reset,
    Stall as Stall,
)
from .store_conformance import (
    EpisodeStoreConformance as EpisodeStoreConformance,
    EventStoreConformance as EventStoreConformance,
    StoreConformance as StoreConformance,
    ToolStoreConformance as ToolStoreConformance,
)
from .unreliable_store import UnreliableStore as UnreliableStore
