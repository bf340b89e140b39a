from .artifact import (
    Artifact as Artifact,
)
from .artifact import (
    ArtifactChange as ArtifactChange,
)
from .artifact import (
    GateEvidence as GateEvidence,
)
from .artifact import (
    artifact_of as artifact_of,
)
from .file import (
    artifact_digest as artifact_digest,
)
from .file import (
    artifact_text as artifact_text,
)
from .file import (
    parse_artifact as parse_artifact,
)
from .file import (
    read_artifact as read_artifact,
)
from .file import (
    signed as signed,
)
from .file import (
    write_artifact as write_artifact,
)
from .importing import (
    ImportedTool as ImportedTool,
)
from .importing import (
    ImportReport as ImportReport,
)
from .importing import (
    ImportRequest as ImportRequest,
)
from .importing import (
    import_artifact as import_artifact,
)
from .store import (
    ArtifactStore as ArtifactStore,
)
from .store import (
    open_artifact as open_artifact,
)
from .store import (
    restore_artifact as restore_artifact,
)
