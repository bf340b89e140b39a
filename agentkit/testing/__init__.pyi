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
)
from .server_steps import (
    HalfStream as HalfStream,
)
from .server_steps import (
    RawReply as RawReply,
)
from .server_steps import (
    RawStream as RawStream,
)
from .server_steps import (
    Reply as Reply,
)
from .server_steps import (
    Reset as Reset,
)
from .server_steps import (
    Stall as Stall,
)
from .store_conformance import (
    EpisodeStoreConformance as EpisodeStoreConformance,
)
from .store_conformance import (
    EventStoreConformance as EventStoreConformance,
)
from .store_conformance import (
    StoreConformance as StoreConformance,
)
from .store_conformance import (
    ToolStoreConformance as ToolStoreConformance,
)
from .tcp_proxy import TcpProxy as TcpProxy
