from .artifact import (
    Artifact as Artifact,
    artifact_of as artifact_of,
)
from .file import (
    artifact_digest as artifact_digest,
    artifact_text as artifact_text,
    parse_artifact as parse_artifact,
    read_artifact as read_artifact,
    signed as signed,
    write_artifact as write_artifact,
)
from .formats import (
    FORMATS as FORMATS,
    Rendering as Rendering,
    render as render,
)
from .importing import (
    ImportedTool as ImportedTool,
    ImportReport as ImportReport,
    ImportRequest as ImportRequest,
    import_artifact as import_artifact,
)
from .store import (
    ArtifactStore as ArtifactStore,
    open_artifact as open_artifact,
)
