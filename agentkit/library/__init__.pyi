from .code_registration import bind_code as bind_code
from .events import Author as Author, LibraryEvent as LibraryEvent
from .library import Library as Library, nearest_names as nearest_names
from .opening import open_store as open_store
from .replicas import Replica as Replica
from .store import (
    AppliedChange as AppliedChange,
    EpisodeFilter as EpisodeFilter,
    EpisodeStore as EpisodeStore,
    EventStore as EventStore,
    LibraryChange as LibraryChange,
    Store as Store,
    ToolRevision as ToolRevision,
    ToolStore as ToolStore,
)
