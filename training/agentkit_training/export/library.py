"""The evolved library as the artifact that the runtime opens."""

from __future__ import annotations

import os
from pathlib import Path

from agentkit.evolution.repository import LibraryStore
from agentkit.interop.export import artifact_of, write_artifact
from agentkit.library.chain_check import verify_chain, verify_library
from agentkit.library.event_chain import Signer
from agentkit_training.errors import ExportError


def export_library(
    store: LibraryStore, path: str | os.PathLike[str], *, signer: Signer | None = None
) -> str:
    """Write a store's newest library as an artifact, with its history and the gates' evidence.

    Only what the Tool Manager wrote is exported: each library version must be told of by an event
    of a whole chain, and hold the definitions that the events say. What was written around the
    manager has passed no gate, and is refused.

    Args:
        store: The store that the Tool Manager of the training run wrote to.
        path: The file; one that ends in ``.gz`` is compressed.
        signer: Signs it.

    Returns:
        The digest of the content, for ``read_artifact(expected=...)``.

    Raises:
        ExportError: The history is not whole, or tells of less than the library holds.
        StoreError: The library holds no tool.
        OSError: The file can not be written.
    """
    events = store.events()
    found = [*verify_chain(events), *verify_library(store, events)]
    faults = [fault for fault in found if fault.code != "unchecked"]  # signatures: no key is here
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise ExportError(
            f"the library was not written by the Tool Manager alone: {faults[0].message}{more}. "
            "Make every change through it (agentkit.evolution.ToolManager), on a new store"
        )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    return write_artifact(artifact_of(store), path, signer=signer)
