from .code_writing import bind_code as bind_code
from .events import (
    Author as Author,
)
from .events import (
    LibraryEvent as LibraryEvent,
)
from .library import (
    Library as Library,
)
from .library import (
    nearest_names as nearest_names,
)
from .opening import open_store as open_store
from .replicas import Replica as Replica
from .store import (
    EpisodeFilter as EpisodeFilter,
)
from .store import (
    EpisodeStore as EpisodeStore,
)
from .store import (
    EventStore as EventStore,
)
from .store import (
    LibraryChange as LibraryChange,
)
from .store import (
    Store as Store,
)
from .store import (
    ToolRevision as ToolRevision,
)
from .store import (
    ToolStore as ToolStore,
)
