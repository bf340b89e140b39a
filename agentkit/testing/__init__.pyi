from .conformance.episodes import EpisodeStoreConformance as EpisodeStoreConformance
from .conformance.events import EventStoreConformance as EventStoreConformance
from .conformance.suite import StoreConformance as StoreConformance
from .conformance.tools import ToolStoreConformance as ToolStoreConformance
from .primitives import primitive_library as primitive_library
from .sample_tools import sample_library as sample_library
from .scripted_models import FunctionModel as FunctionModel, ScriptedModel as ScriptedModel
