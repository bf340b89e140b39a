from .faulty_server import FaultyServer as FaultyServer
from .function_model import FunctionModel as FunctionModel
from .local_server import LocalServer as LocalServer
from .primitives import primitive_library as primitive_library
from .provider_server import ProviderServer as ProviderServer
from .replay_model import ReplayModel as ReplayModel
from .sample_definitions import sample_library as sample_library
from .scripted_model import ScriptedModel as ScriptedModel
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
