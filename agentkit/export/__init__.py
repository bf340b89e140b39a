"""9. Out of the library: artifacts, the formats of providers, and what a reviewer wants to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit._lazy import lazy_door

if TYPE_CHECKING:
    from agentkit.export.artifact import Artifact, ArtifactChange, GateEvidence, artifact_of
    from agentkit.export.file import (
        artifact_digest,
        artifact_text,
        parse_artifact,
        read_artifact,
        signed,
        write_artifact,
    )
    from agentkit.export.importing import ImportedTool, ImportReport, ImportRequest, import_artifact
    from agentkit.export.store import ArtifactStore, open_artifact, restore_artifact

_MODULES = {
    "Artifact": "agentkit.export.artifact",
    "ArtifactChange": "agentkit.export.artifact",
    "ArtifactStore": "agentkit.export.store",
    "GateEvidence": "agentkit.export.artifact",
    "ImportReport": "agentkit.export.importing",
    "ImportRequest": "agentkit.export.importing",
    "ImportedTool": "agentkit.export.importing",
    "artifact_digest": "agentkit.export.file",
    "artifact_of": "agentkit.export.artifact",
    "artifact_text": "agentkit.export.file",
    "import_artifact": "agentkit.export.importing",
    "open_artifact": "agentkit.export.store",
    "parse_artifact": "agentkit.export.file",
    "read_artifact": "agentkit.export.file",
    "restore_artifact": "agentkit.export.store",
    "signed": "agentkit.export.file",
    "write_artifact": "agentkit.export.file",
}

__all__ = [
    "Artifact",
    "ArtifactChange",
    "ArtifactStore",
    "GateEvidence",
    "ImportReport",
    "ImportRequest",
    "ImportedTool",
    "artifact_digest",
    "artifact_of",
    "artifact_text",
    "import_artifact",
    "open_artifact",
    "parse_artifact",
    "read_artifact",
    "restore_artifact",
    "signed",
    "write_artifact",
]

__getattr__ = lazy_door(__name__, _MODULES)
